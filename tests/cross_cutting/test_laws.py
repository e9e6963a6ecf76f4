"""Laws that hold for the truth, so brackets must not contradict them.

Sound: a lower end never exceeds an upper end of something at least as large; zero tolerance.
"""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import accountant as ac
from support.oracle_checks import claimed_tight
from support.strategies import (
    counts,
    deltas,
    epsilons,
    log_uniform,
    noise_multipliers,
    orders,
    sampling_probabilities,
)

factors = log_uniform(1.0 + 1e-12, 100.0)


@given(sampling_probabilities, noise_multipliers, counts, deltas)
def test_brackets_are_ordered_and_finite(q, sigma, steps, delta):
    lower, upper = ac.epsilon_bounds(q, sigma, steps, delta)
    assert 0.0 <= lower <= upper < math.inf


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(sampling_probabilities, noise_multipliers, counts, deltas)
def test_brackets_are_tight(q, sigma, steps, delta):
    """Relative width in ε at most 1e-9 where docs/accuracy.md claims it."""
    assume(claimed_tight(q, sigma, steps, delta, math.inf))
    lower, upper = ac.epsilon_bounds(q, sigma, steps, delta)
    # The upper end, not the lower: a bracket [0, 5] must not excuse itself.
    assume(claimed_tight(q, sigma, steps, delta, upper))
    assert upper - lower <= 1e-9 * upper


@given(sampling_probabilities, noise_multipliers, counts, deltas, factors)
def test_more_noise_never_costs_more(q, sigma, steps, delta, factor):
    noisier = ac.epsilon_bounds(q, sigma * factor, steps, delta)
    assert noisier.lower <= ac.epsilon_bounds(q, sigma, steps, delta).upper


@given(sampling_probabilities, noise_multipliers, counts, deltas, factors)
def test_fewer_steps_never_cost_more(q, sigma, steps, delta, factor):
    fewer = ac.epsilon_bounds(q, sigma, int(steps / factor), delta)
    assert fewer.lower <= ac.epsilon_bounds(q, sigma, steps, delta).upper


@given(sampling_probabilities, noise_multipliers, counts, deltas, factors)
def test_smaller_q_never_costs_more(q, sigma, steps, delta, factor):
    rarer = ac.epsilon_bounds(q / factor, sigma, steps, delta)
    assert rarer.lower <= ac.epsilon_bounds(q, sigma, steps, delta).upper


@given(sampling_probabilities, noise_multipliers, counts, deltas, factors)
def test_larger_delta_never_costs_more(q, sigma, steps, delta, factor):
    assume(delta * factor < 1.0)
    looser = ac.epsilon_bounds(q, sigma, steps, delta * factor)
    assert looser.lower <= ac.epsilon_bounds(q, sigma, steps, delta).upper


@pytest.mark.long
@given(sampling_probabilities, noise_multipliers, counts, epsilons)
def test_delta_is_a_probability_and_not_increasing(q, sigma, steps, epsilon):
    here, further = ac.delta_bounds(q, sigma, steps, [epsilon, epsilon + 0.5]).upper
    lower = ac.delta_bounds(q, sigma, steps, [epsilon, epsilon + 0.5]).lower
    assert 0.0 <= lower[1] <= here <= 1.0
    assert 0.0 <= lower[0] <= 1.0
    assert 0.0 <= further <= 1.0


@pytest.mark.long
@given(sampling_probabilities, noise_multipliers, counts, log_uniform(1e-3, 20.0))
def test_delta_is_convex_in_exp_epsilon(q, sigma, steps, epsilon):
    left, right = 0.5 * epsilon, epsilon
    weight = 0.5
    middle = math.log(weight * math.exp(left) + weight * math.exp(right))
    ends = ac.delta_bounds(q, sigma, steps, [left, right])
    chord = weight * ends.upper.sum()
    # Agree: `middle` is rounded, which moves δ by a relative few ulps times its slope.
    slack = 1e-9 * chord + 1e-300
    assert ac.delta_bounds(q, sigma, steps, middle).lower <= chord + slack


@given(sampling_probabilities, noise_multipliers, counts, epsilons)
def test_epsilon_inverts_delta(q, sigma, steps, epsilon):
    lower, upper = ac.delta_bounds(q, sigma, steps, epsilon)
    if 0.0 < upper < 1.0:
        assert ac.epsilon_bounds(q, sigma, steps, upper).lower <= epsilon
    if 0.0 < lower < 1.0:
        assert ac.epsilon_bounds(q, sigma, steps, lower).upper >= epsilon


@given(sampling_probabilities, noise_multipliers, counts, counts, deltas, deltas)
def test_basic_composition(q, sigma, first, second, delta1, delta2):
    total = math.nextafter(delta1 + delta2, 1.0)
    assume(total < 1.0)
    together = ac.epsilon_bounds(q, sigma, first + second, total).lower
    apart = ac.get_epsilon(q, sigma, first, delta1) + ac.get_epsilon(q, sigma, second, delta2)
    assert together <= math.nextafter(apart, math.inf)


@given(sampling_probabilities, noise_multipliers, counts, deltas)
def test_exact_is_at_most_renyi(q, sigma, steps, delta):
    renyi = ac.get_epsilon(q, sigma, steps, delta, method="rdp")
    assert ac.epsilon_bounds(q, sigma, steps, delta).lower <= renyi


@given(sampling_probabilities, noise_multipliers, counts, deltas, orders)
def test_renyi_uses_the_best_order(q, sigma, steps, delta, order):
    # Any single order bounds ε (Canonne, Kamath, Steinke 2020, Proposition 12).
    rdp = ac.get_rdp(q, sigma, steps, order)
    classical = rdp + math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0)
    best = ac.get_epsilon(q, sigma, steps, delta, method="rdp")
    # Agree: the search for the order stops a little short of the minimum.
    assert best <= max(classical, 0.0) * (1.0 + 1e-6) + 1e-12


@given(sampling_probabilities, noise_multipliers, counts, orders, factors)
def test_renyi_grows_with_the_order(q, sigma, steps, order, factor):
    low, high = ac.get_rdp(q, sigma, steps, [order, order * factor])
    assert low <= high * (1.0 + 1e-12)


def gaussian_delta(sigma, steps, epsilon):
    """Return δ of the plain Gaussian mechanism to 40 digits (Balle, Wang 2018)."""
    with mpmath.workdps(60):
        mu = mpmath.sqrt(steps) / mpmath.mpf(sigma)
        e = mpmath.mpf(epsilon)

        def tail(x):
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        return tail(e / mu - mu / 2) - mpmath.exp(e) * tail(e / mu + mu / 2)


@given(noise_multipliers, counts, epsilons)
def test_without_sampling_it_is_the_plain_gaussian(sigma, steps, epsilon):
    assume(epsilon * sigma / math.sqrt(steps) < 30.0)
    lower, upper = ac.delta_bounds(1.0, sigma, steps, epsilon)
    truth = gaussian_delta(sigma, steps, epsilon)
    assert lower <= truth <= upper
    assert upper - lower <= 1e-9 * upper


@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_sampling_almost_surely_approaches_the_plain_gaussian(steps):
    q = math.nextafter(1.0, 0.0)
    below = ac.epsilon_bounds(q, 2.0, steps, 1e-5)
    plain = ac.epsilon_bounds(1.0, 2.0, steps, 1e-5)
    assert below.lower <= plain.upper
    assert np.isclose(below.upper, plain.upper, rtol=1e-6)
