"""Published calibrations of objective perturbation, by name, for comparison.

None is used by the package: each asks for more noise, or for more regularisation, than
:func:`~accountant.learn.convex.mechanism.calibrate_objective`. All are in the sum form, where λ is
the number of records times the regularisation of the mean form. The first two are stated for
replace-one, so a comparison under add-or-remove must say so.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from accountant.errors import DomainError
from accountant.learn.convex.dominating import ConvexNormalPair
from accountant.search import DOUBLES, boundary

__all__ = [
    "Published",
    "chaudhuri_monteleoni_sarwate",
    "kifer_smith_thakurta",
    "redberg_koskela_wang",
    "redberg_koskela_wang_delta",
]


def normal_profile(epsilon, mu):
    """Return an upper bound on Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ), at any real ε."""
    if mu == 0.0:
        return max(-math.expm1(epsilon), 0.0) if epsilon < 0.0 else 0.0
    pair = ConvexNormalPair(np.array([0.5 * mu * mu]), np.array([mu]))
    return float(pair.profile(epsilon).upper)


class Published(NamedTuple):
    """What a published theorem asks for: the total λ, and the scale of the noise."""

    regularization: float
    noise: float


def chaudhuri_monteleoni_sarwate(epsilon, *, regularization, slope, curvature):
    """Return λ and the scale s of noise of density ``exp(-|b| / s)``, pure ε, replace-one.

    Chaudhuri, Monteleoni and Sarwate, JMLR 12 (2011), Algorithm 2 and Theorem 9. ``slope`` and
    ``curvature`` bound one record's gradient and Hessian, so for rows of norm R and a logistic loss
    they are R and R²/4: the square is part of the theorem.
    """
    remaining = epsilon - 2.0 * math.log1p(curvature / regularization)
    if remaining > 0.0:
        return Published(regularization, 2.0 * slope / remaining)
    return Published(curvature / math.expm1(epsilon / 4.0), 4.0 * slope / epsilon)


def kifer_smith_thakurta(epsilon, delta, *, regularization, slope, curvature):
    """Return λ and the standard deviation of Gaussian noise, (ε, δ), replace-one.

    Kifer, Smith and Thakurta, COLT 2012, Algorithm 1 and Theorem 2, for Hessians of rank one.
    """
    lam = max(regularization, 2.0 * curvature / epsilon)
    noise = slope * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon
    return Published(lam, noise)


def redberg_koskela_wang_delta(epsilon, *, noise, regularization, slope, curvature):
    """Return δ of the Gaussian variant under add-or-remove, for λ above ``curvature``.

    Redberg, Koskela and Wang, NeurIPS 2023, Theorem 3.1.
    """
    if not (regularization > curvature):
        raise DomainError(
            f"regularization must be above the curvature bound {curvature!r} for this theorem; got"
            f" {regularization!r}. calibrate_objective has no such condition"
        )
    determinant = -math.log1p(-curvature / regularization)
    mu = slope / noise
    shifted = epsilon - determinant
    half = 0.5 * mu * mu
    if shifted - half >= 0.0:
        return min(2.0 * normal_profile(shifted, mu), 1.0)
    rest = math.exp(shifted - half)
    return min(1.0 - rest + 2.0 * rest * normal_profile(half, mu), 1.0)


def redberg_koskela_wang(epsilon, delta, *, regularization, slope, curvature):
    """Return λ and the least standard deviation for which their δ(ε) is at most ``delta``."""

    def cost(noise):
        return redberg_koskela_wang_delta(
            epsilon, noise=noise, regularization=regularization, slope=slope, curvature=curvature
        )

    guess = slope * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon
    cheap = DOUBLES.rank(min(guess * 1e6, sys.float_info.max / 4.0))
    rank = boundary(cost, delta, DOUBLES, guess, cheap, DOUBLES.rank(guess * 1e-4))
    if rank is None:
        raise DomainError(
            f"regularization must be above {curvature / -math.expm1(-epsilon):.6g} for this theorem"
            f" at epsilon {epsilon!r}; got {regularization!r}. calibrate_objective needs less"
        )
    return Published(regularization, DOUBLES.value(rank))
