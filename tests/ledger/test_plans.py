"""Plans against an adversary who chooses every next release after seeing the last output.

The adversary's best strategy is found exactly, by dynamic programming over the privacy loss so far,
what is left of the plan and what the filter was charged, in integers over a common denominator.
"""

import functools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant.errors import (
    AccountantError,
    BudgetExceeded,
    DomainError,
    LedgerError,
    UnsupportedError,
)
from accountant.ledger import Accountant, Budget, filters
from accountant.ledger.filters import MomentsMeter
from accountant.ledger.plans import Watch
from accountant.relations import NeighbouringRelation
from support.toy_mechanisms import Coin, Noise

UNIT = 0.25
SIZES = (1, 2, 4)
STEP = ac.PoissonSampled(ac.Gaussian(1.1), 0.01)


def heads(k):
    """Return the probability of a positive loss, rounded up: then its hockey-stick is larger."""
    return Fraction(1.0 / (1.0 + math.exp(-k * UNIT))) + Fraction(1, 2**50)


def hockey_stick(loss, epsilon):
    """Return (1 - e^{ε-L})₊ to far below the margins asserted."""
    return max(Fraction(0), Fraction(-math.expm1(epsilon - loss * UNIT)))


def strongest(watch, epsilon, depth):
    """Return the largest E_P[(1 - e^{ε-L})₊] of a strategy that the watch admits."""
    costs = {k: watch._filter.cost(Coin(k * UNIT)) for k in SIZES}

    @functools.cache
    def value(loss, left, sums, steps):
        best = hockey_stick(loss, epsilon)
        for i, k in enumerate(SIZES) if steps else ():
            if left[i]:
                after = (tuple(n - (j == i) for j, n in enumerate(left)), sums)
            else:
                spent = tuple(s + c for s, c in zip(sums, costs[k], strict=True))
                if not watch._filter.holds(spent):
                    continue
                after = (left, spent)
            p = heads(k)
            win, lose = (value(loss + sign * k, *after, steps - 1) for sign in (1, -1))
            best = max(best, p * win + (1 - p) * lose)
        return best

    left = tuple(watch.left(Coin(k * UNIT)) for k in SIZES)
    return value(0, left, tuple(watch._filter._spent), depth)


PLANS = [{1: 3, 2: 1, 4: 1}, {4: 2}, {1: 8}, {2: 5, 1: 2}]
FILTERS = ["renyi", "approximate"]


@pytest.mark.parametrize("rule", FILTERS)
@pytest.mark.parametrize("menu", PLANS, ids=repr)
def test_no_strategy_within_a_plan_and_beside_it_exceeds_the_budget(menu, rule):
    epsilon = 1.25
    exact = ac.Composition(tuple((Coin(k * UNIT), n) for k, n in menu.items()))
    # A plan that fits with nothing to spare, and with much.
    for delta in (exact.delta(epsilon) * (1 + 1e-9), 0.45):
        watch = Watch(Budget(epsilon, delta, filter=rule))
        watch.plan([(Coin(k * UNIT), n) for k, n in menu.items()])
        depth = sum(menu.values()) + 3
        assert strongest(watch, epsilon, min(depth, 9)) <= Fraction(delta) + Fraction(1, 10**12)


def test_the_attack_sees_a_plan_that_is_not_charged_beside_the_filter():
    watch = Watch(Budget(1.25, 0.45))
    watch.plan([(Coin(4 * UNIT), 2)])
    watch._filter._spent = [0] * len(watch._filter._spent)
    assert strongest(watch, 1.25, 9) > Fraction(45, 100)


@pytest.mark.parametrize(
    ("epsilon", "delta", "q", "sigma", "steps"),
    [(1.0, 1e-6, 0.001, 1.0, 31_117), (3.0, 1e-5, 0.01, 1.1, 3_712), (1.0, 1e-5, 0.01, 1.0, 254)],
)
def test_a_plan_of_equal_steps_is_the_exact_composition(epsilon, delta, q, sigma, steps):
    step = ac.PoissonSampled(ac.Gaussian(sigma), q)
    ledger = Accountant(Budget(epsilon, delta))
    assert ac.calibrate_steps(epsilon, delta, q=q, sigma=sigma) == steps
    assert ledger.affordable(step, planned=True) == steps > ledger.affordable(step)
    assert ledger.affordable_by_filter(step)["plan"] == steps
    assert ledger.plan(step) == ledger.affordable(step) == steps
    ledger.compose(step, steps - 1)
    ledger.compose(step)
    assert ledger.remaining().spent <= epsilon
    with pytest.raises(BudgetExceeded):
        ledger.compose(step)
    assert len(ledger) == steps


def test_a_menu_is_released_in_any_order_and_only_to_its_caps():
    ledger = Accountant(Budget(3.0, 1e-5))
    query = ac.Gaussian(20.0)
    assert ledger.plan(3000 * STEP + 5 * query, 1, label="menu") == 1
    assert [(e.mechanism, e.count, e.label) for e in ledger.planned] == [
        (STEP, 3000, "menu"),
        (query, 5, "menu"),
    ]
    ledger.compose(query, 2)
    ledger.compose(STEP, 1500)
    ledger.compose(query, 3)
    ledger.compose(STEP, 1500)
    with pytest.raises(BudgetExceeded):
        ledger.compose(STEP, 100)
    assert len(ledger) == 3005
    assert ledger.epsilon(1e-5) <= 3.0


