"""Masses of infinite losses that underflow bounds nothing from below."""

import pytest
from mpmath import mp, mpf

import accountant as ac


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("rate", "delta"), [(3.2e-154, 1e-200), (0.2, 5e-324), (1e-219, 2e-308)])
def test_a_faint_infinite_mass_is_in_no_lower_end(rate, delta, count):
    """δ at any ε is at most the chance of a used record times all that tells it."""
    sampled = count * ac.PoissonSampled(ac.ApproximateDP(1e-308, delta=delta), rate)
    with mp.workdps(700):
        most = count * mpf(rate) * (mpf(delta) + mpf(1e-308))
        for epsilon in (0.0, 1e-320, 1e-137):
            found = sampled.delta_bounds(epsilon)
            assert mpf(found.lower) <= most
            assert found.upper > 0.0
