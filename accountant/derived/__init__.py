"""Mechanisms whose pairs are computed from the profile of another mechanism.

``any_of`` is a cap on several mechanisms, ``joint`` several releases on one sample, ``repetition``
the best of a random number of runs, ``sampled_replacement`` a release on a sample under
replace-one, and ``shuffle_model`` the reports of many users in random order.
"""

from accountant.derived.any_of import AnyOf
from accountant.derived.first_above import FirstAboveThreshold
from accountant.derived.joint import JointRelease
from accountant.derived.repetition import BestOfPoissonRuns, BestOfRuns
from accountant.derived.sampled_replacement import SampledReplacement
from accountant.derived.shuffle_model import ShuffleModel

__all__ = [
    "AnyOf",
    "BestOfPoissonRuns",
    "BestOfRuns",
    "FirstAboveThreshold",
    "JointRelease",
    "SampledReplacement",
    "ShuffleModel",
]
