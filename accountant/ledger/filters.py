"""The meters behind a budget: their sums, and the condition that must hold.

A meter never refuses by itself: it tells whether ``count`` more of a mechanism would keep the
predicate true, and adds them. Charges are integers (:mod:`accountant.ledger.exact_sums`), rounded
up; capacities are rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from accountant.calibration.subsampled_gaussian import calibrate_sigma
from accountant.composition.problems import symmetrised_pairs
from accountant.errors import AccountantError, UnsupportedError
from accountant.ledger import basic, evaluation, exact_sums
from accountant.ledger.basic import BestOf
from accountant.ledger.kinds import FixedMeter, KindsMeter
from accountant.ledger.meters import Limits, Meter, Remaining, described, left_of
from accountant.ledger.moments import MomentsMeter, divergence
from accountant.mechanisms import GDP, Gaussian
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair
from accountant.search import narrow

_OWN_DELTA = "δ of the releases"

# Halvings of the search for the μ that a plan leaves: the last costs this part of μ at most.
_HALVINGS = 24

# Letters of a mechanism in a message.
LONGEST_NAME = 80


class RenyiMeter(Meter):
    """Rényi divergences at orders fixed in advance, in each direction (Theorems L3, L4).

    Row ``2 * j + d``: order j, direction d (remove, add); then the largest finite losses, as if of
    one more order, with ε as its capacity. In each direction one of them must stay within its
    capacity. The last two rows are the masses at infinite loss, with a delta of their own.
    """

    def __init__(self, budget: Limits) -> None:
        self._orders, capacities = budget.renyi_capacities()
        super().__init__(2 * len(self._orders) + 4)
        self._units = [f"Rényi divergence of order {a!r}, in nats" for a in self._orders]
        self._units.append("ε, in nats")
        self._finite = [exact_sums.floor(c) for c in capacities]
        # -1 closes an order for good, even to releases that cost nothing at it.
        self._capacities = [exact_sums.units(c) if c >= 0.0 else -1 for c in capacities]
        self._capacities.append(exact_sums.units(budget.epsilon))
        self._delta = exact_sums.units(budget.releases_delta)

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return the divergences of finite losses, then the masses of infinite ones."""
        pairs = _directions(mechanism)
        rows = [divergence(mechanism, pair, a) for a in self._orders for pair in pairs]
        rows += [max(pair.support[1], 0.0) for pair in pairs]
        rows += [pair.infinite_mass for pair in pairs]
        return tuple(map(exact_sums.ceiling, rows))

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether each direction has an order, and the mass, within its capacity."""
        return max(sums[-2:]) <= self._delta and all(
            any(s <= c for s, c in zip(sums[d:-2:2], self._capacities, strict=True)) for d in (0, 1)
        )

    def beyond(self, sums: Sequence[int]) -> Fraction:
        """Return the masses at infinite loss of the worse direction."""
        return exact_sums.fraction(max(sums[-2:]))

    def epsilon_of(self, sums: Sequence[int]) -> float:
        """Return the ε of the best order, or of the largest losses, of the worse direction."""
        if max(sums[-2:]) > self._delta:
            return math.inf
        # A capacity is ε and what does not depend on it, which may be negative.
        rest = [Fraction(c - self._capacities[-1]) for c in self._finite]
        found = Fraction(0)
        for d in (0, 1):
            rows = zip(sums[d:-2:2], [*rest, Fraction(0)], strict=True)
            found = max(found, min(s - r for s, r in rows))
        return exact_sums.to_float_up(math.ceil(found))

    def remaining(self) -> Remaining:
        """Describe the best order of the worse direction."""
        best = []
        for d in (0, 1):
            rows = zip(self._spent[d:-2:2], self._capacities, self._units, strict=True)
            best.append(min(described(*row) for row in rows))
        return left_of(max(*best, described(max(self._spent[-2:]), self._delta, _OWN_DELTA)))


class GaussianMeter(Meter):
    """The sum of μ² (Theorem L5)."""

    def __init__(self, budget: Limits) -> None:
        super().__init__(1)
        # The certified ε of one Gaussian release at this σ is within the budget.
        self._target = budget.epsilon, budget.delta
        sigma = calibrate_sigma(*self._target)
        self._capacity = exact_sums.floor(1 / Fraction(sigma) ** 2)

    def cost(self, mechanism: Mechanism) -> tuple[int]:
        """Return the larger μ² of the two directions."""
        return (max(exact_sums.ceiling(_squared_mu(mechanism, p)) for p in _directions(mechanism)),)

    def reserve(self, menu: Sequence[tuple[Mechanism, int]]) -> None:
        """Keep what the exact composition leaves beside a menu (Theorem L14)."""
        if all(_is_plain(pair) for kind, _ in menu for pair in _directions(kind)):
            self.add(menu)  # exact already
            return
        left = squared_mu_beside(menu, *self._target)
        self._capacity = -1 if left is None else exact_sums.floor(left)

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether the sum is within the capacity."""
        return sums[0] <= self._capacity

    def epsilon_of(self, sums: Sequence[int]) -> float:
        """Return the ε of one Gaussian release with the sum of μ²."""
        square = exact_sums.to_float_up(sums[0])
        mu = math.nextafter(math.sqrt(square), math.inf)
        return GDP(mu).epsilon(self._target[1]) if 0.0 < mu < math.inf else mu

    def remaining(self) -> Remaining:
        """Describe the sum of μ²."""
        return left_of(described(self._spent[0], self._capacity, "squared μ"))


