"""Many questions about one kind of step: lines that answer for other steps and other deltas."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant._core import answers as core
from support.oracle_checks import PROFILE, deltas_around, problem

# The oracle's problems, but not those that one question alone takes milliseconds for.
ROWS = [
    row
    for row in PROFILE
    if row["steps"] > 1 and row["q"] <= 0.999 and row["steps"] * row["q"] > 3.0
]


def fill(q, sigma, steps, delta):
    """Ask one native loop about one kind of step."""
    steps, delta = (np.ascontiguousarray(a, dtype=float) for a in np.broadcast_arrays(steps, delta))
    lower, upper = np.empty(steps.size), np.empty(steps.size)
    statuses = np.empty(steps.size, dtype=np.intc)
    each = np.full(steps.size, q), np.full(steps.size, sigma)
    core.fill_shared_epsilon_bounds(*each, steps, delta, lower, upper, statuses)
    core.check_statuses(statuses)
    return lower, upper


def alone(q, sigma, steps, delta, direction=core.EITHER):
    return core.epsilon_bounds(q, sigma, float(steps), float(delta), direction)


def contradicts(row, lower, upper, below, above):
    """Whether ε just below the profile's δ is too small, or just above it too large.

    lower and upper are the ends of ε(above) and ε(below) of the larger direction, so the lower one
    may exceed the row's where the other direction is the larger.
    """
    if below > 0.0 and not upper >= row["epsilon"]:
        return True
    other = core.ADD if row["direction"] == "remove" else core.REMOVE
    return above < 1.0 and not (
        lower <= row["epsilon"] or lower <= alone(*problem(row), above, other)[1]
    )


def wrong_among_deltas(rows):
    """At, around and far from where the line was put: the truth's δ is asked among others."""
    for row in rows:
        below, above = deltas_around(row)
        if not 1e-200 < below < above < 1.0:
            continue
        others = above ** np.array([1.3, 1.1, 1.03, 0.9, 0.8, 0.7])
        delta = np.sort([below, above, *others])
        lower, upper = fill(*problem(row)[:2], row["steps"], delta)
        at_below, at_above = delta.searchsorted(below), delta.searchsorted(above)
        if contradicts(row, lower[at_above], upper[at_below], below, above):
            yield row


def wrong_among_steps(rows):
    """The same among other numbers of steps."""
    for row in rows:
        below, above = deltas_around(row)
        if not 1e-200 < below < above < 1.0:
            continue
        n = row["steps"]
        steps = np.unique([n, *(math.ceil(n * k) for k in (0.7, 0.8, 0.9, 1.1, 1.3, 1.5, 1.7))])
        at = steps.searchsorted(n)
        upper = fill(*problem(row)[:2], steps, below)[1][at]
        lower = fill(*problem(row)[:2], steps, above)[0][at]
        if contradicts(row, lower, upper, below, above):
            yield row


def wrong_among_close_deltas(rows):
    """The same among deltas so close that one answer leads to the next."""
    for row in rows:
        below, above = deltas_around(row)
        if not 1e-200 < below < above < 1.0:
            continue
        n = row["steps"]
        for apart in (1e-4, 0.03):
            delta = above * np.exp(-apart * np.arange(5.0)[::-1])
            lower, _ = fill(*problem(row)[:2], n, delta)
            if contradicts(row, lower[-1], math.inf, below, above):
                yield row


def wrong_after_fewer_steps(rows):
    """The same after fewer steps that cost a little more at a smaller delta."""
    for row in rows:
        below, above = deltas_around(row)
        fewer, epsilon = math.floor(0.9 * row["steps"]), row["epsilon"] * 1.0001
        if row["direction"] != "remove" or not 1e-200 < below < above < 1.0 or fewer < 2:
            continue
        known = core.delta_bounds(*problem(row)[:2], float(fewer), epsilon, core.REMOVE)[1]
        if not 1e-200 < known < above:
            continue
        delta = [*(known * np.exp(0.1 * np.arange(-4.0, 1.0))), above]
        lower, _ = fill(*problem(row)[:2], [fewer] * 5 + [row["steps"]], delta)
        if contradicts(row, lower[-1], math.inf, below, above):
            yield row


