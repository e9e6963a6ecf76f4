"""Budgets as people write them: decimals, pure ones, and ones of ρ and μ."""

import copy
import functools
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant import store
from accountant.errors import BudgetExceeded, DomainError, UnsupportedError
from accountant.learn.convex.fit import NoiseSource
from accountant.learn.convex.posterior import PARTS, private_quantile
from accountant.learn.selection import noisy_max
from accountant.ledger import Accountant, Budget, IndividualFilter, Odometer, basic
from accountant.ledger.filters import meter
from accountant.relations import NeighbouringRelation
from support.toy_mechanisms import Coin

ADAPTIVE = ("moments", "renyi", "gaussian", "approximate")
BUDGETS = [Budget(1.0), *(Budget(1.0, d, f) for d in (1e-300, 1e-9, 1e-6) for f in ADAPTIVE)]
LISTS = [(0.1, 10), (0.2, 5), (0.05, 20), (1 / 3, 3)]


def decimal(units, places):
    """Return the double that somebody means who writes ``units`` and a point before ``places``."""
    return float(f"{units}e-{places}")


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize(("epsilon", "count"), LISTS)
def test_equal_decimals_fill_a_budget(budget, epsilon, count):
    made = Accountant(budget)
    for _ in range(count):
        made.compose(ac.PureDP(epsilon))
    assert made.remaining().spent <= made.remaining().capacity
    again = Accountant.from_json(made.to_json())
    assert again.remaining() == made.remaining()
    planned = Accountant(budget)
    planned.plan(ac.PureDP(epsilon), count)
    planned.compose(ac.PureDP(epsilon), count)


@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-300), Budget(1.0, 1e-9)], ids=repr)
@given(data=st.data())
def test_decimals_fit_in_any_order_if_and_only_if_they_sum_to_the_budget(budget, data):
    """One unit of the last written decimal more than the budget does not fit."""
    places = data.draw(st.integers(1, 12))
    whole = 10**places
    cuts = data.draw(st.lists(st.integers(1, whole - 1), min_size=1, max_size=12, unique=True))
    ends = [0, *sorted(cuts), whole]
    parts = [b - a for a, b in itertools.pairwise(ends)]
    parts = data.draw(st.permutations(parts))
    ledger = Accountant(budget)
    for part in parts[:-1]:
        ledger.compose(ac.PureDP(decimal(part, places)))
    last, more = decimal(parts[-1], places), decimal(parts[-1] + 1, places)
    if budget.delta < 0.01 * 10.0**-places:  # else δ may pay for the unit, or for more
        with pytest.raises(BudgetExceeded):
            ledger.require(ac.PureDP(more))
    ledger.compose(ac.PureDP(last))
    if not budget.delta:
        assert ledger.epsilon(0.0) == Odometer(0.0).epsilon(ledger) == 1.0
        with pytest.raises(BudgetExceeded):
            ledger.compose(ac.PureDP(decimal(1, places)))


@given(st.integers(1, 10**15 - 1), st.integers(-20, 20))
def test_a_written_number_is_its_decimal_and_a_computed_one_itself(units, power):
    assert basic.written(float(f"{units}e{power}")) == Fraction(units) * Fraction(10) ** power
    third = 1.0 / 3.0
    assert basic.written(third) == Fraction(third)


@given(st.integers(1, 10**6), st.integers(1, 12))
def test_exact_samplers_draw_with_at_most_the_decimal_that_is_charged(units, places):
    epsilon = decimal(units, places)
    for unit in (1.0, 0.5):
        drawn = noisy_max._rate(epsilon, unit, True, NeighbouringRelation.ADD_OR_REMOVE)
        assert drawn * Fraction(unit) <= Fraction(units, 10**places)
        assert drawn * Fraction(unit) <= Fraction(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3, 0.7])
