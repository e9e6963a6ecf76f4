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


DELTAS = (0.95, 0.5, 0.3, 1e-5, 1e-10, 1e-300)
REACHES = (1e-300, 1e-6, 0.02, 1.0, 3.0, 37.5, 700.0, 1e200)


def laplace(a, delta):
    return a + 2 * mp.log(1 - delta)


def bounded_range(a, delta):
    return a + 2 * mp.log(1 - mp.sqrt(delta * -mp.expm1(-a)))


@pytest.mark.long(keep=63)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("inverse", [laplace, bounded_range])
def test_the_inverse_is_a_formula(inverse, reach, delta):
    release = ac.Laplace(1.0, sensitivity=reach) if inverse is laplace else None
    found = (release or ac.ExponentialMechanism(reach)).epsilon_bounds(delta)
    with mp.workdps(800):
        truth = max(inverse(mpf(reach), mpf(delta)), mpf(0))
        assert found.lower <= truth <= found.upper <= reach
        if delta < 0.9 and truth > 0:
            assert found.width <= 1e-12 * (reach + 1.0)
