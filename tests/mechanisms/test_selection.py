"""Selection mechanisms against the laws of two candidates, in closed form."""

import math

import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant import NeighbouringRelation as Relation


def log_chance_of_the_worse(noise, gap):
    """The logarithm of the chance that the candidate behind by ``gap`` scales is chosen."""
    g = mpf(gap)
    if noise == "gumbel":
        return -mp.log1p(mp.exp(g))
    if noise == "exponential":
        return -g - mp.log(2)
    return -g + mp.log(mpf(1) / 2 + g / 4)


@pytest.mark.parametrize("noise", ["gumbel", "exponential", "laplace"])
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("relation", [Relation.ADD_OR_REMOVE, Relation.REPLACE_ONE])
def test_noisy_maxima_cost_what_their_laws_differ_by(noise, monotonic, relation):
    """One record moves both scores: apart, or only one of them where all move one way."""
    scale, sensitivity = 2.5, 0.75
    moved = sensitivity * (1 if monotonic else 2) * (2 if relation is Relation.REPLACE_ONE else 1)
    mechanism = ac.ReportNoisyMax(
        scale, noise, sensitivity=sensitivity, monotonic=monotonic, relation=relation
    )
    with mp.workdps(40):
        for gap in (1.0, 50.0, 1e4):
            after = mpf(gap) + mpf(moved) / mpf(scale)
            loss = log_chance_of_the_worse(noise, gap) - log_chance_of_the_worse(noise, after)
            assert loss <= mechanism.epsilon(0.0)
            chances = [mp.exp(log_chance_of_the_worse(noise, g)) for g in (gap, after)]
            for at in (0.0, 0.2 * float(loss), 0.8 * float(loss)):
                assert chances[0] - mp.exp(at) * chances[1] <= mechanism.delta(at)
        # And no more: two candidates far apart differ by nearly all of it.
        assert mechanism.epsilon(0.0) <= loss * (1 + mpf("1e-3"))


def test_a_threshold_costs_the_threshold_and_its_answers():
    found = ac.AboveThreshold(4.0, query_scale=8.0, positives=3)
    assert found.epsilon(0.0) == pytest.approx(1.0 / 4.0 + 2.0 * 3.0 / 8.0, rel=1e-12)
    assert found.epsilon(0.0) >= 1.0
    assert (
        ac.AboveThreshold(4.0, query_scale=8.0, positives=3, monotonic=True).epsilon(0.0)
        >= 1.0 / 4.0 + 3.0 / 8.0
    )
    assert math.isclose(
        ac.AboveThreshold(4.0, query_scale=8.0, positives=3, relation=Relation.REPLACE_ONE).epsilon(
            0.0
        ),
        2.0,
    )
