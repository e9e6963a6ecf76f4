"""The search ends on neighbours, however the cost behaves, and in few evaluations."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.search import COUNTS, DOUBLES, bisect, boundary, crossing, narrow
from support.strategies import log_uniform

LARGEST = DOUBLES.rank(1.7976931348623157e308)


def solve(cost, target, guess=1.0, cheap=LARGEST, dear=1, grid=DOUBLES):
    """Return the answer and the number of evaluations."""
    visits = []

    def counted(value):
        visits.append(value)
        return cost(value)

    return boundary(counted, target, grid, guess, cheap, dear), len(visits)


@given(st.floats(min_value=0.0, allow_nan=False, allow_infinity=False))
def test_ranks_order_the_doubles(value):
    rank = DOUBLES.rank(value)
    assert DOUBLES.value(rank) == value
    assert DOUBLES.value(rank + 1) == math.nextafter(value, math.inf)


@given(
    target=log_uniform(1e-4, 1e3),
    guess=log_uniform(1e-12, 1e12),
    power=st.floats(0.3, 3.0),
    bend=st.floats(0.0, 2.0),
)
def test_smooth_costs(target, guess, power, bend):
    def cost(x):
        return math.exp(min(-power * math.log(x) + bend / (1.0 + x), 700.0))

    rank, evaluations = solve(cost, target, guess)
    assert cost(DOUBLES.value(rank)) <= target < cost(DOUBLES.value(rank - 1))
    assert evaluations <= 30


@given(seed=st.integers(0, 10**6), noise=st.sampled_from([1e-15, 1e-13, 1e-10, 1e-2]))
def test_wiggling_costs_still_end_on_neighbours(seed, noise):
    def cost(x):
        return (1.0 + noise * random.Random(repr((x, seed))).random()) / x

    rank, evaluations = solve(cost, 2.5)
    assert cost(DOUBLES.value(rank)) <= 2.5 < cost(DOUBLES.value(rank - 1))
    assert evaluations <= 90


def test_a_good_guess_makes_it_cheap():
    total = 0
    for k in range(100):
        target = 10.0 ** (-4 + 0.07 * k)
        guess = 1.2 / target
        total += solve(lambda x: 1.0 / x + 0.01 / x**2, target, guess)[1]
    assert total <= 1400


@pytest.mark.parametrize(
    "cost",
    [
        lambda x: 10.0 if x < 3.7 else 0.0,
        lambda x: math.inf if x < 3.7 else 0.5,
        lambda x: math.nan if x < 3.7 else 1.0,
        lambda x: math.inf if x < 3.7 else 0.0,
        lambda x: 1.0 if x >= 3.7 else 1.0 + 2**-52,
    ],
)
def test_steps_and_infinities(cost):
    for guess in (1e-300, 1.0, 3.7, 1e300):
        rank, evaluations = solve(cost, 1.0, guess)
        assert DOUBLES.value(rank) == 3.7
        assert evaluations <= 150


def test_the_ends_of_the_grid():
    assert solve(lambda x: 2.0, 1.0)[0] is None
    assert solve(lambda x: 0.5, 1.0)[0] == 1
    assert solve(lambda n: n, 0.5, cheap=1, dear=2**53, grid=COUNTS)[0] is None
    assert solve(lambda n: 0.0, 0.5, cheap=1, dear=2**53, grid=COUNTS)[0] == 2**53


@given(answer=st.one_of(st.integers(1, 100), st.integers(1, 2**53 - 1)), guess=log_uniform(1, 9e15))
def test_counts(answer, guess):
    rank, evaluations = solve(
        lambda n: math.sqrt(n), math.sqrt(answer), guess, cheap=1, dear=2**53, grid=COUNTS
    )
    assert math.sqrt(rank) <= math.sqrt(answer) < math.sqrt(rank + 1)
    assert evaluations <= 60


@pytest.mark.parametrize("guess", [5e-324, 1e-3, 2.0, 2.5, 1e300])
@pytest.mark.parametrize("answer", [1e-300, 0.3, 2.0, 1e200])
@pytest.mark.parametrize("grows", [True, False])
def test_a_step_is_found_from_both_sides(guess, answer, grows):
    def cost(x):
        return 1.0 if (x <= answer) == grows else math.nextafter(1.0, 2.0)

    cheap, dear = (1, LARGEST) if grows else (LARGEST, 1)
    rank = boundary(cost, 1.0, DOUBLES, guess, cheap, dear)
    best = answer if grows else math.nextafter(answer, math.inf)
    assert DOUBLES.value(rank) == best


@pytest.mark.parametrize("target", [5e-324, 1e-300, 1.0, 1.7e308])
def test_a_target_is_met_exactly_or_not_at_all(target):
    dearer = math.nextafter(target, math.inf)
    for wrong in (dearer, math.nan, math.inf):
        rank = boundary(lambda n: target if n <= 5 else wrong, target, COUNTS, 3.0, 1, 2**53)  # noqa: B023
        assert rank == 5
        assert boundary(lambda _: wrong, target, COUNTS, 3.0, 1, 2**53) is None  # noqa: B023
    assert boundary(lambda _: target, target, COUNTS, 3.0, 1, 2**53) == 2**53


def test_neighbours_and_ends():
    for most in (1, 2, 3, 2**53 - 1):
        for guess in (1.0, 2.0, 3.0, 9e15):
            found = boundary(lambda n: n, float(most), COUNTS, guess, 1, 2**53)
            assert found == most
    for end in (1, 2):
        assert boundary(lambda _: 0.0, 1.0, COUNTS, 1.0, 1, end) == end
        assert boundary(lambda _: 2.0, 1.0, COUNTS, 1.0, 1, end) is None


def test_what_a_cost_raises_ends_the_search():
    def raises(value):
        raise ZeroDivisionError(value)

    with pytest.raises(ZeroDivisionError):
        boundary(raises, 1.0, DOUBLES, 1.0, 1, LARGEST)
    with pytest.raises(ZeroDivisionError):
        crossing(raises, 1.0, COUNTS, 1.0, (0, 2**53), True)
    with pytest.raises(TypeError):
        boundary(lambda _: "dear", 1.0, DOUBLES, 1.0, 1, LARGEST)


@given(good=st.integers(-(2**60), 2**60), bad=st.integers(-(2**60), 2**60), share=st.floats(0, 1))
def test_bisection_ends_beside_an_integer_that_does_not_hold(good, bad, share):
    edge = good + round(share * (bad - good))
    calls = []

    def holds(n):
        calls.append(n)
        return abs(n - good) <= abs(edge - good)

    found = bisect(holds, good, bad)
    assert len(calls) <= 62
    if good != bad:
        last = edge if edge != bad else bad + (1 if good > bad else -1)
        assert found == last
        beside = found + (1 if bad > good else -1)
        assert beside == bad or beside in calls
    assert good not in calls
    assert bad not in calls


def test_an_interval_is_halved():
    assert narrow(lambda x: x <= 1.0, 0.0, 8.0, 3) == (1.0, 2.0)
    assert narrow(lambda x: x >= 1.5, 8.0, 0.0, 50, width=0.5) == (1.5, 1.0)
    assert narrow(lambda x: x <= 2.0, 1.0, 16.0, 2, geometric=True) == (2.0, 4.0)
    assert narrow(lambda x: x < 0.7, 0.7, 0.7, 5) == (0.7, 0.7)


@given(
    answer=log_uniform(1e-100, 1e100),
    guess=log_uniform(1e-100, 1e100),
    power=st.floats(0.3, 3.0),
    falls=st.booleans(),
    expected=st.booleans(),
)
def test_the_crossing_is_found_whether_the_cost_rises_or_falls(
    answer, guess, power, falls, expected
):
    def cost(x):
        ratio = (math.log(answer) - math.log(x)) * (power if falls else -power)
        return math.exp(max(min(ratio, 700.0), -700.0))

    calls = []

    def counted(x):
        calls.append(x)
        return cost(x)

    rank = crossing(counted, 1.0, DOUBLES, guess, (1, LARGEST), expected)
    cheap, dear = DOUBLES.value(rank), DOUBLES.value(rank - 1 if falls else rank + 1)
    assert cost(cheap) <= 1.0 < cost(dear)
    assert {cheap, dear} <= set(calls)
    assert len(calls) <= 60
