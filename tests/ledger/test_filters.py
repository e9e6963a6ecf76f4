"""Filters against an adversary who chooses every next mechanism after seeing the last output.

The adversary's best strategy against a filter is found exactly: dynamic programming over (privacy
loss so far, what the filter has been charged), with randomised responses whose losses lie on a
lattice, gives the largest hockey-stick divergence any strategy reaches. Exact up to rounding in
double arithmetic, far below the margins asserted.
"""

import functools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant.errors import ArgumentTypeError, BudgetExceeded, DomainError, UnsupportedError
from accountant.ledger import Accountant, Budget
from accountant.ledger.filters import meter
from support.toy_mechanisms import Coin, LinePair, Noise, Skewed

UNIT = 0.25


def strongest_attack(admits, cost, sizes, epsilon, depth):
    """Return the largest E_P[(1 - e^{ε-L})₊] over adaptive strategies of at most ``depth`` coins.

    ``cost(k, leak)`` is the charge for a coin of loss ±k·UNIT that gives everything away with
    probability ``leak``, ``admits(sums)`` the filter's predicate, ``sizes`` the coins on offer.
    """

    @functools.cache
    def value(loss, sums, left):
        stop = max(0.0, -math.expm1(epsilon - loss * UNIT))
        best = stop
        if left:
            for k, leak in sizes:
                after = tuple(s + c for s, c in zip(sums, cost((k, leak)), strict=True))
                if admits(after):
                    p = 1.0 / (1.0 + math.exp(-k * UNIT))
                    win = value(loss + k, after, left - 1)
                    lose = value(loss - k, after, left - 1)
                    best = max(best, leak + (1.0 - leak) * (p * win + (1.0 - p) * lose))
        return best

    return value(0, (0,) * len(cost(sizes[0])), depth)


def attack_on(watch, epsilon, leak, depth=14):
    sizes = [(1, 0.0), (2, 0.0), (4, 0.0)]
    if leak:
        sizes += [(0, leak), (2, leak), (4, 2 * leak)]
        depth = 9
    costs = {(k, leak): watch.cost(Coin(k * UNIT, leak)) for k, leak in sizes}
    return strongest_attack(watch.holds, costs.__getitem__, sizes, epsilon, depth)


BUDGETS = [
    Budget(1.0, 0.05),
    Budget(2.0, 0.01),
    Budget(2.0, 1e-3, orders=[4.0, 8.0]),
    Budget(3.0, 1e-3, orders=[2.0, 4.0, 8.0, 32.0]),
    Budget(2.0, 0.01, share=0.25),
    Budget(2.0, 0.01, share=0.0),
    Budget(1.0, 0.05, filter="renyi"),
    Budget(2.0, 0.01, filter="renyi"),
    Budget(2.0, 1e-3, filter="renyi", orders=[4.0, 8.0]),
    Budget(2.0, 0.01, filter="renyi", share=0.25),
    Budget(2.0, 0.01, filter="approximate"),
    Budget(2.0, 0.01, filter="approximate", share=0.0),
    Budget(1.0, 0.3, filter="approximate", share=0.0),
]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_no_adaptive_strategy_beats_a_filter(budget):
    for leak in (0.0, budget.delta / 8):
        assert attack_on(meter(budget), budget.epsilon, leak) <= budget.delta


