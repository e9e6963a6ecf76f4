"""Budgets of moments: what they allow, and that no adversary exceeds them."""

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest

import accountant as ac
from accountant.errors import BudgetExceeded, DomainError
from accountant.ledger import Accountant, Budget, IndividualFilter, meters
from accountant.ledger.filters import _cut, _Price, _target, meter
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair, Masses
from accountant.relations import NeighbouringRelation

UNIT = 0.25
LARGE = 10  # the rare loss, in units


@dataclass(frozen=True)
class RarePair(DominatingPair):
    """Losses ±UNIT, and with probability ``rare`` under P a loss of LARGE units."""

    rare: float

    def law(self):
        """Return loss -> probability under P; Q has e^-loss times as much."""
        # p + r = 1 - rare and p·e^-UNIT + r·e^UNIT = 1 - rare·e^-(LARGE·UNIT)
        rest = 1.0 - self.rare
        under = 1.0 - self.rare * math.exp(-LARGE * UNIT)
        lose = (under - rest * math.exp(-UNIT)) / (math.exp(UNIT) - math.exp(-UNIT))
        return {1: rest - lose, -1: lose, LARGE: self.rare}

    @property
    def support(self):
        return -UNIT, LARGE * UNIT

    def rdp(self, order):
        total = math.fsum(p * math.exp((order - 1.0) * k * UNIT) for k, p in self.law().items())
        return math.log(total) / (order - 1.0) * (1.0 + 1e-12)

    def masses(self, edges):
        law = sorted(self.law().items())
        p, q = np.zeros(len(edges) + 1), np.zeros(len(edges) + 1)
        for k, mass in law:
            place = int(np.searchsorted(edges, k * UNIT, side="left"))
            p[place] += mass
            q[place] += mass * math.exp(-k * UNIT)
        return Masses(p, q, 1e-14)


@dataclass(frozen=True)
class Rare(Mechanism):
    rare: float
    relation: NeighbouringRelation = NeighbouringRelation.ADD_OR_REMOVE

    def pairs(self):
        return (RarePair(self.rare),)


def strongest(admits, costs, laws, epsilon, depth):
    """Return the largest E_P[(1 - e^(ε - L))₊] of an adversary who chooses among ``laws``."""

    @functools.cache
    def value(loss, sums, left):
        best = max(0.0, -math.expm1(epsilon - loss * UNIT))
        for law, cost in zip(laws, costs, strict=True) if left else ():
            after = tuple(s + c for s, c in zip(sums, cost, strict=True))
            if admits(after):
                best = max(
                    best, math.fsum(p * value(loss + k, after, left - 1) for k, p in law.items())
                )
        return best

    return value(0, (0,) * len(costs[0]), depth)


def attack(budget, counted=True, depth=12):
    watch, kinds = meter(budget), [Rare(8e-3), Rare(1e-3), Rare(1e-9)]
    assert any(watch.inner.cost(kind)[-1] > 0 for kind in kinds)  # the rare loss is cut off
    watch = watch if counted else watch.inner
    laws = [kind.pairs()[0].law() for kind in kinds]
    costs = [watch.cost(kind) for kind in kinds]
    if not counted:
        last = len(costs[0]) // 2 - 1
        costs = [
            tuple(0 if i in (last, 2 * last + 1) else c for i, c in enumerate(x)) for x in costs
        ]
    return strongest(watch.holds, costs, laws, budget.epsilon, depth)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "budget",
    [
        Budget(1.5, 0.02, share=0.5),
        Budget(1.5, 0.02, share=0.25, orders=[3.0, 6.0, 12.0]),
        Budget(1.0, 0.05),
    ],
    ids=repr,
)
def test_no_adversary_with_rare_losses_exceeds_a_budget(budget):
    assert attack(budget) <= budget.delta


@pytest.mark.long
def test_the_attack_sees_masses_that_are_not_counted():
    assert attack(Budget(1.5, 0.02, share=0.5), counted=False) > 0.02


def step(sigma, q):
    return ac.PoissonSampled(ac.Gaussian(sigma), q)


@pytest.mark.parametrize(
    ("epsilon", "delta", "mechanism", "moments", "renyi"),
    [
        (1.0, 1e-6, step(1.0, 0.001), 25_105, 4_266),
        (3.0, 1e-5, step(1.1, 0.01), 2_959, 2_798),
        (2.0, 1e-5, step(1.0, 0.01), 833, 699),
        (1.0, 1e-5, step(1.0, 0.01), 65, 0),
        (0.1, 1e-6, step(1.0, 0.0001), 33_268, 0),
        (1.0, 1e-6, ac.Gaussian(50.0), 114, 109),
        (1.0, 1e-6, ac.PureDP(0.01), 459, 441),
    ],
)
def test_what_the_default_allows(epsilon, delta, mechanism, moments, renyi):
    ledger = Accountant(Budget(epsilon, delta))
    found = ledger.affordable(mechanism)
    assert moments * 0.998 <= found <= moments * 1.002 + 1
    assert Accountant(Budget(epsilon, delta, filter="renyi")).affordable(mechanism) == renyi
    ledger.compose(mechanism, found)
    with pytest.raises(BudgetExceeded):
        ledger.compose(mechanism)
    assert ledger.epsilon(delta) <= epsilon
    left = ledger.remaining()
    assert left.fraction < 0.02
    assert left.spent <= left.capacity


