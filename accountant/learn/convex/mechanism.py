"""Objective perturbation as a mechanism: the loss of its exact minimum, and its calibration."""

from __future__ import annotations

import math
import sys
from dataclasses import KW_ONLY, dataclass

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.calibration import calibrate_sigma
from accountant.errors import DomainError
from accountant.learn.convex.dominating import ConvexNormalPair, concave_majorant
from accountant.learn.convex.fit import DATA_NORM, REGULARIZATION
from accountant.learn.convex.losses import Logistic, Loss, Softmax, named_loss
from accountant.ledger import register
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.stated_guarantees import nothing
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation
from accountant.search import DOUBLES, boundary

NOISE = checks.positive("noise", "It is sigma of b")
# Nodes of the majorant of the tied loss: any number is sound, and more are tighter.
NODES = 300


@register
@dataclass(frozen=True, repr=False)
class ObjectivePerturbation(Mechanism):
    """The exact minimiser of Σ loss + (regularization/2)|θ|² + <b, θ>, b ~ N(0, noise² I).

    Parameters
    ----------
    loss : Loss or str
        A convex loss of linear scores; kept as its ``repr``, so that a ledger can be saved.
    data_norm : float
        Bound on the Euclidean norm of every row, an intercept's column included.
    regularization : float
        λ > 0, of the sum form.
    noise : float
        Standard deviation of every coordinate of b.

    Notes
    -----
    *Guarantee.* Its pair dominates both directions of add-or-remove at every ε, so it composes
    (docs/theorems_convex.md: V3 for the logistic loss, V4 for softmax, V5 for the others). It is
    not a Gaussian mechanism below the ε of Theorem V3, and is never recorded as one.
    """

    theorems = ("V3", "V4", "V5")
    about = "The exact minimiser of Σ loss + (regularization/2)|θ|² + <b, θ>, b ~ N(0, noise² I)."

    loss: Loss | str
    _: KW_ONLY
    data_norm: float
    regularization: float
    noise: float

    def __post_init__(self) -> None:
        loss = named_loss(self.loss) if isinstance(self.loss, str) else self.loss
        object.__setattr__(self, "loss", repr(loss))
        checks.real(DATA_NORM, self.data_norm)
        checks.real(REGULARIZATION, self.regularization)
        checks.real(NOISE, self.noise)

    relation = NeighbouringRelation.ADD_OR_REMOVE

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return one pair, which dominates both directions."""
        return (self.pair,)

    def from_below(self) -> Mechanism:
        """Return what releases nothing: no data are known to reach the bound."""
        return nothing(self.relation)

    @property
    def pair(self) -> ConvexNormalPair:
        """The dominating pair."""
        slope = self.data_norm / self.noise
        curvature = self.data_norm**2 / self.regularization
        loss = named_loss(str(self.loss))
        return dominating_pair(loss, slope * (1 + 1e-15), curvature * (1 + 1e-15))


def dominating_pair(loss: Loss, m: float, k: float) -> ConvexNormalPair:
    """Return the pair for m = data_norm / noise and k = data_norm² / regularization."""
    if isinstance(loss, Logistic):
        if k <= 0.5 * m * m * (1.0 - 1e-12):
            # V3: the Gaussian mechanism itself, below ε = 0 too, where the maximum with 0 is loose.
            return ConvexNormalPair(np.array([0.5 * m * m]), np.array([m]))
        return ConvexNormalPair(*_tied_lines(m, k))
    if isinstance(loss, Softmax):
        return ConvexNormalPair(*_softmax_lines(loss.classes, m, k), copies=loss.classes - 1)
    # V5: the determinant pays in full, the slope wherever it is largest.
    c = math.log1p(loss.curvature_bound * k)
    low, high = (m * slope for slope in loss.slopes)
    return ConvexNormalPair(
        np.array([c + 0.5 * low * low, c, c + 0.5 * high * high]), np.array([low, 0.0, high])
    )


def _tied_lines(m: float, k: float) -> tuple[FloatArray, FloatArray]:
    """Return lines above max_s (s m z + s² m²/2 + log(1 + k s (1 - s))), s in [0, 1] (V2, V3)."""

    def height(s: FloatArray) -> FloatArray:
        return np.asarray(0.5 * (s * m) ** 2 + np.log1p(k * s * (1.0 - s)))

    def derivative(s: FloatArray) -> FloatArray:
        return np.asarray(s * m * m + k * (1.0 - 2.0 * s) / (1.0 + k * s * (1.0 - s)))

    # With q = 1 + k s (1 - s) the second derivative is m² - k (k + 4 - 2q)/q²: negative exactly for
    # q below the root of m² q² + 2 k q - k (k + 4), so near both ends, or everywhere, or nowhere.
    root = k * (k + 4.0) / (k + math.sqrt(k * k + m * m * k * (k + 4.0)))
    inner = 1.0 - 4.0 * (root - 1.0) / k
    if root <= 1.0:
        s = np.array([0.0, 1.0])
        a = height(s)
    else:
        # Slightly inside the concave part; the rest is convex or nearly flat and gets its chord.
        edge = 0.5 * (1.0 - math.sqrt(inner)) * (1.0 - 1e-9) if inner > 0.0 else 0.5
        nodes = edge * 0.5 * (1.0 - np.cos(np.linspace(0.0, math.pi, NODES)))
        left = concave_majorant(nodes, height(nodes), derivative(nodes))
        mirror = 1.0 - nodes[::-1]
        right = concave_majorant(mirror, height(mirror), derivative(mirror))
        s, a = np.concatenate((left[0], right[0])), np.concatenate((left[1], right[1]))
    # Round-off in the heights; the ends s = 0 and s = 1 are exact to one rounding.
    inside = (s > 0.0) & (s < 1.0)
    return a + np.where(inside, 1e-13 * (1.0 + a), 0.0), m * s


def _softmax_lines(classes: int, m: float, k: float) -> tuple[FloatArray, FloatArray]:
    """Return lines above the loss as a function of the largest vertex loss V = m² + √2 m z (V4)."""
    shift = k - 0.5 * m * m
    if shift <= 0.0:
        t = np.array([0.0, 1.0])
        height = t * m * m
    else:
        bend = shift * classes / (classes - 1)
        nodes = np.linspace(0.0, 1.0, NODES)
        # As a function of V the line of t is t (V - m²) + height(t).
        t, height = concave_majorant(
            nodes, nodes * (2.0 * k - bend * nodes), 2.0 * (k - bend * nodes)
        )
        height = height + 1e-13 * (1.0 + height)
    return height, t * math.sqrt(2.0) * m


def calibrate_objective(
    loss: Loss, *, epsilon: float, delta: float, data_norm: float, regularization: float
) -> float:
    """Return the smallest noise for which the exact minimiser is (epsilon, delta)-private.

    Parameters
    ----------
    loss : Loss
        A convex loss of linear scores.
    epsilon, delta : float
        The guarantee wanted: ε > 0 finite, δ in (0, 1).
    data_norm, regularization : float
        As in :class:`ObjectivePerturbation`.

    Returns
    -------
    float
        The standard deviation of b's coordinates.

    Raises
    ------
    DomainError
        No noise suffices, because ε does not cover the loss's log-determinant; the message names
        the smallest admissible ``regularization``.

    Notes
    -----
    *Guarantee.* The pair of ``ObjectivePerturbation`` with these arguments has profile at
    most ``delta`` at ``epsilon``, for the noise returned. For the logistic loss with
    regularization >= data_norm² / epsilon it is the Gaussian mechanism's own
    (docs/theorems_convex.md, V3 to V5).

    *Algorithm.* Interpolation on the bit patterns of doubles; each evaluation is a closed form.
    """
    eps = checks.number(checks.TARGET_EPS, epsilon)
    target = checks.number(checks.TARGET_DELTA, delta)
    norm = checks.number(DATA_NORM, data_norm)
    lam = checks.number(REGULARIZATION, regularization)

    def cost(noise: float) -> float:
        pair = dominating_pair(loss, norm / noise * (1 + 1e-15), norm**2 / lam * (1 + 1e-15))
        return float(pair.profile(eps).upper)

    guess = calibrate_sigma(eps, target) * norm * loss.slope_bound
    cheap = DOUBLES.rank(min(guess * 1e6, sys.float_info.max / 4.0))
    rank = boundary(cost, target, DOUBLES, guess * 1.2, cheap, DOUBLES.rank(guess * 1e-3))
    if rank is None:
        raise _too_small(lam, eps, _least_regularization(loss, eps, norm))
    return DOUBLES.value(rank)


def _least_regularization(loss: Loss, epsilon: float, norm: float) -> float:
    """Return the λ below which the bounds give no finite noise."""
    if isinstance(loss, Logistic):
        # At infinite noise the loss is log(1 + k/4).
        return norm**2 * 0.25 / math.expm1(epsilon)
    if isinstance(loss, Softmax):
        # At infinite noise the loss is max_t of 2kt - k t² K/(K-1) = k (K-1)/K.
        return norm**2 * (1.0 - 1.0 / loss.classes) / epsilon
    return norm**2 * loss.curvature_bound / math.expm1(epsilon)


def pure_epsilon_for_noise(loss: Loss, epsilon: float, norm: float, lam: float) -> float:
    """Return the ε' left for noise of density exp(-ε'|b| / (slope_bound data_norm)) (V6)."""
    k = norm**2 / lam * (1.0 + 1e-15)
    if isinstance(loss, Logistic):
        if k <= epsilon:
            return epsilon
        # The least of (ε - log(1 + s(1-s)k)) / s: below at the nodes' tangents' meeting points.
        nodes = np.linspace(0.0, 1.0, 20_001)
        logs = np.log1p(k * nodes * (1.0 - nodes))
        slopes = k * (1.0 - 2.0 * nodes) / (1.0 + k * nodes * (1.0 - nodes))
        s, above = concave_majorant(nodes, logs, slopes)
        remaining = float(np.min((epsilon - above[1:] * (1.0 + 1e-12)) / s[1:]))
    elif isinstance(loss, Softmax):
        remaining = epsilon - (loss.classes - 1) * math.log1p(k / loss.classes)
    else:
        remaining = epsilon - math.log1p(loss.curvature_bound * k)
    if not (remaining > 0.0):
        least = _least_regularization(loss, epsilon, norm)
        if isinstance(loss, Softmax):
            others = loss.classes - 1
            least = norm**2 / (math.expm1(epsilon / others) * loss.classes)
        raise _too_small(lam, epsilon, least)
    return remaining


def _too_small(lam: float, epsilon: float, least: float) -> DomainError:
    return DomainError(
        f"regularization must be above {least:.6g} for this loss at epsilon {epsilon!r}; got"
        f" {lam!r}. Below it the log-determinant alone exceeds epsilon, whatever the noise"
    )