@pytest.mark.long
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_the_attack_sees_a_filter_that_is_wrong(budget):
    # The same filter with a budget of three times its ε must be beaten: the attack has teeth.
    loose = meter(
        Budget(
            3.0 * budget.epsilon,
            min(0.9, 30.0 * budget.delta),
            filter=budget.filter,
            orders=budget.orders,
            share=budget.share,
        )
    )
    assert attack_on(loose, budget.epsilon, 0.0) > budget.delta


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_the_attack_sees_leaks_that_are_not_charged(budget):
    watch = meter(budget)
    cost = watch.cost
    rows = len(cost(Coin(0.1)))
    leaks = {
        "moments": (rows // 2 - 1, rows - 1),
        "renyi": (rows - 2, rows - 1),
        "approximate": (rows - 1,),
    }[budget.filter]

    def without_leaks(mechanism):
        return tuple(0 if i in leaks else c for i, c in enumerate(cost(mechanism)))

    watch.cost = without_leaks
    assert attack_on(watch, budget.epsilon, budget.delta / 4) > budget.delta


def test_exact_composition_is_no_filter():
    """Composing exactly, and stopping when (ε, δ) is reached, fails under adaptive parameters.

    Why "non-adaptive" has its name: the adversary picks sizes after seeing outputs, and every
    transcript's own sequence of sizes would have been allowed.
    """
    epsilon, sizes, depth = 1.0, (1, 2, 4), 6

    @functools.cache
    def fixed_delta(sequence):
        law = {0: 1.0}
        for k in sequence:
            p = 1.0 / (1.0 + math.exp(-k * UNIT))
            after = {}
            for loss, mass in law.items():
                after[loss + k] = after.get(loss + k, 0.0) + mass * p
                after[loss - k] = after.get(loss - k, 0.0) + mass * (1.0 - p)
            law = after
        return sum(m * max(0.0, -math.expm1(epsilon - x * UNIT)) for x, m in law.items())

    @functools.cache
    def value(loss, sequence, delta):
        best = max(0.0, -math.expm1(epsilon - loss * UNIT))
        if len(sequence) < depth:
            for k in sizes:
                after = tuple(sorted((*sequence, k)))
                if fixed_delta(after) <= delta:
                    p = 1.0 / (1.0 + math.exp(-k * UNIT))
                    best = max(
                        best,
                        p * value(loss + k, after, delta) + (1 - p) * value(loss - k, after, delta),
                    )
        return best

    excess = max(value(0, (), delta) / delta for delta in (0.01, 0.05, 0.1, 0.15, 0.2, 0.3))
    assert excess > 1.01


def test_the_gaussian_filter_meets_its_budget_and_no_more():
    # Simulating the adversary for Gaussians: the profile depends on the total μ² alone (L5), so the
    # capacity itself is checked, against mpmath.
    for epsilon, delta in ((0.5, 1e-5), (3.0, 1e-10), (10.0, 0.1), (0.1, 0.5)):
        watch = meter(Budget(epsilon, delta, filter="gaussian")).inner
        with mpmath.workdps(40):
            mu = mpmath.sqrt(mpmath.mpf(watch.capacity.numerator) / watch.capacity.denominator)
            e = mpmath.mpf(epsilon)
            profile = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
            assert profile <= delta
            wider = mu * (1 + mpmath.mpf(10) ** -9)
            profile = mpmath.ncdf(wider / 2 - e / wider) - mpmath.exp(e) * mpmath.ncdf(
                -wider / 2 - e / wider
            )
            assert profile > delta


@given(st.floats(1e-6, 100.0), st.floats(1e-290, 0.99), st.floats(0.0, 0.99))
def test_the_approximate_filters_capacity_is_below_the_truth(epsilon, delta, share):
    watch = meter(Budget(epsilon, delta, filter="approximate", share=share)).inner
    scale = Fraction(1, 2**1074)
    with mpmath.workdps(60):
        v = mpmath.mpf(watch._squares) / mpmath.mpf(2) ** 1074
        slack = Fraction(delta) - watch._delta * scale
        slack = mpmath.mpf(slack.numerator) / slack.denominator
        reached = mpmath.sqrt(-2 * mpmath.log(slack) * v) + v / 2
        assert reached <= epsilon
        assert reached >= epsilon * (1 - mpmath.mpf(10) ** -10)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-5, 1e-4, 1e-3, 1.0, 100.0])
def test_budgets_with_default_orders_leave_something_and_come_back(epsilon, delta):
    try:
        budget = Budget(epsilon, delta)
    except DomainError:
        assert epsilon <= 1e-5
        return
    assert max(budget.renyi_capacities()[1]) > 0.0
    assert Accountant.from_json(Accountant(budget).to_json()).budget == budget


def test_default_orders_are_close_to_the_best():
    best = Budget.suited_to(Noise(40.0), 2.0, 1e-6)
    mine = Accountant(best).affordable(Noise(40.0))
    others = [
        Accountant(Budget(2.0, 1e-6, orders=1.0 + 1.1**k)).affordable(Noise(40.0))
        for k in range(25, 60)
    ]
    assert mine >= 0.99 * max(others)
    assert Accountant(Budget(2.0, 1e-6)).affordable(Noise(40.0)) >= 0.85 * mine


def test_the_default_filter_is_no_worse_than_adding_up_pure_losses():
    ledger = Accountant(Budget(3.0, 1e-9))
    for k in (1, 2, 4, 1):
        ledger.compose(Coin(k * 0.375))
    assert ledger.remaining().fraction < 1e-12
    assert ledger.remaining().unit == "ε, in nats"
    with pytest.raises(BudgetExceeded):
        ledger.compose(Coin(1e-9))


def test_gaussian_filter_loses_nothing_and_renyi_little():
    gaussian = Accountant(Budget(2.0, 1e-6, filter="gaussian")).affordable(Noise(40.0))
    assert ac.get_epsilon(1.0, 40.0, gaussian, 1e-6) <= 2.0
    assert ac.get_epsilon(1.0, 40.0, gaussian + 1, 1e-6) > 2.0
    assert 0.7 * gaussian < Accountant(Budget(2.0, 1e-6)).affordable(Noise(40.0)) < gaussian


# What a budget does to a ledger

KINDS = [
    (Budget(2.0, 1e-6), Noise(20.0)),
    (Budget(2.0, 1e-6, orders=[8.0, 16.0]), Noise(20.0)),
    (Budget(2.0, 1e-6, filter="gaussian"), Noise(20.0)),
    (Budget(2.0, 1e-6, filter="approximate"), Coin(0.1)),
    (Budget(2.0, 1e-6, filter="approximate"), Coin(0.1, leak=1e-7)),
]


