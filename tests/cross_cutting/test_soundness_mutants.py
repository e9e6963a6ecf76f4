"""What mutation testing (support/hardening) found nobody watching."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest

from accountant import intervals as iv
from accountant.analyses import classical, gdp, renyi_conversion
from accountant.calibration import calibrate_sigma
from accountant.display import text_down, text_up
from accountant.errors import UnsupportedError
from accountant.ledger import Budget, exact_sums, filters, meters
from accountant.mechanisms import ApproximateDP, Gaussian, PureDP
from support.toy_mechanisms import LinePair, Skewed


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1e-5, 6, "0.0000100001"),  # the double lies above 1e-5
        (2.0**-17, 3, "7.63e-06"),
        (2.0**-16, 6, "0.0000152588"),
        (999999.0, 3, "1e+06"),
        (999999.0, 6, "999999"),
        (1e6, 6, "1e+06"),
        (99999.0, 2, "100000"),
        (12345678.0, 8, "12345678"),
        (123456789.0, 8, "1.2345679e+08"),
        (5e-324, 3, "4.95e-324"),
        (1.7976931348623157e308, 3, "1.8e+308"),
    ],
)
def test_numbers_are_written_plainly_where_they_are_short(value, digits, text):
    assert text_up(value, digits) == text
    assert float(text_down(value, digits)) <= value


def test_charges_are_rounded_up_to_the_last_unit():
    small = PureDP(1e-300)
    total, square, delta = filters.meter(Budget(1.0, 1e-5, filter="approximate")).cost(small)
    assert (total, square, delta) == (exact_sums.ceiling(1e-300), 1, 0)  # 1e-600 is no double
    watch = filters.meter(Budget(1.0, 1e-5, filter="gaussian"))
    (third,) = watch.cost(Gaussian(3.0))
    assert third == -((-(1 << 1074)) // 9)
    assert watch.cost(Gaussian(math.inf)) == (0,)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 7.5, 100.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-5, 0.3, 0.999])
def test_the_capacity_for_squares_is_just_below_the_root(epsilon, delta):
    with mpmath.workdps(50):
        v = mpmath.mpf(filters._variance_lower(epsilon, delta))
        reached = mpmath.sqrt(2 * v * -mpmath.log(mpmath.mpf(delta))) + v / 2
        assert reached <= epsilon
        assert reached >= epsilon * (1 - mpmath.mpf(10) ** -12)


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


def test_the_largest_count_is_found_at_both_ends():
    assert meters.largest(lambda n: False) == 0
    assert meters.largest(lambda n: True) == 2**53
    for most in (1, 2, 3, 1000, 2**53 - 1):
        assert meters.largest(lambda n, most=most: n <= most) == most


@pytest.mark.parametrize("mu", [1e-8, 0.3, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.5, 3.0, 40.0])
def test_gaussian_profiles_enclose_the_truth_closely(mu, epsilon):
    found = gdp.gdp_delta_bounds(mu, epsilon)
    with mpmath.workdps(400):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
        truth = tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2)
        assert found.lower <= truth <= found.upper
        assert found.upper <= truth * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(10) ** -289
        if found.lower > 1e-290 and found.upper < 1.0:
            assert found.lower >= truth * (1 - mpmath.mpf(10) ** -9)
            inverse = gdp.gdp_epsilon_bounds(mu, found.upper)
            assert inverse.lower <= epsilon
            assert inverse.lower <= inverse.upper
            assert inverse.lower >= epsilon * (1 - 1e-6) - 1e-6


def test_composed_gaussian_privacy_is_the_root_of_the_squares_rounded_up():
    parts = [(0.1, 3), (1.7, 10**6), (1e-9, 1), (0.0, 5)]
    with mpmath.workdps(60):
        truth = mpmath.sqrt(sum(n * mpmath.mpf(mu) ** 2 for mu, n in parts))
        assert truth <= gdp.compose_gdp(parts) <= truth * (1 + mpmath.mpf(10) ** -14)


@pytest.mark.parametrize("form", ["kairouz", "hyperbolic", "original"])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
def test_advanced_composition_is_its_formula_rounded_up(form, delta):
    epsilon, count = 0.05, 1000
    found = classical.advanced_epsilon([(epsilon, 0.0, count)], delta, form=form)
    with mpmath.workdps(60):
        e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
        gain = e * (mpmath.exp(e) - 1) / (mpmath.exp(e) + 1) * count
        squares = count * e * e
        usual = mpmath.sqrt(2 * squares * mpmath.log(1 / d))
        less = mpmath.sqrt(2 * squares * mpmath.log(mpmath.e + mpmath.sqrt(squares) / d))
        truth = {
            "kairouz": min(count * e, gain + usual, gain + less),
            "hyperbolic": gain + usual,
            "original": usual + count * e * (mpmath.exp(e) - 1),
        }[form]
        assert truth <= found <= truth * (1 + mpmath.mpf(10) ** -12)


def test_deltas_of_the_parts_are_taken_from_the_whole():
    epsilon, own, count, delta = 0.05, 1e-8, 100, 1e-5
    with mpmath.workdps(60):
        e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
        squares = count * e * e
        gain = e * (mpmath.exp(e) - 1) / (mpmath.exp(e) + 1) * count
        lost = 1 - (1 - mpmath.mpf(own)) ** count
        left = (d - lost) / (1 - lost)
        truth = gain + mpmath.sqrt(2 * squares * mpmath.log(1 / left))
        parts = [(epsilon, own, count)]
        found = classical.advanced_epsilon(parts, delta, form="hyperbolic")
        assert truth <= found <= truth * (1 + mpmath.mpf(10) ** -10)
        left = d - count * mpmath.mpf(own)
        truth = count * e * (mpmath.exp(e) - 1) + mpmath.sqrt(2 * squares * mpmath.log(1 / left))
        found = classical.advanced_epsilon(parts, delta, form="original")
        assert truth <= found <= truth * (1 + mpmath.mpf(10) ** -10)
    for form in ("kairouz", "hyperbolic", "original"):
        assert classical.advanced_epsilon(parts, 9e-7, form=form) == math.inf


@pytest.mark.parametrize("ends", [(-1, 2), (-1, 0), (0, 2), (0, 0), ("-0.5", "0.5")])
def test_nothing_is_divided_by_what_may_be_zero(ends):
    lower, upper = map(Decimal, ends)
    for call in (lambda y: iv.of(1.0) / y, lambda y: 1.0 / y):
        with pytest.raises(ZeroDivisionError):
            call(iv.Interval(lower, upper))


@pytest.mark.parametrize("mu", [5e-324, 1e-310, 1e-305, 1e-300, 3e-299, 1e-250])
def test_gaussian_profiles_of_next_to_no_loss(mu):
    found = gdp.gdp_delta_bounds(mu, 0.0)
    with mpmath.workdps(30):
        truth = mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8))
        assert found.lower <= truth <= found.upper <= truth + mpmath.mpf(10) ** -265


def test_mass_at_infinity_is_taken_from_delta_before_a_renyi_conversion():
    (pair, *_) = ApproximateDP(0.5, 1e-6).pairs()
    assert renyi_conversion.epsilon_upper([(pair, 1)], 9e-7) == math.inf
    assert renyi_conversion.epsilon_upper([(pair, 3)], 2.9e-6) == math.inf
    assert renyi_conversion.epsilon_upper([(pair, 3)], 1e-5) < math.inf


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
        assert filters._divergence(mechanism, Finite(value), 2.0) == value
        assert filters._divergence(mechanism, Leaky(value), 2.0) == value
    # Less than a probability: no loss at all, where there is mass at infinity.
    assert filters._divergence(mechanism, Leaky(-0.25), 2.0) == 0.0
    for pair in (Finite(-0.25), Finite(math.nan), Leaky(math.nan)):
        with pytest.raises(UnsupportedError):
            filters._divergence(mechanism, pair, 2.0)


def test_what_is_not_gaussian_is_charged_by_its_mu():
    watch = filters.meter(Budget(1.0, 1e-5, filter="gaussian"))
    for mechanism in (PureDP(0.5), PureDP(1e-3)):
        square = Fraction(mechanism.pairs()[0].mu) ** 2
        assert watch.cost(mechanism) == (math.ceil(square * 2**1074),)
    assert watch.cost(PureDP(0.0)) == (0,)
    with pytest.raises(UnsupportedError):
        watch.cost(ApproximateDP(0.5, 1e-6))


@pytest.mark.parametrize("orders", [10.0, (4.0, 10.0)])
def test_the_worse_direction_is_what_remains(orders):
    left = []
    for skewed in (Skewed(0.0, 0.01), Skewed(0.01, 0.0), Skewed(0.01, 0.01), Skewed(0.005, 0.01)):
        watch = filters.meter(Budget(2.0, 1e-5, orders=orders))
        watch.add([(skewed, 5)])
        left.append(watch.remaining())
        assert watch.affordable(skewed) == watch.affordable(Skewed(0.01, 0.01))
    assert len(set(left)) == 1
    assert 0.0 < left[0].fraction < 1.0
    assert left[0].spent == pytest.approx(5 * 0.01 * 10.0, rel=1e-12)


def test_leaks_are_what_remains_when_they_are_scarcer():
    for kind in ("renyi", "approximate"):
        watch = filters.meter(Budget(2.0, 1e-5, filter=kind, share=0.5))
        watch.add([(ApproximateDP(1e-4, 4e-6), 1)])
        remaining = watch.remaining()
        assert remaining.capacity == pytest.approx(5e-6, rel=1e-12)
        assert remaining.spent == pytest.approx(4e-6, rel=1e-12)
        assert remaining.fraction == pytest.approx(0.2, rel=1e-9)
        assert watch.affordable(ApproximateDP(1e-4, 1e-6)) in (0, 1)
        assert watch.affordable(ApproximateDP(1e-4, 1.1e-6)) == 0


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


def test_parts_of_capacities_that_are_nothing():
    assert filters._used(0, 0) == 0.0
    for spent, capacity in ((1, 0), (0, -1), (1, -1)):
        assert filters._used(spent, capacity) == math.inf
    assert filters._used(1, 3) == math.nextafter(1 / 3, 1.0)
    assert filters._used(6, 3) == 2.0


def test_doubles_are_whole_units():
    for value in (0.0, 5e-324, 1e-300, 0.1, 1.0, 1.7976931348623157e308):
        assert Fraction(exact_sums.units(value), 2**1074) == Fraction(value)
        assert exact_sums.floor(value) == exact_sums.ceiling(value) == exact_sums.units(value)


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
        watch = filters.meter(Budget(epsilon, delta, filter="gaussian"))
        assert watch.holds([math.floor(2**1074 / sigma**2)])
        assert not watch.holds([math.floor(2**1074 / sigma**2) + 1])
