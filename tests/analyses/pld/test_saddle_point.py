"""Where the loose search looks for the answer."""

import math
import warnings

import numpy as np
import pytest

from accountant.analyses.pld.saddle_point import (
    CoarseLaw,
    coarse_law,
    reach,
    saddle_at_delta,
    saddle_at_epsilon,
)
from accountant.mechanisms import Gaussian, Laplace, RandomizedResponse


def test_a_single_far_loss_is_reached_without_overflow():
    loss = np.array([2e300])
    law = CoarseLaw(1, loss, np.zeros(1), loss, loss, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high, *orders = reach([law], 0.0, -50.0)
    assert low <= 2e300 <= high
    assert all(math.isfinite(order) for order in orders)


@pytest.mark.parametrize("noise", [Gaussian(0.3), Gaussian(40.0), Laplace(2.0)])
@pytest.mark.parametrize("count", [300, 10**6])
def test_a_saddle_point_is_where_it_was_looked_for(noise, count):
    law = coarse_law(noise.pairs()[0], count)
    for delta in (1e-3, 1e-12):
        found = saddle_at_delta([law], delta)
        assert found.log_delta == pytest.approx(math.log(delta), rel=1e-4, abs=1e-4)
        again = saddle_at_epsilon([law], found.epsilon)
        assert again.tilt == pytest.approx(found.tilt, rel=1e-4)


@pytest.mark.parametrize("sigma", [1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 20.0])
def test_the_coarse_law_is_centred_where_cells_are_wide(sigma):
    """A million releases add up what one is off by: a thousand times as many deviations."""
    law = coarse_law(Gaussian(sigma).pairs()[0], 10**6)
    mean, deviation = 0.5 / sigma**2, 1.0 / sigma
    _, found, variance = law.cumulants(0.0)
    assert found == pytest.approx(mean, abs=1e-5 * deviation)
    assert math.sqrt(variance) == pytest.approx(deviation, rel=3e-4)


def test_one_loss_in_a_wide_cell_is_not_taken_for_a_density():
    law = coarse_law(RandomizedResponse(200.0).pairs()[0], 1)
    assert law.loss[-1] == pytest.approx(200.0, rel=1e-12)