@pytest.mark.parametrize(("budget", "mechanism"), KINDS, ids=lambda value: repr(value))
def test_a_budget_is_spent_to_the_last_release_and_no_further(budget, mechanism):
    ledger = Accountant(budget)
    allowed = ledger.affordable(mechanism)
    assert allowed > 0
    for _ in range(allowed):
        ledger.compose(mechanism)
    before, left = ledger.history, ledger.remaining()
    assert left.spent <= left.capacity
    with pytest.raises(BudgetExceeded, match="Nothing was recorded"):
        ledger.compose(mechanism)
    assert ledger.history == before
    assert ledger.remaining() == left
    assert ledger.affordable(mechanism) == 0


@pytest.mark.long
@pytest.mark.parametrize(("budget", "mechanism"), KINDS, ids=lambda value: repr(value))
@given(data=st.data())
def test_how_a_count_is_split_changes_nothing(budget, mechanism, data):
    whole = Accountant(budget)
    allowed = whole.affordable(mechanism)
    first = data.draw(st.integers(1, allowed))
    parts = Accountant(budget)
    parts.compose(mechanism, first)
    assert parts.affordable(mechanism) == allowed - first
    if allowed > first:
        parts.compose(mechanism, allowed - first)
        whole.compose(mechanism, allowed)
        assert parts.remaining() == whole.remaining()
    with pytest.raises(BudgetExceeded):
        parts.compose(mechanism, allowed - first + 1)


def test_equal_parts_can_be_spent_to_the_last():
    ledger = Accountant(Budget(1.0, 1e-6, filter="approximate", share=0.0))
    for _ in range(8):
        ledger.compose(Coin(0.125))
    assert ledger.remaining().fraction < 1e-12
    gaussian = Accountant(Budget(1.0, 1e-6, filter="gaussian"))
    sigma = math.nextafter(ac.calibrate_sigma(1.0, 1e-6), math.inf)
    for _ in range(16):
        gaussian.compose(Noise(4.0 * sigma))
    with pytest.raises(BudgetExceeded):
        gaussian.compose(Noise(1e6))


def test_a_smaller_release_may_follow_a_refusal():
    ledger = Accountant(Budget(1.0, 1e-5))
    with pytest.raises(BudgetExceeded):
        ledger.compose(Noise(1.0))
    ledger.compose(Noise(50.0))
    assert len(ledger) == 1


def test_directions_are_charged_apart():
    ledger = Accountant(Budget(1.0, 1e-5))
    slope = 0.9 * max(c / a for a, c in zip(*ledger.budget.renyi_capacities(), strict=True))
    ledger.compose(Skewed(slope, 0.0))
    ledger.compose(Skewed(0.0, slope))
    for mechanism in (Skewed(slope, 0.0), Skewed(0.0, slope)):
        with pytest.raises(BudgetExceeded):
            ledger.compose(mechanism)


def test_several_orders_serve_different_mixes():
    # A steep curve fits at the low order only, a flat and long one at the high order only.
    many = Budget(4.0, 1e-6, orders=[6.0, 60.0])
    steep, flat = Skewed(0.02, 0.02), Coin(1e-3)
    assert Accountant(many).affordable(steep) > 0
    low = Accountant(Budget(4.0, 5e-7, orders=6.0)).affordable(flat)
    high = Accountant(Budget(4.0, 5e-7, orders=60.0)).affordable(flat)
    assert Accountant(many).affordable(flat) == max(low, high)


def test_what_a_filter_cannot_charge_is_refused_and_not_recorded():
    for budget, mechanism in (
        (Budget(1.0, 1e-5, filter="gaussian"), Coin(0.1, leak=1e-9)),
        (Budget(1.0, 1e-5, filter="gaussian"), Skewed(0.1, 0.1)),
        (Budget(1.0, 1e-5, filter="approximate"), Noise(1.0)),
        (Budget(1.0, 1e-5), NotANumber()),
    ):
        ledger = Accountant(budget)
        with pytest.raises(UnsupportedError):
            ledger.compose(mechanism)
        assert len(ledger) == 0


class NotANumber(Noise):
    def pairs(self):
        return (LinePair(math.nan),)

    def __init__(self):
        super().__init__(1.0)


def test_an_infinite_divergence_exceeds_every_renyi_budget():
    for budget in (Budget(100.0, 0.1, filter="renyi"), Budget(100.0, 0.1, share=0.0)):
        ledger = Accountant(budget)
        with pytest.raises(BudgetExceeded):
            ledger.compose(Coin(0.1, leak=1e-9))
        assert ledger.remaining().fraction == 1.0


def test_remaining_of_another_budget():
    ledger = Accountant()
    ledger.compose(Noise(20.0), 10)
    assert 0.0 < ledger.remaining(Budget(2.0, 1e-5)).fraction < 1.0
    assert ledger.remaining(Budget(0.1, 1e-5)).fraction == 0.0
    with pytest.raises(DomainError, match="budget"):
        ledger.remaining()
    with pytest.raises(ArgumentTypeError):
        ledger.remaining(1.0)


@pytest.mark.parametrize("budget", [*BUDGETS, Budget(1.0, 0.1, filter="non-adaptive")], ids=repr)
def test_budgets_are_values(budget):
    again = eval(repr(budget), {"Budget": Budget})
    assert again == budget
    assert hash(again) == hash(budget)
