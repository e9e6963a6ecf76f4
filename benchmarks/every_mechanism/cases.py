"""The mechanisms of the table, with the peer's builder and an attained strategy where there is one.

A builder takes a sampling probability (1: no sampling) and the peer's keyword arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

import accountant as ac
from accountant import mechanisms as m
from every_mechanism import attained, peer

__all__ = ["CASES", "RATES", "Case"]

RATES = (1.0, 0.01)
SHIFTS, CHANCES = (0.0, 1.0, 2.0), (0.25, 0.5, 0.25)


class Case(NamedTuple):
    name: str
    release: Callable[[float], ac.Mechanism]
    peer: Callable[..., Any] | None = None
    # Releases of the same kind that neighbouring inputs attain; they bound ε from below where the
    # pair itself need not be attained by a composition.
    attained: Callable[[float], Iterator[ac.Mechanism]] | None = None


def poisson(mechanism: ac.Mechanism) -> Callable[[float], ac.Mechanism]:
    return lambda q: mechanism if q == 1.0 else ac.PoissonSampled(mechanism, q)


def group_of_four(q: float) -> ac.Mechanism:
    return poisson(ac.Gaussian(1.0))(q).group(4)


def logistic() -> ac.Mechanism:
    """Logistic noise of scale 1 on a number that one record moves by 1.

    The loss is t = 1 + 2·log((1 + z)/(1 + ez)), z = e^{-x}, in (-1, 1).
    """

    def outcome(t: Any) -> Any:
        with np.errstate(divide="ignore"):
            below = np.expm1(0.5 * (np.maximum(t, -1.0) + 1.0))
            above = -np.expm1(0.5 * (np.minimum(t, 1.0) - 1.0))
            return np.log(below) - np.log(above)

    def below(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(np.minimum(-x, 700.0)))

    return m.LossDistribution(
        lambda t: below(outcome(t) - 1.0),
        lambda t: below(1.0 - outcome(t)),
        lambda t: below(outcome(t)),
        lambda t: below(-outcome(t)),
        losses=(-1.0, 1.0),
        relative_error=1e-13,
    )


def normal() -> ac.Mechanism:
    """The loss of Gaussian noise with σ = 1, by its distribution functions."""
    return m.LossDistribution(
        lambda t: ndtr(t - 0.5),
        lambda t: ndtr(0.5 - t),
        lambda t: ndtr(t + 0.5),
        lambda t: ndtr(-0.5 - t),
        relative_error=1e-13,
    )


HALF = ac.Gaussian(1.0)  # its curve is α/2
P, Q = (0.6, 0.3, 0.1), (0.3, 0.45, 0.25)

CASES = (
    Case("Gaussian(1)", poisson(ac.Gaussian(1.0)), peer.gaussian),
    Case("Gaussian(1), groups of 4", group_of_four, peer.group_of_four),
    Case(
        "MixtureOfGaussians(1): shifts 0, 1, 2",
        poisson(ac.MixtureOfGaussians(1.0, sensitivities=SHIFTS, probabilities=CHANCES)),
        peer.mixture(SHIFTS, CHANCES),
    ),
    Case("Laplace(1)", poisson(ac.Laplace(1.0)), peer.laplace),
    Case("DiscreteLaplace(1)", poisson(ac.DiscreteLaplace(1.0)), peer.discrete_laplace(1)),
    Case(
        "DiscreteLaplace(1), sensitivity 3",
        poisson(ac.DiscreteLaplace(1.0, sensitivity=3)),
        peer.discrete_laplace(3),
    ),
    Case("DiscreteGaussian(1)", poisson(ac.DiscreteGaussian(1.0)), peer.discrete_gaussian),
    Case(
        "DiscreteGaussianVector(1)",
        poisson(ac.DiscreteGaussianVector(1.0)),
        attained=attained.released(ac.DiscreteGaussian(1.0)),
    ),
    Case("RandomizedResponse(1)", poisson(m.RandomizedResponse(1.0)), peer.response(1.0, 2)),
    Case(
        "RandomizedResponse(1), k = 4",
        poisson(m.RandomizedResponse(1.0, k=4)),
        peer.response(1.0, 4),
    ),
    Case(
        "ExponentialMechanism(1)",
        poisson(ac.ExponentialMechanism(1.0)),
        attained=attained.two_candidates(1.0),
    ),
    Case(
        "ReportNoisyMax(2), Gumbel noise",
        poisson(ac.ReportNoisyMax(2.0)),
        attained=attained.two_candidates(1.0),
    ),
    Case(
        "ReportNoisyMax(2), exponential noise (permute-and-flip)",
        poisson(ac.ReportNoisyMax(2.0, noise="exponential")),
        attained=attained.permute_and_flip(1.0),
    ),
    Case("PureDP(1)", poisson(ac.PureDP(1.0)), peer.response(1.0, 2)),
    Case(
        "ApproximateDP(1, 1e-18)",
        poisson(ac.ApproximateDP(1.0, delta=1e-18)),
        peer.stated(1.0, 1e-18),
    ),
    Case("DominatingPMFs of 3 outcomes", poisson(ac.DominatingPMFs(P, Q)), peer.masses(P, Q)),
    Case("LossDistribution of logistic noise", poisson(logistic())),
    Case("LossDistribution of normal noise", poisson(normal()), peer.gaussian),
    Case("ZCDP(1/2)", poisson(ac.ZCDP(0.5)), attained=attained.released(HALF)),
    Case(
        "RenyiCurve α/2",
        poisson(ac.RenyiCurve(lambda order: 0.5 * order)),
        attained=attained.released(HALF),
    ),
)
