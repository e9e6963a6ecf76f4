"""Floats with a bound on their rounding, against the formulas in sixty digits; C against Python."""

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from accountant import conversions as co
from accountant._basics import intervals as iv
from accountant._core import answers as core
from accountant.analyses import renyi_conversion
from accountant.analyses import renyi_conversion as rc
from accountant.mechanisms import ApproximateDP, Gaussian, PureDP

ORDERS = st.one_of(
    st.floats(1e-6, 1e6).map(lambda x: 1.0 + x), st.floats(-52.0, -20.0).map(lambda k: 1.0 + 2.0**k)
)
DELTAS = st.one_of(st.floats(5e-324, 0.99), st.floats(1e-300, 1e-3), st.just(1.0 - 2.0**-53))
UNIT = mpmath.mpf(2) ** -53


@given(st.floats(0.01, 50.0), DELTAS, ORDERS)
def test_what_the_formulas_add_is_rounded_to_the_safe_side(epsilon, delta, order):
    with mpmath.workdps(60):
        a, e, d = mpmath.mpf(order), mpmath.mpf(epsilon), mpmath.mpf(delta)
        excess = mpmath.log((a - 1) / a) - mpmath.log(d * a) / (a - 1)
        size = -mpmath.log((a - 1) / a) + (1 - mpmath.log(d) + mpmath.log(a)) / (a - 1)
        upper, capacity = rc.excess_upper(order, delta), rc.capacity_lower(order, epsilon, delta)
        # Twelve units for the rounding, and at most as many that were on the safe side already.
        assert excess <= upper <= excess + 24 * UNIT * size
        assert capacity <= e - excess <= capacity + 28 * UNIT * (size + e)
        tail = -mpmath.log(d) / (a - 1)
        assert e + tail <= rc.mironov_upper(order, epsilon, delta) <= (e + tail) * (1 + 32 * UNIT)
        many = rc.excesses_upper(order, np.array([delta, 0.0, -1.0]))
        assert excess <= many[0] <= excess + 24 * UNIT * size
        assert (many[1:] == math.inf).all()


@given(st.floats(1e-3, 20.0), st.floats(0.0, 20.0), ORDERS)
def test_log_delta_of_arrays(rho, epsilon, order):
    with mpmath.workdps(60):
        a = mpmath.mpf(order)
        truth = (a - 1) * (mpmath.mpf(rho) - epsilon + mpmath.log((a - 1) / a)) - mpmath.log(a)
        (found,) = rc.log_deltas(np.array([rho]), np.array([order]), epsilon)
        size = (a - 1) * (rho + epsilon) + 1 + mpmath.log(a)
        assert abs(found - truth) <= 16 * UNIT * size


@pytest.mark.parametrize("q", [1.0, 0.3, 0.01, 1e-4])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 30.0])
@pytest.mark.parametrize("steps", [1, 1000, 10**7])
@pytest.mark.parametrize("delta", [0.1, 1e-5, 1e-100])
def test_the_formula_of_the_core_is_this_one(q, sigma, steps, delta):
    epsilon, order = core.epsilon_renyi_upper(q, sigma, float(steps), delta)
    if not 0.0 < epsilon < math.inf:
        return
    rho = core.renyi_bounds(q, sigma, order, core.EITHER)[1]
    # The core's curve is its own: on other nodes than this call's, within the same bounds.
    exact = rc._canonne(iv, iv.of(rho) * float(steps), iv.of(order), iv.of(delta)).up()
    size = float(steps) * rho + (1.0 - math.log(delta)) / (order - 1.0)
    assert abs(epsilon - exact) <= 1e-10 * size


