"""The worst of several problems: how few of them are solved in full."""

import math

import pytest

import accountant as ac
from accountant.analyses import dispatch, profile
from accountant.analyses.pld.composed_law import ComposedLaw
from accountant.analyses.solver import Question, Solver
from accountant.bounds import Bounds


class Problem(Solver):
    """Knows its answer, a quick bound on it, and how often it was asked."""

    largest_loss = math.inf

    def __init__(self, answer, slack):
        super().__init__(())
        self.known, self.slack, self.asked = answer, slack, 0

    def answer(self, asked):
        self.asked += 1
        return Bounds(self.known * (1.0 - 1e-6) if asked.both else 0.0, self.known)

    def quick(self, asked):
        return self.known * (1.0 + self.slack)


@pytest.fixture
def worst(monkeypatch):
    monkeypatch.setattr(profile, "_solvers", tuple)
    return lambda problems, *, both=True: profile._worst(problems, Question("delta", 1.0, both))


def test_the_worst_of_many_problems_is_solved_first_and_most_others_are_not(worst):
    problems = [Problem(1.0 + i / 100.0, 1e-3) for i in range(30)]
    assert worst(problems).upper == 1.29
    assert sum(one.asked for one in problems) == 1


def test_a_quick_bound_that_decides_nothing_leaves_all_of_them(worst):
    problems = [Problem(1.0 + i / 100.0, 1.0) for i in (2, 0, 1)]
    assert worst(problems) == Bounds(1.02 * (1.0 - 1e-6), 1.02)
    assert [one.asked for one in problems] == [1, 1, 1]


def test_a_problem_below_the_upper_end_is_left_out_where_no_lower_end_is_asked_for(worst):
    problems = [Problem(1.0, 0.0), Problem(1.0 - 5e-7, 1e-7)]
    assert worst(problems).upper == 1.0
    assert [one.asked for one in problems] == [1, 1]
    problems = [Problem(1.0, 0.0), Problem(1.0 - 5e-7, 1e-7)]
    assert worst(problems, both=False).upper == 1.0
    assert [one.asked for one in problems] == [1, 0]


SHUFFLED = 3 * ac.ShuffleModel(ac.RandomizedResponse(1.0, k=4), dataset_size=1000)


@pytest.mark.long
def test_no_lower_end_is_computed_that_another_problem_replaces(monkeypatch):
    dispatch._remembered.cache_clear()
    whole, asked, answer = SHUFFLED.profile(), [], Solver.answer

    def noted(self, question):
        asked.append((self, question))
        return answer(self, question)

    monkeypatch.setattr(Solver, "answer", noted)
    found = SHUFFLED.epsilon_bounds(1e-6)
    assert 0.0 < found.lower < found.upper == SHUFFLED.epsilon(1e-6)
    above = [question for one, question in asked if one in whole.solvers()]
    assert above
    assert not any(question.both for question in above)


@pytest.mark.long
def test_an_upper_end_alone_is_as_near_as_that_of_a_bracket():
    whole = SHUFFLED.profile()
    both = profile.Profile(whole.problems)
    for delta in (1e-3, 1e-6, 1e-9):
        known = both.epsilon_bounds(delta)
        assert known.lower < whole.epsilon(delta) <= known.upper * (1.0 + 1e-6)
    for epsilon in (0.01, 0.1, 0.5):
        known = both.delta_bounds(epsilon)
        assert known.lower < whole.delta(epsilon) <= known.upper * (1.0 + 1e-4)


@pytest.mark.parametrize(
    "release",
    [
        10 * ac.Laplace(5.0) + 3 * ac.DiscreteGaussian(4.0),
        20 * ac.PureDP(0.3) + ac.PoissonSampled(ac.RandomizedResponse(1.0), 0.1),
        ac.Laplace(2.0) + ac.ApproximateDP(0.0, delta=1e-9),
    ],
    ids=repr,
)
def test_an_upper_end_asks_for_no_lower_one(monkeypatch, release):
    def refused(self):
        raise AssertionError("a lower law was composed")

    monkeypatch.setattr(ComposedLaw, "_lower", property(refused))
    dispatch._remembered.cache_clear()
    epsilon, delta = release.epsilon(1e-6), release.delta(1.0)
    monkeypatch.undo()
    dispatch._remembered.cache_clear()
    for upper, known in (
        (epsilon, release.epsilon_bounds(1e-6)),
        (delta, release.delta_bounds(1.0)),
    ):
        assert known.upper * (1.0 - 1e-5) <= upper <= known.upper * (1.0 + 1e-5)
        assert upper >= known.lower
