"""Rényi divergences that underflow are multiplied by many steps."""

import math

import numpy as np
import pytest
from mpmath import expm1, log1p, mp, mpf

import accountant as ac


@pytest.mark.parametrize("q", [1e-9, 0.5, 1.0 - 2.0**-53, 1.0])
@pytest.mark.parametrize("sigma", [1e150, 1e155, 1e200, 1e300])
@pytest.mark.parametrize("steps", [1, 1000, 2**53])
def test_a_divergence_below_the_doubles_is_not_free(q, sigma, steps):
    """At order 2: n log(1 + q²(e^{1/σ²} - 1)). It came out as 0, or short of its last digits."""
    with mp.workdps(1300):
        truth = steps * log1p(mpf(q) ** 2 * expm1(1 / mpf(sigma) ** 2))
        for found in (
            ac.get_rdp(q, sigma, steps, 2.0),
            float(ac.get_rdp(np.array([q, 0.0]), sigma, steps, 2.0)[0]),
        ):
            assert truth <= mpf(found)
            # No more than without sampling.
            assert found <= steps * (sigma**-2.0 * (1.0 + 1e-12) + 3e-308)


def test_nothing_costs_nothing():
    assert ac.get_rdp(0.0, 1e200, 1000, 2.0) == ac.get_rdp(0.5, math.inf, 1000, 2.0) == 0.0
    assert ac.get_rdp(0.5, 1e200, 0, 2.0) == 0.0
    assert np.array_equal(ac.get_rdp([0.0, 0.5], math.inf, [3, 0], 2.0), [0.0, 0.0])
