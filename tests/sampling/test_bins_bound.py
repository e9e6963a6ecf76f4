"""Bins given the record's own, some of which come round once more: against two independent ones."""

import math

import numpy as np
import pytest

from accountant.sampling.balls_in_bins import Circle, conditional_delta
from support.oracle.samplers import black_scholes


def two_bins(variances, epsilon):
    """The profile of removing a record from one of two bins, one variable integrated exactly."""
    first, second = variances
    root, gamma = math.sqrt(first), math.exp(epsilon)
    x, step = np.linspace(-14.0, 14.0 + root, 40_001, retstep=True)
    weights = np.exp(-0.5 * x * x) * step / math.sqrt(2.0 * math.pi)
    own = np.exp(root * x - 0.5 * first)
    return 0.5 * float(weights @ black_scholes(2.0 * gamma - own, math.sqrt(second))[0])


@pytest.mark.long(keep=17)
@pytest.mark.parametrize("times", [1, 2, 7])
@pytest.mark.parametrize("noise", [0.2, 0.5, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("deviations", [0.0, 0.3, 1.0, 2.0, 4.0])
def test_two_bins_of_one_band_one_of_which_comes_round_once_more(times, noise, deviations):
    more, fewer = (times + 1) / noise**2, times / noise**2
    epsilon = deviations * math.sqrt(more) + (0.5 * more if deviations > 1.0 else 0.0)
    truth = two_bins((more, fewer), epsilon)
    found = conditional_delta(Circle(2, (more,), (fewer,), 1), epsilon)
    # Beyond 300 nats there is no bound.
    assert truth <= found
    # Where one bin decides, both kinds of a record's own bin count for their share.
    if noise <= 0.2 and epsilon <= 300.0:
        assert found <= 1.01 * truth
