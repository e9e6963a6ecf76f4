"""Brackets of one truth never contradict each other, wherever they come from."""

import math

import pytest

import accountant as ac
from accountant._core import answers as core
from support.oracle_checks import contradictions, random_problems

SEED = 20


def explain(found):
    return "\n".join(f"{what}: {problem}" for what, problem in found)


@pytest.mark.long
def test_brackets_never_contradict_each_other():
    found = list(contradictions(core, random_problems(SEED, 400)))
    assert not found, explain(found)


@pytest.mark.slow
def test_brackets_never_contradict_each_other_at_length():
    found = list(contradictions(core, random_problems(SEED + 1, 10_000)))
    assert not found, explain(found)


# Rounding the order 1 + b while e^{-b ε} kept b unrounded once made brackets cross here: ε is huge
# beside 1/b, so that an ulp of 1 + b moves b ε by more than the bracket's width.
@pytest.mark.long(keep=31)
@pytest.mark.parametrize("steps", [1e8, 1e9, 1e10, 1e11, 1e12])
@pytest.mark.parametrize("q", [1e-4, 1e-2, 0.5])
@pytest.mark.parametrize("sigma", [0.5, 3.0, 50.0])
def test_large_epsilons(q, sigma, steps):
    problems = [(q, sigma, steps, delta) for delta in (1e-30, 1e-10, 0.1, 0.5, 0.9)]
    found = list(contradictions(core, problems))
    assert not found, explain(found)


@pytest.mark.parametrize("steps", [1.0, 7.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("sigma", [0.3, 2.0, 80.0])
@pytest.mark.parametrize("delta", [1e-25, 1e-5, 0.3])
def test_almost_sure_sampling_approaches_full_batch(sigma, steps, delta):
    """δ_q <= δ_1 <= δ_q + (1 - q^n).

    The second by conditioning on having been in every batch: P_q^n(A) >= q^n P_1^n(A).
    """
    q = 1.0 - 1e-12
    near = core.epsilon_bounds(q, sigma, steps, delta, core.EITHER)
    full = core.epsilon_bounds(1.0, sigma, steps, delta, core.EITHER)
    assert near[0] <= full[1]
    missed = -math.expm1(steps * math.log1p(-1e-12)) * (1.0 + 1e-9)
    above = (delta + missed) * (1.0 + 1e-9)
    if above < 1.0:
        assert core.epsilon_bounds(1.0, sigma, steps, above, core.EITHER)[0] <= near[1]


def test_no_analysis_undercuts_another():
    """exact <= Rényi conversion, and one order's Rényi bracket is ordered."""
    for q, sigma, steps, delta in random_problems(SEED + 2, 300):
        lower, _ = core.epsilon_bounds(q, sigma, steps, delta, core.EITHER)
        renyi, order = core.epsilon_renyi_upper(q, sigma, steps, delta)
        assert lower <= renyi, (q, sigma, steps, delta)
        if 1.0 < order < math.inf:
            low, high = core.renyi_bounds(q, sigma, order, core.EITHER)
            assert 0.0 <= low <= high, (q, sigma, order)


def test_brackets_at_neighbouring_arguments_overlap():
    """Monotone in each argument: a bracket at an easier neighbour never lies above."""
    for q, sigma, steps, delta in random_problems(SEED + 3, 200):
        here = core.epsilon_bounds(q, sigma, steps, delta, core.EITHER)
        easier = [
            (math.nextafter(q, 0.0), sigma, steps, delta),
            (q, math.nextafter(sigma, math.inf), steps, delta),
            (q, sigma, steps - 1.0, delta),
            (q, sigma, steps, math.nextafter(delta, 1.0)),
        ]
        for neighbour in easier:
            found = core.epsilon_bounds(*neighbour, core.EITHER)
            assert found[0] <= here[1], (neighbour, found, here)


def test_tiny_noise_returns_at_once():
    """The Rényi sum gives up on noise far below the sensitivity instead of bisecting for ever."""
    sigma = 1.1e-16
    assert ac.get_rdp(2.2e-4, sigma, 1, 2508.2) > 0.0
    assert ac.get_epsilon(2.2e-4, sigma, 10, 1e-9, method="rdp") > 0.0
