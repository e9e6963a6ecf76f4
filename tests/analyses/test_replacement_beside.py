"""Steps whose game is played, beside other releases: as narrow as alone, and never below data."""

import math

import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.analyses.replacement_beside import BesideGame
from accountant.sampling import FixedSizeSampled, WithReplacementSampled
from support.oracle.replacement_steps import last_step, two_steps

REPLACE = Relation.REPLACE_ONE
STEP = FixedSizeSampled(2.0, batch_size=5, dataset_size=100)


def response(bound):
    return ac.RandomizedResponse(bound, relation=REPLACE)


@pytest.mark.long
@pytest.mark.parametrize(("q", "sigma", "epsilon", "bound"), [(0.05, 1.0, 0.9, 0.3)])
def test_two_steps_and_a_response_are_above_what_data_reach(q, sigma, epsilon, bound):
    """Data may be chosen after the response, so both of its outcomes have their own best."""
    step = FixedSizeSampled(sigma, batch_size=round(q * 1000), dataset_size=1000)
    found = (2 * step + response(bound)).delta_bounds(epsilon)
    triples = ((2.0, 0.0, 0.0), (1.0, -1.0, 0.0))
    yes = math.exp(bound) / (1.0 + math.exp(bound))
    reached = math.fsum(
        weight * max(two_steps(q, 1.0 / sigma, at, each) for each in triples)
        for weight, at in ((yes, epsilon - bound), (1.0 - yes, epsilon + bound))
    )
    assert found.upper >= reached * (1.0 - 1e-9)
    assert found.upper <= 1.08 * reached
    assert found.lower <= reached * (1.0 + 1e-6)


def test_one_step_and_a_response_are_exact():
    """The oracle of one step: its profile is attained at every ε, whichever release is first."""
    step = FixedSizeSampled(1.0, batch_size=50, dataset_size=1000)
    found = (step + response(0.3)).delta_bounds(0.9)
    yes = math.exp(0.3) / (1.0 + math.exp(0.3))
    reached = yes * last_step(0.05, 2.0, 0.6) + (1.0 - yes) * last_step(0.05, 2.0, 1.2)
    assert found.lower <= reached * (1.0 + 1e-9)
    assert reached <= found.upper * (1.0 + 1e-9)


OTHERS = [
    3 * ac.PureDP(0.8, relation=REPLACE),
    1 * ac.Gaussian(1e6, relation=REPLACE),
    1 * ac.ZCDP(0.01, relation=REPLACE),
]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("delta", [1e-14, 0.3])
def test_brackets_hold_each_other_and_basic_composition(other, delta):
    steps = 100 * STEP
    found = (steps + other).epsilon_bounds(delta)
    assert found.lower <= found.upper
    assert found.upper >= steps.epsilon_bounds(delta).lower
    assert found.upper >= other.epsilon_bounds(delta).lower
    most = steps.epsilon(delta / 2) + other.epsilon(delta / 2)
    assert found.upper <= most * (1.0 + 1e-4)


@pytest.mark.long
def test_as_narrow_as_alone():
    """The pair of Theorem S6 gave 16.622 and 28.799, and lower ends above what data reach."""
    for other, most in (
        (3 * ac.PureDP(0.8, relation=REPLACE), 14.2605),
        (20 * ac.Laplace(2.0, relation=REPLACE), 26.752),
    ):
        whole = 1000 * STEP + other
        found = whole.epsilon_bounds(1e-6)
        assert found.upper <= most
        assert found.upper <= 1.014 * found.lower
        assert whole.delta_bounds(found.lower).upper >= 1e-6
        assert whole.delta_bounds(found.upper).lower <= 1e-6
        assert isinstance(whole.profile().solvers()[0], BesideGame)


@pytest.mark.long
def test_a_game_is_played_where_other_data_sets_give_the_lower_end():
    """The pair of Theorem S6 gives δ = 1.48e-6."""
    shuffled = ac.ShuffleModel(ac.RandomizedResponse(0.5, k=4), dataset_size=1000)
    whole = (1000 * STEP + 3 * ac.PureDP(0.8, relation=REPLACE) + shuffled).profile()
    assert whole.below is not None
    assert whole.delta(14.0) <= 1.466e-6


@pytest.mark.long
def test_two_kinds_of_steps():
    """One kind is played, the other has its pair: less than both apart."""
    repeated = WithReplacementSampled(1.0, batch_size=5, dataset_size=1000, relation=REPLACE)
    whole = 30 * STEP + 10 * repeated
    found = whole.epsilon_bounds(1e-6)
    apart = [30 * STEP, 10 * repeated]
    assert max(each.epsilon_bounds(1e-6).lower for each in apart) <= found.upper
    assert found.lower <= found.upper <= sum(each.epsilon(3e-7) for each in apart)
    accounts = [part.account for part in whole.explain(1e-6).contributions]
    assert any("adversary" in each for each in accounts)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 30.0, 700.0])
def test_ends_of_the_range(epsilon):
    found = (1000 * STEP + response(0.5)).delta_bounds(epsilon)
    assert 0.0 <= found.lower <= found.upper <= 1.0
    assert (1000 * STEP + response(0.5)).epsilon_bounds(0.0).upper == math.inf
