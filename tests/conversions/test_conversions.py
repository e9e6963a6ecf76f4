"""Conversions against mpmath, exact profiles and brute force; the unsafe side has no tolerance."""

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given

from accountant import conversions as co
from accountant.analyses import gdp
from accountant.errors import ArgumentTypeError, DomainError
from support.strategies import log_uniform

mp = mpmath.mpf
ULPS = mp(2) ** -50


def gaussian_delta(mu, epsilon):
    mu, epsilon = mp(mu), mp(epsilon)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
        -mu / 2 - epsilon / mu
    )


pytestmark = pytest.mark.usefixtures("sixty_digits")


DELTAS = [0.3, 0.1, 1e-5, 1e-15, 1e-30, 1e-300]


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 5.0, 30.0])
def test_a_gaussian_is_never_undercut(mu, delta):
    # The exact ε of N(0,1) against N(μ,1) is below every conversion of its Rényi curve.
    def curve(order):
        return co.gdp_to_rdp(mu, order)

    exact = gdp.gdp_epsilon_bounds(mu, delta)
    sharp, usual, old = (
        co.rdp_to_epsilon(curve, delta, form=f) for f in ("asoodeh", "canonne", "mironov")
    )
    assert exact.lower <= sharp <= usual <= old
    rho = co.gdp_to_zcdp(mu)
    assert exact.lower <= co.zcdp_to_epsilon(rho, delta)
    assert co.zcdp_to_epsilon(rho, delta, form="canonne") <= co.zcdp_to_epsilon(
        rho, delta, form="bun-steinke"
    )
    for form in ("canonne", "mironov"):
        assert gaussian_delta(mu, usual) <= co.rdp_to_delta(curve, usual, form=form)
    assert gaussian_delta(mu, usual) <= co.zcdp_to_delta(rho, usual)


@pytest.mark.parametrize("seed", range(30))
def test_formulas_at_one_order(seed):
    draw = random.Random(seed)
    order = 1 + 10 ** draw.uniform(-3, 4)
    rho = 10 ** draw.uniform(-4, 2)
    delta = 10 ** draw.uniform(-40, -0.01)
    a = mp(order)
    truth = {
        "mironov": rho - mpmath.log(delta) / (a - 1),
        "canonne": rho + mpmath.log1p(-1 / a) - (mpmath.log(delta) + mpmath.log(a)) / (a - 1),
    }
    for form, value in truth.items():
        got = co.rdp_to_epsilon(lambda _: rho, delta, form=form, orders=[order])
        assert max(value, 0) <= got <= max(value, 0) * (1 + ULPS)
        epsilon = 10 ** draw.uniform(-2, 2)
        small = mpmath.exp((a - 1) * (rho - mp(epsilon)))
        if form == "canonne":
            small *= (1 - 1 / a) ** (a - 1) / a
        got = co.rdp_to_delta(lambda _: rho, epsilon, form=form, orders=[order])
        assert min(small, 1) <= got <= min(small, 1) * (1 + ULPS) + mp(5e-324)


def least_q(p, order, moment):
    """The least q for which the two-point pair (p, q) has this moment."""
    low, high = mp(0), p

    def at(q):
        return p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)

    for _ in range(70):
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle) <= moment else (middle, high)
    return high


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("order", "rho", "delta"),
    [(2.0, 0.5, 0.05), (1.5, 0.1, 0.05), (4.0, 0.2, 0.1), (8.0, 1.0, 0.2), (8.0, 1.0, 0.125)],
)
def test_asoodeh_is_the_optimum_over_two_point_pairs(order, rho, delta):
    with mpmath.workdps(25):
        moment = mpmath.exp((mp(order) - 1) * mp(rho))

        def attained(p):
            p = mp(float(p))
            return mpmath.log((p - mp(delta)) / least_q(p, mp(order), moment))

        grid = np.append(np.linspace(delta, 1.0, 80)[1:-1], 1.0 - 2.0**-40)
        for _ in range(3):
            values = [attained(p) for p in grid]
            place = int(np.argmax([float(v) for v in values]))
            best, low = values[place], grid[max(place - 1, 0)]
            grid = np.linspace(low, grid[min(place + 1, len(grid) - 1)], 40)
        got = co.rdp_to_epsilon(lambda _: rho, delta, orders=[order])
        assert best <= got <= best + mp("1e-3")
        usual = co.rdp_to_epsilon(lambda _: rho, delta, orders=[order], form="canonne")
        # At order * delta = 1 the two are the same.
        assert got == usual if order * delta == 1.0 else got < usual - 1e-3


