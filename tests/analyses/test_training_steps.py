"""Different steps asked about without their pairs: the answers are those of the pairs."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant.analyses import both_directions, mixed
from accountant.analyses.apart import SELDOM, without_parts_apart
from accountant.analyses.profile import Profile
from accountant.analyses.training_steps import TrainingSteps, _least_variation, training_steps
from accountant.composition.problems import problems_of

RELATIONS = ac.NeighbouringRelation
SCHEDULES = {
    "two kinds": [(1.0, 0.01, 100), (1.7, 0.02, 300)],
    "in no order": [(1.7, 0.02, 3), (1.0, 0.01, 2), (1.7, 0.01, 5), (0.6, 0.3, 1)],
    "different steps": [(1.0 + 0.01 * k, 0.01, 1) for k in range(200)],
    "hardly any loss": [(30.0, 1e-4, 5), (40.0, 1e-3, 2)],
    "hardly ever sampled": [(1.0, 1e-9, 5), (1.2, 2e-9, 2)],
}


def step(sigma, q, **options):
    return ac.PoissonSampled(ac.Gaussian(sigma, **options), q)


def composition(rows):
    return ac.Composition(tuple((step(s, q), n) for s, q, n in rows))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", SCHEDULES)
def test_answers_are_those_of_the_pairs_to_the_last_bit(name):
    whole = composition(SCHEDULES[name])
    quick, slow = training_steps(whole), Profile(problems_of(whole), whole)
    assert type(quick) is TrainingSteps
    assert quick.steps == both_directions._rows(slow.solvers()[0])[0]
    for delta in (0.0, 1e-12, 1e-5, 1e-4, 0.1, 0.9):
        both_directions._bracket.cache_clear()
        found = quick.epsilon_bounds(delta)
        both_directions._bracket.cache_clear()
        assert found == slow.epsilon_bounds(delta)
        assert quick.epsilon(delta) == slow.epsilon(delta) == whole.epsilon(delta)
    assert quick.delta_bounds(0.5) == slow.delta_bounds(0.5)
    assert quick.rdp(4.0) == slow.rdp(4.0)
    assert quick == training_steps(whole)
    assert hash(quick) == hash(training_steps(whole))
    deltas = np.array([1e-7, 1e-3])
    assert (whole.epsilon(deltas) == [whole.epsilon(1e-7), whole.epsilon(1e-3)]).all()


def test_a_question_about_epsilon_builds_no_pairs():
    profile = composition(SCHEDULES["different steps"]).profile()
    profile.epsilon(1e-5)
    assert "problems" not in vars(profile)
    profile.delta(1.0)
    assert len(profile.problems) == 2


def test_a_wide_bracket_is_left_to_the_pairs(monkeypatch):
    both_directions._bracket.cache_clear()
    monkeypatch.setattr(mixed, "epsilon_bounds", lambda *_: (0.0, math.inf))
    profile = composition(SCHEDULES["two kinds"]).profile()
    assert 0.0 < profile.epsilon_bounds(1e-5).upper < math.inf  # a grid's
    both_directions._bracket.cache_clear()


OTHERS = {
    "one mechanism": step(1.0, 0.01) * 5,
    "one step": step(1.0, 0.01),
    "a plain part": step(1.0, 0.01) + ac.Gaussian(3.0),
    "a step of all records": step(1.0, 0.01) + step(3.0, 1.0),
    "another sensitivity": step(1.0, 0.01) + step(1.0, 0.01, sensitivity=2.0),
    "no noise seen": step(1.0, 0.01) + step(math.inf, 0.01),
    "nothing sampled": step(1.0, 0.01) + step(1.0, 0.0),
    "another mechanism": step(1.0, 0.01) + ac.PoissonSampled(ac.Laplace(1.0), 0.01),
    "seldom seen": step(1.0, 0.01) + step(1.0, 1e-19),
    "seldom felt": step(1.0, 0.01) + step(1e18, 0.01),
    "replaced records": 2 * step(1.0, 0.01, relation=RELATIONS.REPLACE_ONE)
    + step(2.0, 0.01, relation=RELATIONS.REPLACE_ONE),
    "blanked records": 2 * step(1.0, 0.01, relation=RELATIONS.ZERO_OUT)
    + step(2.0, 0.01, relation=RELATIONS.ZERO_OUT),
}


@pytest.mark.parametrize("name", OTHERS)
def test_all_else_has_its_pairs(name):
    assert training_steps(OTHERS[name]) is None
    assert type(OTHERS[name].profile()) is Profile


@pytest.mark.parametrize("q", [1e-17, 0.01, 0.999])
@pytest.mark.parametrize("sigma", [1e-3, 0.3, 1.0, 1.0 + 2.0**-52, 7.0, 1e9])
def test_every_step_is_seen_more_often_than_is_said(q, sigma):
    least = _least_variation(mixed.Part(q, sigma, 1))
    pair = step(sigma, q).pairs()[0]
    assert least < q * math.erf(math.sqrt(0.125) / sigma) * (1.0 - 1e-12)
    assert least < pair.variation
    both = ((pair, 1), (step(1.0, 0.01).pairs()[0], 1))
    if least > SELDOM:
        assert without_parts_apart(both) == (both, (), ())
