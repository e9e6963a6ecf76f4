"""Grids for incommensurate lattices: none contains all of them, and none need."""

import math
from functools import cache

import mpmath as mp
import pytest

from accountant.analyses.pld import Composed
from accountant.mechanisms import DiscreteGaussian, RandomizedResponse
from accountant.pairs.atoms import ResponsePair

PARTS = ((0.3, 60), (0.1 * math.sqrt(2.0), 130))


@cache
def law(bound, n):
    """Return the losses of n randomised responses and their masses, with 40 digits."""
    with mp.workdps(40):
        p = 1 / (1 + mp.exp(-mp.mpf(bound)))
        masses = [mp.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)]
        return [((2 * j - n) * mp.mpf(bound), m) for j, m in enumerate(masses)]


def profile(epsilon):
    """Return the profile of both together, summed over the losses of both."""
    one, other = (law(*part) for part in PARTS)
    # The masses above a loss of the second part, and those times e^{-loss}.
    above, weighed, ends = [mp.mpf(0)], [mp.mpf(0)], [loss for loss, _ in other]
    for loss, mass in reversed(other):
        above.append(above[-1] + mass)
        weighed.append(weighed[-1] + mass * mp.exp(-loss))
    total, place = mp.mpf(0), len(ends)
    for loss, mass in one:
        while place > 0 and ends[place - 1] + loss > epsilon:
            place -= 1
        beyond = len(ends) - place
        total += mass * (above[beyond] - mp.exp(epsilon - loss) * weighed[beyond])
    return total


def composed(**options):
    return Composed([(ResponsePair(bound), n) for bound, n in PARTS], **options)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
def test_brackets_of_two_lattices(delta):
    with mp.workdps(40):
        bounds = composed(tolerance=1e-3).epsilon_bounds(delta)
        assert profile(mp.mpf(float(bounds.lower))) > delta
        assert profile(mp.mpf(float(bounds.upper))) <= delta
        assert bounds.upper - bounds.lower <= 1e-3 * bounds.upper
        epsilon = float(bounds.upper)
        found, exact = composed(tolerance=1e-3).delta_bounds(epsilon), profile(mp.mpf(epsilon))
        assert found.lower <= exact <= found.upper <= exact * (1 + mp.mpf("0.1"))


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-3])
def test_an_upper_end_alone_is_about_as_near(delta, tolerance):
    with mp.workdps(40):
        one = composed(tolerance=tolerance)
        upper = one.epsilon_upper(delta)
        assert profile(mp.mpf(upper)) <= delta
        assert profile(mp.mpf(upper) * (1 - 2 * tolerance)) > delta
        assert profile(mp.mpf(upper)) <= one.delta_upper(upper)


def test_an_upper_end_alone_of_few_knots_is_nearer_than_the_tolerance():
    # No second grid follows, and three times as many knots cost little.
    with mp.workdps(40):
        upper = composed().epsilon_upper(1e-9)
        assert profile(mp.mpf(upper) * (1 - mp.mpf("1e-7"))) > 1e-9


def test_a_lattice_that_fits_is_kept():
    one = Composed([(ResponsePair(0.3), 40), (ResponsePair(0.6), 9)])
    one.epsilon_bounds(1e-6)
    assert len(one._spacings.lattices) == 2
    assert one._spacings.finest is not None


def test_coarse_and_fine_lattices_of_mechanisms():
    # One fine lattice beside a coarse one: as narrow as both alone, in a grid of few knots.
    many = 30 * DiscreteGaussian(7.0) + 200 * RandomizedResponse(0.5)
    bounds = many.epsilon_bounds(1e-6)
    assert bounds.upper - bounds.lower <= 1e-6 * bounds.upper
