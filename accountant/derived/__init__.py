"""Mechanisms whose pairs are computed from the profile of another mechanism.

``joint`` is several releases on one sample, one of several, or one on a sample under replace-one,
``repetition`` the best of a random number of runs, or the first that is good enough, and
``shuffle_model`` the reports of many users in random order.
"""

from accountant.derived.joint import AnyOf, JointRelease, SampledReplacement
from accountant.derived.repetition import BestOfPoissonRuns, BestOfRuns, FirstAboveThreshold
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
