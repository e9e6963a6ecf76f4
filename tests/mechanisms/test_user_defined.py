"""Losses of two given PMFs against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

import accountant as ac

CHANCES = st.one_of(st.floats(1e-12, 1.0), st.floats(-320.0, 0.0).map(lambda x: 10.0**x))


def log_ratio(p, q, k):
    """Return the k-th loss once both are normalised."""
    p, q = ([Fraction(x) for x in row] for row in (p, q))
    ratio = p[k] * sum(q) / (q[k] * sum(p))
    with mp.workdps(60):
        return mp.log(mp.mpf(ratio.numerator)) - mp.log(mp.mpf(ratio.denominator))


# A few outcomes are taken one by one, many by arrays.
@given(CHANCES, CHANCES, st.sampled_from((0.0, -1e-10, -3e-10)), st.sampled_from((1, 20)))
def test_every_loss_lies_within_its_error(x, y, off, impossible):
    none = (0.0,) * impossible
    p, q = (x, 1.0 - x, *none), (y, (1.0 - y) * (1.0 + off), *none)
    if not (min(p[:2] + q[:2]) > 0.0):
        return
    pair = ac.DominatingPMFs(p, q).pairs()[0]
    table = pair.atoms()
    low, high = pair.support
    found = sorted((float(log_ratio(p, q, k)), k) for k in (0, 1))
    for (_, k), loss in zip(found, table.loss.tolist(), strict=True):
        truth = log_ratio(p, q, k)
        assert abs(truth - mp.mpf(loss)) <= mp.mpf(table.loss_error) * (1 + mp.mpf(2) ** -50)
        assert mp.mpf(low) <= truth <= mp.mpf(high)
    assert high - low <= float(abs(found[1][0]) + abs(found[0][0])) * (1 + 1e-13) + 5 * abs(off)


@pytest.mark.parametrize("masses", [(0.5, 0.5), (0.1,) * 10, (0.3, 0.7)])
def test_equal_masses_tell_nothing(masses):
    same = ac.DominatingPMFs(masses, masses)
    assert same.epsilon(0.0) == 0.0
    assert same.rdp(3.0) == 0.0
    assert same.mu() == 0.0


def test_small_masses_keep_their_digits():
    # log p and log q are 690 each, and lose 1e-13 of their difference.
    p, q = (3e-300, 1.0), (1e-300, 1.0)
    pair = ac.DominatingPMFs(p, q).pairs()[0]
    with mp.workdps(60):
        truth = mp.log(mp.mpf(3e-300)) - mp.log(mp.mpf(1e-300))
    assert mp.mpf(pair.support[1]) >= truth
    assert pair.support[1] <= math.log(3.0) * (1 + 1e-14)


@pytest.mark.parametrize("impossible", [0, 20])
def test_masses_that_are_nearly_equal_keep_the_digits_of_a_small_loss(impossible):
    none, gap = (0.0,) * impossible, 2.0**-32
    pair = ac.DominatingPMFs((0.25, 0.75, *none), (0.25 + gap, 0.75 - gap, *none)).pairs()[0]
    table = pair.atoms()
    assert table.loss_error <= 1e-23
    with mp.workdps(60):
        truth = [-mp.log1p(mp.mpf(2) ** -30), -mp.log1p(-(mp.mpf(2) ** -32) / mp.mpf(0.75))]
        for loss, exact in zip(table.loss.tolist(), truth, strict=True):
            assert abs(mp.mpf(loss) - exact) <= table.loss_error


def test_many_releases_far_above_the_point_of_balance():
    """Where no grid fits, a δ next to 1 is still known to be next to 1."""
    one = ac.mechanisms.LossDistribution(
        lambda t: ndtr(t - 0.5),
        lambda t: ndtr(0.5 - t),
        lambda t: ndtr(t + 0.5),
        lambda t: ndtr(-0.5 - t),
        relative_error=1e-13,
    )
    many = 10**6 * one
    # The loss is N(n/2, n): all but nothing lies above a fifth of its mean.
    for epsilon in (0.0, 5e4, 1e5):
        found = many.delta_bounds(epsilon)
        assert 0.9 <= found.lower <= 1.0 == found.upper
    assert many.delta_bounds(5.1e5).upper < 1e-20


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_delta_at_epsilon_zero_is_put_next_to_one_because_its_epsilon_is_zero():
    def law(mean, sign):
        return lambda t: ndtr(sign * 10.0 * (np.clip(t, -9.0, 9.0) - mean))

    functions = (law(0.005, 1), law(0.005, -1), law(-0.005, 1), law(-0.005, -1))
    one = ac.mechanisms.LossDistribution(*functions, relative_error=0.1)
    try:
        lower = float((10 * one).delta_bounds(0.0).lower)
    except ac.PrecisionError:
        lower = 0.0
    assert lower <= 2.0 * ndtr(0.05 * math.sqrt(10.0)) - 1.0
