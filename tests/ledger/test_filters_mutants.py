"""What mutation testing (support/hardening) found nobody watching in filters of budgets."""

import math
from fractions import Fraction

import pytest

from accountant.calibration import calibrate_sigma
from accountant.errors import UnsupportedError
from accountant.ledger import Budget, filters
from accountant.ledger.filters import divergence
from accountant.mechanisms import ApproximateDP, Gaussian, PureDP
from support.toy_mechanisms import LinePair, Skewed


def test_charges_are_rounded_up_to_the_last_unit():
    small = PureDP(1e-300)
    square, delta = filters.meter(Budget(1.0, 1e-5, filter="approximate")).inner.cost(small)
    assert (square, delta) == (1, 0)  # 1e-600 is no double
    watch = filters.meter(Budget(1.0, 1e-5, filter="gaussian")).inner
    assert watch.cost(Gaussian(3.0)) == (Fraction(1, 9),)
    assert watch.cost(Gaussian(math.inf)) == (0,)


@pytest.mark.parametrize("kind", ["renyi", "gaussian", "approximate"])
def test_what_is_left_is_what_was_not_spent(kind):
    step = PureDP(0.01) if kind == "approximate" else Gaussian(30.0)
    orders = {"orders": 10.0} if kind == "renyi" else {}
    watch = filters.meter(Budget(2.0, 1e-5, filter=kind, **orders))
    fits = watch.affordable(step)
    assert fits > 10
    assert watch.admits([(step, fits)])
    assert not watch.admits([(step, fits + 1)])
    assert not watch.admits([(step, fits), (step, 1)])
    before = watch.remaining()
    assert (before.spent, before.fraction) == (0.0, 1.0)
    watch.add([(step, fits // 2)])
    half = watch.remaining()
    assert half.capacity == before.capacity
    assert 0.4 < half.spent / half.capacity < 0.6
    assert half.fraction == pytest.approx(1.0 - half.spent / half.capacity, rel=1e-12)
    assert half.fraction <= 1.0 - half.spent / half.capacity
    assert watch.affordable(step) == fits - fits // 2
    watch.add([(step, 2 * fits)])
    over = watch.remaining()
    assert over.fraction == 0.0
    assert over.spent > over.capacity
    assert watch.affordable(step) == 0


class Finite(LinePair):
    """A pair whose finite losses alone are as given."""

    mass = 0.0

    @property
    def infinite_mass(self):
        return self.mass

    def finite_rdp(self, order):
        return self.slope


class Leaky(Finite):
    mass = 2.0**-30


def test_divergences_of_finite_losses_are_charged_from_zero_on():
    mechanism = PureDP(1.0)
    for value in (0.0, 0.25, 0.5, 3.0, math.inf):
        assert divergence(mechanism, Finite(value), 2.0) == value
        assert divergence(mechanism, Leaky(value), 2.0) == value
    # Less than a probability: no loss at all, where there is mass at infinity.
    assert divergence(mechanism, Leaky(-0.25), 2.0) == 0.0
    for pair in (Finite(-0.25), Finite(math.nan), Leaky(math.nan)):
        with pytest.raises(UnsupportedError):
            divergence(mechanism, pair, 2.0)


def test_what_is_not_gaussian_is_charged_by_its_mu():
    watch = filters.meter(Budget(1.0, 1e-5, filter="gaussian")).inner
    for mechanism in (PureDP(0.5), PureDP(1e-3)):
        assert watch.cost(mechanism) == (Fraction(mechanism.pairs()[0].mu) ** 2,)
    assert watch.cost(PureDP(0.0)) == (0,)
    with pytest.raises(UnsupportedError):
        watch.cost(ApproximateDP(0.5, delta=1e-6))


@pytest.mark.parametrize("orders", [10.0, (4.0, 10.0)])
def test_the_worse_direction_is_what_remains(orders):
    left = []
    for skewed in (Skewed(0.0, 0.01), Skewed(0.01, 0.0), Skewed(0.01, 0.01), Skewed(0.005, 0.01)):
        watch = filters.meter(Budget(2.0, 1e-5, filter="renyi", orders=orders))
        watch.add([(skewed, 5)])
        left.append(watch.remaining())
        assert watch.affordable(skewed) == watch.affordable(Skewed(0.01, 0.01))
    assert len(set(left)) == 1
    assert 0.0 < left[0].fraction < 1.0
    assert left[0].spent == pytest.approx(5 * 0.01 * 10.0, rel=1e-12)


def test_leaks_are_what_remains_when_they_are_scarcer():
    for kind in ("renyi", "approximate"):
        watch = filters.meter(Budget(2.0, 1e-5, filter=kind, share=0.5))
        watch.add([(ApproximateDP(1e-4, delta=4e-6), 1)])
        remaining = watch.remaining()
        assert remaining.capacity == pytest.approx(5e-6, rel=1e-12)
        assert remaining.spent == pytest.approx(4e-6, rel=1e-12)
        assert remaining.fraction == pytest.approx(0.2, rel=1e-9)
        assert watch.affordable(ApproximateDP(1e-4, delta=1e-6)) in (0, 1)
        assert watch.affordable(ApproximateDP(1e-4, delta=1.1e-6)) == 0


def test_the_pure_sum_or_the_squares_decide():
    budget = Budget(1.0, 1e-5, filter="approximate", share=0.0)
    watch = filters.meter(budget)
    # Few large ones: by their sum; many small ones: by their squares.
    assert watch.affordable(PureDP(0.25)) == 4
    assert watch.affordable(PureDP(1.0)) == 1
    assert watch.affordable(PureDP(1.1)) == 0
    many = watch.affordable(PureDP(1e-3))
    assert many == math.floor(filters._variance_lower(1.0, 1e-5) / 1e-6 * (1 - 1e-12))
    watch.add([(PureDP(1e-3), many)])
    assert watch.remaining().unit == "squared ε"
    assert watch.remaining().fraction < 1e-3


class Late(Skewed):
    """Costs nothing at orders below two."""

    def pairs(self):
        return (LatePair(1.0),)


class LatePair(LinePair):
    def rdp(self, order):
        return 0.0 if order < 2.0 else self.slope


def test_an_order_without_capacity_is_closed_for_good():
    budget = Budget(0.05, 1e-5, orders=[1.5, 500.0])
    low, high = budget.renyi_capacities()[1]
    assert low < 0.0 < high
    watch = filters.meter(budget)
    assert watch.affordable(Late(1.0, 1.0)) == 0
    assert watch.affordable(Skewed(high / 1000, 0.0)) in (1, 2)
    assert watch.remaining().fraction == 1.0


class OneWay(Skewed):
    """Gives everything away in one direction only."""

    def pairs(self):
        pairs = Leaky(0.0), Finite(0.0)
        return pairs if self.remove else pairs[::-1]


@pytest.mark.parametrize("mechanism", [OneWay(1.0, 0.0), OneWay(0.0, 1.0)])
def test_leaks_in_one_direction_remain_charged(mechanism):
    watch = filters.meter(Budget(2.0, 1e-5, share=0.5))
    assert watch.affordable(mechanism) == math.floor(5e-6 * 2**30)
    watch.add([(mechanism, 1000)])
    assert watch.remaining().spent == 1000 * 2.0**-30
    assert 0.8 < watch.remaining().fraction < 0.9


def test_the_gaussian_capacity_is_rounded_down():
    for epsilon, delta in ((1.0, 1e-5), (0.3, 1e-9), (8.0, 0.1)):
        sigma = Fraction(calibrate_sigma(epsilon, delta))
        watch = filters.meter(Budget(epsilon, delta, filter="gaussian")).inner
        assert watch.holds([1 / sigma**2])
        assert not watch.holds([1 / sigma**2 + Fraction(1, 2**1074)])
