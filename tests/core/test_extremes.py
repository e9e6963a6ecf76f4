"""Arguments at the edge of binary64: brackets get wide there, never wrong.

Each truth was computed apart from the package (mpmath, or a closed-form bound). Every case once
broke a bracket.
"""

import math
from decimal import Decimal

import mpmath
import pytest

from accountant._core import answers as core
from support.oracle.moments import enclosing_decimals, renyi

REMOVE, ADD, EITHER = core.REMOVE, core.ADD, core.EITHER


@pytest.mark.parametrize(
    ("sigma", "epsilon"),
    [
        (1.2104227170006587e-20, 3.4126823993772387e39),
        (5.77704443073908e-18, 1.4981613505574777e34),
        (1 / 1.5743014892106588e-84, 9.889682881584098e-84),
        (1e78, 0.0),
    ],
)
def test_plain_gaussian_delta(sigma, epsilon):
    lower, upper = core.delta_bounds(1.0, sigma, 1.0, epsilon, REMOVE)
    with mpmath.workdps(300):
        mu, e = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
        truth = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
        assert lower <= truth <= upper


def test_plain_gaussian_epsilon_at_huge_noise():
    # δ(ε) is about μφ(0) - ε/2 for tiny μ and ε.
    mu = 1e-78
    lower, upper = core.epsilon_bounds(1.0, 1 / mu, 1.0, 0.1 * mu, REMOVE)
    assert lower <= 0.9 * mu <= upper


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "epsilon", "direction"),
    [
        (0.0001193044895270401, 0.03630413784205019, 1000.0, 1.0, REMOVE),
        (0.27052680210270874, 0.03150258889799571, 3.0, 0.001, ADD),
        (0.2672504864726574, 0.003842694778942951, 3.0, 0.0, ADD),
        (2.6355828934448083e-21, 0.030446520062053617, 1000.0, 0.0, ADD),
        (1e-180, 0.0267, 2.0, 0.0, ADD),
        (1e-310, 0.02, 10.0, 0.5, REMOVE),
    ],
)
def test_delta_is_at_most_the_chance_of_being_sampled(q, sigma, steps, epsilon, direction):
    lower, upper = core.delta_bounds(q, sigma, steps, epsilon, direction)
    assert lower <= -math.expm1(steps * math.log1p(-q))
    assert lower <= upper


@pytest.mark.parametrize(("q", "epsilon", "direction"), [(1e-80, 0.0, ADD), (1e-78, 0.0, REMOVE)])
def test_delta_scales_with_tiny_q(q, epsilon, direction):
    # for q -> 0 half of the mean modulus of a sum of 1,000 e^u - 1, by its characteristic function
    lower, upper = core.delta_bounds(q, 3.0, 1000.0, epsilon, direction)
    assert lower <= 4.32461007 * q <= upper


@pytest.mark.parametrize(
    ("q", "sigma", "order", "direction"),
    [
        (0.01, 0.02, 1.0001, "remove"),
        (0.01, 0.02, 1.0001, "add"),
        (0.001, 0.026, 1.001, "remove"),
        (3.287604493035447e-15, 0.5139588745669765, 16.15124666616658, "remove"),
    ],
)
def test_renyi_with_little_noise(q, sigma, order, direction):
    lower, upper = core.renyi_bounds(q, sigma, order, {"remove": REMOVE, "add": ADD}[direction])
    least, most = map(Decimal, enclosing_decimals(renyi(q, sigma, order, direction)))
    assert Decimal(lower) <= most
    assert least <= Decimal(upper) <= most * (1 + Decimal("1e-3"))


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "epsilon", "direction"),
    [
        (0.01, 1.0, 1000.0, 1000.0, EITHER),
        (0.01, 1.0, 1000.0, 9.0, ADD),
        (0.5, 1000.0, 1.0, 0.6, ADD),
        (0.01, 100.0, 1000.0, 1.0, EITHER),
    ],
)
def test_a_positive_delta_is_never_reported_as_zero(q, sigma, steps, epsilon, direction):
    lower, upper = core.delta_bounds(q, sigma, steps, epsilon, direction)
    assert lower == 0.0
    assert 0.0 < upper < 1e-280


def test_beyond_the_support_of_the_added_record_delta_is_zero():
    assert core.delta_bounds(0.01, 100.0, 1000.0, 20.0, ADD) == (0.0, 0.0)