def test_private_quantiles_and_minima_draw_with_at_most_the_decimal(monkeypatch, epsilon):
    drawn = []

    def spied(self, cost, rate, *rest):
        drawn.append(rate)
        return 0

    monkeypatch.setattr(NoiseSource, "weighted_index", spied)
    private_quantile(np.array([0.1, 0.5, 0.7]), 0.5, lower=0.0, upper=1.0, epsilon=epsilon)
    (rate,) = drawn
    assert rate * PARTS <= Fraction(str(epsilon))


def test_laplace_noise_costs_its_quotient():
    ledger = Accountant(Budget(1.0))
    ledger.compose(ac.Laplace(10.0), 5)
    ledger.compose(ac.Laplace(3.0, sensitivity=0.5), 3)
    assert ledger.remaining().spent == 1.0
    # A rational sum of many denominators is rounded up, and stays short.
    for k in range(300):
        ledger = Accountant(Budget(40.0)) if not k else ledger
        ledger.compose(ac.Laplace(1000.0 + math.sqrt(k)))
    exact = sum(1 / Fraction(1000.0 + math.sqrt(k)) for k in range(300))
    found = ledger._watch._filter._spent[0]
    assert exact <= found < exact * (1 + Fraction(1, 2**2000))
    assert found.denominator.bit_length() <= 8200


# What δ pays for


@functools.cache
def coin(epsilon):
    return Coin(epsilon)


def strongest(watch, kinds, epsilon, depth):
    """Return the largest E_P[(1 - e^(ε - L))₊] of an adversary who chooses among coins."""
    costs = {kind: watch.cost(coin(kind)) for kind in kinds}

    @functools.cache
    def value(loss, sums, left):
        best = max(0.0, -math.expm1(epsilon - loss))
        for kind in kinds if left else ():
            after = tuple(s + c for s, c in zip(sums, costs[kind], strict=True))
            if watch.holds(after):
                heads = 1.0 / (1.0 + math.exp(-kind))
                best = max(
                    best,
                    heads * value(round(loss + kind, 9), after, left - 1)
                    + (1.0 - heads) * value(round(loss - kind, 9), after, left - 1),
                )
        return best

    return value(0.0, (0,) * len(next(iter(costs.values()))), depth)


@pytest.mark.parametrize("rule", ["moments", "approximate"])
def test_no_strategy_gains_by_the_hair_that_delta_pays_for(rule):
    budget = Budget(0.5, 0.1, rule, share=0.5)
    watch = meter(budget)
    kinds = (0.135, 0.27, 0.09)
    assert watch.affordable(coin(0.135)) >= 4  # .54 is above ε by .04, of which δ has .05
    assert 0.0 < strongest(watch, kinds, 0.5, 9) <= 0.1
    free = meter(budget)
    free._room = Fraction(1)  # planted: more than δ has
    assert strongest(free, (1.0, *kinds), 0.5, 5) > 0.1


# Pure budgets


def test_a_pure_budget_refuses_what_is_not_pure_and_says_what_it_needs():
    ledger = Accountant(Budget(1.0))
    with pytest.raises(UnsupportedError, match=r"no finite ε at δ = 0.*It costs|needs a budget"):
        ledger.compose(ac.Gaussian(20.0))
    with pytest.raises(UnsupportedError, match="pure budget"):
        ledger.compose(ac.ApproximateDP(0.1, delta=1e-9))
    assert ledger.budget == Budget(1.0, 0.0) == eval(repr(ledger.budget))
    assert ledger.deltas == (0.0,)
    ledger.compose(ac.PoissonSampled(ac.Laplace(10.0), 0.5))
    assert ledger.epsilon(0.0) == ledger.remaining().spent < 0.1


