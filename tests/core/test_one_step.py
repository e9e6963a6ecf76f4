"""One step, inverted: against the closed form in sixty digits, up to q = 1 and to tiny noise."""

import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant._core import answers as core

# (q, sigma, delta); with the first two the answers were inf and 7.8e11.
HARD = [
    (0.999999999999997, 0.142, 0.0186),
    (1.0 - 1e-12, 0.17, 1e-10),
    (1.0 - 2.0**-53, 1.0, 1e-5),
    (1.0 - 1e-9, 30.0, 1e-3),
    (0.5, 0.02, 1e-5),
    (1e-9, 0.02, 1e-12),
    (0.3, 0.01, 1e-3),
    (1e-200, 0.03, 1e-205),
]


def profile(q, sigma, epsilon, direction):
    """Return δ(epsilon) of one step, from the point where the loss is epsilon."""
    with mp.workdps(60 + 2 * int(-math.log10(q))):
        q, sigma, epsilon = mp.mpf(q), mp.mpf(sigma), mp.mpf(epsilon)
        sign = 1 if direction == core.REMOVE else -1
        rest = (mp.exp(sign * epsilon) - (1 - q)) / q
        if rest <= 0:
            return mp.mpf(0)
        x = sigma**2 * mp.log(rest) + mp.mpf(1) / 2

        def beyond(mean):
            return mp.erfc(sign * (x - mean) / (sigma * mp.sqrt(2))) / 2

        p, other = (1 - q) * beyond(0) + q * beyond(1), beyond(0)
        if direction == core.ADD:
            p, other = other, p
        return p - mp.exp(epsilon) * other


def check(q, sigma, delta, width=1e-9):
    worst = 0.0
    for direction in (core.REMOVE, core.ADD):
        lower, upper = core.epsilon_bounds(q, sigma, 1.0, delta, direction)
        assert profile(q, sigma, upper, direction) <= delta
        assert lower == 0.0 or profile(q, sigma, lower, direction) >= delta
        assert upper - lower <= max(width * upper, 1e-300)
        worst = max(worst, upper)
    assert ac.get_epsilon(q, sigma, 1, delta) <= worst
    assert ac.get_epsilon(q, sigma, 1, delta) <= ac.get_epsilon(1.0, sigma, 1, delta)


@pytest.mark.parametrize(("q", "sigma", "delta"), HARD)
def test_hard_steps_are_answered_narrowly(q, sigma, delta):
    check(q, sigma, delta)


@given(
    st.floats(-15.9, -1.0).map(lambda x: 1.0 - 10.0**x),
    st.floats(-1.9, 1.5).map(lambda x: 10.0**x),
    st.floats(-14.0, -1.0).map(lambda x: 10.0**x),
)
def test_almost_every_record_sampled(q, sigma, delta):
    # Where ε is far below δ, δ's last digits are the first of ε.
    epsilon = ac.get_epsilon(q, sigma, 1, delta)
    check(q, sigma, delta, 1e-9 if epsilon > 1e-3 else 1e-5)


@pytest.mark.parametrize("steps", [1, 7, 100_000])
def test_a_record_that_is_hardly_used_costs_nothing(steps):
    q = 1e-9
    used = -math.expm1(steps * math.log1p(-q))
    assert ac.epsilon_bounds(q, 0.1, steps, used * (1.0 + 1e-12)) == ac.Bounds(0.0, 0.0)
    assert ac.get_delta(q, 0.01, steps, 0.0) <= used * (1.0 + 1e-12)


@pytest.mark.parametrize("steps", [2, 43, 500])
def test_sampling_never_costs_more(steps):
    for q in (1.0 - 1e-15, 1.0 - 1e-9, 0.999):
        for sigma, delta in ((0.04, 6e-12), (0.3, 0.1), (15.0, 0.6), (3.0, 1e-6)):
            epsilon = ac.get_epsilon(q, sigma, steps, delta)
            assert epsilon <= ac.get_epsilon(1.0, sigma, steps, delta)
            assert ac.get_delta(q, sigma, steps, epsilon) <= ac.get_delta(
                1.0, sigma, steps, epsilon
            )