class ApproximateMeter(Meter):
    """The sums of ε, ε² and δ (Theorem L7)."""

    def __init__(self, budget: Limits) -> None:
        super().__init__(3)
        self._delta = exact_sums.units(budget.releases_delta)
        self._epsilon = exact_sums.units(budget.epsilon)
        self._losses_delta = budget.losses_delta
        self._squares = exact_sums.units(_variance_lower(budget.epsilon, budget.losses_delta))

    def cost(self, mechanism: Mechanism) -> tuple[int, ...]:
        """Return ε, ε² and δ of the larger direction."""
        pairs = _directions(mechanism)
        epsilon = max(0.0, *(pair.support[1] for pair in pairs))
        delta = max(pair.infinite_mass for pair in pairs)
        if not epsilon < math.inf:
            raise UnsupportedError(
                f"{mechanism!r} has no finite ε at its own δ, so an (ε, δ) filter cannot charge it."
                " Charge ApproximateDP(mechanism.epsilon(d), delta=d) at a d fixed for this"
                ' release, or use filter="renyi"'
            )
        return (
            exact_sums.units(epsilon),
            exact_sums.ceiling(Fraction(epsilon) ** 2),
            exact_sums.units(delta),
        )

    def holds(self, sums: Sequence[int]) -> bool:
        """Tell whether δ holds, and ε holds by simple or by advanced composition."""
        total, squares, delta = sums
        return delta <= self._delta and (total <= self._epsilon or squares <= self._squares)

    def beyond(self, sums: Sequence[int]) -> Fraction:
        """Return the sum of the releases' δ."""
        return exact_sums.fraction(sums[2])

    def epsilon_of(self, sums: Sequence[int]) -> float:
        """Return the ε of simple or of advanced composition."""
        total, squares, delta = sums
        if delta > self._delta:
            return math.inf
        square = exact_sums.to_float_up(squares)
        advanced = math.inf
        if square < math.inf:
            advanced = math.sqrt(-2.0 * square * math.log(self._losses_delta)) + 0.5 * square
        return min(exact_sums.to_float_up(total), advanced * (1.0 + 2.0**-46))

    def remaining(self) -> Remaining:
        """Describe the scarcer of ε (by the better of its two sums) and δ."""
        total, squares, delta = self._spent
        sums = described(total, self._epsilon, "ε, in nats")
        advanced = described(squares, self._squares, "squared ε")
        return left_of(max(min(sums, advanced), described(delta, self._delta, _OWN_DELTA)))


