"""Stated privacy profiles against exact output densities, and planted defects against the same."""

import math

import numpy as np
import pytest

from accountant.learn.convex.losses import HuberHinge, Logistic, Softmax
from accountant.learn.convex.mechanism import ObjectivePerturbation, dominating_pair
from support.convex_densities import (
    CASES,
    ROUNDOFF,
    planted,
    softmax_in_the_plane,
    two_dimensions,
    worst_excess,
)
from support.oracle import convex as oracle
from support.published_objectives import normal_profile


def gaussian_case(loss, make, sample, lam, sigma, rng, records, r=1.0):
    x, y = sample(rng)
    slopes = [make(yy, xx) for yy, xx in (sample(rng)[::-1] for _ in range(records))]
    pair = dominating_pair(loss, r / sigma, r * r / lam)
    return worst_excess(
        slopes,
        make(y, x),
        lam,
        oracle.normal_cdf(sigma),
        lambda e: pair.profile(e).upper,
        12 * sigma,
        r * loss.slope_bound,
    )


@pytest.mark.long(keep=13)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("lam", [0.02, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_one_dimension_never_exceeds_the_stated_profile(name, lam, sigma):
    loss, make, sample = CASES[name]
    rng = np.random.default_rng([len(name), int(lam * 100), int(sigma * 10)])
    for records in (0, 1, 2, 4):
        assert gaussian_case(loss, make, sample, lam, sigma, rng, records) <= ROUNDOFF


def test_the_tied_bound_is_attained():
    # In the add direction the noise that raises the loss also drives the record onto its slope's
    # plateau: the exact profile reaches the stated one.
    sigma, lam, eps = 3.7306316348, 1.0, 1.0
    theta = oracle.theta_grid(1.0, lam, 12 * sigma, 400_001)
    cdf = oracle.normal_cdf(sigma)
    far = [oracle.logistic(1.0, 1.0)]
    p = oracle.cells(far, lam, cdf, theta)
    q = oracle.cells([], lam, cdf, theta)
    stated = (
        ObjectivePerturbation(Logistic(), data_norm=1.0, regularization=lam, noise=sigma)
        .pair.profile(eps)
        .upper
    )
    assert 0.99 < oracle.profile_from_cells(q, p, eps) / stated <= ROUNDOFF


def test_it_is_no_gaussian_mechanism_below_the_theorems_epsilon():
    # The reason why the ledger composes the loss and never records (R/σ)-GDP.
    sigma, lam = 8.0, 0.25
    theta = oracle.theta_grid(1.0, lam, 12 * sigma, 100_001)
    cdf = oracle.normal_cdf(sigma)
    p = oracle.cells([oracle.logistic(1.0, 1.0)], lam, cdf, theta)
    q = oracle.cells([], lam, cdf, theta)
    gaussian = dominating_pair(Logistic(), 1 / sigma, 1e-9).profile(0.6).upper
    exact = max(oracle.profile_from_cells(p, q, 0.6), oracle.profile_from_cells(q, p, 0.6))
    assert exact > 1000 * gaussian
    assert (
        exact
        <= ObjectivePerturbation(Logistic(), data_norm=1.0, regularization=lam, noise=sigma)
        .pair.profile(0.6)
        .upper
    )


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("lam", "sigma"), [(0.3, 1.0), (1.0, 0.5), (2.0, 3.0)])
def test_two_dimensions_never_exceed_the_stated_profile(lam, sigma):
    rng = np.random.default_rng(5)
    pair = dominating_pair(Logistic(), 1 / sigma, 1 / lam)
    for records in (0, 2):
        x = rng.normal(size=(records + 1, 2))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = rng.choice([-1.0, 1.0], size=records + 1)
        small, large = two_dimensions(x[1:], y[1:], lam), two_dimensions(x, y, lam)
        edge = (records + 1 + 7 * sigma) / lam
        for p, q in ((large, small), (small, large)):
            for epsilon in (0.0, 0.3, 1.0):
                exact, mass = oracle.profile_2d(*p, *q, sigma, edge, epsilon)
                assert abs(mass - 1) < 1e-7
                # The kink of (p - e^ε q)₊ costs the midpoint rule O(cell²).
                assert exact <= pair.profile(epsilon).upper * (1 + 1e-3)


@pytest.mark.long
@pytest.mark.parametrize(("lam", "sigma"), [(0.5, 1.0), (4.0, 1.0), (1.0, 3.0), (0.3, 2.0)])
def test_softmax_never_exceeds_the_stated_profile(lam, sigma):
    rng = np.random.default_rng(6)
    pair = dominating_pair(Softmax(3), 1 / sigma, 1 / lam)
    for records in (0, 1, 3):
        x = np.append([1.0], rng.uniform(-1, 1, size=records))
        y = rng.integers(0, 3, size=records + 1)
        small, large = (softmax_in_the_plane(x[1:], y[1:], lam), softmax_in_the_plane(x, y, lam))
        edge = (1.5 * (records + 1) + 7 * sigma) / lam
        for p, q in ((large, small), (small, large)):
            for epsilon in (0.0, 0.3, 1.0, 3.0):
                exact, mass = oracle.profile_2d(*p, *q, sigma, edge, epsilon)
                assert abs(mass - 1) < 1e-7
                assert exact <= pair.profile(epsilon).upper * (1 + 1e-3)


@pytest.mark.parametrize("lam", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_softmax_of_two_classes_never_exceeds_the_stated_profile(lam, sigma):
    # Only v = θ₁ - θ₂ depends on the data: a logistic loss with λ/2 and noise σ/√2 in v.
    pair = dominating_pair(Softmax(2), 1 / sigma, 1 / lam)
    excess = worst_excess(
        [oracle.logistic(-1.0, 0.6)],
        oracle.logistic(1.0, 1.0),
        lam / 2,
        oracle.normal_cdf(sigma / math.sqrt(2)),
        lambda e: pair.profile(e).upper,
        12 * sigma,
        1.0,
    )
    assert excess <= ROUNDOFF


# Planted defects: the same check, given what a published implementation claims.


def test_a_determinant_without_the_square_of_the_norm_is_caught():
    # c R in place of c R² in the pure variant, at R = 12 and a claimed ε of 1.
    r, eps = 12.0, 1.0
    lam = 0.25 * r / (math.exp(0.5 * eps) - 1.0)
    remaining = eps - math.log1p(0.25 * r / lam)
    cdf = oracle.laplace_cdf(r / remaining)
    stated = lambda e: 0.0 if e >= eps else 1.0  # noqa: E731
    assert planted(oracle.logistic, (0,), lam, cdf, stated, 60 * r, r) > 1
    # With the square it is sound.
    lam = 0.25 * r * r / (math.exp(0.5 * eps) - 1.0)
    assert planted(oracle.logistic, (0, 1), lam, cdf, stated, 60 * r, r) <= 1


def test_a_softmax_slope_of_r_instead_of_root_two_r_is_caught():
    sigma, lam = 1.0, 10.0
    wrong = dominating_pair(Logistic(), 1 / sigma, 1 / lam)
    cdf = oracle.normal_cdf(sigma / math.sqrt(2))
    stated = lambda e: wrong.profile(e).upper  # noqa: E731
    assert planted(oracle.logistic, (0, 1), lam / 2, cdf, stated, 12 * sigma, 1.0) > 1


def test_a_hinge_that_understates_its_curvature_is_caught():
    # Half width .1 has curvature 5; a claimed 1 must fail.
    sigma, lam = 8.0, 1.0

    def make(y, x):
        return oracle.huber_hinge(y, x, 0.1)

    for curvature, sound in ((5.0, True), (1.0, False)):
        pair = dominating_pair(HuberHinge(0.5 / curvature), 1 / sigma, 1 / lam)
        cdf = oracle.normal_cdf(sigma)
        found = planted(make, (0, 1), lam, cdf, lambda e, p=pair: p.profile(e).upper, 12 * sigma, 1)
        assert (found <= ROUNDOFF) is sound


def test_a_coordinate_without_noise_is_caught():
    # The unperturbed bias: its noise is zero, so any claimed profile below one fails.
    stated = lambda e: 0.5  # noqa: E731
    assert planted(oracle.logistic, (1,), 1.0, oracle.normal_cdf(1e-6), stated, 1e-4, 1.0) > 1


def test_recording_a_gaussian_mechanism_is_caught():
    sigma, lam = 3.73, 0.25
    pair = dominating_pair(Logistic(), 1 / sigma, 1e-9)
    cdf = oracle.normal_cdf(sigma)
    stated = lambda e: pair.profile(e).upper  # noqa: E731
    assert planted(oracle.logistic, (0, 1), lam, cdf, stated, 12 * sigma, 1.0) > 1


def test_half_of_the_noise_is_caught():
    sigma, lam = 2.0, 1.0
    pair = dominating_pair(Logistic(), 1 / sigma, 1 / lam)
    cdf = oracle.normal_cdf(sigma / 2)
    stated = lambda e: pair.profile(e).upper  # noqa: E731
    assert planted(oracle.logistic, (0, 1), lam, cdf, stated, 12 * sigma, 1.0) > 1


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [120.0, 140.0])
def test_the_union_over_the_classes_is_needed_and_nearly_attained(epsilon):
    # Little noise and less curvature: the output sits at a vertex, and any of two may be it.
    lam, sigma = 0.02, 0.1
    p = softmax_in_the_plane([], [], lam)
    q = softmax_in_the_plane([1.0], [0], lam)
    exact, mass = oracle.profile_2d(*p, *q, sigma, 120.0, epsilon, points=1500)
    assert abs(mass - 1) < 1e-9
    stated = dominating_pair(Softmax(3), 1 / sigma, 1 / lam).profile(epsilon).upper
    assert 0.6 * stated < exact <= stated
    assert exact > 1.3 * normal_profile(epsilon, math.sqrt(2) / sigma)