def test_many_kinds_stay_within_the_exact_composition():
    coins = np.random.default_rng(3)
    for _ in range(4):
        ledger = Accountant(Budget(2.0, 1e-5))
        while True:
            kind = step(
                *(float(x) for x in (coins.choice([0.8, 1, 2]), coins.choice([1e-3, 1e-2])))
            )
            fits = ledger.affordable(kind)
            if not fits:
                break
            ledger.compose(kind, min(fits, int(coins.integers(1, 500))))
        assert 1.0 < ledger.epsilon(1e-5) <= 2.0
        again = Accountant.from_json(ledger.to_json())
        assert again.remaining() == ledger.remaining()


def test_a_curve_sharper_than_its_pair_is_not_mixed_with_the_pairs_moments():
    class Sharper(RarePair):
        sharper_rdp = True

        def rdp(self, order):
            return 1e-9

    @dataclass(frozen=True)
    class Both(Rare):
        def pairs(self):
            return (Sharper(self.rare),)

    watch = meter(Budget(1.5, 0.02, share=0.5))
    cost = watch.cost(Both(4e-3))
    below = [a - 1.0 for a in Budget(1.5, 0.02, share=0.5).orders]
    if cost[len(below) + 1]:  # masses are counted: these are the moments of the pair
        assert all(c > meters.ceiling(b * 2e-9) for b, c in zip(below, cost, strict=False))
    else:
        assert all(c <= meters.ceiling(b * 2e-9) for b, c in zip(below, cost, strict=False))


@pytest.mark.parametrize("said", [False, True])
def test_a_cut_has_the_moments_of_the_pair_whatever_the_curve(said):
    """Theorem L17 needs one law; a curve may be that of another even where no pair says so."""

    class Sharper(RarePair):
        sharper_rdp = said

        def rdp(self, order):
            return 1e-9

    goal = _target(Budget(1.5, 0.02, share=0.5))
    pair = Sharper(4e-3)
    whole = _Price(tuple(1e-9 * b for b in goal.below), LARGE * UNIT, 0.0)
    cut = _cut(pair, whole, goal)
    ends = np.array(sorted(pair.law())) * UNIT
    masses = np.array([p for _, p in sorted(pair.law().items())])
    assert masses[ends > cut.most].sum() <= cut.beyond
    for b, log in zip(goal.below, cut.logs, strict=True):
        assert math.log(masses[ends <= cut.most] @ np.exp(b * ends[ends <= cut.most])) <= log


def test_finite_losses_of_little_mass_have_a_price():
    @dataclass(frozen=True)
    class Lost(RarePair):
        """Losses of 0.01, and an infinite one."""

        @property
        def infinite_mass(self):
            return self.rare

        def rdp(self, order):
            return math.inf

        def finite_rdp(self, order):
            return 0.01 + math.log1p(-self.rare) / (order - 1.0)

        def masses(self, edges):
            place = int(np.searchsorted(edges, 0.01, side="left"))
            p, q = np.zeros(len(edges) + 1), np.zeros(len(edges) + 1)
            p[place], p[-1] = 1.0 - self.rare, self.rare
            q[place] = math.exp(-0.01) * p[place]
            q[0] += 1.0 - q[place]
            return Masses(p, q, 1e-14)

    @dataclass(frozen=True)
    class Losing(Rare):
        def pairs(self):
            return (Lost(self.rare),)

    budget = Budget(1.5, 0.3, share=0.5, orders=[3.0, 200.0])
    assert Lost(0.05).finite_rdp(2.0) < 0.0 < Lost(0.05).finite_rdp(200.0)
    assert Accountant(budget).affordable(Losing(0.05)) in (2, 3)


def test_what_has_no_table_of_losses_is_refused_by_its_curve():
    for mechanism in (ac.Gaussian(5e-324), step(5e-324, 1e-9)):
        assert Accountant(Budget(1.0, 1e-6)).affordable(mechanism) == 0


def test_a_file_with_renyi_divergences_keeps_them():
    old = Accountant(Budget(1.0, 1e-6, filter="renyi"))
    old.compose(step(1.0, 0.001), 4_000)
    again = Accountant.from_json(old.to_json())
    assert again.budget.filter == "renyi"
    assert again.affordable(step(1.0, 0.001)) == 266


def test_individual_filters_take_the_orders():
    budget = Budget(2.0, 1e-5)
    mine = IndividualFilter(budget, 2)
    other = IndividualFilter(Budget(2.0, 1e-5, filter="renyi"), 2)
    assert (mine.orders, mine.capacities) == (other.orders, other.capacities)
    assert IndividualFilter(Budget(2.0, 1e-5, orders=[9.0]), 2).orders == (9.0,)


def test_releases_with_a_delta_of_their_own_share_delta():
    ledger = Accountant(Budget(1.0, 1e-5))
    assert ledger.affordable(ac.ApproximateDP(0.01, delta=1e-7)) == 6
    assert ledger.affordable(ac.ApproximateDP(0.01, delta=1e-5)) == 0


def test_a_file_goes_on_with_its_own_budget_alone(tmp_path):
    path = tmp_path / "ledger.json"
    for _ in range(2):
        with Accountant.transaction(path, Budget(1.0, 1e-6, filter="renyi")) as ledger:
            ledger.compose(ac.Gaussian(50.0))
    for other in (
        Budget(1.0, 1e-6),
        Budget(1.0, 1e-5),
        Budget(1.0, 1e-6, orders=[20.0]),
        Budget(1.0, 1e-6, share=0.0),
    ):
        with (
            pytest.raises(DomainError, match="has the budget"),
            Accountant.transaction(path, other),
        ):
            pass
