"""Removal has the larger Rényi divergence at every order (Theorem 12)."""

import math
import random

import mpmath
import pytest

from accountant._core import answers as core


def test_the_inequality_under_the_integral_holds_pointwise():
    draw = random.Random(12)
    with mpmath.workdps(60):
        for _ in range(3000):
            q = mpmath.mpf(draw.choice([draw.random(), 10 ** draw.uniform(-9, 0)]))
            r = mpmath.exp(draw.choice([draw.uniform(-3, 3), draw.uniform(-60, 60)]))
            alpha = 1 + mpmath.mpf(10) ** draw.uniform(-6, 2)

            def both(power, r=r, q=q):
                return (1 - q + q * r) ** power + r * (1 - q + q / r) ** power

            assert both(alpha) >= both(1 - alpha) * (1 - mpmath.mpf(10) ** -50)


def moment(q, sigma, order):
    """E_Q e^{order L} by quadrature, in thirty digits."""
    with mpmath.workdps(30):
        q, sigma, order = mpmath.mpf(q), mpmath.mpf(sigma), mpmath.mpf(order)

        def integrand(x):
            ratio = 1 - q + q * mpmath.exp((2 * x - 1) / (2 * sigma**2))
            return mpmath.npdf(x, 0, sigma) * ratio**order

        far = max(order, 1)
        points = mpmath.linspace(-12 * sigma, far + 12 * sigma, 41)
        return mpmath.quad(integrand, points, method="gauss-legendre", maxdegree=5)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(
    ("q", "sigma", "order"), [(0.01, 1.0, 1.5), (0.3, 0.7, 3.7), (0.9, 2.0, 9.0), (0.05, 0.5, 2.0)]
)
def test_either_direction_encloses_the_larger_of_both(q, sigma, order):
    add, remove = (mpmath.log(moment(q, sigma, c)) / (order - 1) for c in (1.0 - order, order))
    assert add <= remove
    lower, upper = core.renyi_bounds(q, sigma, order, core.EITHER)
    assert lower <= remove * (1 + mpmath.mpf(10) ** -12)
    assert upper >= remove * (1 - mpmath.mpf(10) ** -20)
    assert upper >= add


def test_the_brackets_of_the_directions_are_in_order():
    draw = random.Random(3)
    for _ in range(300):
        q = draw.choice([draw.random(), 10 ** draw.uniform(-12, 0)])
        sigma, order = math.exp(draw.uniform(-2, 5)), 1.0 + 10 ** draw.uniform(-4, 2)
        add = core.renyi_bounds(q, sigma, order, core.ADD)
        remove = core.renyi_bounds(q, sigma, order, core.REMOVE)
        assert add[0] <= remove[1]
        assert core.renyi_bounds(q, sigma, order, core.EITHER) == remove