WRONG = [wrong_among_deltas, wrong_among_close_deltas, wrong_among_steps, wrong_after_fewer_steps]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("wrong", WRONG)
def test_epsilons_among_others_enclose_the_truth(wrong):
    assert not list(wrong(ROWS[::6]))


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
def test_all_epsilons_among_others_enclose_the_truth(wrong):
    assert not list(wrong(ROWS))


CURVES = [
    (0.01, 1.0, np.arange(1, 41) * 60, 1e-5),
    (0.01, 1.0, 1000, np.logspace(-14, -0.3, 60)),
    (0.3, 3.0, np.arange(2, 60), 1e-6),
    (1e-3, 0.6, np.arange(1, 30) * 5000, 1e-7),
    (0.9, 8.0, 500, np.logspace(-100, -1, 40)),
    (1e-4, 0.8, np.arange(1, 41) * 30, 1e-5),  # few of these have lines
    (1e-5, 2.0, np.array([10**8, 10**9, 10**9 + 1, 10**9 + 2, 1.1e9, 1.2e9]), 1e-9),
    (0.05, 30.0, 10**5, np.linspace(0.001, 0.9, 50)),
]


@pytest.mark.parametrize(("q", "sigma", "steps", "delta"), CURVES)
def test_brackets_agree_with_single_questions_and_are_as_narrow(q, sigma, steps, delta):
    steps, delta = np.broadcast_arrays(steps, delta)
    lower, upper = fill(q, sigma, steps, delta)
    shared = 0
    for low, high, n, d in zip(lower, upper, steps, delta, strict=True):
        alone_low, alone_high = alone(q, sigma, n, d)
        assert low <= alone_high
        assert alone_low <= high
        assert high - low <= max(2e-10 * high, 1.01 * (alone_high - alone_low), 1e-13)
        shared += (low, high) != (alone_low, alone_high) or high == 0.0
    assert shared > 0.6 * len(lower)  # the lines were used


def test_degenerate_questions_among_others():
    q = np.array([0.0, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 1.0, 1e-300, 0.9999])
    sigma = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, math.inf, 1.0, 1.0, 0.3])
    steps = np.array([10, 0, 1, 900, 1000, 1100, 10, 5, 10**9, 7])
    for delta in (1e-300, 1e-5, 0.9):
        found = ac.epsilon_bounds(q, sigma, steps, delta)
        for index in range(q.size):
            one = ac.epsilon_bounds(q[index], sigma[index], int(steps[index]), delta)
            assert found.lower[index] <= one.upper
            assert one.lower <= found.upper[index]


def test_order_and_threads_change_nothing():
    rng = np.random.default_rng(3)
    steps = rng.integers(100, 20_000, 300)
    sigma = rng.choice([1.0, 1.5, 4.0], 300)
    delta = 10.0 ** rng.uniform(-12, -1, 300)
    found = ac.epsilon_bounds(0.01, sigma, steps, delta)
    shuffle = rng.permutation(300)
    again = ac.epsilon_bounds(0.01, sigma[shuffle], steps[shuffle], delta[shuffle], workers=3)
    assert np.array_equal(found.lower[shuffle], again.lower)
    assert np.array_equal(found.upper[shuffle], again.upper)


def test_more_steps_cost_more_and_larger_deltas_less():
    upper = ac.get_epsilon(0.02, 1.2, np.arange(500, 1500), 1e-6)
    assert (np.diff(upper) > 0.0).all()
    upper = ac.get_epsilon(0.02, 1.2, 1000, np.logspace(-12, -0.8, 300))
    assert (np.diff(upper) < 0.0).all()


def test_close_deltas_have_brackets_as_narrow_as_those_of_single_questions():
    delta = np.logspace(-9.0, -3.0, 400)
    lower, upper = fill(0.01, 1.0, 1000, delta)
    assert np.all(np.diff(lower) < 0.0)
    assert np.all(upper - lower <= 1.6e-10 * upper)
    for i in range(0, 400, 40):
        low, high = alone(0.01, 1.0, 1000, delta[i])
        assert lower[i] <= high
        assert low <= upper[i]
