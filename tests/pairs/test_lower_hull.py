"""The lower hull of points, against the chords between all of them, in fractions."""

import random
from fractions import Fraction
from itertools import combinations

import pytest

from accountant.pairs.profile_pair import lower_hull


def highest_below(points, at):
    """Return the least value of all chords over an abscissa: the hull there."""
    values = [y for x, y, _ in points if x == at]
    for (x, y, _), (s, t, _) in combinations(points, 2):
        if x < at < s:
            values.append(y + (t - y) * (at - x) / (s - x))
    return min(values)


@pytest.mark.parametrize("seed", range(20))
def test_vertices_are_the_points_below_all_chords(seed):
    """Also where denominators have nothing in common, and where points are in line."""
    rng = random.Random(seed)
    across = sorted({Fraction(rng.randint(1, 400), rng.choice([1, 3, 7, 2**60])) for _ in range(9)})
    flat = seed % 2
    points = [
        (x, 3 * x - 1 if flat else Fraction(rng.randint(-50, 50), rng.choice([1, 11, 2**70])), 0.0)
        for x in across
    ]
    kept = lower_hull(points)
    for point in points:
        others = [each for each in points if each is not point]
        end = point in (points[0], points[-1])
        below = end or point[1] < highest_below(
            [*others, (point[0], Fraction(10**9), 0.0)], point[0]
        )
        assert (point in kept) == below
