"""Several pairs as one pair: their product, the worst, or one by a public coin; and sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from accountant._basics.arrays import FloatArray
from accountant._basics.binding import bound
from accountant._basics.rounding import U, lift, sum_up, times_up, up
from accountant.bounds import Bounds
from accountant.pairs.base import DominatingPair, Masses, Parts, Problems, has_pld


def total(terms: Iterable[tuple[float, int]]) -> float:
    """Return Σ n·x over terms (x, n) with x >= 0, rounded up; n = 0 contributes nothing."""
    return sum_up([times_up(x, n) for x, n in terms if n])


def root_of_squares(terms: Iterable[tuple[float, int]]) -> float:
    """Return √(Σ n·x²) over terms (x, n) with x >= 0, rounded up."""
    found = [(x, n) for x, n in terms if n and x > 0.0]
    # In units of the largest, so that no square leaves the range of the doubles.
    most = max((x for x, _ in found), default=0.0)
    if most == 0.0 or most == math.inf or len(found) == found[0][1] == 1:
        return most
    squares = sum_up([times_up(up((x / most) ** 2, 4.0), n) for x, n in found])
    return up(most * math.sqrt(squares), 4.0)


def infinite_mass(parts: Sequence[tuple[DominatingPair, int]]) -> float:
    """Return the probability that any of the losses is infinite, rounded up."""
    return _at_least_one([(pair.infinite_mass, count) for pair, count in parts if count])


def variation(parts: Sequence[tuple[DominatingPair, int]]) -> float:
    """Bound the total variation distance of the product, rounded up: no δ is above it."""
    return _at_least_one([(pair.variation, count) for pair, count in parts if count])


def _at_least_one(terms: Sequence[tuple[float, int]]) -> float:
    """Return 1 - Π (1 - x)^n over terms (x, n), rounded up."""
    if len(terms) == 1 == terms[0][1]:
        return min(terms[0][0], 1.0)
    log_none = 0.0
    for mass, count in terms:
        if mass >= 1.0:
            return 1.0
        log_none += count * math.log1p(-mass)
    if log_none == 0.0:
        return 0.0
    return min(up(-math.expm1(log_none * (1.0 + 2.0**-48)), 16.0), 1.0)


@dataclass(frozen=True)
class ProductPair(DominatingPair):
    """The product of pairs: its Rényi curve, and a dominating pair.

    Parameters
    ----------
    parts : tuple of (DominatingPair, int)
        The pairs of one direction.
    problems : tuple of parts
        Every direction and alternative of the composition; empty where they are too many.
    """

    parts: Parts
    problems: Problems

    def pld_upper_pair(self) -> DominatingPair | None:
        """Return the pair of the joint profile, when all have a loss distribution (Theorem E1)."""
        return _joint(self.problems, (pair for pair, _ in self.parts))

    @property
    def support(self) -> tuple[float, float]:
        """The sums of the ends."""
        ends = [(n * low, n * high) for pair, n in self.parts if n for low, high in [pair.support]]
        low = -sum_up([-low for low, _ in ends])
        return low, sum_up([high for _, high in ends])

    @property
    def infinite_mass(self) -> float:
        """The mass of at least one infinite loss."""
        return infinite_mass(self.parts)

    @property
    def has_negative_infinite_loss(self) -> bool:
        """Whether any of the factors has such a loss."""
        return any(pair.has_negative_infinite_loss for pair, n in self.parts if n)

    @property
    def rho(self) -> float:
        """The sum."""
        return total((pair.rho, n) for pair, n in self.parts)

    @property
    def mu(self) -> float:
        """The root of the sum of squares (Dong, Roth, Su 2022, Corollary 3.3)."""
        return root_of_squares((pair.mu, n) for pair, n in self.parts)

    def rdp(self, order: float) -> float:
        """Return the sum of the divergences, rounded up."""
        return total((pair.rdp(order), n) for pair, n in self.parts)

    def finite_rdp(self, order: float) -> float:
        """Return the sum of the divergences of finite losses, rounded up."""
        return total((pair.finite_rdp(order), n) for pair, n in self.parts)


@dataclass(frozen=True)
class WorstPair(DominatingPair):
    """Bounds that hold for each of several pairs, and an upper pair.

    Parameters
    ----------
    choices : tuple of DominatingPair
        The pairs.
    problems : tuple of parts
        Whose largest profile is theirs; empty where they are too many.
    """

    choices: tuple[DominatingPair, ...]
    problems: Problems

    def pld_upper_pair(self) -> DominatingPair | None:
        """Return the pair of the largest profile, when all have a loss distribution (E1)."""
        return _joint(self.problems, self.choices)

    @property
    def support(self) -> tuple[float, float]:
        """The least and the largest of the ends."""
        lows, highs = zip(*(pair.support for pair in self.choices), strict=True)
        return min(lows), max(highs)

    @property
    def infinite_mass(self) -> float:
        """The largest."""
        return max(pair.infinite_mass for pair in self.choices)

    @property
    def has_negative_infinite_loss(self) -> bool:
        """Whether any of the pairs has such a loss."""
        return any(pair.has_negative_infinite_loss for pair in self.choices)

    @property
    def rho(self) -> float:
        """The largest."""
        return max(pair.rho for pair in self.choices)

    @property
    def mu(self) -> float:
        """The largest."""
        return max(pair.mu for pair in self.choices)

    def rdp(self, order: float) -> float:
        """Return the largest divergence."""
        return max(pair.rdp(order) for pair in self.choices)

    def finite_rdp(self, order: float) -> float:
        """Return the largest divergence of finite losses."""
        return max(pair.finite_rdp(order) for pair in self.choices)


@dataclass(frozen=True)
class BlendPair(DominatingPair):
    """``worse`` with probability ``weight``, else ``usual``; the coin is seen.

    The profile of ``worse`` must be nowhere below that of ``usual``, so that rounding ``weight`` up
    is safe.
    """

    weight: float
    worse: DominatingPair
    usual: DominatingPair

    @property
    def support(self) -> tuple[float, float]:
        """The union of both."""
        (a, b), (c, d) = self.worse.support, self.usual.support
        return min(a, c), max(b, d)

    @property
    def infinite_mass(self) -> float:
        """The blended mass."""
        return up(self._blend(self.worse.infinite_mass, self.usual.infinite_mass))

    @property
    def loss_error(self) -> float:
        """The larger of both."""
        return max(self.worse.loss_error, self.usual.loss_error)

    @property
    def variation(self) -> float:
        """The blended one."""
        worse, usual = self.worse.variation, self.usual.variation
        return min(up(lift(self._blend(worse, usual))), 1.0) if worse or usual else 0.0

    @property
    def mu(self) -> float:
        """The larger of both."""
        return max(self.worse.mu, self.usual.mu)

    @property
    def rho(self) -> float:
        """The larger of both."""
        return max(self.worse.rho, self.usual.rho)

    def _blend(self, worse: float, usual: float) -> float:
        return self.weight * worse + (1.0 - self.weight) * usual

    def masses(self, edges: FloatArray) -> Masses:
        """Blend the masses."""
        worse, usual = self.worse.masses(edges), self.usual.masses(edges)
        rest = 1.0 - self.weight
        return Masses(
            self.weight * worse.p + rest * usual.p,
            self.weight * worse.q + rest * usual.q,
            max(worse.relative_error, usual.relative_error) + 4.0 * U,
        )

    def rdp(self, order: float) -> float:
        """Return the divergence, rounded up: e^{(α-1)D} is blended."""
        worse, usual = self.worse.rdp(order) * (order - 1.0), self.usual.rdp(order) * (order - 1.0)
        # The usual divergence is no larger; a bound on it may be, by any factor.
        usual = min(worse, usual)
        if worse < 1.0:
            excess = self.weight * math.expm1(worse) + (1.0 - self.weight) * math.expm1(usual)
            return up(math.log1p(excess) / (order - 1.0), 64.0)
        if not worse < math.inf or self.weight == 0.0:
            return worse / (order - 1.0)
        if worse - usual > 690.0:
            return up(worse / (order - 1.0), 8.0)
        total = self.weight * math.exp(worse - usual) + (1.0 - self.weight)
        return up((usual + math.log(total)) / (order - 1.0) * (1.0 + 1e-14), 64.0)

    def profile(self, epsilon: float) -> Bounds:
        """Blend the profiles."""
        worse, usual = self.worse.profile(epsilon), self.usual.profile(epsilon)
        low = self._blend(float(worse.lower), float(usual.lower)) * (1.0 - 4.0 * U)
        high = self._blend(float(worse.upper), float(usual.upper)) * (1.0 + 4.0 * U)
        return Bounds(low, min(max(high, low), 1.0))


def worst(pairs: Iterable[DominatingPair], problems: Problems) -> DominatingPair:
    """Return one pair that dominates all; of nested pairs only the largest is kept.

    Of (subsampled) Gaussians that differ in their noise alone the one with the least dominates
    (Theorems M3, M6); ``problems`` have the largest profile of all.
    """
    found: list[DominatingPair] = []
    for pair in pairs:
        if pair not in found:
            found.append(pair)
    parts = [pair.gaussian_part for pair in found]
    known = [part for part in parts if part is not None]
    if len(known) == len(parts) and len({(q, q < 1.0 and add) for q, _, add, _ in known}) == 1:
        return found[min(range(len(known)), key=lambda i: known[i].noise_multiplier)]
    return found[0] if len(found) == 1 else WorstPair(tuple(found), problems)


def _joint(problems: Problems, pairs: Iterable[DominatingPair]) -> DominatingPair | None:
    """Return the pair made of the answers to the problems, when every pair has a loss law."""
    if not problems:
        return None
    known = all(has_pld(pair) or pair.pld_upper_pair() is not None for pair in pairs)
    found: DominatingPair | None = bound().joint(problems) if known else None
    return found
