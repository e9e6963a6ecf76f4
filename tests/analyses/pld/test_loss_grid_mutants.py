"""What mutation testing (support/hardening) found nobody watching in the grid's errors."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from accountant.analyses.pld import fft, lattice
from accountant.analyses.pld.loss_grid import LossGrid, discretise, edges_around
from accountant.analyses.pld.saddle_point import coarse_law
from accountant.pairs.base import Masses
from support.grid_pairs import Atoms, Gaussian, Laplace, randomized_response

mp = mpmath.mpf
U = mp(2) ** -53


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(40):
        yield


def near(found, truth, relative=1e-9):
    return abs(mp(found) - truth) <= relative * abs(truth)


# Transforms, Theorems G4 and G5.


def test_sizes_are_the_least_of_their_kind():
    sizes = sorted({2**a for a in range(1, 23)} | {3 * 2**a for a in range(22)})
    for least in (*range(2, 400), 1023, 1024, 1025, 1536, 1537, 10**6):
        found = fft.fft_size(least)
        assert found == next(n for n in sizes if n >= least)


@pytest.mark.parametrize("size", [2, 3, 96, 2**20])
def test_the_error_of_a_transform_is_the_theorems(size):
    assert near(fft.fft_error(size), 8 * U * (mpmath.log(size, 2) + 1))


def tilted(*parts):
    return [fft.Tilted(np.array(w, dtype=float), first, times) for w, first, times in parts]


COMPOSITIONS = [
    (tilted(([1.0], 0, 1), ([1.0], 0, 1)), 4),
    (tilted(([0.5, 0.25, 0.25], -3, 4)), 16),
    (tilted(([0.5, 0.25, 0.25], 1, 40), ([0.125, 0.875], -7, 3)), 128),
    (tilted(([0.75, 0.75], 0, 6)), 12),
]


def exact_weights(parts, size):
    """The cyclic convolution, in fractions, from the first knot on."""
    weights = [Fraction(0)] * size
    weights[0] = Fraction(1)
    for part in parts:
        for _ in range(part.times):
            after = [Fraction(0)] * size
            for i, w in enumerate(part.weights.tolist()):
                for j, v in enumerate(weights):
                    after[(i + j) % size] += Fraction(w) * v
            weights = after
    return weights


@pytest.mark.parametrize(("parts", "size"), COMPOSITIONS)
def test_the_error_of_a_composition_is_the_theorems(parts, size):
    """Theorem G5 with the constants the code chose: rounded up by some per cent."""
    start = sum(part.first * part.times for part in parts)
    exact = exact_weights(parts, size)
    # By Parseval both norms are those of the weights; half of a spectrum stands for all of it.
    norm = mpmath.sqrt(sum(mp(w.numerator) / w.denominator * mp(float(w)) for w in exact))
    half = np.abs(np.fft.rfft([float(w) for w in exact])) ** 2
    spectrum = mpmath.sqrt(2 * mp(float(half.sum())))
    relative = 8 * U * (mpmath.log(size, 2) + 1)
    growth, lipschitz = mp(1), mp(0)
    for part in parts:
        error = relative * mpmath.sqrt(size) * mpmath.sqrt(sum(mp(w) ** 2 for w in part.weights))
        growth *= (max(sum(map(mp, part.weights)), 1) + error) ** part.times
        lipschitz += part.times * error
    count = sum(part.times for part in parts) + len(parts)
    product = mp("1.01") * mpmath.expm1(mp("3.1") * U * count) * spectrum
    bound = (growth * lipschitz + product) / mpmath.sqrt(size) + mp("1.01") * relative * norm
    for first in (start, start - 2, start + 1):
        total = fft.compose(parts, first, size, 0.125)
        assert near(total.error, mp("1.01") * bound, 1e-6)
        assert (total.first, total.outside, total.whole) == (first, 0.125, first <= start)
        found = total.weights.tolist()
        shifted = [exact[(first - start + j) % size] for j in range(size)]
        difference = sum((mp(a) - mp(b.numerator) / b.denominator) ** 2
                         for a, b in zip(found, shifted, strict=True))  # fmt: skip
        assert mpmath.sqrt(difference) <= total.error


def test_the_error_of_a_long_composition_grows_with_the_sums():
    # A sum of weights is a few units off: a millionth of a millionth is left for it, each time.
    count, size = 10**7, 4
    total = fft.compose(tilted(([1.0], 0, count)), 0, size, 0.0)
    relative = 8 * U * 3
    error = relative * 2 * (1 + mp("1e-9"))
    growth = ((1 + mp("1e-12")) + error) ** count
    product = mp("1.01") * mpmath.expm1(mp("3.1") * U * (count + 1)) * mpmath.sqrt(6)
    expected = (growth * count * error + product) / 2 + mp("1.01") * relative
    assert near(total.error, mp("1.01") * expected, 1e-9)


def test_one_law_once_is_left_alone():
    weights = np.array([0.25, 0.75])
    total = fft.compose([fft.Tilted(weights, -4, 1)], -9, 64, 0.5)
    assert total == fft.Total(weights, -4, 0.0, 0.0, True)
    twice = fft.compose([fft.Tilted(weights, -4, 2)], -8, 4, 0.0)
    assert twice.weights == pytest.approx([0.0625, 0.375, 0.5625, 0.0])


# Reading the profile, Theorem G7.


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("outside", [0.0, 1e-9])
@pytest.mark.parametrize("last", [40, 15, 3])
@pytest.mark.parametrize("epsilon", [-0.3, 0.0, 0.05, 0.1, 1.07, 2.8])
def test_sums_and_their_errors(whole, outside, last, epsilon):
    weights, first = np.linspace(0.1, 2.0, 20) / 20, -4
    offset, spacing, tilt, error = 0.05, 0.1, 3.0, 1e-10
    if not whole and epsilon < offset + first * spacing:
        epsilon = -0.31
    total = fft.Total(weights, first, error, outside, whole)
    value, bound, slope, nearest = fft.total_sums(total, offset, spacing, tilt, epsilon, last)
    above = [
        (j, mp(offset) + j * mp(spacing) - mp(epsilon))
        for j in range(first if whole else -10, 60)
        if mp(offset) + j * mp(spacing) > epsilon
    ]
    assert near(nearest, above[0][1], 1e-12)
    terms = [
        (mp(weights[j - first]), mpmath.exp(-tilt * (v - nearest)), v)
        for j, v in above
        if first <= j <= last and j - first < weights.size
    ]
    assert near(value, sum(w * e * -mpmath.expm1(-v) for w, e, v in terms), 1e-12)
    assert near(slope, sum(w * e * mpmath.exp(-v) for w, e, v in terms), 1e-12)
    factors = [e * -mpmath.expm1(-v) for _, e, v in terms]
    expected = mp("4e-13") * sum(w * e for w, e, _ in terms) + mp("1e-290")
    expected += error * mpmath.sqrt(sum(f * f for f in factors))
    if outside:
        end = mp(offset) + (first + weights.size) * mp(spacing) - mp(epsilon)
        expected += mp(outside) * (max(factors, default=0) + mpmath.exp(tilt * (nearest - end)))
    assert near(bound, mp("1.0001") * expected)


# One part on the grid, Theorems G2 and G3.


class Watched:
    """A pair that writes down where it was cut, and whose masses are told apart."""

    support = (-math.inf, math.inf)

    def __init__(self, above=0.25, error=2.0**-20):
        self.above, self.error = above, error

    def masses(self, edges):
        self.edges = edges
        inner = np.exp(-np.arange(len(edges) - 1.0))
        p = np.concatenate([[0.125], inner, [self.above]])
        return Masses(p, p * 0.99, self.error)


def test_cells_and_halves_are_cut_where_they_should():
    knots = LossGrid(0.25, 0.5, -3, 4)
    t = [0.25 + 0.5 * i for i in range(-3, 5)]
    assert knots.losses().tolist() == t
    assert knots.reach() == 0.25 + 2.0
    assert LossGrid(-0.25, 0.5, -5, 4).reach() == 0.25 + 2.5
    assert knots.margin() == 2.0**-40 * 2.25
    assert edges_around(np.array(t), 0.125).tolist() == [x + s for x in t for s in (-0.125, 0.125)]
    pair = Watched()
    law = discretise(pair, knots, False)
    assert law.loss_error == 16 * 2.0**-53 * 2.25
    assert pair.edges.tolist() == sorted([*t, *(x + 0.25 for x in t[:-1])])
    assert law.off_grid_mass == pytest.approx(sum(math.exp(-i) for i in range(14)), rel=1e-13)
    law = discretise(pair, knots, True)
    margin = 2.0**-40 * 2.25
    assert law.loss_error == 16 * 2.0**-53 * 2.25 + margin
    expected = [*(x - margin for x in t), *(x + margin for x in t), *(x + 0.25 for x in t[:-1])]
    assert pair.edges.tolist() == sorted(expected)
    # Atoms are what lies within the margins; the rest lies off the grid.
    rest = sum(math.exp(-i) for i in range(22) if i % 3)
    assert law.off_grid_mass == pytest.approx(rest, rel=1e-13)


def test_margins_around_atoms_end_at_a_sixteenth_of_a_cell():
    knots = LossGrid(0.0, 2.0**-38, 0, 2**10)
    law = discretise(Watched(), knots, True)
    assert law.loss_error == 16 * 2.0**-53 * 2.0**-28 + 2.0**-40 * 2.0**-28
    knots = LossGrid(1.0, 2.0**-38, 0, 4)
    law = discretise(Watched(), knots, True)
    assert law.loss_error == 16 * 2.0**-53 * knots.reach() + 2.0**-42


@pytest.mark.parametrize("error", [0.0, 2.0**-20])
def test_mass_at_infinity_is_rounded_outwards(error):
    knots = LossGrid(0.0, 0.5, -2, 3)
    law = discretise(Watched(0.25, error), knots, False)
    assert law.infinite_upper == 0.25 * (1 + error) + 1e-300
    assert law.infinite_lower == 0.0  # some of what lies above may be finite
    ended = Watched(0.25, error)
    ended.support = (-math.inf, 1.5)
    law = discretise(ended, knots, False)
    assert law.infinite_upper == 0.25 * (1 + error)
    assert law.infinite_lower == 0.25 * (1 - 2 * error)
    assert discretise(Watched(0.0), knots, False).infinite_upper == 1e-300
    ended.above = 0.0
    assert discretise(ended, knots, False).infinite_upper == 0.0


@pytest.mark.parametrize("mu", [0.3, 1.1])
@pytest.mark.parametrize("has_atoms", [True, False])
def test_laws_enclose_closely(mu, has_atoms):
    knots = LossGrid(0.01, 0.05, -120, 160)
    law = discretise(Gaussian(mu), knots, has_atoms)
    for epsilon in np.linspace(-1.0, 2.0, 11).tolist():
        m, e = mp(mu), mp(epsilon)
        truth = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        stick = [max(-mpmath.expm1(epsilon - t), 0) for t in map(mp, knots.losses())]
        upper = sum(map(mpmath.fmul, map(mp, law.upper), stick)) + law.infinite_upper
        lower = sum(map(mpmath.fmul, map(mp, law.lower), stick)) + law.infinite_lower
        room = mp(law.loss_error)  # the profile's slope is at most one
        assert lower - room <= truth <= upper + room
        # A chord adds a sixth, a tangent takes a twelfth of the squared spacing.
        assert upper - lower <= mp(0.05) ** 2 * mpmath.npdf(0) / mu


# Lattices.


@pytest.mark.parametrize("ratios", [(1,), (1, 2), (2, 3), (3, 4, 10), (63, 64), (1, 1, 5)])
@pytest.mark.parametrize("unit", [1.0, 0.1, math.pi * 1e-3])
def test_common_spacings_divide_all(ratios, unit):
    spacings = [r * unit for r in ratios]
    found = lattice.common_spacing(spacings)
    assert found == pytest.approx(unit * math.gcd(*ratios), rel=1e-14)


def test_lattices_without_a_common_spacing():
    assert lattice.common_spacing([1.0, 1.0 + 2.0**-30]) is None
    assert lattice.common_spacing([65.0, 66.0]) is None  # a ratio finer than 1/64
    assert lattice.common_spacing([64.0, 65.0]) == pytest.approx(1.0)
    assert lattice.common_spacing([1.0, 1.0 + 2.0**-52]) == 1.0
    assert lattice.common_spacing([1.0, 1.0 + 2.0**-50]) is None
    # 64·63 is the last denominator kept, and 61·62·63 beyond it.
    assert lattice.common_spacing([1.0, 1 + 1 / 64, 1 + 1 / 63]) == pytest.approx(1 / 4032)
    assert lattice.common_spacing([1.0, 1 + 1 / 61, 1 + 1 / 62, 1 + 1 / 63]) is None


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5, 0.0])
@pytest.mark.parametrize("spacings", [(1.0, math.sqrt(2.0)), (0.3, 0.7, 1.1), (2.0,)])
def test_fitting_spacings_against_all_candidates(spacings, tolerance):
    most, least = 0.1, 1e-3
    found = lattice.fitting_spacing(spacings, most, least, tolerance)
    longest, lost = max(spacings), {}
    for n in itertools.count(math.ceil(longest / most)):
        if n >= max(int(longest / least), math.ceil(longest / most) + 1):
            break
        cell = longest / n
        # What is rounded off a spacing, in parts of it; a few units in the last place are none.
        lost[n] = max(
            (s / cell - math.floor(s / cell * (1 + 4e-16))) / (s / cell) for s in spacings
        )
    good = [n for n, worst in lost.items() if worst <= tolerance]
    expected = good[0] if good else min(lost, key=lost.get)
    assert found == longest / expected
    assert least <= found <= most


def test_parts_know_their_lattices():
    pairs = [randomized_response(1.0), Gaussian(1.0), Laplace(2.0), randomized_response(0.25)]
    used = [(pair, n) for n, pair in enumerate(pairs, 1)]
    laws = [coarse_law(pair, n) for pair, n in used]
    spacings, parts = lattice.lattice_parts(used, laws)
    assert spacings == (0.5, 1.0, 2.0)
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
        assert lattice._is_pure(pair, law, 1.0, 2.0) is pure
    # All of it at infinity, or too many knots to look at.
    pair = randomized_response(1.0)
    law = coarse_law(pair, 1)
    assert not lattice._is_pure(pair, law._replace(log_mass=law.log_mass - 1e3), 1.0, 2.0)
    assert lattice._is_pure(pair, law, 1.0, 2.0 / (2**16 - 1))
    assert lattice._is_pure(pair, law, 1.0, 2.0 / (2**17 - 2))  # 2^17 knots and one
    assert not lattice._is_pure(pair, law, 1.0, 2.0 / (2**17 + 2))


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
        assert lattice._is_pure(pair, coarse_law(pair, 1), offset, 2.0) is pure
    if max(points) < 100.0:
        pair = lattice_of([x / 4 for x in points], masses)
        assert lattice._is_pure(pair, coarse_law(pair, 1), 0.25, 0.5) is pure


def test_spacings_that_need_no_division():
    assert lattice.fitting_spacing((0.05,), 0.1, 1e-3, 1e-2) == 0.05
    assert lattice.fitting_spacing((0.1,), 0.1, 1e-3, 1e-2) == 0.1
    assert lattice.fitting_spacing((0.1, 0.05), 0.05, 1e-3, 1e-2) == 0.05
    assert lattice.fitting_spacing((0.1, 0.09), 0.1, 0.099, 1e-9) == 0.1
