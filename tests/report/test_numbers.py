"""Numbers of a statement are the upper ends of their brackets, also where those are wide."""

import random

import mpmath
import pytest

import accountant as ac
from accountant.report import Deployment, numbers, statement
from accountant.report.numbers import SampledProfile

WIDE = [100 * ac.ZCDP(0.001), 3 * ac.BestOfRuns(ac.Laplace(3.0), 0.5)]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("run", WIDE, ids=["Rényi", "a search"])
def test_upper_ends_are_told(run):
    ledger = ac.Accountant()
    ledger.compose(run)
    told = statement(ledger, 1e-5, deployment=Deployment(user_records=3), certificate=False)
    assert told.headline.epsilon >= ledger.epsilon(1e-5) * (1 - 1e-12)
    person = ac.Composition(ledger.counts).group(3).epsilon_bounds(1e-5)
    assert told.user.epsilon == float(person.upper) > float(person.lower)
    for row in told.table:
        assert row.epsilon >= ledger.epsilon(row.delta) * (1 - 1e-9)


def test_a_bracket_bounds_the_profile_from_above_and_from_below():
    """ε(δ) below the upper end is no bound on δ, and above it δ is one."""
    found = numbers._points_of(numbers.Row(1e-5, 2.0, 1.5))
    assert [(point.epsilon, point.lower, point.upper) for point in found] == [
        (2.0, 0.0, 1e-5),
        (1.5, 1e-5, 1.0),
    ]
    assert numbers._points_of(numbers.Row(1e-5, float("inf"), 0.0)) == []


# Bounds between points of a profile, against chords in fifty digits: no tolerance below them


def chord(points, epsilon):
    """Return the least chord bound at ε, of points that do not increase, in the mpmath's digits."""
    epsilon = mpmath.mpf(epsilon)
    ends = sorted({0.0: 1.0, **points}.items())
    if epsilon >= ends[-1][0]:
        return mpmath.mpf(ends[-1][1])
    k = max(i for i, (at, _) in enumerate(ends) if at <= epsilon)
    (a, high), (b, low) = (map(mpmath.mpf, end) for end in ends[k : k + 2])
    weight = mpmath.expm1(epsilon - a) / mpmath.expm1(b - a)
    return high - weight * (high - low)


@pytest.mark.parametrize("seed", range(30))
def test_no_bound_is_below_the_chord(seed):
    rng = random.Random(seed)
    places = sorted(rng.uniform(0.0, rng.choice([1e-6, 1.0, 30.0])) for _ in range(4))
    values = sorted((10 ** rng.uniform(-14, 0) for _ in range(4)), reverse=True)
    points = dict(zip(places, values, strict=True))
    profile = SampledProfile(points.items())
    with mpmath.workdps(50):
        for _ in range(200):
            epsilon = rng.uniform(0.0, 1.1 * places[-1])
            truth = chord(points, epsilon)
            assert truth <= profile(epsilon) <= truth * (1 + mpmath.mpf("1e-9")) + mpmath.mpf(1e-14)


def test_a_chord_too_long_for_doubles_is_bounded_by_its_higher_end():
    profile = SampledProfile([(1.0, 0.5), (800.0, 1e-9)])
    with mpmath.workdps(50):
        for epsilon in (1.0, 2.0, 500.0, 799.0, 799.999, 800.0):
            assert chord({1.0: 0.5, 800.0: 1e-9}, epsilon) <= profile(epsilon) <= 0.5
    assert profile(900.0) == 1e-9


def test_an_earlier_bound_holds_for_what_follows():
    profile = SampledProfile([(1.0, 0.1), (2.0, 0.3), (float("inf"), 0.0)])
    assert profile(2.0) == profile(3.0) == 0.1
