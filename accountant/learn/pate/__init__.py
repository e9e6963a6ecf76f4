"""Private aggregation of teacher ensembles: teachers, noisy votes, a student."""

from accountant.learn.pate.aggregation import (
    DataDependentRelease,
    Refusal,
    VoteStream,
    release_data_dependent_epsilon,
)
from accountant.learn.pate.ensemble import PateResult, TeacherEnsemble, assign_shards, train_student
from accountant.learn.pate.votes import (
    GNMax,
    LNMax,
    data_dependent_rdp,
    gaussian_data_dependent_rdp,
    laplace_data_dependent_rdp,
    log_probability_of_another,
)

__all__ = [
    "DataDependentRelease",
    "GNMax",
    "LNMax",
    "PateResult",
    "Refusal",
    "TeacherEnsemble",
    "VoteStream",
    "assign_shards",
    "data_dependent_rdp",
    "gaussian_data_dependent_rdp",
    "laplace_data_dependent_rdp",
    "log_probability_of_another",
    "release_data_dependent_epsilon",
    "train_student",
]
