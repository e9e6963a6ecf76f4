"""Answers where other accountants break (add-or-remove; q, sigma, steps, delta -> epsilon)."""

import math

import mpmath
import pytest

import accountant as ac

KNOWN = [
    ((0.01, 1.0, 1000, 1e-12), 3.91430, 1e-5),
    ((0.01, 1.0, 1000, 1e-13), 4.2298, 1e-4),
    ((0.01, 1.0, 1000, 1e-14), 4.5437, 1e-4),
    ((0.01, 1.0, 1000, 1e-15), 4.8545, 1e-4),
    ((0.001, 0.8, 20000, 1e-11), 2.81965, 1e-5),
    ((0.01, 0.3, 100, 1e-5), 26.83, 5e-3),
    ((0.001, 50.0, 1000, 1e-6), 0.0016309, 1e-7),
    ((0.001, 100.0, 10_000, 1e-9), 0.0044265, 1e-7),
]


@pytest.mark.parametrize(("problem", "epsilon", "digit"), KNOWN)
def test_published_digits(problem, epsilon, digit):
    lower, upper = ac.epsilon_bounds(*problem)
    assert upper - lower <= 1e-9 * upper
    assert abs(upper - epsilon) <= digit


@pytest.mark.parametrize("problem", [(1e-8, 1.0, 10**9, 1e-9), (0.5, 0.3, 1000, 1e-5)])
def test_large_problems_are_finite_and_tight(problem):
    lower, upper = ac.epsilon_bounds(*problem)
    assert 0.0 < lower <= upper < math.inf
    assert upper - lower <= 1e-9 * upper


def gaussian_delta(mu, epsilon):
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    above = mpmath.ncdf(mu / 2 - epsilon / mu)
    return above - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("sigma", [1e-3, 0.05, 0.5, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("steps", [1, 3, 1000])
@pytest.mark.parametrize("delta", [1e-30, 1e-9, 1e-5, 0.01, 0.5])
def test_full_batch_is_the_gaussian_mechanism(sigma, steps, delta):
    with mpmath.workdps(60):
        mu = mpmath.sqrt(steps) / mpmath.mpf(sigma)
        lower, upper = ac.epsilon_bounds(1.0, sigma, steps, delta)
        assert gaussian_delta(mu, upper) <= delta
        assert lower == 0.0 or gaussian_delta(mu, lower) >= delta


@pytest.mark.parametrize("q", [1e-6, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 3.0])
def test_one_step_has_a_closed_form(q, sigma, epsilon):
    """H_remove(eps) = q H(log(1 + (e^eps - 1)/q)), which is the larger direction."""
    with mpmath.workdps(60):
        inner = mpmath.log1p(mpmath.expm1(mpmath.mpf(epsilon)) / mpmath.mpf(q))
        truth = mpmath.mpf(q) * gaussian_delta(1 / mpmath.mpf(sigma), inner)
        lower, upper = ac.delta_bounds(q, sigma, 1, epsilon)
        assert lower <= truth <= upper


def test_almost_no_noise_at_full_batch():
    """sigma = 1e-3 at q = 1: half a million nats and more, still finite and tight."""
    lower, upper = ac.epsilon_bounds(1.0, 1e-3, 1, 1e-5)
    assert 5e5 < lower <= upper < math.inf
    assert upper - lower <= 1e-9 * upper


@pytest.mark.parametrize("q", [1e-6, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-20, 1e-9, 1e-3])
def test_one_step_inverts_its_closed_form(q, sigma, delta):
    def truth(epsilon):
        inner = mpmath.log1p(mpmath.expm1(mpmath.mpf(epsilon)) / mpmath.mpf(q))
        return mpmath.mpf(q) * gaussian_delta(1 / mpmath.mpf(sigma), inner)

    with mpmath.workdps(60):
        lower, upper = ac.epsilon_bounds(q, sigma, 1, delta)
        assert truth(upper) <= delta
        assert lower == 0.0 or truth(lower) >= delta


@pytest.mark.parametrize("target", [1e-4, 1e-2, 1.0, 30.0, 1000.0])
def test_calibration_over_the_whole_range(target):
    sigma = ac.calibrate_sigma(target, delta=1e-5, q=0.01, steps=1000)
    assert ac.get_epsilon(0.01, sigma, 1000, 1e-5) <= target
    assert ac.get_epsilon(0.01, sigma * (1 - 1e-9), 1000, 1e-5) > target
    assert ac.get_epsilon(0.01, math.nextafter(sigma, 0.0), 1000, 1e-5) > target


@pytest.mark.parametrize("target", [1e-4, 1e-2, 1.0, 30.0, 1000.0])
def test_calibrated_steps_and_q_over_the_whole_range(target):
    steps = ac.calibrate_steps(target, delta=1e-5, q=0.01, sigma=20.0)
    assert ac.get_epsilon(0.01, 20.0, steps, 1e-5) <= target
    assert ac.get_epsilon(0.01, 20.0, steps + 1, 1e-5) > target
    q = ac.calibrate_q(target, delta=1e-9, sigma=0.7, steps=1000)
    assert ac.get_epsilon(q, 0.7, 1000, 1e-9) <= target
    assert ac.get_epsilon(math.nextafter(q, 1.0), 0.7, 1000, 1e-9) > target
