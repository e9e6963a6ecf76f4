"""Bounds between points of a profile, against chords in fifty digits: no tolerance below them."""

import random

import mpmath
import pytest

from accountant.report.numbers import SampledProfile


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
