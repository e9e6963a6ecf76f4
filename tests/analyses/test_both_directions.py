"""Different Gaussian releases in both directions at once: what each direction has on its own."""

import math

import pytest

import accountant as ac
from accountant.analyses import mixed, profile
from accountant.analyses.dispatch import solver

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