def test_pure_budgets_of_records_add_up_decimals():
    watch = IndividualFilter(Budget(1.0), 3)
    taken = [watch.charge([0.1, 0.25, 0.3]).tolist() for _ in range(11)]
    assert np.sum(taken, axis=0).tolist() == [10, 4, 3]
    assert watch.spent.tolist() == [[1.0, 1.0, 0.9]]
    other = IndividualFilter(Budget(1.0), 3)
    other.restore(watch.spent, ())
    assert other.charge([0.1, 0.1, 0.1]).tolist() == [False, False, True]
    with pytest.raises(UnsupportedError, match="pure budget"):
        watch.charge_gaussian([1.0, 1.0, 1.0], noise_multiplier=3.0)


@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-9), Budget.rho(1.0)], ids=repr)
def test_a_store_has_the_same_budgets(tmp_path, budget):
    release = ac.ZCDP(0.1) if budget.level else ac.PureDP(0.1)
    with store.open(f"sqlite:///{tmp_path / 'budget.db'}", create=True) as shared:
        shared.add_blocks(["a/b/c", "a/b/d"], budget)
        assert shared.affordable("a/b/*", release) == 10
        for _ in range(10):
            shared.charge("a/b/c", release)
        with pytest.raises(store.BlockExceeded):
            shared.charge("a/b/*", release)
        shared.plan("a/b/d", release, 10)
        assert shared.remaining("a/b/c").spent == 1.0
        assert shared.ledger("a/b/c").budget == budget
        assert shared.verify().passed


# Budgets of ρ and of μ


def test_rho_adds_up_and_is_the_account():
    ledger = Accountant(Budget.rho(0.5))
    ledger.compose(ac.Gaussian(2.0), 3)  # 1/8 each
    ledger.compose(ac.ZCDP(0.025), 5)
    assert ledger.remaining()[:3] == (0.5, 0.5, "ρ")
    with pytest.raises(BudgetExceeded, match="ρ would be"):
        ledger.compose(ac.ZCDP(1e-12))
    with pytest.raises(UnsupportedError, match="no ρ is known"):
        ledger.compose(ac.ApproximateDP(0.1, delta=1e-9))


def test_mu_adds_up_in_squares():
    ledger = Accountant(Budget.mu(1.0))
    ledger.plan(ac.GDP(0.2), 16)
    ledger.compose(ac.GDP(0.6))
    ledger.compose(ac.GDP(0.2), 16)
    assert ledger.remaining()[:3] == (1.0, 1.0, "squared μ")
    with pytest.raises(BudgetExceeded):
        ledger.compose(ac.Gaussian(1e6))


@pytest.mark.parametrize("budget", [Budget.rho(0.1), Budget.mu(0.3)], ids=repr)
def test_levels_come_back_and_are_compared(budget):
    assert eval(repr(budget)) == budget
    assert hash(eval(repr(budget))) == hash(budget)
    assert Accountant.from_json(Accountant(budget).to_json()).budget == budget
    assert pickle.loads(pickle.dumps(budget)) == copy.deepcopy(budget) == budget
    assert budget != Budget.rho(0.7)
    assert Accountant(budget).deltas == ()
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(DomainError, match="must be a finite number > 0"):
            type(budget).rho(wrong)
    with pytest.raises(DomainError, match="level"):
        Budget(1.0, 1e-6, level=0.1)


# Odometers


@pytest.mark.parametrize(
    ("epsilon", "count", "most"), [(1.0, 1, 1.0), (0.1, 10, 1.0), (0.5, 5, 2.5)]
)
def test_an_odometer_is_never_above_basic_composition(epsilon, count, most):
    ledger = Accountant()
    ledger.compose(ac.PureDP(epsilon), count)
    assert Odometer(1e-6).epsilon(ledger) == most
    steps = Odometer(1e-6).over_steps(ledger)
    assert steps[-1] == most
    assert np.all(np.diff(steps) > 0)
    ledger.compose(ac.Gaussian(10.0))
    assert most < Odometer(1e-6).epsilon(ledger) < math.inf
    assert Odometer(0.0).epsilon(ledger) == math.inf
