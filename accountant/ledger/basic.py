"""Sums that no order of composition rounds: largest losses, ρ, μ² (Theorems L18 and L19).

What a person writes are decimals, and ten releases of .1 fit a budget of 1. So the sums are of
rational numbers: a claimed ε is the decimal that was written, and Laplace noise costs its quotient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from accountant._basics.rounding import fraction_up
from accountant.composition import Composition
from accountant.composition.problems import symmetrised_pairs
from accountant.errors import AccountantError, UnsupportedError
from accountant.ledger.meters import (
    INFINITE,
    Charges,
    Limits,
    Meter,
    Remaining,
    short,
    unspent,
    used_part,
)
from accountant.mechanisms import GDP, ZCDP, ApproximateDP, Gaussian, Laplace, PureDP
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair

Price: TypeAlias = "Callable[[Mechanism], Fraction | float]"

# A double tells a decimal of this many digits from all others (Theorem L18 depends on it); a number
# with more digits was computed.
DIGITS = 15


def written(value: float) -> Fraction:
    """Return the decimal of at most 15 digits that a finite double is the nearest to, or itself.

    This is what somebody wrote who wrote a number. A computed one has more digits, and is taken for
    what it is, because its last digits may be there to be on the safe side.
    """
    text = repr(value)
    digits = text.partition("e")[0].replace(".", "").strip("-0")
    return Fraction(text) if len(digits) <= DIGITS else Fraction(value)


def rate(epsilon: float) -> Fraction:
    """Return the ε with which an exact sampler draws what ``PureDP(epsilon)`` is charged for.

    It is the lesser of the double and of the decimal that the ledger adds up.
    """
    return min(Fraction(epsilon), written(epsilon))


def loss(mechanism: Mechanism) -> tuple[Fraction | float, Fraction]:
    """Return the largest finite loss of either direction, and the mass of infinite ones (L18)."""
    if isinstance(mechanism, PureDP):
        return written(mechanism.epsilon0), Fraction(0)
    if isinstance(mechanism, ApproximateDP):
        return written(mechanism.epsilon0), written(mechanism.delta0)
    if isinstance(mechanism, Laplace) and mechanism.scale < math.inf:
        return Fraction(mechanism.distance) / Fraction(mechanism.scale), Fraction(0)
    if isinstance(mechanism, Composition):
        each = [(*loss(part), count) for part, count in mechanism.parts]
        if any(most == math.inf for most, _, _ in each):
            return math.inf, Fraction(0)
        total = sum((Fraction(most) * count for most, _, count in each), Fraction(0))
        return total, sum((mass * count for _, mass, count in each), Fraction(0))
    pairs = directions(mechanism)
    reach = max(0.0, *(pair.support[1] for pair in pairs))
    infinite = max(pair.infinite_mass for pair in pairs)
    return (Fraction(reach) if reach < math.inf else math.inf), Fraction(infinite)


def directions(mechanism: Mechanism) -> tuple[DominatingPair, DominatingPair]:
    """Return the pair of removing a record, and that of adding one."""
    pairs = symmetrised_pairs(mechanism)
    return pairs[0], pairs[-1]


def largest_loss(mechanism: Mechanism) -> Fraction | float:
    """Return the largest loss of either direction; inf where one may be infinite."""
    most, mass = _priced(mechanism)
    return math.inf if mass else most


def basic_epsilon(counts: Charges) -> float:
    """Return the sum of the largest losses, rounded once, up; inf where a loss may be infinite."""
    total, mass = summed(counts)
    return math.inf if mass else fraction_up(Fraction(total))


class SumMeter(Meter):
    """One sum of rational prices, which must not exceed a decimal."""

    def __init__(self, capacity: Fraction, price: Price, unit: str) -> None:
        super().__init__(1)
        self.capacity, self._price, self._unit = capacity, price, unit

    def cost(self, mechanism: Mechanism) -> tuple[int | Fraction, ...]:
        """Return the price."""
        price = self._price(mechanism)
        return (INFINITE if price == math.inf else Fraction(price),)

    def holds(self, sums: Sequence[int | Fraction]) -> bool:
        """Tell whether the sum is within the capacity."""
        return sums[0] <= self.capacity

    def remaining(self) -> Remaining:
        """Describe the sum."""
        return _described(Fraction(self._spent[0]), self.capacity, self._unit)

    def epsilon_of(self, sums: Sequence[int | Fraction]) -> float:
        """Return the sum."""
        return fraction_up(Fraction(sums[0]))


class BestOf(Meter):
    """A filter, or else basic composition of everything: what either allows is allowed (L18).

    Its sums are those of the filter, then the largest losses and the masses of infinite ones.
    ``room`` is the part of δ that the filter keeps for masses, which also pays for what the losses
    are above ε by a hair: (ε + η, δ) is (ε, δ + η).
    """

    def __init__(self, inner: Meter, budget: Limits, room: float) -> None:
        super().__init__(inner.size + 2)
        self.inner, self.quick = inner, inner.quick
        self._epsilon, self._room = written(budget.epsilon), written(room)

    def cost(self, mechanism: Mechanism) -> tuple[int | Fraction, ...]:
        """Return what the filter adds up, and the largest loss with the mass beyond it."""
        most, mass = _priced(mechanism)
        price = INFINITE if most == math.inf else Fraction(most)
        return (*self.inner.cost(mechanism), price, mass)

    def holds(self, sums: Sequence[int | Fraction]) -> bool:
        """Tell whether the filter holds, or the sum of the largest losses."""
        own, (total, mass) = sums[:-2], sums[-2:]
        return self.inner.holds(own) or fits(
            total, mass, self._epsilon, self._room, lambda: self.inner.beyond(own)
        )

    def reserve(self, menu: Charges) -> None:
        """Set aside what a plan costs, by the filter and by the sum."""
        super().reserve(menu)
        self.inner.reserve(menu)
        self._spent[:-2] = self.inner._spent

    def remaining(self) -> Remaining:
        """Describe which of the two has more left, the filter where they are alike."""
        self.inner._spent = self._spent[:-2]
        total, mass = self._spent[-2:]
        by_sum = min(
            _described(Fraction(total), self._epsilon, "ε, in nats"),
            _described(Fraction(mass), self._room, "δ of the releases"),
            key=_least_used,
        )
        found = max(self.inner.remaining(), by_sum, key=_least_used)
        if found.spent > found.capacity and self.holds(self._spent):  # by a hair that δ pays for
            found = found._replace(spent=found.capacity)
        return found

    def epsilon_of(self, sums: Sequence[int | Fraction]) -> float:
        """Return the lesser ε, of the filter or of the largest losses."""
        total = fraction_up(Fraction(sums[-2])) if sums[-1] <= self._room else math.inf
        return min(self.inner.epsilon_of(sums[:-2]), total)


def fits(
    total: int | Fraction,
    mass: int | Fraction,
    epsilon: Fraction,
    room: Fraction,
    beyond: Callable[[], Fraction] = Fraction,
) -> bool:
    """Tell whether a sum is within ε, or above it by no more than a part of δ has room for.

    ``beyond`` is what else that part pays for.
    """
    hair = max(total - epsilon, Fraction(0))
    if not hair and not mass:
        return True
    return hair + mass <= room and hair + max(Fraction(mass), beyond()) <= room


def summed(counts: Iterable[tuple[Mechanism, int]]) -> tuple[int | Fraction, Fraction]:
    """Return the sum of the largest losses, and that of the masses of infinite ones."""
    total, mass = Fraction(0), Fraction(0)
    for mechanism, count in counts:
        most, beyond = _priced(mechanism)
        if most == math.inf:
            return INFINITE, Fraction(0)
        total, mass = Fraction(short(total + count * Fraction(most))), mass + count * beyond
    return total, mass


def _described(spent: Fraction, capacity: Fraction, unit: str) -> Remaining:
    used = used_part(spent, capacity)
    return Remaining(fraction_up(spent), float(capacity), unit, unspent(used))


def _least_used(each: Remaining) -> tuple[float, bool]:
    return each.fraction, each.spent <= each.capacity


def limit(budget: Limits) -> SumMeter | None:
    """Return the meter of a budget that is one sum: pure, in ρ or in μ; None for others."""
    if budget.filter == "pure":
        return SumMeter(written(budget.epsilon), partial(_pure_loss, budget.epsilon), "ε, in nats")
    if budget.level is None:
        return None
    level = written(budget.level)
    if budget.filter == "zcdp":
        return SumMeter(level, _rho, "ρ")
    return SumMeter(level**2, squared_mu, "squared μ")


def _priced(mechanism: Mechanism) -> tuple[Fraction | float, Fraction]:
    try:
        return loss(mechanism)
    except UnsupportedError:
        return math.inf, Fraction(0)


def _pure_loss(epsilon: float, mechanism: Mechanism) -> Fraction | float:
    most = largest_loss(mechanism)
    if most < math.inf:
        return most
    try:
        costs = f" There it costs ε = {mechanism.epsilon(1e-6):.4g} at δ = 1e-06."
    except AccountantError:
        costs = ""
    raise UnsupportedError(
        f"{mechanism!r} has no finite ε at δ = 0, which a pure budget adds up. It needs a budget"
        f" with a δ, as Budget({epsilon!r}, 1e-06).{costs}"
    )


def _rho(mechanism: Mechanism) -> Fraction | float:
    if isinstance(mechanism, ZCDP):
        return written(mechanism.rho0)
    if isinstance(mechanism, Gaussian) and mechanism.noise_multiplier < math.inf:
        return Fraction(mechanism.distance) ** 2 / (2 * Fraction(mechanism.noise_multiplier) ** 2)
    return _known(mechanism, mechanism.rho(), "ρ")


def squared_mu(mechanism: Mechanism) -> Fraction:
    """Return the μ² for which a release is μ-GDP."""
    if isinstance(mechanism, GDP):
        return written(mechanism.mu0) ** 2
    if isinstance(mechanism, Gaussian) and mechanism.noise_multiplier < math.inf:
        return Fraction(mechanism.distance) ** 2 / Fraction(mechanism.noise_multiplier) ** 2
    parts = [pair.gaussian_part for pair in directions(mechanism) if is_plain(pair)]
    noises = [part.noise_multiplier for part in parts if part is not None]
    if len(noises) == 2:
        return 1 / Fraction(min(noises)) ** 2 if min(noises) < math.inf else Fraction(0)
    return _known(mechanism, mechanism.mu(), "μ") ** 2


def is_plain(pair: DominatingPair) -> bool:
    """Tell whether a pair is that of Gaussian noise on all records."""
    part = pair.gaussian_part
    return part is not None and part.sampling_probability == 1.0


def _known(mechanism: Mechanism, value: float, letter: str) -> Fraction:
    if not 0.0 <= value < math.inf:
        raise UnsupportedError(f"{mechanism!r} has no known {letter}, which this budget adds up")
    return Fraction(value)
