"""An end is an ε that was evaluated and lies on its side, whatever else the evaluations are."""

import math

import pytest

import accountant as ac
from accountant.analyses.line_ends import crossing, delta_of
from accountant.analyses.line_laws import Doubt

NOTHING = Doubt(0.0, 0.0, 0.0, 0.0, 0.0)


class Profile:
    """δ(ε) = e^{-ε} between two ends a share apart, and no number in some places."""

    b, outside = 1.0, 0.0

    def __init__(self, lost):
        self.lost, self.asked = lost, {}

    def ends(self, epsilon):
        value = math.nan if self.lost(epsilon) else math.exp(-epsilon)
        self.asked[epsilon] = value
        return value * (1.0 - 1e-9), value * (1.0 + 1e-9)


@pytest.mark.parametrize("at_most", [True, False])
def test_what_is_no_number_certifies_nothing(at_most):
    profile = Profile(lambda _: True)
    if at_most:
        with pytest.raises(ac.PrecisionError):
            crossing(profile, 1.0, 0.1, at_most=True)
    else:
        assert crossing(profile, 1.0, 0.1, at_most=False) == -math.inf
    with pytest.raises(ac.PrecisionError):
        delta_of(NOTHING, profile, profile, 1.0)


@pytest.mark.parametrize("at_most", [True, False])
@pytest.mark.parametrize("hole", [(2.0, 2.9), (2.2, 2.4), (1.0, 1.5)])
@pytest.mark.parametrize("start", [0.5, 1.2, 2.3, 2.5, 4.0])
def test_an_end_was_evaluated_on_its_side(at_most, hole, start):
    profile = Profile(lambda epsilon: hole[0] < epsilon < hole[1])
    try:
        found = crossing(profile, start, 0.1, at_most=at_most)
    except ac.PrecisionError:
        assert at_most
        return
    if found > -math.inf:
        value = profile.asked[found] * (1.0 + 1e-9 if at_most else 1.0 - 1e-9)
        assert value <= 0.1 if at_most else value > 0.1


def test_a_profile_of_stairs_is_crossed():
    # The losses are rare and large: beyond 0 nearly all of the profile is far below δ.
    mass = 5e-7, 4.8e-7, 7.7e-9, 3e-8
    pmfs = (mass[2], 1.0 - mass[2] - mass[0], mass[0]), (mass[3], 1.0 - mass[3] - mass[1], mass[1])
    for runs in (50, 100, 150, 200):
        composed = runs * ac.DominatingPMFs(*pmfs)
        assert composed.delta(0.0) < 5e-6
        assert composed.epsilon(0.00155) == 0.0
