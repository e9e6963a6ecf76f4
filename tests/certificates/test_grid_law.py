"""Composition on knots in floating point keeps jumps that are far rarer than rounding."""

import math
from itertools import pairwise

import numpy as np
from mpmath import mp, mpf

import accountant as ac
from accountant.certificates.grid import Knots, _convolved, _upper_law

RATE, SIGMA = 1.35e-9, 0.564
STEP = ac.PoissonSampled(ac.Gaussian(SIGMA), RATE)


def test_masses_far_below_the_noise_of_a_transform_are_kept():
    mass = 1e-9 * np.exp(-np.linspace(0.0, 25.0, 3000))  # down to 1e-20
    mass[:3] = 0.2, 1.0, 0.3
    found, expected = _convolved(mass, mass), np.convolve(mass, mass)  # nothing cancels
    assert np.abs(found / expected - 1.0)[expected > 1e-20].max() < 1e-4


def test_a_step_that_hardly_ever_moves_has_its_chords():
    """The sum over the knots of what is wrong there counts in 13,000,000 steps."""
    knots = Knots(1.3e-6, -6, 20)
    (pair, _), *_ = STEP.profile().problems[0]
    mass, _ = _upper_law(pair, knots.losses)

    def above(x):
        return mp.erfc(x / mp.sqrt(2)) / 2

    def height(k):
        """The profile of one step (Theorem 13), at knot k."""
        x, mu, rate = mp.exp(k * mpf(knots.spacing)), 1 / mpf(SIGMA), mpf(RATE)
        y = (x - 1 + rate) / rate
        if y <= 0:
            return 1 - x
        return rate * (above(mp.log(y) / mu - mu / 2) - y * above(mp.log(y) / mu + mu / 2))

    with mp.workdps(60):
        x = [mp.exp(k * mpf(knots.spacing)) for k in range(knots.low - 1, knots.high + 2)]
        heights = [height(k) for k in range(knots.low - 1, knots.high + 2)]
        points = pairwise(zip(x, heights, strict=True))
        slopes = [(v - u) / (y - z) for (z, u), (y, v) in points]
        exact = [x[k + 1] * (slopes[k + 1] - slopes[k]) for k in range(knots.high - knots.low + 1)]
    wrong = [float(u - v) for u, v in zip(mass[1:-1], exact[1:-1], strict=True)]
    shift = math.fsum(k * each for k, each in enumerate(wrong, knots.low + 1))
    assert abs(shift) < 1e-13  # of a knot
