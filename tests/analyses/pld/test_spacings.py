"""Grids for incommensurate lattices: none contains all of them, and none need."""

import math
from functools import cache

import numpy as np
import pytest
from flint import ctx

from accountant.analyses.pld import Composed
from accountant.analyses.pld import loss_grid as lattices
from accountant.analyses.pld.saddle_point import coarse_law
from accountant.mechanisms import DiscreteGaussian, RandomizedResponse
from accountant.pairs.atoms import ResponsePair
from support.grid_pairs import Atoms, Gaussian, Laplace, randomized_response
from support.oracle import compositions as laws

PARTS = ((0.3, 60), (0.1 * math.sqrt(2.0), 130))


@ctx.workprec(300)
def profile(epsilon):
    """Return the profile of both together, summed over the losses of both."""
    return laws.profile(both(), epsilon)


@cache
def both():
    return laws.product([laws.on_lattice(laws.response(bound), n) for bound, n in PARTS])


def composed(**options):
    return Composed([(ResponsePair(bound), n) for bound, n in PARTS], **options)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
def test_brackets_of_two_lattices(delta):
    bounds = composed(tolerance=1e-3).epsilon_bounds(delta)
    assert profile(bounds.lower) > delta
    assert profile(bounds.upper) <= delta
    assert bounds.upper - bounds.lower <= 1e-3 * bounds.upper
    epsilon = float(bounds.upper)
    found, exact = composed(tolerance=1e-3).delta_bounds(epsilon), profile(epsilon)
    assert found.lower <= exact <= found.upper <= exact * 1.1


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-3])
def test_an_upper_end_alone_is_about_as_near(delta, tolerance):
    one = composed(tolerance=tolerance)
    upper = one.epsilon_upper(delta)
    assert profile(upper) <= delta
    assert profile(upper * (1 - 2 * tolerance)) > delta
    assert profile(upper) <= one.delta_upper(upper)


def test_an_upper_end_alone_of_few_knots_is_nearer_than_the_tolerance():
    # No second grid follows, and three times as many knots cost little.
    assert profile(composed().epsilon_upper(1e-9) * (1 - 1e-7)) > 1e-9


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


pytestmark = pytest.mark.usefixtures("sixty_digits")


@pytest.mark.parametrize("ratios", [(1,), (1, 2), (2, 3), (3, 4, 10), (63, 64), (1, 1, 5)])
@pytest.mark.parametrize("unit", [1.0, 0.1, math.pi * 1e-3])
def test_common_spacings_divide_all(ratios, unit):
    spacings = [r * unit for r in ratios]
    found = lattices.common_spacing(spacings)
    assert found == pytest.approx(unit * math.gcd(*ratios), rel=1e-14)


def test_lattices_without_a_common_spacing():
    assert lattices.common_spacing([1.0, 1.0 + 2.0**-30]) is None
    assert lattices.common_spacing([1.0, math.sqrt(2.0)]) is None
    assert lattices.common_spacing([65.0, 66.0]) is None  # a ratio finer than 1/64
    assert lattices.common_spacing([64.0, 65.0]) == pytest.approx(1.0)
    assert lattices.common_spacing([1.0, 1.0 + 2.0**-52]) == 1.0
    assert lattices.common_spacing([1.0, 1.0 + 2.0**-50]) is None
    # 64·63 is the last denominator kept, and 61·62·63 beyond it.
    assert lattices.common_spacing([1.0, 1 + 1 / 64, 1 + 1 / 63]) == pytest.approx(1 / 4032)
    assert lattices.common_spacing([1.0, 1 + 1 / 61, 1 + 1 / 62, 1 + 1 / 63]) is None


def test_parts_know_their_lattices():
    pairs = [randomized_response(1.0), Gaussian(1.0), Laplace(2.0), randomized_response(0.25)]
    used = [(pair, n) for n, pair in enumerate(pairs, 1)]
    laws = [coarse_law(pair, n) for pair, n in used]
    found, parts = lattices.lattice_parts(used, laws)
    assert found == (0.5, 1.0, 2.0)
    assert [part.times for part in parts] == [1, 2, 3, 4]
    assert [part.pure for part in parts] == [True, False, False, True]
    assert parts[0].offset == math.remainder(-1.0, 2.0)
    assert parts[1].offset is None
    assert parts[2].offset == math.remainder(-0.5, 1.0)


def test_a_lattice_with_something_beside_it_is_not_pure():
    for beside, pure in ((0.0, True), (1e-14, True), (1e-12, False), (0.3, False)):
        p = np.array([0.25, 0.75 - beside, beside])
        q = p * np.exp([1.0, -1.0, 0.1])
        pair = Atoms(p, q / q.sum(), (-1.0, 2.0), [-1.0, 1.0, -0.1])
        law = coarse_law(pair, 1)
        assert lattices._is_pure(pair, law, 1.0, 2.0) is pure
    # All of it at infinity, or too many knots to look at.
    pair = randomized_response(1.0)
    law = coarse_law(pair, 1)
    assert not lattices._is_pure(pair, law._replace(log_mass=law.log_mass - 1e3), 1.0, 2.0)
    assert lattices._is_pure(pair, law, 1.0, 2.0 / (2**16 - 1))
    assert lattices._is_pure(pair, law, 1.0, 2.0 / (2**17 - 2))  # 2^17 knots and one
    assert not lattices._is_pure(pair, law, 1.0, 2.0 / (2**17 + 2))


def lattice_of(points, masses):
    masses = np.array(masses) / math.fsum(masses)
    q = masses * np.exp(-np.array(points))
    return Atoms(masses, q / q.sum(), (-1.0, 2.0), points)


@pytest.mark.parametrize(
    ("points", "masses", "pure"),
    [
        ([-1.0, 1.0, 3.0, 7.0], [0.4, 0.3, 0.2, 0.1], True),
        ([-1.0, 1.0, 3.0, 7.0], [0.4, 0.6, 1e-30, 1e-60], True),
        ([-1.0, 1.0, 3.0, 6.5, 7.0], [0.4, 0.3, 0.1, 0.1, 0.1], False),
        ([-1.0, 1.0, 3.0, 6.5], [0.4, 0.3, 0.1, 0.2], False),
        ([-1.5, -1.0, 1.0, 3.0], [0.1, 0.4, 0.3, 0.2], False),
        ([-1.0, 1.0, 270001.0], [0.4, 0.6, 1e-26], False),  # too many knots to look at
        ([-1.0, 1.0, 270001.0], [0.4, 0.6, 1e-40], True),
        ([-1.0, 1.0, 3.02], [0.4, 0.4, 0.2], False),
        ([-1.0, 1.0, 3.0 + 1e-6], [0.4, 0.4, 0.2], False),
        ([-1.0, 1.0, 3.0 + 1e-13], [0.4, 0.4, 0.2], True),
    ],
)
def test_what_lies_beside_a_lattice_is_found_wherever_it_is(points, masses, pure):
    pair = lattice_of(points, masses)
    for offset in (1.0, -1.0):
        assert lattices._is_pure(pair, coarse_law(pair, 1), offset, 2.0) is pure
    if max(points) < 100.0:
        pair = lattice_of([x / 4 for x in points], masses)
        assert lattices._is_pure(pair, coarse_law(pair, 1), 0.25, 0.5) is pure