@given(
    order=log_uniform(1.001, 1e3, 1.5, 2.0),
    epsilon=log_uniform(1e-4, 20.0, 1.0),
    delta=log_uniform(1e-30, 0.5, 1e-5),
)
def test_asoodeh_never_undercuts_randomised_response(order, epsilon, delta):
    # The exact profile of randomised response, from the same divergence at one order.
    rho = co.pure_to_rdp(epsilon, order)
    with mpmath.workdps(60):
        keep = 1 / (1 + mpmath.exp(-mp(epsilon)))
        # δ = keep - e^x (1 - keep), so:
        truth = mpmath.log((keep - mp(delta)) / (1 - keep)) if delta < keep else mp(0)
        for form in ("asoodeh", "canonne", "mironov"):
            assert co.rdp_to_epsilon(lambda _: rho, delta, orders=[order], form=form) >= truth


@given(epsilon=log_uniform(1e-8, 300.0, 1.0), order=log_uniform(1.0001, 1e6, 1.5, 2.0))
def test_pure_to_renyi_and_zcdp(epsilon, order):
    with mpmath.workdps(80):
        e, a = mp(epsilon), mp(order)
        cosh = mpmath.cosh
        truth = mpmath.log(cosh((a - mp(0.5)) * e) / cosh(e / 2)) / (a - 1)
        got = co.pure_to_rdp(epsilon, order)
        assert truth <= got <= truth * (1 + ULPS)
        tight, old = co.pure_to_zcdp(epsilon), co.pure_to_zcdp(epsilon, form="bun-steinke")
        assert e * mpmath.tanh(e / 2) <= tight <= old * (1 + 2**-50)
        assert truth <= mp(tight) * a  # Theorem C13
        assert e * e / 2 <= old


def test_the_tight_rho_is_attained():
    for e in (0.01, 1.0, 10.0):
        assert co.pure_to_rdp(e, 1 + 1e-9) >= co.pure_to_zcdp(e) * (1 - 1e-6)


@given(mu=log_uniform(1e-3, 50.0, 1.0), epsilon=log_uniform(1e-4, 100.0, 0.0, 1.0))
def test_gaussian_profile(mu, epsilon):
    with mpmath.workdps(700 if epsilon / mu > 30 else 60):
        truth = gaussian_delta(mu, epsilon)
        bounds = gdp.gdp_delta_bounds(mu, epsilon)
        assert bounds.lower <= truth <= bounds.upper
        if bounds.lower > 1e-280:
            assert bounds.upper <= bounds.lower * (1 + 1e-8)
        assert co.gdp_to_delta(mu, epsilon) == bounds.upper


@given(mu=log_uniform(1e-3, 50.0, 1.0), delta=log_uniform(1e-100, 0.9, 1e-15, 1e-30))
def test_gaussian_inverse(mu, delta):
    lower, upper = gdp.gdp_epsilon_bounds(mu, delta)
    with mpmath.workdps(300):
        assert upper == 0.0 or gaussian_delta(mu, upper) <= delta
        assert lower == 0.0 or gaussian_delta(mu, lower) >= delta
    assert co.gdp_to_epsilon(mu, delta) == upper


@given(epsilon=log_uniform(1e-4, 100.0, 0.0, 1.0), delta=log_uniform(1e-30, 0.9, 1e-15))
def test_largest_gdp(epsilon, delta):
    mu = co.largest_gdp(epsilon, delta)
    with mpmath.workdps(200):
        assert gaussian_delta(mu, epsilon) <= delta
        assert gaussian_delta(mu * (1 + 1e-7), epsilon) > delta


def test_the_noise_bracket_holds_one_over_mu():
    for mu in (3.0, 0.1, 7.3, 1e-200, 1e200, 49.0):
        small, large = gdp._noise(mu)
        assert Fraction(small) * Fraction(mu) <= 1 <= Fraction(large) * Fraction(mu)


