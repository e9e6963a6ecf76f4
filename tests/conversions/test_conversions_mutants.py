"""What mutation testing (support/hardening) found nobody watching in the conversions."""

import math
import random
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given

import accountant as ac
from accountant import conversions as co
from accountant._basics import intervals as iv
from accountant.analyses import gdp
from accountant.pairs import excess
from support.strategies import log_uniform

mp = mpmath.mpf
UNIT = mp(2) ** -53


def is_just_above(found, truth):
    """Whether a double is a fraction rounded up: to 40 digits, and then to a double."""
    nearest = float(truth)
    return truth <= Fraction(found) and found <= math.nextafter(nearest, math.inf)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 1.7, 5.0, 1e-3, 1e5])
@pytest.mark.parametrize("order", [1.1, 2.0, 3.7, 1e4])
def test_products_are_rounded_up_once(value, order):
    square, alpha = Fraction(value) ** 2, Fraction(order)
    assert is_just_above(co.gdp_to_rdp(value, order), square * alpha / 2)
    assert is_just_above(co.gdp_to_zcdp(value), square / 2)
    assert is_just_above(co.pure_to_zcdp(value, form="bun-steinke"), square / 2)
    assert is_just_above(co.zcdp_to_rdp(value, order), Fraction(value) * alpha)
    assert co.gdp_to_rdp(math.inf, order) == co.zcdp_to_rdp(math.inf, order) == math.inf
    assert co.gdp_to_zcdp(math.inf) == math.inf


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.7, 1.0, 5.0, 40.0, 900.0])
def test_pure_privacy_in_other_terms_is_rounded_up_once(epsilon):
    ulps = mp(2) ** -51
    with mpmath.workdps(900):
        e = mp(epsilon)
        truth = e * mpmath.tanh(e / 2)
        assert truth <= co.pure_to_zcdp(epsilon) <= truth * (1 + ulps)
        for order in (1.001, 1.5, 2.0, 7.3, 1e3):
            a = mp(order)
            truth = mpmath.log(mpmath.cosh((a - mp(0.5)) * e) / mpmath.cosh(e / 2)) / (a - 1)
            assert truth <= co.pure_to_rdp(epsilon, order) <= min(truth * (1 + ulps), e)


@pytest.mark.parametrize("digits", [60, 75])
def test_what_the_series_leave_out_is_enclosed(monkeypatch, digits):
    # At 40 digits the outward roundings are larger than what is left out, and would hide it.
    for name, rounding in (("DOWN", ROUND_FLOOR), ("UP", ROUND_CEILING)):
        context = Context(digits, rounding, traps=[InvalidOperation])
        monkeypatch.setattr(iv, name, context)
    with mpmath.workdps(120):
        for text in ("0.0999", "0.05", "0.0123", "1e-3", "1e-10", "1e-30", "1e-300"):
            for x in (Decimal(text), -Decimal(text)):
                for name in ("expm1", "log1p"):
                    found, truth = getattr(iv, name)(x), getattr(mpmath, name)(mp(str(x)))
                    lower, upper = mp(str(found.lower)), mp(str(found.upper))
                    assert lower <= truth <= upper
                    assert upper - lower <= abs(truth) * mp(10) ** -41


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "sqrt"])
def test_functions_lose_no_digits(name):
    draw = random.Random(7)
    points = [10 ** draw.uniform(-30, 2) for _ in range(60)]
    points += [] if name in ("log", "sqrt") else [-0.99 * draw.random() for _ in range(60)]
    with mpmath.workdps(120):
        for x in points:
            found, truth = getattr(iv, name)(x), getattr(mpmath, name)(mp(x))
            lower, upper = mp(str(found.lower)), mp(str(found.upper))
            assert lower <= truth <= upper
            assert upper - lower <= mp(10) ** -37 * max(abs(truth), truth if x < 0 else 0)


def test_zero_is_kept():
    for epsilon in (0.0, -0.0):
        assert repr(co.pure_to_zcdp(epsilon)) == "0.0"
    for function, value in ((iv.exp, 1), (iv.expm1, 0), (iv.log1p, 0), (iv.sqrt, 0)):
        found = function(0.0)
        assert (found.lower, found.upper) == (value, value)
    found = iv.log(1.0)
    assert (found.lower, found.upper) == (0, 0)
    # Of an end that is one, exact; of the other, outwards.
    for ends in ((Decimal("0.5"), Decimal(1)), (Decimal(1), Decimal(2))):
        found = iv.log(iv.Interval(*ends))
        assert 0 in (found.lower, found.upper)


def calls_of(tradeoff, epsilon, tolerance):
    seen = []

    def counted(x):
        seen.append(x)
        return tradeoff(x)

    return co.tradeoff_to_delta(counted, epsilon, tolerance=tolerance), len(seen)


