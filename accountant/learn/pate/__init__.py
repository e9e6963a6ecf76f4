"""Private aggregation of teacher ensembles: teachers, noisy votes, a student."""

from accountant.learn.pate.aggregation import GNMax, LNMax, Refusal, VoteStream
from accountant.learn.pate.bounds import (
    data_dependent_rdp,
    gaussian_data_dependent_rdp,
    laplace_data_dependent_rdp,
    log_probability_of_another,
)
from accountant.learn.pate.ensemble import PateResult, TeacherEnsemble, assign_shards, train_student
from accountant.learn.pate.sensitivity import DataDependentRelease, release_data_dependent_epsilon

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
