"""The worst of several problems: how few are solved in full; both directions at once."""

import math

import pytest

import accountant as ac
from accountant.analyses import dispatch, mixed, profile
from accountant.analyses.dispatch import solver
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


SCHEDULES = {
    "two kinds": [(1.0, 0.01, 100), (1.7, 0.02, 300)],
    "with a plain part": [(1.0, 0.01, 500), (20.0, 1.0, 3), (2.5, 0.3, 4)],
    "different steps": [(1.0 + 0.01 * k, 0.01, 1) for k in range(200)],
    "hardly any loss": [(30.0, 1e-4, 5), (40.0, 1e-3, 2)],
}


def composition(rows):
    return ac.Composition(tuple((ac.PoissonSampled(ac.Gaussian(s), q), n) for s, q, n in rows))


@pytest.mark.long(keep=9)
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_bracket_is_that_of_the_worse_direction(name, delta):
    rows = [mixed.Part(q, s, n) for s, q, n in SCHEDULES[name]]
    found = composition(SCHEDULES[name]).epsilon_bounds(delta)
    each = [mixed.epsilon_bounds(rows, delta, way) for way in (mixed.REMOVE, mixed.ADD)]
    assert found.lower <= max(upper for _, upper in each)
    assert found.upper >= max(lower for lower, _ in each)
    assert found.upper <= (1.0 + 1e-9) * max(upper for _, upper in each)


def solvers(rows):
    one = composition(rows)
    return [solver(parts) for parts in one.profile().problems]


def test_one_line_serves_both_directions(monkeypatch):
    profile._both.cache_clear()
    asked = []

    def bracket(kind, rows, delta, direction):
        asked.append(direction)
        return 1.0, 1.0

    monkeypatch.setattr(mixed, "bracket", bracket)
    found = solvers(SCHEDULES["two kinds"])
    assert profile.both_directions(found, 1e-5) == ac.Bounds(1.0, 1.0)
    assert profile.both_directions(found, 1e-5) == ac.Bounds(1.0, 1.0)
    assert asked == [mixed.EITHER], "the add direction may cost more"
    profile._both.cache_clear()


def test_other_questions_are_asked_one_by_one(monkeypatch):
    profile._both.cache_clear()
    found = solvers(SCHEDULES["two kinds"])
    assert profile.both_directions(found, 0.0) is None
    assert profile.both_directions(found, 0.999) is None, "0 by the total variation"
    assert profile.both_directions(found[:1], 1e-5) is None
    assert profile.both_directions([found[1], found[1]], 1e-5) is None, "one direction"
    other = solvers(SCHEDULES["with a plain part"])
    assert profile.both_directions([found[0], other[1]], 1e-5) is None
    assert profile.both_directions(solvers([(1.0, 0.01, 100)]), 1e-5) is None
    monkeypatch.setattr(mixed, "epsilon_bounds", lambda *_: (0.0, math.inf))
    assert profile.both_directions(found, 1e-5) is None, "the grid may be narrower"
    profile._both.cache_clear()
