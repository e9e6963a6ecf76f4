"""Mechanisms, which describe releases as frozen values; one family a file.

``base`` has the interface: the dominating pairs of a mechanism, and the questions that analyses
answer. Pairs that several families share are in :mod:`accountant.pairs`, mechanisms that need the
profile of another one in :mod:`accountant.derived`, and Poisson-sampled pairs in
:mod:`accountant.sampling`.
"""

from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.concentrated import (
    ZCDP,
    RenyiCurve,
    SmoothSensitivityGaussian,
    TruncatedCDP,
)
from accountant.mechanisms.discrete import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteGaussianVector,
    DiscreteLaplace,
    Skellam,
)
from accountant.mechanisms.gaussian import GDP, Gaussian
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.mixture import MixtureOfGaussians
from accountant.mechanisms.selection import (
    AboveThreshold,
    ExponentialMechanism,
    ReportNoisyMax,
    ShuffledResponses,
)
from accountant.mechanisms.sparse_histogram import SparseHistogram
from accountant.mechanisms.stated_guarantees import (
    ApproximateDP,
    DominatedBy,
    PureDP,
    RandomizedResponse,
)
from accountant.mechanisms.user_defined import DominatingPMFs, LossDistribution
from accountant.pairs.base import DominatingPair, GaussianPart, Masses

__all__ = [
    "GDP",
    "ZCDP",
    "AboveThreshold",
    "ApproximateDP",
    "DiscreteGaussian",
    "DiscreteGaussianSum",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "DominatedBy",
    "DominatingPMFs",
    "DominatingPair",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianPart",
    "Laplace",
    "LossDistribution",
    "Masses",
    "Mechanism",
    "MixtureOfGaussians",
    "PureDP",
    "RandomizedResponse",
    "RenyiCurve",
    "ReportNoisyMax",
    "ShuffledResponses",
    "Skellam",
    "SmoothSensitivityGaussian",
    "SparseHistogram",
    "TruncatedCDP",
]
