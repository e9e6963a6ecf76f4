"""Rényi curves of steps that hardly ever use a record, against mpmath and ball arithmetic."""

import math
import random

import mpmath
import pytest

import accountant as ac
from accountant._core import answers as core
from support.oracle import moments

DIRECTIONS = {"remove": core.REMOVE, "add": core.ADD}


def divergence(q, sigma, order, direction):
    """log(1 + E_Q[G]) / (order - 1) by quadrature, with the digits that the least part needs."""
    with mpmath.workdps(40 + int(-2.2 * math.log10(q))):
        q, sigma, order = mpmath.mpf(q), mpmath.mpf(sigma), mpmath.mpf(order)
        c = order if direction == "remove" else 1 - order

        def integrand(x):
            y = q * mpmath.expm1((2 * x - 1) / (2 * sigma**2))
            return mpmath.npdf(x, 0, sigma) * ((1 + y) ** c - 1 - c * y)

        far = max(c, 2)
        low, high = -12 * sigma, far + 12 * sigma
        count = min(int((high - low) / sigma), 400)
        points = [low + (high - low) * k / count for k in range(count + 1)]
        excess = mpmath.quad(integrand, points, method="gauss-legendre", maxdegree=5)
        return mpmath.log1p(excess) / (order - 1)


CASES = [
    (1e-21, 1.0, 2.0, "remove"),
    (1e-25, 1.0, 2.0, "remove"),
    (1e-25, 1.0, 1.0001, "add"),
    (1e-25, 3.0, 40.0, "remove"),
    # Here the bulk around 2 is all of it, there where shifts begin to be likely, or the order.
    (1e-25, 0.1, 1.5, "remove"),
    (1e-30, 0.1, 1.5, "add"),
    (1e-60, 0.1, 1.5, "remove"),
    (1e-28, 0.2, 4.5, "remove"),
    (1e-40, 0.4, 20.0, "remove"),
    (1e-30, 0.05, 1.01, "remove"),
    (1e-30, 0.05, 2.0, "add"),
    (1e-60, 0.1, 1.0 + 2.0**-40, "remove"),
]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(("q", "sigma", "order", "direction"), CASES)
def test_the_curve_is_narrow_around_quadrature(q, sigma, order, direction):
    lower, upper = core.renyi_bounds(q, sigma, order, DIRECTIONS[direction])
    truth = divergence(q, sigma, order, direction)
    assert lower <= truth * (1 + mpmath.mpf(10) ** -18)
    assert upper >= truth * (1 - mpmath.mpf(10) ** -18)
    assert upper <= lower * (1 + 1e-11)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_balls_at_random_rates(direction):
    draw = random.Random(16)
    for _ in range(12):
        q, order = 10.0 ** draw.uniform(-60, -19), 1.0 + 10 ** draw.uniform(-3, 1)
        sigma = 10 ** draw.uniform(-0.1, 1.0)
        truth = moments.renyi(q, sigma, order, direction)
        lower, upper = core.renyi_bounds(q, sigma, order, DIRECTIONS[direction])
        assert lower <= truth
        assert truth <= upper
        assert upper <= lower * (1 + 1e-11)


@pytest.mark.parametrize("q", [1e-153, 1e-160, 1e-280, 1e-300, 5e-324])
@pytest.mark.parametrize("order", [1.0 + 1e-12, 2.0, 1e5])
def test_what_underflows_is_next_to_nothing(q, order):
    # The truth is about order·q²(e^{1/σ²} - 1)/2.
    for direction in DIRECTIONS.values():
        lower, upper = core.renyi_bounds(q, 30.0, order, direction)
        truth = mpmath.mpf(q) ** 2 * order * mpmath.expm1(mpmath.mpf(1) / 900) / 2
        assert lower <= truth * (1 + 1e-9)
        assert truth * (1 - 1e-9) <= upper <= 1e-300


@pytest.mark.parametrize("q", [1e-11, 1e-20, 1e-25, 1e-60, 1e-153, 1e-300])
@pytest.mark.parametrize(
    ("sigma", "steps", "delta"), [(1.0, 1000, 1e-5), (0.3, 1, 1e-9), (20.0, 10**9, 1e-12)]
)
def test_conversions_take_an_order_as_good_as_any(q, sigma, steps, delta):
    found = ac.get_epsilon(q, sigma, steps, delta, method="rdp")
    orders = [1.0 + 10.0 ** (k / 12) for k in range(-24, 60)]
    curve = ac.get_rdp(q, sigma, steps, orders)
    best = min(
        d + math.log1p(-1 / a) - math.log(delta * a) / (a - 1)
        for a, d in zip(orders, curve, strict=True)
    )
    assert found <= 1.0001 * max(best, 0.0) + 1e-12
