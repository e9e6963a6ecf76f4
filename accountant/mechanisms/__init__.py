"""WHAT was released: frozen values, one family a file, each owning its mathematics.

``base`` is the protocol: a mechanism hands out dominating pairs, and analyses ask those for what
they need. ``answers`` has the questions every mechanism answers. Pairs that several families share
are in ``atoms`` (finitely many losses), ``profile_pair`` and ``flat`` (known by bounds on the
profile). A mechanism's Poisson-sampled pair is in :mod:`accountant.sampling`.
"""

from accountant.mechanisms.base import DominatingPair, GaussianPart, Masses, Mechanism
from accountant.mechanisms.black_boxes import ApproximateDP, PureDP, RandomizedResponse
from accountant.mechanisms.concentrated import ZCDP, RenyiCurve, TruncatedCDP
from accountant.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from accountant.mechanisms.discrete_vector import DiscreteGaussianVector
from accountant.mechanisms.gaussian import GDP, Gaussian
from accountant.mechanisms.given import DominatingPMFs, LossDistribution
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.mixture import MixtureOfGaussians
from accountant.mechanisms.repetition import BestOfPoissonRuns, BestOfRuns
from accountant.mechanisms.selection import AboveThreshold, ExponentialMechanism, ReportNoisyMax
from accountant.mechanisms.shuffling import ShuffledResponses
from accountant.mechanisms.smooth import SmoothSensitivityGaussian

__all__ = [
    "GDP",
    "ZCDP",
    "AboveThreshold",
    "ApproximateDP",
    "BestOfPoissonRuns",
    "BestOfRuns",
    "DiscreteGaussian",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
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
    "SmoothSensitivityGaussian",
    "TruncatedCDP",
]