def test_gdp_limits():
    assert gdp.compose_gdp([(3.0, 1), (2.0, 4)]) == 5.0
    assert gdp.compose_gdp([]) == 0.0
    assert gdp.compose_gdp([(math.inf, 0), (1.0, 1)]) == 1.0
    assert gdp.compose_gdp([(math.inf, 1)]) == math.inf
    assert co.gdp_to_epsilon(0.0, 0.0) == 0.0
    assert co.gdp_to_epsilon(1.0, 0.0) == math.inf
    assert co.gdp_to_delta(1.0, math.inf) == 0.0
    assert co.gdp_to_delta(math.inf, 5.0) == 1.0
    assert co.gdp_to_delta(1e-305, 0.0) > 0.0
    assert co.gdp_to_epsilon(math.inf, 0.5) == math.inf
    assert 0.0 <= co.gdp_to_epsilon(1e-305, 1e-5) < 1e-200
    for mu in (0.1, 0.7):
        with mpmath.workdps(40):
            truth = mpmath.sqrt(7 * mp(mu) ** 2)
            assert truth <= gdp.compose_gdp([(mu, 7)]) <= truth * (1 + ULPS)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("rho", "omega"), [(0.5, 3.0), (0.01, 1.001), (2.0, 50.0), (1e-6, 1e4)])
def test_truncated_concentration(rho, omega, delta):
    forms = ("asoodeh", "canonne", "bun-steinke")
    sharp, usual, old = (co.tcdp_to_epsilon(rho, omega, delta, form=f) for f in forms)
    assert co.zcdp_to_epsilon(rho, delta, form="canonne") <= usual * (1 + 1e-9)
    assert sharp <= usual <= old
    r, w, tail = mp(rho), mp(omega), -mpmath.log(mp(delta))
    truth = r + 2 * mpmath.sqrt(r * tail) if tail <= (w - 1) ** 2 * r else r * w + tail / (w - 1)
    assert truth <= old <= truth * (1 + ULPS)
    # The least over a dense set of orders is not far below what the search found.
    orders = [1 + (omega - 1) * x for x in np.exp(np.linspace(-12, -1e-9, 3000))]
    dense = co.rdp_to_epsilon(lambda a: rho * a, delta, form="canonne", orders=orders)
    assert usual <= dense * (1 + 1e-6) + 1e-12
    assert co.tcdp_to_delta(rho, omega, usual) <= 1.01 * delta


def test_limits_of_conversions():
    assert co.zcdp_to_epsilon(0.0, 0.0) == 0.0
    assert co.zcdp_to_epsilon(1.0, 0.0) == math.inf
    assert co.zcdp_to_epsilon(math.inf, 0.5) == math.inf
    assert co.zcdp_to_delta(math.inf, 1.0) == 1.0
    assert co.zcdp_to_delta(1.0, math.inf) == 0.0
    assert co.rdp_to_epsilon(lambda a: math.inf, 1e-5) == math.inf
    assert co.rdp_to_delta(lambda a: math.inf, 1.0) == 1.0
    assert co.rdp_to_delta(lambda a: math.inf, math.inf) == 1.0
    assert co.rdp_to_delta(lambda a: 1.0, math.inf) == 0.0
    assert co.rdp_to_epsilon(lambda a: 0.0, 1e-5) == 0.0
    assert co.rdp_to_epsilon(lambda a: 0.0, 0.0) == 0.0
    assert co.rdp_to_epsilon(lambda a: a, 0.0) == math.inf
    # A curve known below order 3 only.
    partial = co.rdp_to_epsilon(lambda a: a / 2 if a < 3 else math.inf, 1e-5)
    assert partial == pytest.approx(co.tcdp_to_epsilon(0.5, 3.0, 1e-5), rel=0.02)
    assert co.pure_to_gdp(0.0) == co.pure_to_zcdp(0.0) == co.pure_to_rdp(0.0, 2.0) == 0.0


def test_tradeoff_of_approximate_dp():
    for e, d in ((0.0, 0.0), (1.0, 1e-5), (0.3, 0.2), (800.0, 0.1)):
        for x in (0.0, 1e-30, 1e-3, 0.4, 0.9, 1.0):
            truth = max(
                mp(0),
                1 - mp(d) - mpmath.exp(mp(e)) * mp(x),
                mpmath.exp(-mp(e)) * (1 - mp(d) - mp(x)),
            )
            got = co.approximate_dp_tradeoff(e, d, x)
            assert truth * (1 - ULPS) - mp(5e-324) <= got <= truth