def test_deltas_by_floats_are_not_below_the_formula():
    rng = random.Random(16)
    with mpmath.workdps(50):
        for _ in range(2000):
            order = 1.0 + math.exp(rng.uniform(-30.0, 21.0))
            rho, epsilon = (math.exp(rng.uniform(-60.0, 7.0)) for _ in range(2))
            below = mpmath.mpf(order) - 1
            exact = below * (mpmath.mpf(rho) - epsilon + mpmath.log(below / order)) - mpmath.log(
                order
            )
            found = rc._delta_upper(rho, order, epsilon)
            assert found >= min(mpmath.exp(exact), 1)
            size = 1 + below * (rho + epsilon + abs(mpmath.log(below)) + mpmath.log(order) + 1)
            assert found <= mpmath.exp(exact + 1e-14 * size) + 5e-324


def test_deltas_by_floats_are_numbers_where_products_leave_the_doubles():
    assert rc._delta_upper(0.0, 1e9, 1e302) == 1.0
    assert rc._delta_upper(1e308, 1e9, 1e308) == 1.0
    assert rc._delta_upper(1.0, 2.0, math.inf) == 1.0


mp = mpmath.mpf


def canonne(rho, order, delta):
    return rho + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def log_delta(rho, order, epsilon):
    below = order - 1
    return below * (rho - epsilon) + below * math.log1p(-1 / order) - math.log(order)


def asoodeh(rho, order, delta, touch):
    """Theorem C11 in other words: the majorant's two coefficients, each on its own."""
    below = order - 1
    moment = math.exp(below * rho)
    gap = moment + below * touch**order - order * touch**below
    far = (gap / (order * delta) + touch**below) ** (1 / below)
    return math.log(below * (far / order + delta * touch**below * (far - touch) / gap))


def least(function, points):
    """The least of a smooth function, from a dense set of points and a search between two."""
    values = [function(x) for x in points]
    i = int(np.argmin(values))
    ends = points[max(i - 1, 0)], points[min(i + 1, len(points) - 1)]
    found = minimize_scalar(function, bounds=ends, method="bounded", options={"xatol": 1e-13})
    return min(values[i], float(found.fun))


def at_one_order(order, rho, delta):
    if order * delta >= 1:
        return rho + math.log1p(-delta)
    return least(lambda t: asoodeh(rho, order, delta, t), np.linspace(1e-6, 1 - 1e-6, 500))


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-5, 1e-20])
@pytest.mark.parametrize("rho", [1e-3, 0.05, 0.5, 4.0])
def test_the_best_order_is_found(rho, delta):
    orders = np.linspace(-10, 14, 1500)
    best = least(lambda x: canonne(rho * (1 + math.exp(x)), 1 + math.exp(x), delta), orders)
    found = co.zcdp_to_epsilon(rho, delta, form="canonne")
    assert max(best * (1 - 1e-12), 0.0) <= found <= max(best * (1 + 1e-8), 0.0)
    best = least(lambda x: rho * (1 + math.exp(x)) - math.log(delta) * math.exp(-x), orders)
    found = co.rdp_to_epsilon(lambda a: rho * a, delta, form="mironov")
    assert best * (1 - 1e-12) <= found <= best * (1 + 1e-8)
    epsilon = 2 * rho + 1
    best = least(lambda x: log_delta(rho * (1 + math.exp(x)), 1 + math.exp(x), epsilon), orders)
    found = co.zcdp_to_delta(rho, epsilon)
    assert math.exp(best) * (1 - 1e-11) <= found <= math.exp(best) * (1 + 1e-7)
    assert found == co.rdp_to_delta(lambda a: co.zcdp_to_rdp(rho, a), epsilon)


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-5, 1e-20])
@pytest.mark.parametrize(("rho", "order"), [(0.1, 1.5), (1.0, 3.0), (0.05, 20.0), (3.0, 80.0)])
def test_the_best_contact_is_found(rho, order, delta):
    best = max(at_one_order(order, rho, delta), 0.0)
    found = co.rdp_to_epsilon(lambda _: rho, delta, orders=[order])
    assert best * (1 - 1e-9) <= found <= best * (1 + 1e-8) + 1e-12


