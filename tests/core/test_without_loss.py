"""Questions whose answer is ε = 0: the total variation is at most δ."""

import math

import mpmath
import pytest

from accountant._core import answers as core

RUNS = [
    (7e-5, 0.64, 29),
    (1e-3, 2.0, 1000),
    (0.3, 5.0, 2),
    (0.999, 40.0, 7),
    (1e-9, 0.2, 10**6),
    (1e-280, 0.03, 3),
    (1e-200, 1e6, 2**53),
    (1e-12, 1e200, 5),
]


def half_root(q, sigma, steps):
    """Half the root of the chi-square divergence, in ninety digits beyond where it begins."""
    digits = 90 + int(-2 * math.log10(q)) + int(2 * max(math.log10(sigma), 0.0))
    with mpmath.workdps(digits):
        q, sigma = mpmath.mpf(q), mpmath.mpf(sigma)
        return mpmath.sqrt((1 + q**2 * mpmath.expm1(1 / sigma**2)) ** steps - 1) / 2


def total_variation(q, sigma, steps):
    """The same distance as an integral over the total loss of one or two steps."""
    q, sigma = mpmath.mpf(q), mpmath.mpf(sigma)

    def one(level):  # E_Q (e^L - e^level)_+
        rest = (mpmath.exp(level) - (1 - q)) / q
        if rest <= 0:
            return 1 - mpmath.exp(level)
        x = sigma**2 * mpmath.log(rest) + mpmath.mpf(1) / 2
        above = [mpmath.ncdf((mean - x) / sigma) for mean in (0, 1)]
        return (1 - q) * above[0] + q * above[1] - mpmath.exp(level) * above[0]

    if steps == 1:
        return one(mpmath.mpf(0))

    def integrand(x):
        loss = mpmath.log1p(q * mpmath.expm1((2 * x - 1) / (2 * sigma**2)))
        return mpmath.npdf(x, 0, sigma) * mpmath.exp(loss) * one(-loss)

    # where the first loss leaves the second no room, the integrand is smooth but not analytic
    edge = sigma**2 * mpmath.log1p(mpmath.expm1(-mpmath.log1p(-q)) / q) + mpmath.mpf(1) / 2
    near = {edge + d * sigma**2 for d in (-2, -0.7, -0.2, -0.05, 0, 0.05, 0.2, 0.7, 2)}
    points = sorted({i * sigma for i in range(-14, 15)} | near)
    return mpmath.quad(integrand, points, method="gauss-legendre", maxdegree=5)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("q", [0.01, 0.3, 0.97])
def test_the_bound_is_above_the_total_variation(q, sigma, steps):
    assert total_variation(q, sigma, steps) <= half_root(q, sigma, steps)


@pytest.mark.parametrize(("q", "sigma", "steps"), RUNS)
def test_no_loss_is_claimed_from_the_bound_on(q, sigma, steps):
    delta = math.nextafter(float(half_root(q, sigma, steps) * (1 + mpmath.mpf(10) ** -11)), 1.0)
    if not 1e-140 < delta < 0.5:
        delta = 1e-140
    for direction in (core.REMOVE, core.ADD, core.EITHER):
        assert core.epsilon_bounds(q, sigma, steps, delta, direction) == (0.0, 0.0)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("direction", [core.REMOVE, core.ADD, core.EITHER])
@pytest.mark.parametrize(("q", "sigma"), [(0.01, 0.5), (0.3, 1.0), (0.97, 4.0), (1e-5, 0.3)])
def test_no_loss_is_not_claimed_below_the_total_variation(q, sigma, direction):
    for steps in (1, 2):
        below = float(total_variation(q, sigma, steps) * (1 - mpmath.mpf(10) ** -8))
        assert core.epsilon_bounds(q, sigma, steps, below, direction)[1] > 0.0
