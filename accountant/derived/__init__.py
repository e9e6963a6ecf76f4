"""Mechanisms whose pairs are computed from the profile of another mechanism.

``joint`` is several releases on one sample, or one of several, ``repetition`` the best of a random
number of runs, or the first that is good enough, ``sampled_replacement`` a release on a sample
under replace-one, and ``shuffle_model`` the reports of many users in random order.
"""

from accountant.derived.joint import AnyOf, JointRelease
from accountant.derived.repetition import BestOfPoissonRuns, BestOfRuns, FirstAboveThreshold
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
