"""A mixture of Gaussians: a random number of contributions under one noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, lift, ratio_up, up
from accountant.errors import DomainError, PrecisionError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import set_fields
from accountant.mechanisms.gaussian import GaussianPair
from accountant.pairs.base import DominatingPair, GaussianMixture, Masses
from accountant.pairs.excess import REACH, cells
from accountant.pairs.mixture_renyi import mixture_rdp
from accountant.relations import ADD_OR_REMOVE, ZERO_OUT, NeighbouringRelation

WEIGHT = checks.STATED_DELTA.renamed("probabilities", "They are the weights of the mixture")
STEPS = 200


@dataclass(frozen=True, repr=False)
class MixtureOfGaussians(Mechanism):
    """Gaussian noise on a sum to which one record contributes a random multiple.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise, > 0 and finite.
    sensitivities : sequence of float
        The ℓ2 norms Δᵢ >= 0 the contribution may have.
    probabilities : sequence of float
        Their probabilities, independent of the data; they sum to one.
    relation : NeighbouringRelation, keyword only
        Add-or-remove or zero-out; no theorem is known for replace-one.

    Notes
    -----
    *Guarantee.* Dominated, in both directions, by Σ pᵢ·N(Δᵢ, σ²) against N(0, σ²) (Choquette-Choo,
    Ganesh, Steinke, Thakurta 2024; docs/theorems_mechanisms.md, Theorem M15).

    Examples
    --------
    >>> import accountant as ac
    >>> mixture = ac.MixtureOfGaussians(1.0, sensitivities=[0.0, 1.0], probabilities=[0.99, 0.01])
    >>> single = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    >>> abs(mixture.delta(0.5) / single.delta(0.5) - 1.0) < 1e-3
    True
    """

    theorems = ("M15",)
    about = "Gaussian noise on a sum to which one record contributes a random multiple."

    noise_multiplier: float
    _: KW_ONLY
    sensitivities: tuple[float, ...]
    probabilities: tuple[float, ...]
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        sigma = checks.number(checks.NOISE_MULTIPLIER, self.noise_multiplier)
        if not (sigma < math.inf):
            raise DomainError("noise_multiplier must be finite; without a signal compose nothing")
        shifts, weights = _mixture(self.sensitivities, self.probabilities)
        set_fields(self, noise_multiplier=sigma, sensitivities=shifts, probabilities=weights)
        checks.supported_relation("MixtureOfGaussians", self.relation, (ADD_OR_REMOVE, ZERO_OUT))

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the pair and its reverse."""
        if max(self.sensitivities) == 0.0:
            return (GaussianPair(math.inf),)
        parts = self.noise_multiplier, self.sensitivities, self.probabilities
        return MixturePair(*parts), MixturePair(*parts, add=True)

    def under(self, relation: NeighbouringRelation) -> MixtureOfGaussians:
        """Return the same release under another relation."""
        return replace(self, relation=checks.relation(relation))