def meter(budget: Limits) -> Meter:
    """Return a fresh meter for ``budget``: of its one sum, or the best of its filter and a sum."""
    if (one := basic.limit(budget)) is not None:
        return one
    kinds: dict[str, Callable[[Limits], Meter]] = {
        "moments": MomentsMeter,
        "renyi": RenyiMeter,
        "gaussian": GaussianMeter,
        "approximate": ApproximateMeter,
        "kinds": KindsMeter,
    }
    if budget.filter == "non-adaptive":
        return exact(budget)
    return BestOf(kinds[budget.filter](budget), budget, budget.releases_delta)


def exact(budget: Limits) -> Meter:
    """Return a fresh meter of what was fixed in advance, by exact composition or its one sum."""
    if (one := basic.limit(budget)) is not None:
        return one
    return FixedMeter(budget.epsilon, budget.delta)


def named(charges: Sequence[tuple[Mechanism, int]]) -> str:
    """Return the first few charges as messages name them: a long name by its type alone."""
    names = []
    for mechanism, count in charges[:3]:
        name = repr(mechanism)
        if len(name) > LONGEST_NAME:
            name = f"{type(mechanism).__name__}(…)"
        names.append(f"{count} x " * (count != 1) + name)
    return ", ".join(names)


def _directions(mechanism: Mechanism) -> tuple[DominatingPair, DominatingPair]:
    pairs = symmetrised_pairs(mechanism)
    return pairs[0], pairs[-1]


def _is_plain(pair: DominatingPair) -> bool:
    part = pair.gaussian_part
    return part is not None and part.sampling_probability == 1.0


def _squared_mu(mechanism: Mechanism, pair: DominatingPair) -> Fraction:
    part = pair.gaussian_part
    if part is not None and part.sampling_probability == 1.0:
        if part.noise_multiplier == math.inf:
            return Fraction(0)
        return 1 / Fraction(part.noise_multiplier) ** 2
    mu = pair.mu
    if not 0.0 <= mu < math.inf:
        raise UnsupportedError(
            f"no μ is known for which {mechanism!r} is Gaussian differentially private, so a"
            ' Gaussian filter cannot charge it. Use filter="renyi"'
        )
    return Fraction(mu) ** 2


def squared_mu_beside(
    menu: Sequence[tuple[Mechanism, int]], epsilon: float, delta: float
) -> Fraction | None:
    """Return a sum of μ² that the product with a menu certifies within (ε, δ); None for no plan.

    The product of the menu's pairs and one Gaussian pair is composed exactly; its profile grows
    with μ, so the largest μ is searched for, and the last composition that fits counts.
    """
    relation = menu[0][0].relation

    def fits(sigma: float | None) -> bool:
        rest = () if sigma is None else ((Gaussian(sigma, relation=relation), 1),)
        try:
            return evaluation.epsilon((*menu, *rest), delta) <= epsilon
        except AccountantError:
            return False  # what could not be certified is too dear

    if not fits(None):
        return None
    alone = calibrate_sigma(epsilon, delta)
    low, _ = narrow(lambda part: fits(alone / part), 0.0, 1.0, _HALVINGS)
    return 1 / Fraction(alone / low) ** 2 if low > 0.0 else Fraction(0)


def _variance_lower(epsilon: float, delta: float) -> float:
    """Return the v with ε = √(2v·log(1/δ')) + v/2, rounded down."""
    tail = -2.0 * math.log(delta)
    root = 2.0 * epsilon / (math.sqrt(tail + 2.0 * epsilon) + math.sqrt(tail))
    # Some ten roundings, twice for the square, and the logarithm's near δ' = 1.
    return root * root * (1.0 - 2.0**-46)
