"""Steps of the game that are left out: never below the steps that are played, and hardly above."""

import math

import numpy as np
import pytest

from accountant.analyses import replacement_game, replacement_leaps
from accountant.analyses.replacement_game import play
from accountant.analyses.replacement_round import Plan, Step
from accountant.sampling.replacement_laws import Fineness, laws_above
from accountant.sampling.replacement_laws import Step as Sampled

# The probability of a draw, the contribution in deviations of the noise, the window and its tilt.
GAMES = [
    (0.01, 0.5, 500, Plan(-0.8, 0.012, 600, 1.4)),
    (0.03, 0.25, 300, Plan(-0.5, 0.008, 600, 2.0)),
    (0.004, 1.0, 200, Plan(-1.0, 0.02, 500, 0.6)),
]


def laws_of(q, unit, plan):
    return laws_above(Sampled(q, unit), plan.spacing, plan.size - 1, Fineness.ROUGH)


def exact_step(laws, value, plan):
    """Return the largest sum of masses times values, each sum by itself, without a transform."""
    size, below = plan.size, math.ceil(0.15 * plan.size)
    beyond = plan.spacing * np.arange(-(size - 1), 0)
    chord = 1.0 - np.exp(beyond) * (1.0 - value[0])
    whole = np.concatenate([chord, value, np.full(below, value[-1])])
    found = np.zeros(size)
    for law in laws:
        masses = law.masses[size - 1 - below :].copy()
        masses[0] += law.masses[: size - 1 - below].sum()
        # ε - loss, from the largest loss down to the least that is kept.
        sums = [masses[::-1] @ whole[k : k + masses.size] for k in range(size)]
        found = np.maximum(found, sums)
    return found + max(law.infinite for law in laws)


@pytest.mark.long
@pytest.mark.parametrize(("q", "unit", "count", "plan"), GAMES)
def test_leaps_are_never_below_sums_without_transforms(q, unit, count, plan):
    laws = laws_of(q, unit, plan)
    epsilon = plan.low + plan.spacing * np.arange(plan.size)
    value = np.maximum(-np.expm1(epsilon), 0.0)
    for _ in range(40):
        value = np.minimum(exact_step(laws, value, plan), 1.0)
    for missed in (0.0, 0.1, 10.0):
        # Below what doubles lose in forty sums there is nothing to compare.
        assert (play(laws, 40, plan, missed).delta >= value * (1.0 - 1e-12)).all()


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("q", "unit", "count", "plan"), GAMES)
def test_leaps_are_taken_and_cost_little(q, unit, count, plan, monkeypatch):
    laws, played = laws_of(q, unit, plan), []
    real = Step.choices
    monkeypatch.setattr(Step, "choices", lambda self, v: (played.append(1), real(self, v))[1])
    plain = play(laws, count, plan)
    assert len(played) == count
    quick = play(laws, count, plan, 1e-2)
    assert len(played) < 1.9 * count
    assert (quick.delta >= plain.delta * (1.0 - 1e-11)).all()
    weight = np.exp(plan.tilt * (plain.epsilon - plan.low))
    added = (quick.delta - plain.delta) * weight
    assert added.max() <= 2e-2 * float((plain.delta * weight).max())


def test_what_is_not_continued_counts(monkeypatch):
    """Without it a value after many leaps is below the one that was played."""
    q, unit, count, plan = GAMES[0]
    laws = laws_of(q, unit, plan)
    plain = play(laws, count, plan).delta
    best = Step.best
    monkeypatch.setattr(Step, "best", lambda self, made, error: best(self, made, min(error, 1e-14)))
    assert (play(laws, count, plan, 1e9).delta < plain * (1.0 - 1e-9)).any()


def test_weights_continue_polynomials():
    shares = replacement_leaps._shares((0, -4, -9))
    numbers = np.array([0.0, -4.0, -9.0])
    for row, at in zip(shares, (1.0, 2.0, 3.0), strict=True):
        for power in (0, 1, 2):
            assert row @ numbers**power == pytest.approx(at**power, rel=1e-13)
    assert len(shares) + 1 == replacement_game.STRIDE


def test_a_tilt_below_zero_is_played_step_by_step():
    q, unit, _, plan = GAMES[0]
    laws = laws_of(q, unit, plan)
    down = plan._replace(tilt=-0.1)
    assert (play(laws, 50, down, 10.0).delta == play(laws, 50, down).delta).all()