@pytest.mark.parametrize(
    ("tradeoff", "epsilon", "tolerance", "delta", "most"),
    [
        (lambda x: max(0.0, 0.5 - x), 0.5, 1e-3, 0.5, 65),
        (lambda x: max(0.0, 0.5 - x), 5.0, 1e-3, 0.5, 11),
        (lambda x: 1.0 - x, 2.0, 1e-3, 0.0, 80),
        (lambda x: 0.0, 1.0, 1e-3, 1.0, 2),
        (lambda x: (1.0 - x) ** 4, 0.5, 1e-2, 0.27217, 209),
        (lambda x: 1.0 - x**0.25, 0.5, 1e-2, 0.39998, 134),
        (lambda x: 1.0 - x**0.25, 5.0, 1e-2, 0.08921, 122),
    ],
)
def test_a_tradeoff_is_asked_no_more_often_than_needed(tradeoff, epsilon, tolerance, delta, most):
    found, calls = calls_of(tradeoff, epsilon, tolerance)
    assert delta <= found <= delta * (1 + tolerance) + 2.0**-48
    assert calls <= most
    slope = math.exp(epsilon)
    points = [i / 4096 for i in range(4097)]
    assert found >= max(1.0 - tradeoff(x) - slope * x for x in points)


def test_a_tradeoff_leaves_room_for_three_roundings():
    draw = random.Random(3)
    for _ in range(50):
        miss = draw.uniform(0.01, 0.9)
        found = co.tradeoff_to_delta(lambda x, miss=miss: miss, draw.uniform(0.0, 3.0))
        assert Fraction(found) >= 1 - Fraction(miss) + Fraction(3, 2**53)


def test_the_budget_of_the_error_function_is_left_free():
    # Trusted to 8 roundings wherever it is built; three more for the argument.
    with mpmath.workdps(50):
        for mu in (1e-280, 1e-9, 0.1, 0.7, 1.0, 2.5, 6.0):
            truth = mpmath.erf(mp(mu) / mpmath.sqrt(8))
            lower, upper = gdp._total_variation(mu)
            assert truth * (1 - 20 * UNIT) <= lower <= truth * (1 - 11 * UNIT)
            assert min(truth * (1 + 11 * UNIT), 1) <= upper <= truth * (1 + 20 * UNIT)
            assert truth * (1 - 26 * UNIT) <= excess._erf_lower(mu) <= truth * (1 - 15 * UNIT)
            truth = mpmath.erfc(mp(mu) / mpmath.sqrt(8))
            assert truth * (1 + 15 * UNIT) <= excess._erfc_upper(mu) <= truth * (1 + 90 * UNIT)


def test_error_functions_below_the_doubles_are_bounded_above():
    for mu in (110.0, 1000.0, 1e300):
        assert excess._erfc_upper(mu) == 1e-300


@pytest.mark.parametrize("mu", [5e-324, 1e-310, 1e-308, 1e-300, 1e200, 1.7e308])
def test_gaussians_at_the_ends_of_the_doubles(mu):
    small, large = gdp._noise(mu)
    assert Fraction(small) * Fraction(mu) <= 1
    assert large == math.inf or Fraction(large) * Fraction(mu) >= 1
    for epsilon in (1e-3, 1.0, 50.0):
        lower, upper = gdp.gdp_delta_bounds(mu, epsilon)
        truth = 0.0 if mu < 1.0 else 1.0
        assert lower <= truth <= upper
        assert (upper if mu < 1.0 else 1.0) <= (1e-100 if mu < 1.0 else upper)
    lower, upper = gdp.gdp_epsilon_bounds(mu, 1e-5)
    assert (lower, upper) == (0.0, 0.0) if mu < 1.0 else upper == math.inf


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_gaussian_epsilons_at_infinity_and_zero(mu):
    assert gdp.gdp_epsilon_bounds(0.0, 0.5) == gdp.Bounds(0.0, 0.0)
    assert gdp.gdp_epsilon_bounds(mu, 0.0) == gdp.Bounds(math.inf, math.inf)
    assert gdp.gdp_delta_bounds(0.0, 0.0) == gdp.Bounds(0.0, 0.0)
    assert gdp.gdp_delta_bounds(mu, math.inf) == gdp.Bounds(0.0, 0.0)
    assert gdp.gdp_delta_bounds(math.inf, math.inf) == gdp.Bounds(0.0, 1.0)
    assert gdp.gdp_delta_bounds(math.inf, 0.0).upper == 1.0
    assert gdp.gdp_epsilon_bounds(math.inf, 0.5) == gdp.Bounds(0.0, math.inf)