def test_what_fits_as_a_plan_and_no_more():
    ledger = Accountant(Budget(3.0, 1e-5))
    with pytest.raises(BudgetExceeded, match=r"3712 would fit\. Nothing was planned"):
        ledger.plan(STEP, 3713)
    assert ledger.planned == ()
    assert ledger.plan(STEP, 2000) == 2000
    assert ledger.plan(STEP) == 1712
    with pytest.raises(BudgetExceeded, match="Nothing was planned"):
        ledger.plan(ac.Gaussian(50.0), 1)
    with pytest.raises(BudgetExceeded):
        ledger.plan(STEP)
    assert ledger.affordable(STEP, planned=True) == 0
    assert ledger.affordable(STEP) == 3712


def test_beside_a_plan_the_filter_has_what_the_whole_plan_leaves():
    for rule in ("renyi", "gaussian"):
        query = Noise(40.0) if rule == "renyi" else ac.Gaussian(40.0)
        free = Accountant(Budget(2.0, 1e-6, filter=rule))
        planned = Accountant(Budget(2.0, 1e-6, filter=rule))
        whole = free.affordable(query)
        planned.plan(query, whole // 2)
        assert whole <= planned.affordable(query) <= free.affordable(query, planned=True)
        assert planned.affordable(ac.Gaussian(80.0)) < free.affordable(ac.Gaussian(80.0))


def test_a_plan_comes_before_the_first_release_and_has_a_budget():
    with pytest.raises(DomainError, match="budget"):
        Accountant().plan(STEP)
    ledger = Accountant(Budget(3.0, 1e-5))
    ledger.compose(STEP)
    with pytest.raises(UnsupportedError, match="before the first release"):
        ledger.plan(STEP)
    assert ledger.affordable(STEP, planned=True) == 0
    assert "plan" not in ledger.affordable_by_filter(STEP)
    ledger = Accountant(Budget(3.0, 1e-5))
    ledger.plan(STEP, 10)
    other = ac.Gaussian(5.0, relation=NeighbouringRelation.REPLACE_ONE)
    for refused in (ledger.plan, ledger.compose, ledger.affordable):
        with pytest.raises(UnsupportedError, match="relation"):
            refused(other)
    for count in (0, -1, 2.0, True):
        with pytest.raises((DomainError, TypeError)):
            ledger.plan(STEP, count)
    ledger.plan(ac.Gaussian(math.inf), 2**53)
    with pytest.raises(DomainError, match=r"2\*\*53"):
        ledger.plan(ac.Gaussian(math.inf), 1)


@pytest.mark.parametrize(
    "mechanism",
    [ac.PureDP(0.0), ac.Gaussian(math.inf), ac.PoissonSampled(ac.Gaussian(1.0), 0.0)],
    ids=repr,
)
def test_what_costs_nothing_is_planned_without_end(mechanism):
    ledger = Accountant(Budget(1.0, 1e-6))
    assert ledger.plan(mechanism) == 2**53


def _coin_by_losses(loss):
    """Return randomised response by its losses, which has no Rényi curve."""
    p = 1.0 / (1.0 + math.exp(-loss))

    def below(mass):
        return lambda x: np.where(x < -loss, 0.0, np.where(x < loss, mass, 1.0))

    def above(mass):
        return lambda x: np.where(x < -loss, 1.0, np.where(x < loss, mass, 0.0))

    functions = below(1.0 - p), above(p), below(p), above(1.0 - p)
    return ac.LossDistribution(*functions, losses=(-loss, loss))


@pytest.mark.long
@pytest.mark.parametrize("rule", ["renyi"])
def test_a_plan_that_the_filter_cannot_charge_leaves_it_nothing(rule):
    losses = _coin_by_losses(0.1)
    ledger = Accountant(Budget(1.0, 1e-5, filter=rule))
    whole = ledger.plan(losses, 3)
    beside = ac.PureDP(0.4)
    for _ in range(3):
        with pytest.raises(BudgetExceeded):
            ledger.compose(beside)
        assert ledger.affordable(beside) == 0
    assert ledger.affordable(losses) == whole
    ledger.compose(losses, whole)
    with pytest.raises(AccountantError):
        ledger.compose(losses)
    assert ledger.epsilon(1e-5) <= 1.0


@pytest.mark.parametrize("rule", ["renyi", "gaussian", "non-adaptive"])
def test_a_filter_that_was_interrupted_still_has_the_plan(rule, monkeypatch):
    ledger = Accountant(Budget(1.0, 1e-5, filter=rule))
    ledger.plan(STEP)
    query = ac.Gaussian(20.0)

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(filters.meter(ledger.budget)), "reserve", stopped)
        with pytest.raises(KeyboardInterrupt):
            ledger.compose(query)
    with pytest.raises(BudgetExceeded):
        ledger.compose(query)


