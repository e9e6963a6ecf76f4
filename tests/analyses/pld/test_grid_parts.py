"""Where the knots of a part are: a least loss that has mass is in a cell."""

import math

import numpy as np
import pytest

from accountant.analyses.pld import Composed
from accountant.learn.convex.losses import Logistic
from accountant.learn.convex.mechanism import dominating_pair

PAIR = dominating_pair(Logistic(), 1.0 / 3.0, 0.5)  # of ε = 0 with a probability of about a half


def twice(epsilon):
    """Return the profile of two releases, by quadrature over the loss of the first."""
    z = np.linspace(-9.0, 9.0, 6001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    second = [PAIR.profile(epsilon - loss).upper for loss in PAIR._loss(z).tolist()]
    return float(np.trapezoid(density * second, z))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.3, 0.8, 2.0])
def test_a_least_loss_that_has_mass_is_not_lost_from_below(epsilon):
    assert PAIR.support[0] == 0.0
    assert PAIR.masses(np.zeros(1)).p[0] > 0.01
    found = Composed([(PAIR, 2)]).delta_bounds(epsilon)
    truth = twice(epsilon)
    assert found.lower <= truth * (1.0 + 1e-6)
    assert truth <= found.upper * (1.0 + 1e-6)
    assert found.upper - found.lower <= 2e-5 * found.upper


def test_a_million_releases_have_a_lower_end():
    found = Composed([(PAIR, 10**6)], tolerance=1e-4).epsilon_bounds(1e-6)
    assert found.upper - found.lower <= 1e-4 * found.upper