@pytest.mark.parametrize(("rho", "delta"), [(0.5, 1e-5), (0.01, 1e-3), (2.0, 0.1), (8.0, 0.05)])
def test_the_sharpest_order_is_nearby(rho, delta):
    orders = 1 + np.geomspace(0.02, 2000, 40)
    with np.errstate(all="ignore"):
        values = [at_one_order(a, rho * a, delta) for a in orders if (a - 1) * rho * a < 600]
    found = co.zcdp_to_epsilon(rho, delta)
    assert found <= min(values) * (1 + 1e-3)
    assert found < co.zcdp_to_epsilon(rho, delta, form="canonne")


def test_a_curve_is_asked_only_where_it_may_be():
    for limit in (1.0 + 2.9e-7, 1.001, 1.5, 40.0, 1e6, math.inf):
        seen = []

        def curve(order, seen=seen):
            seen.append(order)
            return order / 8

        for form in ("asoodeh", "canonne", "mironov"):
            assert rc.best_epsilon(curve, 1e-5, form, limit=limit) < math.inf
        for form in ("canonne", "mironov"):
            assert rc.best_delta(curve, 3.0, form, limit=limit) < 1.0
        assert min(seen) > 1.0
        assert max(seen) < limit
        if limit == math.inf:
            assert min(seen) - 1 <= math.exp(rc.LEAST) * (1 + 1e-6)
            assert max(seen) - 1 >= math.exp(rc.MOST) * (1 - 1e-6)
        # A scan, a search, and Asoodeh's seven orders.
        assert len(seen) <= 5 * 75 + 10
    seen.clear()
    co.rdp_to_epsilon(curve, 1e-5, orders=[3.0, 5.0])
    co.rdp_to_delta(curve, 1.0, orders=[3.0, 5.0])
    assert set(seen) <= {3.0, 5.0}
    seen.clear()
    co.rdp_to_epsilon(curve, 0.0)
    co.rdp_to_delta(curve, math.inf)
    assert 1.0 < min(seen) <= max(seen) <= 2.0


def test_orders_given_are_all_tried():
    curve = {2.0: 1.0, 8.0: 1.5, 64.0: 40.0, 3.0: math.inf}.__getitem__
    for form, formula in (("canonne", canonne), ("mironov", None)):
        at = [
            formula(curve(a), a, 1e-5) if formula else curve(a) - math.log(1e-5) / (a - 1)
            for a in (2.0, 8.0, 64.0)
        ]
        for orders in ([2.0, 8.0, 64.0, 3.0], [3.0, 64.0, 8.0, 2.0]):
            found = co.rdp_to_epsilon(curve, 1e-5, form=form, orders=orders)
            assert min(at) * (1 - 1e-14) <= found <= min(at) * (1 + 1e-14)
    assert co.rdp_to_epsilon(curve, 1e-5, orders=[3.0]) == math.inf
    assert co.rdp_to_delta(curve, 1.0, orders=[3.0]) == 1.0
    assert co.rdp_to_epsilon({2.0: 0.0, 3.0: 1.0}.__getitem__, 0.0, orders=[3.0, 2.0]) == 0.0
    assert co.rdp_to_epsilon({2.0: 0.5, 3.0: 1.0}.__getitem__, 0.0, orders=[3.0, 2.0]) == math.inf
    assert co.rdp_to_delta(curve, math.inf, orders=[3.0, 2.0]) == 0.0
    assert co.rdp_to_delta(curve, math.inf, orders=[3.0]) == 1.0


def test_a_curve_that_ends_is_followed_to_its_end():
    for end in (1.2, 1.7, 9.0):
        curve = lambda a, end=end: a / 8 if a < end else math.inf  # noqa: E731
        known = co.tcdp_to_epsilon(0.125, end, 1e-9, form="canonne")
        found = co.rdp_to_epsilon(curve, 1e-9, form="canonne")
        assert known * (1 - 1e-9) <= found <= known * 1.01
        assert co.rdp_to_delta(curve, 4.0) < 1.0