def _mixture(
    sensitivities: Sequence[float], probabilities: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Check and merge; the shifts come out distinct and increasing."""
    sensitivities = checks.sequence("sensitivities", sensitivities)
    probabilities = checks.sequence("probabilities", probabilities)
    if len(sensitivities) != len(probabilities) or len(sensitivities) == 0:
        raise DomainError(
            "sensitivities and probabilities must have one common length >= 1;"
            f" got {len(sensitivities)} and {len(probabilities)}"
        )
    merged: dict[float, float] = {}
    for shift, chance in zip(sensitivities, probabilities, strict=True):
        at = checks.number(checks.SENSITIVITY, shift)
        merged[at] = merged.get(at, 0.0) + checks.number(WEIGHT, chance)
    total = math.fsum(merged.values())
    if not (abs(total - 1.0) <= 1e-12):
        raise DomainError(f"probabilities must sum to one, to 1e-12; got {total!r}")
    kept = {at: chance for at, chance in sorted(merged.items()) if chance > 0.0}
    return tuple(kept), tuple(kept.values())


def repeated_draws(
    weights: tuple[float, ...],
    distance: float,
    *,
    add: bool = False,
    remainder: float = 0.0,
    error: float = 0.0,
    farthest: float = math.inf,
) -> MixturePair:
    """Return the pair of Σ w_k N(kμ, 1), k = 0 …, with this relative ``error`` of the weights."""
    shifts = tuple(k * distance for k in range(len(weights)))
    return MixturePair(1.0, shifts, weights, add, remainder, error, farthest)


@dataclass(frozen=True)
class MixturePair(DominatingPair):
    """Σ pᵢ·N(Δᵢ, σ²) against N(0, σ²), or the reverse.

    Parameters
    ----------
    sigma : float
        σ > 0.
    shifts, weights : tuple of float
        The Δᵢ >= 0, increasing, and the pᵢ > 0.
    add : bool
        The reversed pair.
    remainder : float
        An upper bound on the weight of larger shifts, which are not listed and count as infinite
        loss.
    stated_error : float, optional
        Relative error of the weights; that of their sum, which then is one, if left out.
    farthest : float
        The largest shift there is, listed or not, in deviations; infinite if unknown.
    """

    sigma: float
    shifts: tuple[float, ...]
    weights: tuple[float, ...]
    add: bool = False
    remainder: float = 0.0
    stated_error: float | None = None
    farthest: float = math.inf

    @property
    def _units(self) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(np.array(self.shifts) / self.sigma)

    @property
    def support(self) -> tuple[float, float]:
        """Bounded by log p₀ on one side when a contribution may be 0."""
        end = self._end
        return (-math.inf, -end) if self.add else (end, math.inf)

    @property
    def _end(self) -> float:
        """At or below the least loss of the mixture over the noise."""
        silent = self.weights[0] if self.shifts[0] == 0.0 else 0.0
        if silent == 0.0:
            return -math.inf
        if silent > 0.5 and self.stated_error is None:  # near one it is known by what it leaves
            present = math.fsum(self.weights[1:]) * (1.0 + self._weight_error)
            return math.log1p(-present) * (1.0 + 8.0 * U)
        least = math.log(silent)
        return least - 8.0 * U * (1.0 + abs(least)) - 1.01 * self._weight_error

    @property
    def _weight_error(self) -> float:
        """As stated, or of the nearest doubles of what they stand for, up to a common factor."""
        if self.stated_error is not None:
            return self.stated_error + U
        return abs(math.fsum(self.weights) - 1.0) + 4.0 * U

    @property
    def infinite_mass(self) -> float:
        """What was not listed (in the reversed pair P is normal, and nothing is)."""
        return 0.0 if self.add else up(self.remainder, 2.0)

    @property
    def left_out(self) -> float:
        """All of it: more shifts than are listed."""
        return self.infinite_mass

    @property
    def gaussian_mixture(self) -> GaussianMixture:
        """The mixture itself."""
        # The shifts of a group may be inexact, too.
        slip = 0.0 if all(shift.is_integer() for shift in self.shifts) else 4.0 * U
        silent = int(self.shifts[0] == 0.0)
        shifts, weights = self.shifts[silent:], self.weights[silent:]
        no_shift = self.weights[0] if silent else 0.0
        return GaussianMixture(
            self.sigma,
            shifts,
            weights,
            self.add,
            no_shift,
            self._weight_error,
            slip,
            self.remainder,
            always_shifted=not silent,
        )

    @property
    def variation(self) -> float:
        """At most Σ pᵢ·(2Φ(Δᵢ/2σ) - 1): that of a random shift that is told (convexity)."""
        roots = (ratio_up(shift, self.sigma) / math.sqrt(8.0) for shift in self.shifts)
        told = math.fsum(
            weight * math.erf(root) for weight, root in zip(self.weights, roots, strict=True)
        )
        # The weights add up to one within 1e-12, or are off by what is stated.
        slip = 1.0 + 4e-12 + (self.stated_error or 0.0)
        return min(lift(up(told * slip + self.remainder, 64.0)), 1.0)

    @property
    def loss_error(self) -> float:
        """The residual of the edges' inversion, and the loss's own rounding."""
        mu = self.shifts[-1] / self.sigma
        own = 64.0 * U * (2.0 + REACH * mu + mu * mu - math.log(min(self.weights)))
        # A relative error of the weights is an absolute one of the loss.
        return up(own + 2.0 * (self.stated_error or 0.0))

    @property
    def mu(self) -> float:
        """That of the largest shift: not telling how often only hides (Theorem S2)."""
        return self.farthest if self.remainder else ratio_up(self.shifts[-1], self.sigma)

    def finite_rdp(self, order: float) -> float:
        """Return that of the finite losses, or of the largest shift (quasi-convexity)."""
        return min(mixture_rdp(self.gaussian_mixture, order), up(order * self.rho))

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses between edges, which are carried back to the noise."""
        edges = np.asarray(edges, dtype=np.float64)
        if self.add:
            found = self._remove(-edges[::-1]).reverse()
            found.q[0] += self.remainder
            return found
        found = self._remove(edges)
        found.p[-1] += self.infinite_mass
        return found

    def _remove(self, edges: FloatArray) -> Masses:
        if not math.isfinite(self._units[-1]):  # its cells would have no number for a mass
            raise PrecisionError("the shifts over the noise must be doubles for a table of losses")
        below = int(np.searchsorted(edges, self._end, side="right"))
        x = np.maximum.accumulate(self._inverse(edges[below:]))
        q, error = cells(x, 0.0)
        p = np.zeros_like(q)
        for mean, weight in zip(self._units.tolist(), self.weights, strict=True):
            part, part_error = cells(x, mean)
            p += weight * part
            error = max(error, part_error)
        padding = np.zeros(below)
        error += (len(self.weights) + 16.0) * U
        rough = 2e-12 * (math.fsum(self.weights) != 1.0)
        error += rough if self.stated_error is None else self._weight_error
        return Masses(np.concatenate([padding, p]), np.concatenate([padding, q]), error)

    def _loss(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss at x, in standard deviations, and its slope."""
        means, logs = self._units.tolist(), np.log(np.array(self.weights)).tolist()
        top, total, slope = np.full_like(x, -np.inf), np.zeros_like(x), np.zeros_like(x)
        # Twice computed rather than kept: there may be many weights and many points. Squares of
        # shifts that leave the doubles make losses that are no numbers, and edges that stay.
        with np.errstate(over="ignore", invalid="ignore"):
            for mean, log in zip(means, logs, strict=True):
                top = np.maximum(top, log + mean * (x - 0.5 * mean))
            for mean, log in zip(means, logs, strict=True):
                term = np.exp(log + mean * (x - 0.5 * mean) - top)
                total += term
                slope += mean * term
            return top + np.log(total), slope / total

    def _inverse(self, edges: FloatArray) -> FloatArray:
        """Return x with loss ``edges``: Newton from the right, where a convex loss is monotone.

        Every loss there is checked: ``loss_error`` pays for what it is off by.
        """
        if edges.size == 0:
            return edges
        x, left = self._right_of(edges), np.arange(edges.size)
        # Left of 40 standard deviations there is nothing to separate, nor far on the right.
        mu = lift(float(self._units[-1]))
        least, most = -2.0 * REACH - mu, mu + 2.0 * REACH
        enough = 0.25 * self.loss_error
        for _ in range(STEPS):
            at = x[left]
            loss, slope = self._loss(at)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                over = loss - edges[left]
                step = over / slope
                # A step is infinite where no loss between the ends is so small.
                step = np.where(np.isnan(step), 0.0, np.maximum(step, 0.0))
                at = np.maximum(at - step, least)
            x[left] = at
            moved = (step > 4.0 * U * (np.abs(at) + 1.0)) & (at > least)
            left = left[moved & ~(over <= enough)]
            if left.size == 0:
                break
        with np.errstate(over="ignore", invalid="ignore"):
            over = self._loss(x)[0] - edges
        missed = ((over > 2.0 * enough) & (x > least)) | ((over < -2.0 * enough) & (x < most))
        if missed.any():
            raise PrecisionError(
                f"losses of a random shift must be inverted to within {2.0 * enough:.3g};"
                f" one is off by {float(np.abs(over[missed]).max()):.3g}"
            )
        return np.asarray(x)

    def _right_of(self, edges: FloatArray) -> FloatArray:
        """Return points at or right of those with loss ``edges``, which grow."""
        mu, weight = lift(float(self._units[-1])), self.weights[-1]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            # The largest mean alone gives at most the loss, so its inverse lies to the right.
            # Far on the right of the largest mean there is nothing to separate either.
            return np.minimum((edges - math.log(weight)) / mu + 0.5 * mu, mu + 2.0 * REACH)
