"""Defects of published implementations, planted, against the exact densities of the outputs.

The first six of the eight are in test_mechanism_density.py and test_releases.py.
"""

import math

import numpy as np
import pytest

from accountant.learn.convex.dominating import ConvexNormalPair
from accountant.learn.convex.losses import Logistic, Softmax
from accountant.learn.convex.mechanism import dominating_pair
from support.convex_densities import EPSILONS, ROUNDOFF, planted, softmax_in_the_plane
from support.oracle import convex as oracle


def rank_one(m, k):
    """What a theorem for Hessians of rank one claims: one factor 1 + β/λ of the determinant."""
    c = math.log1p(0.5 * k)
    slope = math.sqrt(2.0) * m
    high = c + 0.5 * slope * slope
    return ConvexNormalPair(np.array([high, c, high]), np.array([-slope, 0.0, slope]))


@pytest.mark.parametrize("sigma", [10.0, 30.0])
def test_a_determinant_of_rank_one_for_three_classes_is_caught(sigma):
    lam = 0.05
    worst = {"wrong": 0.0, "right": 0.0}
    stated = {
        "wrong": rank_one(1 / sigma, 1 / lam),
        "right": dominating_pair(Softmax(3), 1 / sigma, 1 / lam),
    }
    p = softmax_in_the_plane([1.0], [0], lam)
    q = softmax_in_the_plane([], [], lam)
    # Around zero, where all classes are likely and the determinant largest: an integral over part
    # of the plane is a lower bound on the profile.
    for epsilon in (2.0, 3.0, 3.5, 4.0):
        exact, _ = oracle.profile_2d(*p, *q, sigma, 4.0, epsilon, points=400)
        for name, pair in stated.items():
            ratio = exact / max(pair.profile(epsilon).upper, 1e-300)
            worst[name] = max(worst[name], ratio)
    assert worst["right"] <= 1
    assert worst["wrong"] > 1.5


def newton_once(y, x):
    """A record's slope as one Newton step from zero sees it: the tangent at zero."""
    return lambda t: -0.5 * y * x + 0.25 * x * x * t


@pytest.mark.parametrize("sigma", [1.0, 3.0])
def test_a_solver_stopped_by_its_iteration_limit_is_caught(sigma):
    lam = 0.5
    pair = dominating_pair(Logistic(), 1 / sigma, 1 / lam)

    def found(make):
        return planted(
            make,
            (0, 1, 3),
            lam,
            oracle.normal_cdf(sigma),
            lambda e: pair.profile(e).upper,
            12 * sigma,
            1.0,
        )

    assert found(newton_once) > 1
    # The minimum itself is what the profile is about.
    assert found(oracle.logistic) <= ROUNDOFF


@pytest.mark.parametrize("lam", [0.5, 25.0])
def test_a_norm_read_from_the_data_is_caught(lam):
    """Without the longest record both the noise and the rows' bound are smaller."""
    norm, without, multiplier = 5.0, 1.0, 3.0
    pair = dominating_pair(Logistic(), 1 / multiplier, norm**2 / lam)
    short = [oracle.logistic(1.0, without), oracle.logistic(-1.0, 0.4)]
    theta = oracle.theta_grid(2 * norm, lam, 12 * multiplier * norm)

    def worst(noise_without):
        p = oracle.cells(
            [*short, oracle.logistic(1.0, norm)], lam, oracle.normal_cdf(multiplier * norm), theta
        )
        q = oracle.cells(short, lam, oracle.normal_cdf(multiplier * noise_without), theta)
        return max(
            (oracle.profile_from_cells(a, b, epsilon) - 1e-15) / pair.profile(epsilon).upper
            for epsilon in EPSILONS
            for a, b in ((p, q), (q, p))
        )

    assert worst(without) > 1
    # A public bound gives both data sets the same noise.
    assert worst(norm) <= ROUNDOFF
