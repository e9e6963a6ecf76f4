"""Where the loose search looks for the answer."""

import math
import warnings

import numpy as np

from accountant.analyses.pld.saddle_point import CoarseLaw, reach


def test_a_single_far_loss_is_reached_without_overflow():
    loss = np.array([2e300])
    law = CoarseLaw(1, loss, np.zeros(1), loss, loss, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high, *orders = reach([law], 0.0, -50.0)
    assert low <= 2e300 <= high
    assert all(math.isfinite(order) for order in orders)
