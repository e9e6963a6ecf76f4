"""Floats with a bound on their rounding, against the formulas in sixty digits; C against Python."""

import math
import random

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant._basics import intervals as iv
from accountant._core import answers as core
from accountant.analyses import renyi_conversion as rc

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
