"""The one search of an ε: both of its ends were evaluated, and are on their sides."""

import math
import random

import pytest

from accountant.analyses.solver import below_crossing, bracket_crossing


@pytest.mark.parametrize("doubt", [0.0, 1e-14, 1e-9, 1e-3])
@pytest.mark.parametrize("delta", [0.4, 1e-5, 1e-60])
def test_both_ends_of_a_crossing_are_certified(doubt, delta):
    """Bounds that wiggle in their last digits, as sums of rounded terms do."""
    seen = {}

    def side(epsilon, which):
        noise = 1.0 + 0.5 * doubt * random.Random(repr(epsilon)).random()
        value = math.exp(-3.0 * epsilon) * noise * (1.0 + doubt if which else 1.0 - doubt)
        seen[epsilon, which] = value
        return value

    found = bracket_crossing(side, delta, 1.0, 200.0)
    assert seen[found.upper, 1] <= delta < seen[found.lower, 0]
    truth = -math.log(delta) / 3.0
    assert found.lower < truth * (1.0 + 1e-15)
    assert truth * (1.0 - 1e-15) < found.upper
    assert found.width <= (1e-10 + 4.0 * doubt) * (1.0 + truth)
    assert len(seen) <= 120


def test_a_profile_that_does_not_cross():
    assert bracket_crossing(lambda epsilon, side: 0.5, 0.1, 1.0, 10.0) is None
    assert below_crossing(lambda epsilon: 0.05, 0.1, 1.0, 10.0) == 0.0
