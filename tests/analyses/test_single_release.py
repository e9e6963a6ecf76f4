"""The profile of one release from masses beyond two edges (Theorem G9), and what is kept."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant import intervals as iv
from accountant.analyses import pld
from accountant.analyses.pld import memory
from accountant.analyses.single_release import epsilon_of_one, profile_of_one
from accountant.pairs.base import DominatingPair, Masses


class Moved(DominatingPair):
    """A Gaussian pair by its masses, the edges off by as much as the protocol allows."""

    def __init__(self, sigma, loss_error, share):
        self.sigma, self.error, self.share = mpf(sigma), loss_error, share

    @property
    def loss_error(self):
        return self.error

    def masses(self, edges):
        edges = [mpf(float(edge)) + self.share * mpf(self.error) for edge in edges]
        s = self.sigma
        # L = x/σ² - 1/2σ² at x, of which P has the mean 1 and Q the mean 0.
        below = [e * s + 1 / (2 * s) for e in edges]
        laws = []
        for mean in (1 / s, mpf(0)):
            ends = [mp.ncdf(x - mean) for x in below]
            inner = [b - a for a, b in pairwise(ends)]
            laws.append(np.array([float(m) for m in (ends[0], *inner, mp.ncdf(mean - below[-1]))]))
        return Masses(*laws, 1e-14)


def truth(sigma, epsilon):
    s, e = mpf(sigma), mpf(epsilon)
    x = e * s + 1 / (2 * s)
    return mp.ncdf(1 / s - x) - mp.exp(e) * mp.ncdf(-x)


@pytest.mark.parametrize("share", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("loss_error", [0.0, 1e-12, 1e-3])
@pytest.mark.parametrize("sigma", [0.2, 1.0, 30.0])
def test_edges_off_by_all_they_may_be(sigma, loss_error, share):
    pair = Moved(sigma, loss_error, share)
    with mp.workdps(40):
        for epsilon in (0.0, 1e-3, 0.3, 2.0, 9.0):
            found = profile_of_one(pair, epsilon)
            assert found.lower <= truth(sigma, epsilon) <= found.upper
            if loss_error == 0.0:
                assert found.width <= 1e-11


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("share", [-1.0, 1.0])
@pytest.mark.parametrize("loss_error", [0.0, 1e-3])
@pytest.mark.parametrize("sigma", [0.2, 30.0])
def test_the_inverse_by_edges_that_are_off(sigma, loss_error, share):
    with mp.workdps(40):
        for delta in (0.3, 1e-12):
            found = epsilon_of_one(Moved(sigma, loss_error, share), delta)
            assert truth(sigma, found.upper) <= delta
            assert found.lower == 0.0 or truth(sigma, found.lower) >= delta
            if loss_error == 0.0:
                assert found.width <= 1e-9 * found.upper + 1e-15


@pytest.mark.parametrize("q", [1.0, 0.3, 1e-3])
def test_the_inverse_of_a_few_losses_is_a_formula(q):
    p, r = [mpf(x) for x in ("0.6", "0.3", "0.1")], [mpf(x) for x in ("0.3", "0.45", "0.25")]
    release = ac.DominatingPMFs(tuple(map(float, p)), tuple(map(float, r)))
    release = release if q == 1.0 else ac.PoissonSampled(release, q)

    def profile(epsilon, mixed):
        y = mp.exp(mpf(epsilon))
        one = sum(max(a - y * b, mpf(0)) for a, b in zip(mixed, r, strict=True))
        other = sum(max(b - y * a, mpf(0)) for a, b in zip(mixed, r, strict=True))
        return max(one, other)

    with mp.workdps(40):
        mixed = [q * a + (1 - mpf(q)) * b for a, b in zip(p, r, strict=True)]
        for delta in (0.2, 1e-3 * q, 1e-12, 1e-15):
            found = release.epsilon_bounds(delta)
            # The masses are rounded decimals: one unit of theirs in either direction.
            assert profile(found.upper, mixed) <= delta + 1e-15
            assert found.lower == 0.0 or profile(found.lower, mixed) >= delta - 1e-15
            assert found.width <= 1e-6 * found.upper


def test_the_mass_at_infinity_counts():
    pair = ac.DominatingPMFs((0.25, 0.75), (0.0, 1.0), infinite_loss=True).pairs()[0]
    found = profile_of_one(pair, 5.0)
    assert 0.25 * (1.0 - 1e-12) <= found.lower <= 0.25 <= found.upper <= 0.25 * (1.0 + 1e-12)


def test_where_the_masses_do_not_tell_the_grid_answers():
    assert profile_of_one(Moved(1.0, 0.0, 0.0), 601.0) is None
    assert profile_of_one(Moved(1.0, 2.0, 0.0), 1.0) is None


class Kept:
    def __init__(self, held):
        self.held = held

    def forget(self):
        self.held = 0


def test_the_longest_unused_is_forgotten_first(monkeypatch):
    monkeypatch.setattr(memory, "_holders", [])
    monkeypatch.setattr(memory, "MOST", 100)
    first, second, third = Kept(40), Kept(40), Kept(40)
    for one in (first, second, first, third):
        memory.keep(one)
    assert (first.held, second.held, third.held) == (40, 0, 40)
    large = Kept(200)  # what is in use stays, whatever its size
    memory.keep(large)
    assert (first.held, third.held, large.held) == (0, 0, 200)


def test_a_problem_that_forgot_answers_the_same():
    composed = pld.Composed([(ac.Laplace(2.0).pairs()[0], 5)])
    before = composed.delta_bounds(1.0)
    assert composed.held > 0
    composed.forget()
    assert composed.held == 0
    assert composed.delta_bounds(1.0) == before


def test_ends_at_infinity():
    beyond = iv.exp(1.7e308)
    assert beyond.upper.is_infinite()
    nothing = beyond * 0.0
    assert nothing.lower == nothing.upper == 0
    ratio = beyond / beyond
    assert ratio.lower <= 1 <= ratio.upper
    assert math.isinf((beyond * 2.0).up())


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("scale", [0.0163, 0.0867, 0.721110428803264, 2.17, 41.3, 3e5])
def test_next_to_a_largest_loss_that_was_rounded(scale):
    # 1/b is no double: Laplace noise is stated with the next one, which is above its own profile.
    with mp.workdps(40):
        end = 1 / mpf(scale)
        for close in (1e-16, 4e-16, 1e-15, 1e-12, 1e-9, 1e-3, 0.7):
            epsilon = float(end) * (1.0 - close)
            found = ac.Laplace(scale).delta_bounds(epsilon)
            truth = max(-mp.expm1((mpf(epsilon) - end) / 2), mpf(0))
            assert found.lower <= truth <= found.upper
            # Scores of one range: the same ends.
            found = ac.ReportNoisyMax(scale, monotonic=True).delta_bounds(epsilon)
            root = min(mp.expm1((mpf(epsilon) - end) / 2), mpf(0))
            assert found.lower <= -root * root / mp.expm1(-end) <= found.upper


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("delta", [1e-320, 1e-300, 1e-30, 1.0000001e-30, 1.5e-30, 3e-30])
def test_where_the_profile_has_no_slope_or_delta_no_digits(delta):
    for one, largest in (
        (ac.Laplace(1.0), 1.0),
        (ac.PoissonSampled(ac.Laplace(1.0), 1e-12), 1e-12 * math.expm1(1.0)),
    ):
        found = one.epsilon_bounds(delta)
        assert 0.0 <= found.lower <= largest <= found.upper * (1.0 + 1e-12)
