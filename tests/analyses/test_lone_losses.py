"""One release of finitely many losses: its brackets are those of the grid."""

from __future__ import annotations

import math

import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant.analyses.dispatch import solver
from accountant.analyses.lone_losses import LoneLosses
from accountant.analyses.profile import joint_pair
from accountant.analyses.solvers import Grid

RELEASES = (
    ac.RandomizedResponse(1.0),
    ac.RandomizedResponse(0.01, k=5),
    ac.ApproximateDP(2.0, delta=1e-4),
    ac.DiscreteLaplace(0.7, sensitivity=3),
    ac.DiscreteLaplace(3.0, sensitivity=30),
    ac.DominatingPMFs((0.6, 0.3, 0.1), (0.3, 0.45, 0.25)),
    ac.DominatingPMFs((0.5, 0.5, 0.0), (0.0, 0.75, 0.25), infinite_loss=True),
)


def lone(release):
    found = [solver(((pair, 1),), joint_pair) for pair in release.pairs()]
    assert all(type(one) is LoneLosses for one in found)
    return found


@pytest.mark.long(keep=9)
@pytest.mark.parametrize("q", [1.0, 0.02])
@pytest.mark.parametrize("release", RELEASES, ids=repr)
def test_the_brackets_are_those_of_the_grid(release, q):
    for one in lone(release if q == 1.0 else ac.PoissonSampled(release, q)):
        grid = Grid(one.parts)
        for delta in (0.0, 1e-300, 1e-9, 1e-5, 0.01, 0.3, 0.9):
            found, beside = one.epsilon_bounds(delta), grid.epsilon_bounds(delta)
            assert found == beside == one.epsilon_bounds(delta)
        for epsilon in (0.0, 0.01, 0.9, 2.0, math.inf):
            assert one.delta_bounds(epsilon) == grid.delta_bounds(epsilon)


@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 2), (1.0, 7), (1e-6, 2), (30.0, 3)])
def test_randomised_response_has_a_formula(epsilon, k):
    release = ac.RandomizedResponse(epsilon, k=k)
    with mp.workdps(50):
        e = mpf(epsilon)
        true = mp.exp(e) / (mp.exp(e) + k - 1)
        for share in (1e-9, 0.1, 0.5, 0.999):
            # between the losses 0 and ε: δ = p - e^t·p·e^{-ε}
            delta = float(share * true * -mp.expm1(-e))
            truth = mp.log((true - mpf(delta)) / (true * mp.exp(-e)))
            found = release.epsilon_bounds(delta)
            assert found.lower <= truth <= found.upper
            assert found.upper <= epsilon
            assert found.upper - found.lower <= 1e-13 * min(epsilon, 1.0) / (1.0 - share)


def test_what_the_losses_leave_open_is_asked_of_the_grid(monkeypatch):
    (one,) = lone(ac.RandomizedResponse(1.0))
    monkeypatch.setattr("accountant.analyses.lone_losses.epsilon_of_one", lambda *_: None)
    found = one.epsilon_bounds(1e-5)
    with mp.workdps(50):
        truth = 1 + mp.log1p(-mpf(1e-5) * (1 + mp.exp(-1)))
    assert found.lower <= truth <= found.upper
    assert one._grid is not None


def test_no_release_is_seen_at_a_delta_above_its_variation():
    (one,) = lone(ac.RandomizedResponse(1.0))
    assert one.epsilon_bounds(math.tanh(0.5) * (1.0 + 1e-12)) == ac.Bounds(0.0, 0.0)
    assert one.epsilon_bounds(math.tanh(0.5) * (1.0 - 1e-12)).upper > 0.0
