"""The pair of random allocation: the mean of shifted normal laws against the unshifted one.

P = (1/T) Σ N(e_i, σ²I), Q = N(0, σ²I) in T dimensions; the loss is the logarithm of the mean of T
independent likelihood ratios. docs/theorems_sampling.md, Theorems S4, S5 and S10.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, lift, ratio_up, up
from accountant.bounds import Bounds
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.sampling.allocation_law import mean_law
from accountant.sampling.allocation_profile import profile_of
from accountant.sampling.lognormal import Law

if TYPE_CHECKING:
    from accountant.sampling.allocation_law import LatticeLaw


# Grid points of the law of a sum, by default: the bracket on δ is then about one percent wide.
POINTS = 1200
# A bracket of the transform that is wider, relatively, is narrowed by the laws.
WIDE = 1e-3

# The largest integer order that is summed exactly: its terms grow with the cube.
_MAX_ORDER = 128
# The largest exponent: exponentials stay within doubles, also when multiplied.
_LARGEST = 600.0


@dataclass(frozen=True)
class AllocationPair(AtomicPair):
    """One of ``steps`` Gaussian releases, picked uniformly; ``add`` is the reversed pair.

    Parameters
    ----------
    noise_multiplier : float
        σ.
    steps : int
        T >= 2.
    add : bool
        The reversed pair.
    upper : bool
        Whether the profile is bounded from above (else from below).
    points : int
        Grid points of the law.
    """

    noise_multiplier: float
    steps: int
    add: bool = False
    upper: bool = True
    points: int = POINTS

    def atoms(self) -> Atoms:
        """Return the atoms of the bounding law, losses moved to the safe side."""
        law, spacing = self._mean
        # Values are off by a relative value_error, so losses by as much, absolutely.
        return atoms_of(law, spacing, self._shift, add=self.add)

    @property
    def _mean(self) -> LatticeLaw:
        at = self.noise_multiplier, self.steps, self.points
        return mean_law(*at, self.upper)

    @property
    def _shift(self) -> float:
        law = self._mean.law
        return (2.0 * law.value_error + 8.0 * U) * (1.0 if self.upper else -1.0)

    @property
    def lattice(self) -> tuple[float, float] | None:
        """The losses of laws from the transform lie on a lattice, and those of every upper law."""
        spacing = self._mean.spacing
        return (self._shift, spacing) if spacing > 0.0 else None

    @property
    def pure_epsilon(self) -> float:
        """Infinite: no loss of Gaussian noise is bounded."""
        return math.inf

    def profile(self, epsilon: float) -> Bounds:
        """Bracket H(ε) of the pair itself, from both of its laws where its transform is hard."""
        found = profile_of(self.noise_multiplier, self.steps).delta_bounds(epsilon, self.add)
        if found.upper <= found.lower * (1.0 + WIDE) + 1e-300:
            return found
        other = replace(self, upper=not self.upper)
        above, below = (self, other) if self.upper else (other, self)
        upper = float(AtomicPair.profile(above, epsilon).upper)
        lower = float(AtomicPair.profile(below, epsilon).lower)
        upper = min(upper, float(found.upper))
        return Bounds(min(max(lower, float(found.lower)), upper), upper)

    def inverse_profile(self, delta: float) -> Bounds | None:
        """Bracket ε where H(ε) is ``delta``; None where the transform is hard."""
        return profile_of(self.noise_multiplier, self.steps).epsilon_bounds(delta, self.add)

    @property
    def mu(self) -> float:
        """1/σ: not telling which step was picked only hides (Theorem S2)."""
        return ratio_up(1.0, self.noise_multiplier)

    def rdp(self, order: float) -> float:
        """Return the divergence, rounded up (Theorem S10)."""
        return self.finite_rdp(order)

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of all losses, rounded up."""
        inverse = 1.0 / self.noise_multiplier
        plain = up(lift(0.5 * order * inverse * inverse), 8.0)
        if self.add:
            return min(plain, up(_add_log_moment(self, order) / (order - 1.0), 16.0))
        floor = math.floor(order)
        if floor + 1 > _MAX_ORDER:
            return plain
        low = log_moment(floor, self.steps, self.noise_multiplier)
        high = log_moment(floor + 1, self.steps, self.noise_multiplier) if order > floor else low
        # (α - 1)·D_α is convex in α and vanishes at one.
        between = low + (order - floor) * (high - low)
        return min(plain, up(between / (order - 1.0), 16.0))


def atoms_of(law: Law, spacing: float, shift: float, *, add: bool) -> Atoms:
    """Return the atoms of a law of the mean ratio, on a lattice if ``spacing`` > 0."""
    return (_add if add else _remove)(law, spacing, shift)


def _losses(values: FloatArray, spacing: float) -> FloatArray:
    loss = np.log(values)
    return spacing * np.round(loss / spacing) if spacing > 0.0 else loss


def _remove(law: Law, spacing: float, shift: float) -> Atoms:
    kept = law.values > 0.0
    values = law.values[kept]
    loss = _losses(values, spacing) + shift
    p = law.masses[kept] * values
    q = p * np.exp(-loss)
    return _atoms(loss, p, q, law.escaped, max(0.0, 1.0 - float(q.sum())), law)