def test_the_central_limit_formula():
    for q, sigma, steps in ((0.01, 1.0, 1000), (0.3, 0.05, 7), (1.0, 0.0376, 3), (1e-3, 30.0, 1)):
        with mpmath.workdps(40):
            truth = mp(q) * mpmath.sqrt(steps * mpmath.expm1(1 / mp(sigma) ** 2))
        assert gdp.clt_mu_approximation(q, sigma, steps) == pytest.approx(float(truth), rel=1e-12)
    assert gdp.clt_epsilon_approximation(0.01, 1.0, 1000, 1e-5) == co.gdp_to_epsilon(
        gdp.clt_mu_approximation(0.01, 1.0, 1000), 1e-5
    )
    assert gdp.clt_delta_approximation(0.01, 1.0, 1000, 1.0) == co.gdp_to_delta(
        gdp.clt_mu_approximation(0.01, 1.0, 1000), 1.0
    )
    # It is named an approximation: it undercuts the certified lower end.
    wrong = gdp.clt_epsilon_approximation(0.001, 0.5, 1000, 1e-6)
    assert wrong < ac.epsilon_bounds(0.001, 0.5, 1000, 1e-6).lower
    assert gdp.clt_mu_approximation(1.0, 1.0, 1) > 0.0
    assert gdp.clt_mu_approximation(0.5, 0.0375, 1) == math.inf  # e^711
    assert gdp.clt_mu_approximation(0.0, 1e-3, 1) == 0.0
    assert gdp.clt_mu_approximation(0.5, 1e-3, 0) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, 1e-200, 0.3, 100.0])
@pytest.mark.parametrize("delta", [1e-200, 1e-50, 0.99, 1 - 2.0**-53])
def test_the_largest_gaussian_in_the_corners(epsilon, delta):
    mu = co.largest_gdp(epsilon, delta)
    assert co.gdp_to_delta(mu, epsilon) <= delta < co.gdp_to_delta(mu * (1 + 2**-52), epsilon)


@given(epsilon=log_uniform(1e-290, 1e6, 1e-200, 1e-12, 0.4, 1.0, 18.0, 36.0, 600.0, 601.0, 650.0))
def test_pure_privacy_as_gaussian_is_the_least(epsilon):
    found = co.pure_to_gdp(epsilon)
    with mpmath.workdps(600):
        e, mu = mp(epsilon), mp(found)
        # erf(μ/√8) >= tanh(ε/2) where small, erfc(μ/√8) <= 2/(1 + e^ε) where large.
        if epsilon < 1.0:
            at = lambda m: mpmath.erf(m / mpmath.sqrt(8)) - mpmath.tanh(e / 2)  # noqa: E731
        else:
            at = lambda m: 2 / (1 + mpmath.exp(e)) - mpmath.erfc(m / mpmath.sqrt(8))  # noqa: E731
        # Above 600 an asymptotic bound is used, a relative 2/μ² away.
        slack = mp("1e-13") if epsilon <= 600.0 else mp("1e-5")
        assert at(mu) >= 0
        assert at(mu * (1 - slack)) < 0


@pytest.mark.parametrize("epsilon", [1e-200, 1e-3, 1.0, 12.0, 300.0, 1e3])
def test_pure_privacy_as_gaussian_is_beside_what_is_not_certain(epsilon):
    certain, found = excess._certainty(epsilon), co.pure_to_gdp(epsilon)
    assert certain(found)
    assert not certain(math.nextafter(found, 0.0))


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 1.0, 7.0, 40.0])
def test_certainty_is_decided_to_the_last_double(monkeypatch, epsilon):
    certain = excess._certainty(epsilon)
    with mpmath.workdps(80):
        e = mp(epsilon)
        for name, truth, other, towards in (
            ("_erfc_upper", 2 / (mpmath.exp(e) + 1), "_erf_lower", 0.0),
            ("_erf_lower", mpmath.tanh(e / 2), "_erfc_upper", 2.0),
        ):
            last = float(truth)
            if (last > truth) == (towards == 0.0) and last != truth:
                last = math.nextafter(last, towards)
            worst = -1.0 if other == "_erf_lower" else 3.0
            monkeypatch.setattr(excess, other, lambda mu, v=worst: v)
            monkeypatch.setattr(excess, name, lambda mu, v=last: v)
            assert certain(1.0)
            beyond = math.nextafter(last, 2.0 - towards)
            monkeypatch.setattr(excess, name, lambda mu, v=beyond: v)
            assert not certain(1.0)


def test_pure_privacy_below_the_doubles_with_full_accuracy():
    for epsilon in (5e-324, 1e-310, 1e-300, 9.9e-291):
        found = Fraction(co.pure_to_gdp(epsilon))
        assert Fraction(5, 4) * Fraction(epsilon) <= found
        assert found <= Fraction(1261, 1000) * Fraction(epsilon) + Fraction(5e-324)


def test_the_argument_of_the_error_function_is_rounded_down():
    draw = random.Random(11)
    for _ in range(300):
        mu = 10 ** draw.uniform(-280, 250)
        with mpmath.workdps(50):
            truth = mp(mu) / mpmath.sqrt(8)
            assert truth * (1 - 8 * UNIT) <= excess._argument(mu) <= truth
