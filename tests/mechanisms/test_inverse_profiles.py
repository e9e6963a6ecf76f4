"""The ε of one release in closed form, against mpmath (Theorems M5 and M8)."""

import pytest
from mpmath import mp, mpf

import accountant as ac

DELTAS = (0.95, 0.5, 0.3, 1e-5, 1e-10, 1e-300)
REACHES = (1e-300, 1e-6, 0.02, 1.0, 3.0, 37.5, 700.0, 1e200)


def laplace(a, delta):
    return a + 2 * mp.log(1 - delta)


def bounded_range(a, delta):
    return a + 2 * mp.log(1 - mp.sqrt(delta * -mp.expm1(-a)))


@pytest.mark.long(keep=63)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("inverse", [laplace, bounded_range])
def test_the_inverse_is_a_formula(inverse, reach, delta):
    release = ac.Laplace(1.0, sensitivity=reach) if inverse is laplace else None
    found = (release or ac.ExponentialMechanism(reach)).epsilon_bounds(delta)
    with mp.workdps(800):
        truth = max(inverse(mpf(reach), mpf(delta)), mpf(0))
        assert found.lower <= truth <= found.upper <= reach
        if delta < 0.9 and truth > 0:
            assert found.width <= 1e-12 * (reach + 1.0)