def _add(law: Law, spacing: float, shift: float) -> Atoms:
    kept = (law.values > 0.0)[::-1]
    values = law.values[::-1][kept]
    loss = shift - _losses(values, spacing)
    p = law.masses[::-1][kept]
    q = p * np.exp(-loss)
    # A mass that underflowed is still there.
    infinite = max(float(law.masses[0]), 1e-300) if law.values[0] == 0.0 else 0.0
    return _atoms(loss, p, q, infinite, max(0.0, 1.0 - float(q.sum())), law)


def _atoms(
    loss: FloatArray, p: FloatArray, q: FloatArray, above: float, below: float, law: Law
) -> Atoms:
    error = law.mass_error + law.value_error + 64.0 * U
    kept = p > 1e-290
    spacing = 32.0 * U * (1.0 + float(np.abs(loss).max()))
    return Atoms(loss[kept], p[kept], q[kept], above, below, error, spacing)


@functools.lru_cache(maxsize=1024)
def log_moment(order: int, steps: int, noise_multiplier: float) -> float:
    """Return log E_Q[S^order], rounded up, S the mean of ``steps`` likelihood ratios.

    S^n sums over the ways in which n factors share k of the T steps, which depends only on how
    many fall on each, an integer partition of n; partitions with equal moments are summed together
    by partial Bell polynomials (Theorem S10). All terms are positive.
    """
    table = _bell(order, noise_multiplier)
    k = np.arange(1, min(order, steps) + 1)
    falling = np.cumsum(np.log((steps - k + 1.0) / steps))
    terms = table[k] + falling - (order - k) * math.log(steps)
    highest = float(terms.max())
    value = highest + math.log(float(np.exp(terms - highest).sum()))
    size = float(np.abs(terms).max()) + 0.5 * order * order / noise_multiplier**2
    slack = order * (16.0 * (size + order * math.log(steps)) + order + 64.0) * U
    return max(value, 0.0) + slack


@functools.lru_cache(maxsize=256)
def _bell(order: int, noise_multiplier: float) -> FloatArray:
    """Return log B_{order,k}(m_1, m_2, …), m_j = E[Y^j] = e^{j(j-1)/2σ²}, for k = 0 … order."""
    unit = 0.5 / noise_multiplier / noise_multiplier
    j = np.arange(1, order + 1, dtype=np.float64)
    moments = j * (j - 1.0) * unit
    factorials = np.array([math.lgamma(x + 1.0) for x in range(order + 1)])
    # rows[n][k] = log B_{n,k}; B_{n,k} = Σ_j C(n-1, j-1) m_j B_{n-j,k-1}.
    rows = np.full((order + 1, order + 1), -np.inf)
    rows[0, 0] = 0.0
    for n in range(1, order + 1):
        size = np.arange(1, n + 1)
        choose = factorials[n - 1] - factorials[size - 1] - factorials[n - size]
        weights = (choose + moments[:n])[:, None]
        rows[n, 1 : n + 1] = np.logaddexp.reduce(weights + rows[n - size, :n], axis=0)
    table: FloatArray = rows[order].copy()  # not a view, which would keep all rows
    table.flags.writeable = False
    return table


def _add_log_moment(pair: AllocationPair, order: float) -> float:
    """Return log E_Q[S^(1-α)], rounded up: on the grid, and by the geometric mean below it."""
    at = pair.noise_multiplier, pair.steps, pair.points
    law = mean_law(*at, True).law
    unit = 0.5 / pair.noise_multiplier / pair.noise_multiplier
    power = order - 1.0
    # The mean is at least the geometric mean, which is log-normal.
    closed = best = power * unit * (1.0 + power / pair.steps)
    values = law.values * (1.0 - 2.0 * law.value_error)
    spread = math.sqrt(2.0 * unit / pair.steps)
    for cut in (1e-12, 1e-9, 1e-6, 1e-3, 0.03, 0.1, 0.3, 0.5):
        floor = math.log(cut)
        # E[G^(1-α); G < cut]; G has log-mean -unit and log-deviation `spread`.
        score = (floor + unit) / spread + power * spread
        low = 0.5 * math.erfc(-score / math.sqrt(2.0)) * (1.0 + 1e-10) + 1e-300
        rest = math.log(low) + closed
        # Below the cut the tangent takes over: still convex, and finite at zero.
        log_values = np.log(np.maximum(values, cut))
        if -power * floor > _LARGEST or -order * floor > _LARGEST:
            continue
        excess = np.expm1(-power * log_values)
        tangent = power * np.maximum(cut - values, 0.0) * math.exp(-order * floor)
        grown = float(law.masses @ (excess + tangent)) + abs(float(law.masses.sum()) - 1.0)
        size = 1.0 + float(law.masses @ (np.abs(excess) + tangent))
        grown += (4.0 * law.mass_error + 1e-13) * size
        if rest < 600.0:
            best = min(best, math.log1p(grown + math.exp(rest)))
    return best
