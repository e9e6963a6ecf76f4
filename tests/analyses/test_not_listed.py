"""Lower ends without what was not listed."""

import math

from accountant.analyses.solver import delta_listed, epsilon_listed
from accountant.bounds import Bounds


def test_a_delta_is_lowered_by_what_was_left_out():
    assert delta_listed(Bounds(0.5, 0.6), 0.0) == Bounds(0.5, 0.6)
    found = delta_listed(Bounds(0.5, 0.6), 0.25)
    assert 0.0 < 0.25 - found.lower < 1e-15
    assert found.upper == 0.6
    assert delta_listed(Bounds(1e-26, 1e-20), 1e-25) == Bounds(0.0, 1e-20)


def test_an_epsilon_is_that_of_a_larger_delta():
    asked = []

    def counted(delta):
        asked.append(delta)
        return Bounds(1.0 / delta, 2.0 / delta)

    assert epsilon_listed(counted, 0.25, 0.0) == Bounds(4.0, 8.0)
    assert epsilon_listed(counted, 0.25, 0.25) == Bounds(1.0 / math.nextafter(0.5, 1.0), 8.0)
    assert asked[-1] > 0.5
    assert epsilon_listed(counted, 0.9, 0.2).lower == 0.0