@pytest.mark.long
@pytest.mark.parametrize(("mu", "tolerance"), [(0.5, 0.01), (1.0, 0.01), (3.0, 0.1)])
def test_tradeoff_to_delta(mu, tolerance):
    def miss(x):
        if x in (0.0, 1.0):
            return 1.0 - x
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mp(x))
        return max(float(mpmath.ncdf(z - mu)) - 1e-15, 0.0)

    with mpmath.workdps(25):
        for epsilon in (0.0, 0.5, 2.0):
            truth = gaussian_delta(mu, epsilon)
            got = co.tradeoff_to_delta(miss, epsilon, tolerance=tolerance)
            assert truth <= got <= truth * (1 + 2 * tolerance) + mp(2) ** -40


def test_tradeoff_and_back():
    got = co.tradeoff_to_delta(lambda x: co.approximate_dp_tradeoff(0.7, 0.01, x), 0.3)
    # (ε, δ) at a smaller ε: δ + (1 - δ)(e^0.7 - e^0.3)/(1 + e^0.7).
    truth = mp(0.01) + (1 - mp(0.01)) * (mpmath.exp(mp(0.7)) - mpmath.exp(mp(0.3))) / (
        1 + mpmath.exp(mp(0.7))
    )
    assert truth <= got <= truth * 1.02


def test_refuses_values():
    cases = [
        lambda: co.rdp_to_epsilon(lambda a: 1.0, 1.0),
        lambda: co.rdp_to_epsilon(lambda a: -1.0, 0.5),
        lambda: co.rdp_to_epsilon(lambda a: math.nan, 0.5),
        lambda: co.rdp_to_epsilon(lambda a: 1.0, 0.5, form="best"),
        lambda: co.rdp_to_epsilon(lambda a: 1.0, 0.5, orders=[]),
        lambda: co.rdp_to_epsilon(lambda a: 1.0, 0.5, orders=[1.0]),
        lambda: co.rdp_to_delta(lambda a: 1.0, -1.0),
        lambda: co.rdp_to_delta(lambda a: 1.0, 1.0, form="asoodeh"),
        lambda: co.pure_to_zcdp(-0.1),
        lambda: co.pure_to_zcdp(math.inf),
        lambda: co.pure_to_zcdp(1.0, form="loose"),
        lambda: co.pure_to_gdp(math.nan),
        lambda: co.pure_to_rdp(1.0, 1.0),
        lambda: co.zcdp_to_epsilon(-1.0, 0.5),
        lambda: co.tcdp_to_epsilon(1.0, 1.0, 0.5),
        lambda: co.gdp_to_delta(-1.0, 1.0),
        lambda: co.gdp_to_epsilon(1.0, 1.0),
        lambda: co.largest_gdp(1.0, 0.0),
        lambda: co.approximate_dp_tradeoff(1.0, 0.1, 1.5),
        lambda: co.tradeoff_to_delta(lambda x: 2.0, 1.0),
        lambda: co.tradeoff_to_delta(lambda x: math.nan, 1.0),
        lambda: co.tradeoff_to_delta(lambda x: 1 - x, 1.0, tolerance=0.0),
        lambda: gdp.compose_gdp([(-1.0, 1)]),
        lambda: gdp.clt_mu_approximation(2.0, 1.0, 1),
    ]
    for case in cases:
        with pytest.raises(DomainError):
            case()


def test_refuses_types():
    cases = [
        lambda: co.rdp_to_epsilon(1.0, 0.5),
        lambda: co.rdp_to_epsilon(lambda a: 1.0, "0.5"),
        lambda: co.rdp_to_epsilon(lambda a: 1.0, 0.5, orders=2.0),
        lambda: co.rdp_to_epsilon(lambda a: 1.0, [0.5, 0.6]),
        lambda: co.tradeoff_to_delta(0.5, 1.0),
        lambda: co.pure_to_zcdp(True),
        lambda: gdp.compose_gdp(1.0),
        lambda: gdp.compose_gdp([1.0]),
        lambda: gdp.clt_mu_approximation(0.1, 1.0, 2.0),
    ]
    for case in cases:
        with pytest.raises(ArgumentTypeError):
            case()
