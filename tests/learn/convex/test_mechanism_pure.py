"""Pure objective perturbation: exact ratios of output densities, in one and in two dimensions."""

import math

import numpy as np
import pytest

from accountant.learn.convex.losses import Softmax
from accountant.learn.convex.mechanism import pure_epsilon_for_noise
from support.convex_densities import CASES, softmax_in_the_plane, two_dimensions
from support.oracle import convex as oracle


@pytest.mark.long(keep=18)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("share", [0.2, 1.0, 5.0])
def test_no_cell_of_the_output_is_likelier_by_more_than_epsilon(name, epsilon, share):
    loss, make, sample = CASES[name]
    # λ from just above the least admissible to where the determinant hardly matters.
    lam = loss.curvature_bound / math.expm1(epsilon) * (1 + share)
    scale = loss.slope_bound / pure_epsilon_for_noise(loss, epsilon, 1.0, lam)
    cdf = oracle.laplace_cdf(scale)
    theta = oracle.theta_grid(6 * loss.slope_bound, lam, 200 * scale, 20_001)
    rng = np.random.default_rng(len(name))
    worst = 0.0
    for records in (0, 1, 3):
        for _ in range(4):
            slopes = [make(*sample(rng)[::-1]) for _ in range(records)]
            x, y = sample(rng)
            p = oracle.cells([*slopes, make(y, np.sign(x))], lam, cdf, theta)
            q = oracle.cells(slopes, lam, cdf, theta)
            seen = np.minimum(p, q) > 1e-60
            # A cell is a difference of two distribution functions: small ones have lost digits.
            exact = np.abs(np.log(p[seen] / q[seen]))
            tails = np.minimum(p[seen], q[seen]) / np.maximum.accumulate(p[seen])
            worst = max(worst, exact[tails > 1e-3].max())
    # The oracle's cells are differences of doubles, of at least 1e-3 of what is subtracted.
    assert worst <= epsilon + 1e-11
    # Not slack: the bound with neither slope nor determinant would be broken.
    assert worst > 0.3 * epsilon


def log_density(gradient, hessian, rate, a, b):
    """Up to a constant: exp(-rate |b|) at the linear term that makes (a, b) the minimum."""
    g1, g2 = gradient(a, b)
    h11, h12, h22 = hessian(a, b)
    return -rate * np.hypot(g1, g2) + np.log(h11 * h22 - h12**2)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_two_dimensions_of_the_logistic_loss(epsilon):
    from accountant.learn.convex.losses import Logistic

    rng = np.random.default_rng(1)
    for lam in (0.26 / math.expm1(epsilon), 0.5 / epsilon, 1.0 / epsilon, 5.0 / epsilon):
        rate = pure_epsilon_for_noise(Logistic(), epsilon, 1.0, lam)
        worst = 0.0
        for records in (0, 1, 4):
            x = rng.normal(size=(records + 1, 2))
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            y = rng.choice([-1.0, 1.0], size=records + 1)
            points = rng.normal(size=(2, 50_000)) * 10.0 ** rng.uniform(-2, 2, size=50_000)
            small, large = two_dimensions(x[1:], y[1:], lam), two_dimensions(x, y, lam)
            ratio = log_density(*large, rate, *points) - log_density(*small, rate, *points)
            worst = max(worst, np.abs(ratio).max())
        assert 0.5 * epsilon < worst <= epsilon


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_plane_of_softmax(epsilon):
    """d = 1, K = 3: noise in three dimensions, of which the sum of the columns sees no data."""
    rng = np.random.default_rng(2)
    cases = [
        (lam, pure_epsilon_for_noise(Softmax(3), epsilon, 1.0, lam))
        for lam in (1.05 / (3 * math.expm1(epsilon / 2)), 8.0 / epsilon)
    ]
    # Planted: one factor of the determinant where there are two.
    lam = 1.05 / (3 * math.expm1(epsilon))
    cases.append((lam, epsilon - math.log1p(1 / (3 * lam))))
    for lam, rest_of_epsilon in cases:
        rate = rest_of_epsilon / math.sqrt(2.0)
        worst = 0.0
        for records in (0, 1, 3):
            x = np.append([1.0], rng.uniform(-1, 1, size=records))
            y = rng.integers(0, 3, size=records + 1)
            a, b, rest = rng.normal(size=(3, 40_000)) * 10.0 ** rng.uniform(-2, 2, size=40_000)

            def law(data, a=a, b=b, rest=rest, lam=lam, rate=rate):
                gradient, hessian = data
                g1, g2 = gradient(a, b)
                h11, h12, h22 = hessian(a, b)
                length = np.sqrt(g1**2 + g2**2 + (lam * rest) ** 2)
                return -rate * length + np.log(lam * (h11 * h22 - h12**2))

            ratio = law(softmax_in_the_plane(x, y, lam)) - law(
                softmax_in_the_plane(x[1:], y[1:], lam)
            )
            worst = max(worst, np.abs(ratio).max())
        if lam == cases[-1][0]:
            assert worst > 1.3 * epsilon
        else:
            assert 0.3 * epsilon < worst <= epsilon
