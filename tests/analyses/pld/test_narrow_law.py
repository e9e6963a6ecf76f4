"""Laws narrower than a cell, against sums in many digits that share no code (Theorem G14)."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant.analyses.pld import Composed
from accountant.analyses.pld.loss_grid import LossGrid
from accountant.analyses.pld.narrow_law import discretise_narrow


def response_profile(epsilon, count, x, inner):
    """Return E[inner(x - L)] over the losses L of ``count`` responses of ``epsilon``."""
    yes = mp.exp(epsilon) / (1 + mp.exp(epsilon))
    total = mpf(0)
    for k in range(count + 1):
        share = mp.binomial(count, k) * yes**k * (1 - yes) ** (count - k)
        total += share * inner(x - (2 * k - count) * epsilon)
    return total


def laplace_profile(scale, x):
    """Return the profile of noise of scale b, sensitivity 1, at any real x."""
    gap = 1 / scale
    if x >= gap:
        return mpf(0)
    return 1 - mp.exp(x) if x <= -gap else 1 - mp.exp((x - gap) / 2)


def largest(lists):
    return max(float(e) for e in lists)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("scale", [3e3, 123.4])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
def test_a_density_in_one_cell(scale, delta):
    """One Laplace release of a tiny loss beside 300 responses: its true profile is a finite sum."""
    epsilon, count = 0.2, 300
    pairs = (ac.RandomizedResponse(epsilon).pairs()[0], ac.Laplace(scale).pairs()[0])
    found = Composed([(pairs[0], count), (pairs[1], 1)]).epsilon_bounds(delta)
    with mp.workdps(60):

        def truth(x):
            inner = lambda y: laplace_profile(mpf(scale), y)  # noqa: E731
            return response_profile(mpf(epsilon), count, mpf(x), inner)

        assert truth(found.lower) >= delta
        assert truth(found.upper) <= delta
    assert found.upper - found.lower <= 5e-6 * found.upper


@pytest.mark.long
@pytest.mark.parametrize(("tiny", "many"), [(1e-4, 40), (3e-3, 25)])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_two_losses_in_one_cell(tiny, many, delta):
    """Two kinds of responses, one of them far finer than the grid."""
    pairs = [ac.RandomizedResponse(e).pairs()[0] for e in (0.37, tiny)]
    found = Composed([(pairs[0], 120), (pairs[1], many)]).epsilon_bounds(delta)
    with mp.workdps(60):

        def truth(x):
            def inner(y):
                return response_profile(mpf(tiny), many, y, lambda z: max(1 - mp.exp(z), mpf(0)))

            return response_profile(mpf(0.37), 120, mpf(x), inner)

        assert truth(found.lower) >= delta
        assert truth(found.upper) <= delta


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("spacing", [0.5, 0.01, 3e-4])
@pytest.mark.parametrize("shift", [0.0, 0.3])
@pytest.mark.parametrize("scale", [40.0, 900.0, 2e4])
def test_both_laws_enclose_the_profile(spacing, shift, scale):
    """At every ε, once the losses' error is counted; the lower law is the chords' of its atoms."""
    pair = ac.Laplace(scale).pairs()[0]
    reach = max(math.ceil(1.2 / scale / spacing), 1) + 1
    knots = LossGrid(shift * spacing, spacing, -reach, reach)
    law = discretise_narrow(pair, knots, 0.0, 0.5 / scale)
    t = [mpf(each) for each in knots.losses().tolist()]
    with mp.workdps(50):
        atoms = law.atoms
        first = [mpf(knots.offset) + mpf(k) * mpf(spacing) for k in atoms.below.tolist()]
        losses = [a + mpf(v) for a, v in zip(first, atoms.past.tolist(), strict=True)]
        for x in np.linspace(-1.5 / scale, 1.5 / scale, 41):
            at, error = mpf(float(x)), mpf(law.loss_error)

            def profile(points, masses, y):
                terms = zip(points, masses.tolist(), strict=True)
                return sum(mpf(m) * max(1 - mp.exp(y - each), 0) for each, m in terms)

            high = profile(t, law.upper, at - error) + mpf(law.infinite_upper)
            low = profile(losses, atoms.mass, at + error) + mpf(law.infinite_lower)
            assert low <= laplace_profile(mpf(scale), at) <= high