def test_degenerate_menus():
    # A delta of its own, a pure loss, and a release without any guarantee.
    ledger = Accountant(Budget(1.0, 1e-5, filter="renyi"))
    assert ledger.plan(ac.ApproximateDP(0.1, delta=1e-6)) == 10  # 1 - (1 - 1e-6)^10 < 1e-5
    with pytest.raises(BudgetExceeded, match="0 would fit"):
        ledger.plan(ac.ApproximateDP(0.0, delta=1e-9), 5)
    with pytest.raises(BudgetExceeded):
        ledger.compose(ac.Gaussian(1e4))  # the filter has no room for the plan's own delta
    with pytest.raises(BudgetExceeded):
        Accountant(Budget(100.0, 0.5)).plan(ac.ApproximateDP(0.0, delta=1.0))


def test_a_refusal_says_what_each_filter_would_allow():
    ledger = Accountant(Budget(1.0, 1e-6, filter="renyi"))
    step = ac.PoissonSampled(ac.Gaussian(1.0), 0.001)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.compose(step, 40_000)
    assert (
        "4266 would fit by this filter, 31117 if planned before the first release (ledger.plan),"
        ' 25105 by "moments"; 40000 with noise_multiplier='
    ) in str(refused.value)
    found = ledger.affordable_by_filter(ac.Gaussian(40.0))
    assert found["plan"] >= found["gaussian"] > found["renyi"]


# Files


def whole():
    ledger = Accountant(Budget(3.0, 1e-5))
    ledger.plan(2000 * STEP + 2 * ac.Gaussian(30.0), 1, label="night")
    ledger.compose(STEP, 7)
    return ledger


def test_a_plan_is_kept_with_its_ledger(tmp_path):
    ledger = whole()
    text = ledger.to_json()
    again = Accountant.from_json(text)
    assert again.planned == ledger.planned
    assert again.to_json() == text
    assert again.affordable(STEP) == ledger.affordable(STEP)
    assert again.remaining() == ledger.remaining()
    path = tmp_path / "ledger.json"
    with Accountant.transaction(path, ledger.budget) as opened:
        opened.plan(STEP)
    with Accountant.transaction(path) as opened:
        opened.compose(STEP, 3712)
        with pytest.raises(BudgetExceeded):
            opened.compose(STEP)
    assert len(Accountant.load(path)) == 3712


@pytest.mark.parametrize(
    "planned", [None, {}, [[9, 1, None, None]], [[0, 0, None, None]], [[0, 1, None]], [3]]
)
def test_a_damaged_plan_is_refused(planned):
    from accountant.ledger import document

    content = json.loads(whole().to_json())
    content["ledger"]["planned"] = planned
    content["checksum"] = document.checksum(content["revision"], content["ledger"])
    with pytest.raises(LedgerError):
        Accountant.from_json(json.dumps(content))


def test_every_change_of_a_plan_shows_in_the_checksum():
    content = json.loads(whole().to_json())
    content["ledger"]["planned"][0][1] += 1
    with pytest.raises(LedgerError, match="checksum"):
        Accountant.from_json(json.dumps(content))


def test_merging_brings_releases_and_no_plan():
    target = Accountant()
    target.merge(whole())
    assert len(target) == 7
    assert target.planned == ()


def test_releases_made_before_a_plan_are_not_merged_into_it():
    """The plan might depend on them (Theorem L12)."""
    planned, before = whole(), len(whole())
    with pytest.raises(UnsupportedError, match="without a plan"):
        planned.merge(whole())
    assert len(planned) == before
    planned.merge(Accountant())
    assert len(planned) == before


def test_a_ledger_is_priced_when_its_filter_is_first_asked(monkeypatch):
    ledger = Accountant(Budget(1.0, 1e-6))
    for k in range(3):
        ledger.compose(ac.Laplace(20.0 + k))
    text, left = ledger.to_json(), ledger.affordable(ac.Laplace(20.0))
    prices, price = [], MomentsMeter.cost
    monkeypatch.setattr(MomentsMeter, "cost", lambda *a: prices.append(a) or price(*a))
    again = Accountant.from_json(text)
    assert again.counts == ledger.counts
    assert again.epsilon(1e-6) == ledger.epsilon(1e-6)
    assert not prices
    # Asked twice, charged once.
    assert again.affordable(ac.Laplace(20.0)) == again.affordable(ac.Laplace(20.0)) == left
    assert len(prices) == 3
    again.compose(ac.Laplace(20.0), left)
    with pytest.raises(BudgetExceeded):
        again.compose(ac.Laplace(20.0))


def test_a_price_that_fails_leaves_nothing_uncharged(monkeypatch):
    ledger = Accountant(Budget(1.0, 1e-6))
    ledger.compose(ac.Laplace(20.0))
    left = ledger.affordable(ac.Laplace(20.0))
    again = Accountant.from_json(ledger.to_json())
    with monkeypatch.context() as broken:
        broken.setattr(MomentsMeter, "cost", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            again.affordable(ac.Laplace(20.0))
    assert again.affordable(ac.Laplace(20.0)) == left
