"""One release with a random shift: its profile in closed form, against the two tails themselves."""

import math
import random

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from accountant._core import answers as core

DIRECTIONS = {"remove": core.REMOVE, "add": core.ADD}


def log_uniform(draw, low, high):
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def draws(count, seed):
    draw = random.Random(seed)
    for k in range(count):
        shifts = np.cumsum([log_uniform(draw, 0.05, 3.0) for _ in range(draw.randint(1, 12))])
        weights = np.array([log_uniform(draw, 1e-8, 1.0) for _ in shifts])
        weights *= log_uniform(draw, 1e-7, 0.9) / weights.sum()
        sigma = log_uniform(draw, 1e-3, 1e4) if k % 7 == 0 else log_uniform(draw, 0.3, 20.0)
        delta = log_uniform(draw, 1e-200, 1e-12) if k % 5 == 0 else log_uniform(draw, 1e-12, 0.1)
        yield sigma, shifts, weights, delta


def profile(sigma, shifts, weights, epsilon, direction):
    """P and Q of the best event, a half line that ends where the loss is ±epsilon."""
    with mp.workdps(60):
        s, d, w = mpf(sigma), [mpf(x) for x in shifts], [mpf(x) for x in weights]
        d, w = [mpf(0), *d], [1 - mpmath.fsum(w), *w]
        goal = mpf(epsilon) if direction == "remove" else -mpf(epsilon)
        if goal <= mpmath.log(w[0]):
            return mpf(0)

        def loss(x):
            terms = [
                mpmath.log(b) + a * (2 * x - a) / (2 * s * s) for a, b in zip(d, w, strict=True)
            ]
            top = max(terms)
            return top + mpmath.log(mpmath.fsum(mpmath.exp(t - top) for t in terms))

        low, high = -100 * s, d[-1] + 100 * s
        for _ in range(230):
            middle = (low + high) / 2
            low, high = (middle, high) if loss(middle) < goal else (low, middle)
        side = 1 if direction == "remove" else -1

        def tail(x):
            return mpmath.erfc(side * x / s / mpmath.sqrt(2)) / 2

        p = mpmath.fsum(b * tail(low - a) for a, b in zip(d, w, strict=True))
        q = tail(low)
        rate = mpmath.exp(mpf(epsilon))
        # Far below the smallest double nothing but the bisection's end is left.
        return max(p - rate * q if direction == "remove" else q - rate * p, mpf(0))


@pytest.mark.long
@pytest.mark.parametrize("count", [12, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_both_ends_hold_and_are_narrow(direction, count):
    way, wide = DIRECTIONS[direction], 0.0
    for sigma, shifts, weights, delta in draws(count, 11):
        law = sigma, shifts, weights
        low, high = core.mixture_epsilon_bounds(*law, 1.0, delta, way)
        wide = max(wide, (high - low) / max(high, 1e-9))
        assert profile(*law, high, direction) <= delta
        if low > 0.0:
            below = profile(*law, low, direction)
            assert below >= delta
            at = core.mixture_delta_bounds(*law, 1.0, low, way)
            assert at[0] <= below <= at[1]
    assert wide <= 1e-8


@pytest.mark.long
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_profiles_at_any_loss_hold(direction):
    for sigma, shifts, weights, _ in draws(7, 12):
        law = sigma, shifts, weights
        most = -math.log1p(-math.fsum(weights))
        for epsilon in (0.0, 1e-6, 0.5 * most, 0.999 * most, most * (1 - 1e-15), 2.0, 30.0, 700.0):
            low, high = core.mixture_delta_bounds(*law, 1.0, epsilon, DIRECTIONS[direction])
            assert low <= profile(*law, epsilon, direction) <= high


def test_one_shift_is_the_sampled_gaussian():
    for q, sigma, delta in ((0.01, 1.0, 1e-5), (0.3, 0.4, 1e-9), (1e-5, 3.0, 1e-8)):
        for way in DIRECTIONS.values():
            law = sigma, np.ones(1), np.full(1, q)
            one = core.mixture_epsilon_bounds(*law, 1.0, delta, way)
            other = core.epsilon_bounds(q, sigma, 1.0, delta, way)
            assert max(one[0], other[0]) <= min(one[1], other[1])


def test_where_every_epsilon_is_nought():
    law = 1.0, np.array([1.0, 2.0]), np.array([1e-6, 1e-8])
    for way in DIRECTIONS.values():
        assert core.mixture_epsilon_bounds(*law, 1.0, 1e-5, way) == (0.0, 0.0)
    # Above δ(0) but below the chance that anything is contributed.
    assert core.mixture_epsilon_bounds(*law, 1.0, 9e-7, core.REMOVE) == (0.0, 0.0)


def test_no_addition_loses_more_than_its_largest_loss():
    law = 0.5, np.array([1.0, 3.0]), np.array([0.1, 0.02])
    most = -math.log1p(-0.12)
    low, high = core.mixture_epsilon_bounds(*law, 1.0, 1e-250, core.ADD)
    assert 0.99 * most < low <= high <= most * (1 + 1e-14)
    assert core.mixture_delta_bounds(*law, 1.0, most * (1 + 1e-12), core.ADD) == (0.0, 0.0)


@pytest.mark.parametrize("epsilon", [400.0, 600.0, 690.0, 705.0])
@pytest.mark.parametrize("deviations", [15.0, 20.0, 30.0])
def test_additions_hold_where_a_likelihood_ratio_underflows(deviations, epsilon):
    sigma, shifts, weights = 1.0 / deviations, np.array([1.0, 1.01]), np.array([0.5, 0.5])
    low, high = core.mixture_delta_bounds(
        sigma, shifts, weights, 1.0, epsilon, core.ADD, 0.0, 1e-15
    )
    with mp.workdps(60):
        s, rate = mpf(sigma), mpmath.exp(mpf(epsilon))
        d = [mpf(x) for x in shifts]
        left, right = -1000 * s, 100 * s
        for _ in range(230):
            x = (left + right) / 2
            ratio = mpmath.fsum(mpmath.exp(a * (2 * x - a) / (2 * s * s)) for a in d) / 2
            left, right = (x, right) if ratio * rate < 1 else (left, x)
        tails = [mpmath.erfc((a - left) / s / mpmath.sqrt(2)) / 2 for a in (0, *d)]
        truth = tails[0] - rate * (tails[1] + tails[2]) / 2
    assert low <= truth <= high
