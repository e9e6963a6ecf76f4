"""The dominating pairs of a Poisson-sampled mechanism, by the capabilities of its pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, lift, product_up, up
from accountant.mechanisms.gaussian import GaussianPair
from accountant.pairs.atoms import AtomicPair
from accountant.pairs.base import (
    DominatingPair,
    GaussianMixture,
    Masses,
    has_pld,
    has_rdp,
)
from accountant.pairs.excess import (
    chord_excess,
    divergence,
    ends_of_sample,
    loss_of_sample,
    loss_of_sample_inverse,
    loss_of_the_rest,
)
from accountant.pairs.mixture_renyi import mixture_rdp
from accountant.sampling.sampled_atoms import SampledAtoms, curve_of_sample

# Cells of the chords of a Rényi divergence: fewer make it larger.
CELLS = 2048


def sampled(
    pair: DominatingPair, q: float, reverse: DominatingPair | None = None
) -> DominatingPair:
    """Choose the form that keeps most of what the pair offers; addition comes with its reverse."""
    add = reverse is not None
    if isinstance(pair, GaussianPair) and pair.sampling_probability == 1.0:
        if pair.noise_multiplier == math.inf:
            return pair
        return GaussianPair(pair.noise_multiplier, q, add, pair.exact)
    if isinstance(pair, AtomicPair):
        return SampledAtoms(pair, q, add, reverse)
    if has_pld(pair):
        known = has_rdp(pair) and (reverse is None or has_rdp(reverse))
        return (SampledPair if known else SampledLosses)(pair, q, add, reverse)
    return SampledCurve(pair, q, add, reverse)


@dataclass(frozen=True)
class SampledCurve(DominatingPair):
    """A Poisson-sampled mechanism of which only a Rényi curve is known.

    Parameters
    ----------
    inner : DominatingPair
        The pair (P, Q) of the direction.
    q : float
        Sampling probability in (0, 1).
    add : bool
        P against (1-q)P + qQ rather than (1-q)Q + qP against Q.
    reverse : DominatingPair, optional
        The pair of removal, whose curve an addition needs as well (Theorem M16); None where the
        inner pair serves both directions.
    """

    inner: DominatingPair
    q: float
    add: bool
    reverse: DominatingPair | None = None

    @property
    def infinite_mass(self) -> float:
        """Only a record that was used can be lost; an added one never is."""
        return 0.0 if self.add else product_up(self.q, self.inner.infinite_mass)

    @property
    def left_out(self) -> float:
        """What of it the inner pair did not list."""
        return 0.0 if self.add else product_up(self.q, self.inner.left_out)

    def pld_upper_pair(self) -> DominatingPair | None:
        """Return the sample of the inner one, which serves both directions (Theorem E1)."""
        inner = self.inner.pld_upper_pair()
        return inner and sampled(inner, self.q, inner if self.add else None)

    @property
    def variation(self) -> float:
        """Only a record that was used is seen."""
        return product_up(self.q, self.inner.variation)

    @property
    def _unhidden(self) -> DominatingPair:
        """The inner pair."""
        return self.inner

    @property
    def pure_epsilon(self) -> float:
        """log(1 + q(e^ε - 1)) for the inner ε: the largest loss of either direction (M6)."""
        inner = self.inner.pure_epsilon
        if not 0.0 < inner < 700.0:
            return inner
        return min(up(math.log1p(up(lift(self.q * math.expm1(inner)), 16.0)), 16.0), inner)

    def finite_rdp(self, order: float) -> float:
        """Return the amplified curve of the finite losses at any real order, rounded up."""
        return curve_of_sample(self.inner, self.reverse, self.q, self.add, order)


@dataclass(frozen=True)
class SampledPair(SampledCurve):
    """A Poisson-sampled pair with a loss distribution."""

    # That of the support, which is known.
    pure_epsilon = DominatingPair.pure_epsilon

    @property
    def support(self) -> tuple[float, float]:
        """The inner support, carried forward."""
        low, high = self.inner.support
        if self.add:
            # L' = -log(1 - q + q·e^{-L}); an infinite loss of P becomes -log(1 - q).
            low, high = -high, -low
            if self.inner.infinite_mass > 0.0:
                low = -math.inf
        low, high = ends_of_sample(self.q, low, high)
        if not self.add and self._has_negative_infinite_loss:
            low = min(low, loss_of_the_rest(self.q))
        return (-high, -low) if self.add else (low, high)

    @property
    def gaussian_mixture(self) -> GaussianMixture | None:
        """The inner shifts, each with q times its weight."""
        inner = self.inner.gaussian_mixture
        if inner is None:
            return None
        known = inner.no_shift > 0.0 or inner.always_shifted
        return inner._replace(
            weights=tuple(self.q * weight for weight in inner.weights),
            no_shift=(1.0 - self.q) + self.q * inner.no_shift if known else 0.0,
            always_shifted=inner.always_shifted and self.q == 1.0,
            weight_error=inner.weight_error + 4.0 * U,
            remainder=product_up(self.q, inner.remainder),
            add=self.add,
        )

    @property
    def _has_negative_infinite_loss(self) -> bool:
        """Whether Q has outcomes that P has not."""
        below = self.inner.support[0] - 1.0
        return below == -math.inf or bool(self.inner.masses(np.array([below])).q[0] > 0.0)

    @property
    def lattice(self) -> tuple[float, float] | None:
        """The two ends of the support, where the atoms of a bounded density lie."""
        low, high = self.inner.support
        if self.inner.lattice != (low, high - low) or self._has_negative_infinite_loss:
            return None
        ends = np.array([low, high])
        low, high = (
            -loss_of_sample(self.q, -ends) if self.add else loss_of_sample(self.q, ends)
        ).tolist()
        # Where q is next to nothing both ends may round to one double.
        return (low, high - low) if high > low else None

    @property
    def sharper_rdp(self) -> bool:
        """As the inner pair: its curve is the one amplified."""
        return self.inner.sharper_rdp

    @property
    def loss_error(self) -> float:
        """The inner error, which sampling does not enlarge, and the rounding of the edges."""
        ends = [abs(end) for end in self.support if math.isfinite(end)]
        size = max([*ends, 1.0]) + abs(math.log(self.q))
        # Losses without bound are a few units of their size off: as much as the inner ones are.
        unbounded = any(math.isinf(end) for end in self.inner.support)
        inner = self.inner.loss_error * (3.0 if unbounded else 1.0)
        return up(inner + 24.0 * U * size)

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses between edges, which are carried back to the inner pair."""
        edges = np.asarray(edges, dtype=np.float64)
        if self.add:
            return self._add(edges)
        below = int(np.searchsorted(edges, math.log1p(-self.q), side="left"))
        inner_edges = np.maximum.accumulate(loss_of_sample_inverse(self.q, edges[below:]))
        p, q, error = self.inner.masses(inner_edges)
        mixed = (1.0 - self.q) * q + self.q * p
        padding = np.zeros(below)
        return Masses(
            np.concatenate([padding, mixed]), np.concatenate([padding, q]), error + 4.0 * U
        )

    def _add(self, edges: FloatArray) -> Masses:
        # L' <= t exactly when -L' >= -t, so L = -log((e^{-t} - 1 + q)/q) is increasing in t.
        top = -math.log1p(-self.q)
        kept = int(np.searchsorted(edges, top, side="left"))
        inner_edges = np.maximum.accumulate(-loss_of_sample_inverse(self.q, -edges[:kept]))
        p, q, error = self.inner.masses(inner_edges)
        mixed = (1.0 - self.q) * p + self.q * q
        padding = np.zeros(edges.size - kept)
        return Masses(
            np.concatenate([p, padding]), np.concatenate([mixed, padding]), error + 4.0 * U
        )

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite losses, rounded up."""
        mixture = self.gaussian_mixture
        if mixture is not None and (known := mixture_rdp(mixture, order)) < math.inf:
            return known
        curve = super().finite_rdp(order)
        low, high = self.support
        if not (math.isfinite(low) and math.isfinite(high)):
            return curve
        return min(curve, divergence_of_masses(self, order))


@dataclass(frozen=True)
class SampledLosses(SampledPair):
    """A Poisson-sampled pair of which the loss distribution alone is known: no curve is asked."""

    rdp = DominatingPair.rdp
    finite_rdp = DominatingPair.finite_rdp


@lru_cache(maxsize=4096)
def divergence_of_masses(pair: DominatingPair, order: float) -> float:
    """Bound D_α by chords of x ↦ x^α - 1 - α(x - 1), x = e^L, over narrow cells (Theorem M17)."""
    # Exponentials, or differences of edges, that leave the doubles.
    if not 1e-280 < max(abs(end) for end in pair.support) < 700.0:
        return math.inf
    edges = np.linspace(*pair.support, CELLS)
    found, shift = pair.masses(edges), pair.loss_error
    # Nothing lies outside the support but round-off, which the end cells take in.
    p, q = found.p[1:-1].copy(), found.q[1:-1].copy()
    for column, masses in ((p, found.p), (q, found.q)):
        column[0] += masses[0]
        column[-1] += masses[-1]
    excess = chord_excess(order, edges, p, q, shift, found.relative_error)
    return divergence(lift(excess) * (1.0 + found.relative_error + 1e-11), order)