def test_limits_of_concentration():
    for call in (co.tcdp_to_delta, lambda r, w, e: co.tcdp_to_epsilon(r, w, e / 10)):
        assert call(0.0, 3.0, 1.0) == call(0.0, math.inf, 0.0) == 0.0
    assert co.tcdp_to_delta(math.inf, 3.0, math.inf) == co.tcdp_to_delta(math.inf, 3.0, 0.0) == 1.0
    assert co.tcdp_to_delta(1.0, 3.0, math.inf) == 0.0
    assert 0.2 < co.tcdp_to_delta(1.0, math.inf, 1.0) < 1.0
    assert co.tcdp_to_delta(1e3, 3.0, 1.0) == 1.0
    assert co.tcdp_to_epsilon(1.0, 3.0, 0.5) > 0.0
    for form in ("asoodeh", "canonne", "bun-steinke"):
        assert co.tcdp_to_epsilon(math.inf, 3.0, 0.5, form=form) == math.inf
        assert co.tcdp_to_epsilon(1.0, 3.0, 0.0, form=form) == math.inf


def gaussian(sigma):
    return Gaussian(sigma).pairs()[0]


def test_mass_at_infinity_and_finite_losses_share_delta():
    pair = ApproximateDP(0.5, delta=1e-6).pairs()[0]
    pure = PureDP(0.5).pairs()[0]
    for count in (1, 3):
        parts, mass = [(pair, count)], 1 - (1 - Fraction(pair.infinite_mass)) ** count
        found = rc.epsilon_upper(parts, 1e-4)
        room = Fraction(1e-4) - mass
        curve = rc.curve_of(parts)
        known = rc.best_epsilon(curve, float(room), "canonne", limit=rc.HIGHEST)
        assert known * (1 - 1e-12) <= found <= known * (1 + 1e-10)
        delta = rc.delta_upper(parts, 1.0)
        finite = rc.best_delta(curve, 1.0, "canonne", limit=rc.HIGHEST)
        assert Fraction(finite) + mass <= Fraction(delta)
        assert delta <= (finite + float(mass)) * (1 + 1e-12)
    assert rc.delta_upper([(pair, 10**9)], 1.0) == 1.0
    assert rc.epsilon_upper([(pure, 2)], 1e-9) <= 2.0
    assert rc.delta_upper([(gaussian(1.0), 1)], 1.0) == rc.best_delta(
        rc.curve_of([(gaussian(1.0), 1)]), 1.0, "canonne", limit=rc.HIGHEST
    )
    assert rc.epsilon_upper([(gaussian(1.0), 1)], 0.0) == math.inf
    exact = rc.epsilon_upper([(ApproximateDP(0.5, delta=0.25).pairs()[0], 1)], 0.25)
    assert exact == math.inf


def test_the_order_of_a_gaussian():
    for sigma, delta in ((1.0, 1e-5), (5.0, 1e-10)):
        order = rc.best_order([(gaussian(sigma), 10)], delta)
        rho = 5 / sigma**2
        at = [canonne(rho * a, a, delta) for a in (order, order * 1.01, (order - 1) / 1.01 + 1)]
        assert at[0] == min(at)
    assert rc.best_order([(Gaussian(1e-200).pairs()[0], 1)], 1e-5) == math.inf


def test_sums_of_curves_are_rounded_up():
    parts = [(gaussian(0.7), 3), (gaussian(11.0), 10**6)]
    for order in (1.5, 7.0, 1e5):
        truth = sum(
            Fraction(order) * n / (2 * Fraction(s) ** 2) for s, n in ((0.7, 3), (11.0, 10**6))
        )
        found = Fraction(rc.curve_of(parts)(order))
        assert truth <= found <= truth * (1 + Fraction(1, 2**48))


def test_mass_at_infinity_is_taken_from_delta_before_a_renyi_conversion():
    (pair, *_) = ApproximateDP(0.5, delta=1e-6).pairs()
    assert renyi_conversion.epsilon_upper([(pair, 1)], 9e-7) == math.inf
    assert renyi_conversion.epsilon_upper([(pair, 3)], 2.9e-6) == math.inf
    assert renyi_conversion.epsilon_upper([(pair, 3)], 1e-5) < math.inf
