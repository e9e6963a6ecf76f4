"""Grids for incommensurate lattices: none contains all of them, and none need."""

import math
from functools import cache

import mpmath as mp
import pytest

from accountant.analyses.pld import Composed
from accountant.mechanisms import DiscreteGaussian, DominatingPMFs, Laplace, RandomizedResponse
from accountant.pairs.response import ResponsePair
from accountant.sampling import AllocatedMechanism

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
def test_one_lattice_is_kept_and_the_other_has_chords(delta):
    with mp.workdps(40):
        one = composed()
        bounds = one.epsilon_bounds(delta)
        assert len(one._spacings.lattices) == (1 if delta > 1e-20 else 2)
        assert profile(mp.mpf(float(bounds.lower))) > delta
        assert profile(mp.mpf(float(bounds.upper))) <= delta
        assert bounds.upper - bounds.lower <= 1e-6 * bounds.upper
        epsilon = float(bounds.upper)
        found, exact = composed().delta_bounds(epsilon), profile(mp.mpf(epsilon))
        assert found.lower <= exact <= found.upper <= exact * (1 + mp.mpf("1e-3"))


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-3])
def test_an_upper_end_alone_is_about_as_near(delta, tolerance):
    with mp.workdps(40):
        one = composed(tolerance=tolerance, upper_alone=True)
        bounds = one.epsilon_bounds(delta)
        assert bounds.lower == 0.0
        assert profile(mp.mpf(float(bounds.upper))) <= delta
        assert profile(mp.mpf(float(bounds.upper)) * (1 - 2 * tolerance)) > delta
        found, exact = one.delta_bounds(float(bounds.upper)), profile(mp.mpf(float(bounds.upper)))
        assert found.lower == 0.0
        assert exact <= found.upper


def test_an_upper_end_alone_of_few_knots_is_nearer_than_the_tolerance():
    # No second grid follows, and three times as many knots cost little.
    with mp.workdps(40):
        bounds = composed(upper_alone=True).epsilon_bounds(1e-9)
        assert profile(mp.mpf(float(bounds.upper)) * (1 - mp.mpf("1e-7"))) > 1e-9


def test_a_lattice_that_fits_is_kept():
    one = Composed([(ResponsePair(0.3), 40), (ResponsePair(0.6), 9)])
    one.epsilon_bounds(1e-6)
    assert len(one._spacings.lattices) == 2
    assert one._spacings.finest is not None


def test_a_fine_lattice_gives_way_to_other_few_losses():
    # The spacing of the lattice, 2e-5, is needless: its chords add nothing beside the other's.
    parts = [(ResponsePair(1e-5), 300), (DominatingPMFs((0.45, 0.3, 0.25), (0.4, 0.37, 0.23)), 900)]
    one = Composed([(each if n == 300 else each.pairs()[0], n) for each, n in parts])
    bounds = one.epsilon_bounds(1e-6)
    assert one._spacings.lattices == ()
    assert bounds.upper - bounds.lower <= 1e-6 * bounds.upper
    # no more than the lattice's largest loss above the other part alone
    alone = Composed([(parts[1][0].pairs()[0], 900)]).epsilon_bounds(1e-6)
    assert alone.lower <= bounds.upper
    assert bounds.lower <= alone.upper + 300 * 1e-5 * (1 + 1e-12)


def test_coarse_and_fine_lattices_of_mechanisms():
    # One fine lattice beside a coarse one: as narrow as both alone, in a grid of few knots.
    many = 30 * DiscreteGaussian(7.0) + 200 * RandomizedResponse(0.5)
    bounds = many.epsilon_bounds(1e-6)
    assert bounds.upper - bounds.lower <= 1e-6 * bounds.upper


def test_a_common_lattice_that_is_needlessly_fine_is_given_up():
    """Multiples of 2^-11 and of .16 are all multiples of 2e-5."""
    lattice = AllocatedMechanism(Laplace(2.0), steps=20).pairs()[0]
    one = Composed([(lattice, 10**6), (DiscreteGaussian(2.5).pairs()[0], 10**6)])
    bounds = one.epsilon_bounds(1e-6)
    assert bounds.upper - bounds.lower <= 2e-6 * bounds.upper
    assert max(law.size for law in one._done) <= 2**25
