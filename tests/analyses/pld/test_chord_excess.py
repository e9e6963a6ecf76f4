"""Finitely many losses on a grid that they do not fit (Theorem G10), against exact sums."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from flint import arb

import accountant as ac
from accountant.analyses import pld
from accountant.analyses.pld import chord_excess, composed_law, spectrum
from accountant.analyses.pld.atom_grid import discretise_atoms
from accountant.analyses.pld.atom_spacing import widest_spacing
from accountant.analyses.pld.chord_excess import Tilt
from accountant.analyses.pld.composed import TooWide
from accountant.analyses.pld.composed_law import ComposedLaw
from accountant.analyses.pld.fft import Tilted
from accountant.analyses.pld.grid_parts import GridPart, GridPlan
from accountant.analyses.pld.loss_grid import LossGrid
from accountant.analyses.pld.saddle_point import coarse_law, saddle_at_delta
from accountant.pairs.atoms import AtomicPair, Atoms
from tests.support.oracle import atom_sums

CAP = 2**28


@dataclass(frozen=True)
class Listed(AtomicPair):
    """Losses and masses as they stand."""

    loss: tuple[float, ...]
    mass: tuple[float, ...]

    def atoms(self):
        loss, mass = np.array(self.loss), np.array(self.mass)
        return Atoms(loss, mass, mass * np.exp(-loss), 0.0, 0.0, 2.0**-50, 0.0)

    @property
    def lattice(self):
        """None, also of two losses, so that a grid need not contain them."""
        return None


def listed(generator, size):
    """Return a pair with random masses over three decades, at random losses."""
    mass = np.array([10.0 ** generator.uniform(-3.0, 0.0) for _ in range(size)])
    loss = np.array(sorted(generator.gauss(0.0, 1.0) for _ in range(size)))
    loss *= generator.choice([0.01, 0.3, 1.0, 3.0])
    mass /= mass.sum()
    # The masses under Q add up to one, and a little is taken from those under P.
    loss += math.log(float((mass * np.exp(-loss)).sum()))
    return Listed(tuple(loss.tolist()), tuple((mass * (1.0 - 1e-12)).tolist()))


def composed(parts, delta, cells):
    """Return a composition on so many cells for each loss, and its saddle point."""
    laws = [GridPart(pair, n, coarse_law(pair, n), None, False) for pair, n in parts]
    saddle = saddle_at_delta([part.law for part in laws], delta)
    widest = max(pair.loss[-1] - pair.loss[0] for pair, _ in parts)
    plan = GridPlan(saddle, widest / cells, -60.0 + min(saddle.log_delta, 0.0), -40.0)
    return ComposedLaw(laws, plan, CAP), saddle


def places(generator, parts, saddle):
    """Return values of ε: by the saddle point, anywhere, and where the excess has its kinks."""
    yield saddle.epsilon
    yield saddle.epsilon + generator.uniform(-2.0, 2.0) * saddle.deviation
    for _ in range(3):
        yield math.fsum(generator.choice(pair.loss) for pair, n in parts for _ in range(n))


def check(generator, parts, cells):
    """Assert the bracket, with no tolerance."""
    law, saddle = composed(parts, 10.0 ** generator.uniform(-9.0, -0.5), cells)
    rows = [(pair.loss, pair.mass, n) for pair, n in parts]
    for epsilon in places(generator, parts, saddle):
        truth = atom_sums.profile(rows, epsilon)
        lower, upper = law.delta_lower(epsilon), law.delta_upper(epsilon)
        assert not arb(lower) > truth, (parts, cells, epsilon)
        assert not arb(upper) < truth, (parts, cells, epsilon)


@pytest.mark.long(keep=51)
@pytest.mark.parametrize("seed", range(60))
def test_one_part(seed):
    generator = random.Random(seed)
    size = generator.choice([2, 3, 4, 5])
    count = generator.choice([1, 2, 5, 20, 60] if size < 4 else [1, 2, 5, 9])
    cells = generator.choice([1.5, 4.0, 10.0, 33.0, 100.0, 1000.0]) * generator.uniform(0.8, 1.2)
    check(generator, [(listed(generator, size), count)], cells)


@pytest.mark.parametrize("seed", range(20))
def test_several_parts(seed):
    """Releases before the one exchanged have their own losses, those after it the grid's."""
    generator = random.Random(1000 + seed)
    shapes = [(generator.choice([2, 3]), generator.choice([1, 3, 6])), (2, 4), (3, 2)]
    parts = [(listed(generator, size), count) for size, count in shapes]
    check(generator, parts, generator.choice([3.0, 30.0, 300.0]))


@pytest.fixture
def small(monkeypatch):
    """Let small problems be answered by the frequencies that are not certainly negligible."""
    for name, value in {"LEAST": 2, "SHARE": 1.0, "CORE": 6, "NARROW": 10**9}.items():
        monkeypatch.setattr(spectrum, name, value)


@pytest.mark.long(keep=9)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(16))
def test_many_releases_by_few_frequencies(seed):
    generator = random.Random(500 + seed)
    parts = [(listed(generator, 3 if seed % 2 else 2), generator.choice([60, 90]))]
    if seed % 3 == 0:
        parts = [(parts[0][0], 60), (listed(generator, 2), generator.choice([1, 30]))]
    check(generator, parts, generator.choice([3.0, 12.0, 60.0]))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_out_is_negligible(seed, monkeypatch):
    generator = random.Random(seed)
    parts = [(listed(generator, generator.choice([3, 4])), generator.choice([200, 3000]))]
    if seed % 3 == 0:
        parts.append((listed(generator, 3), 1))
    delta = 10.0 ** generator.uniform(-9.0, -0.5)
    few, saddle = composed(parts, delta, 40.0)
    seen = few._lower.excess.frequency.size
    monkeypatch.setattr(chord_excess, "node_count", lambda longest, size: None)
    every, _ = composed(parts, delta, 40.0)
    assert seen <= every.size
    for shift in (-1.0, 0.0, 1.3):
        given = every._lower.excess, few._lower.excess
        at = saddle.epsilon + shift * saddle.deviation - every._origins
        one, other = (each.at(at, 0.0) for each in given)
        assert abs(one - other) <= given[0].error + given[1].error + 1e-9 * one


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000))
def test_many(seed):
    generator = random.Random(10**6 + seed)
    size = generator.choice([2, 3, 4, 5])
    parts = [(listed(generator, size), generator.choice([1, 2, 4, 8]))]
    if seed % 3 == 0:
        parts.append((listed(generator, 2), generator.choice([1, 2, 20])))
    check(generator, parts, 10.0 ** generator.uniform(0.0, 4.0))


def bump(share, spacing, x):
    """Return the chord minus the profile of one loss of mass 1 a ``share`` of the way, exactly.

    All in x = e^ε: the cell is [1, 1 + spacing].
    """
    end, y = 1 + spacing, 1 + share * spacing

    def profile(x, at):
        return max(1 - x / at, Fraction(0))

    # Masses of the two ends that keep those under P and Q.
    b = (1 - Fraction(1) / y) / (1 - Fraction(1) / end)
    return b * profile(x, end) + (1 - b) * profile(x, Fraction(1)) - profile(x, y)


@pytest.mark.parametrize("spacing", [Fraction(1, 1000), Fraction(1, 7), Fraction(5)])
def test_bumps_are_below_their_tents(spacing):
    """Step (2) of the proof in rational arithmetic, but for the logarithms of the abscissae."""
    width = arb(1 + spacing.numerator / arb(spacing.denominator)).log()
    assert bump(Fraction(1, 3), spacing, Fraction(1, 2)) == 0
    assert bump(Fraction(1, 3), spacing, 2 + spacing) == 0
    for i in range(1, 10):
        share = Fraction(i, 10)
        top = bump(share, spacing, 1 + share * spacing)
        assert top > 0
        at = _log(1 + share * spacing)
        for j in range(41):
            x = 1 + spacing * Fraction(j, 40)
            distance = _log(x) - at
            tent = 1 - abs(distance) / width
            assert not _ball(bump(share, spacing, x)) > _ball(top) * width.exp() * tent


def _ball(x):
    return arb(x.numerator) / arb(x.denominator)


def _log(x):
    return _ball(x).log()


def check_often(seed, size, count, cells):
    generator = random.Random(seed)
    for _ in range(200):
        check(generator, [(listed(generator, size), count)], generator.uniform(*cells))


def test_the_bound_is_needed(monkeypatch):
    """Without it the lower end is above the truth: the chords do exceed the profile."""
    monkeypatch.setattr(chord_excess.ChordExcess, "at", lambda *_: 0.0)
    with pytest.raises(AssertionError):
        check_often(5, 3, 5, (10.0, 10.0))


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_bound_too_small_is_noticed(monkeypatch, share):
    """Of one release of few losses the bound is nearly attained at the kinks."""
    full = chord_excess.ChordExcess.at
    monkeypatch.setattr(chord_excess.ChordExcess, "at", lambda *a: share * full(*a))
    with pytest.raises(AssertionError):
        check_often(6, 2, 1, (2.0, 200.0))


@pytest.mark.parametrize("shift", [-1e-12, 0.0, 1e-12])
def test_ends_of_the_grid(shift):
    """Losses at, below and beyond the ends: nothing is lost above, nothing added below."""
    loss, mass = np.array([-2.0, -1.0, 0.6, 1.0 + shift, 3.0]), np.full(5, 0.2)
    table = Atoms(loss, mass, mass, 0.125, 0.0, 2.0**-50, 0.0)
    law = discretise_atoms(table, LossGrid(0.0, 0.25, -4, 4), bounded=True, snap=False)
    assert law.upper.sum() + law.infinite_upper >= 1.0 + 0.125
    above = 2 if shift > 1e-9 else 1
    assert law.infinite_upper == pytest.approx(0.125 + 0.2 * above)
    assert law.lower.sum() == pytest.approx(0.8)  # the loss below is dropped
    assert law.lower.sum() <= 0.8
    assert law.atoms.mass.sum() <= 0.8
    assert law.atoms.past.max() <= 0.25


def test_spacings_put_heavy_losses_on_knots():
    loss = np.array([0.0, 0.1, 1.0 / math.pi, math.sqrt(2.0)])
    mass = np.array([0.6, 0.3, 0.0999, 0.0001])
    table = Atoms(loss, mass, mass, 0.0, 0.0, 0.0, 0.0)
    spacing = widest_spacing([(table, 7)], 1.0, 0.004)
    assert spacing > 0.005
    weights = mass * np.exp(loss)
    weights /= weights.sum()
    share = loss / spacing % 1.0
    assert (share * (1.0 - share)) @ weights * spacing**2 <= 0.004**2 / 6.0 * (1.0 + 1e-9)


# Middles of brackets that grids of several spacings agree on: no oracle sums so many outcomes.
CLAIMS = [
    (ac.DiscreteGaussian(1.0), 0.01, 30, 1e-5, 0.528270899),
    (ac.DiscreteGaussian(1.0), 0.01, 1000, 1e-5, 1.82823950),
    (ac.DiscreteGaussian(1.0), 0.01, 10**5, 1e-5, 25.573107),
    (ac.DiscreteGaussian(1.0), 0.001, 30, 1e-5, 0.03431662),
    (ac.DiscreteGaussian(1.0), 0.001, 1000, 1e-5, 0.14883775),
    (ac.DiscreteGaussian(1.0), 0.001, 1000, 1e-10, 0.5384204),
    (ac.DiscreteGaussian(1.0), 0.001, 10**5, 1e-10, 2.5902481),
    (ac.DiscreteLaplace(3.0, sensitivity=3), 0.01, 1000, 1e-5, 1.1462669),
    (ac.DiscreteLaplace(3.0, sensitivity=3), 0.001, 10**5, 1e-10, 1.8002470),
    (ac.RandomizedResponse(1.0, k=5), 0.01, 1000, 1e-10, 1.5203490),
    (ac.RandomizedResponse(1.0, k=5), 0.01, 10**5, 1e-5, 12.904338),
]


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(("noise", "q", "count", "delta", "middle"), CLAIMS)
def test_widths(noise, q, count, delta, middle):
    bounds = (count * ac.PoissonSampled(noise, q)).epsilon_bounds(delta)
    assert bounds.width <= 3e-6 * bounds.upper
    assert bounds.lower * (1.0 - 2e-6) <= middle <= bounds.upper * (1.0 + 2e-6)


def test_the_upper_end_is_near():
    """The truth is 1.8282394 to its last digit or one."""
    upper = (1000 * ac.PoissonSampled(ac.DiscreteGaussian(1.0), 0.01)).epsilon(1e-5)
    assert 1.8282389 <= upper <= 1.8282404


def test_rare_losses_are_left_out_of_the_plan_alone():
    """What the plan does not see goes to infinite loss, and is in both ends of the bracket."""
    pair = Listed((-0.5, 0.25, 1.0, 9.0), (0.4, 0.5, 0.1 - 1e-9, 1e-9))
    part = GridPart(pair, 3, coarse_law(pair, 3), None, False)
    assert part.without_rare(1e-10).law.high[-1] >= 9.0
    left = part.without_rare(1e-8)
    assert 1.0 <= left.law.high[-1] < 9.0
    assert left.seen_atoms().loss.tolist() == [-0.5, 0.25, 1.0]
    assert part.without_rare(4.0).law.loss.size == 1
    saddle = saddle_at_delta([left.law], 1e-3)
    law = ComposedLaw([left], GridPlan(saddle, 0.01, -40.0, -30.0), CAP)
    for epsilon in (0.1, 1.3, 2.0, 5.0):
        truth = atom_sums.profile([(pair.loss, pair.mass, 3)], epsilon)
        assert not arb(law.delta_upper(epsilon)) < truth
        assert not arb(law.delta_lower(epsilon)) > truth
        assert law.delta_upper(epsilon) <= 1.02 * float(truth) + 4e-9


def test_where_arrays_of_all_knots_do_not_fit_none_is_made(monkeypatch):
    powers = []

    def seen(parts, spacing, size, *, fits=True):
        powers.append((parts, spacing, size))
        return chord_excess.chord_excess(parts, spacing, size, fits=fits)

    monkeypatch.setattr(composed_law, "chord_excess", seen)
    composed([(listed(random.Random(3), 4), 20)], 1e-5, 40)
    monkeypatch.setattr(chord_excess, "_transform", None)
    assert chord_excess.chord_excess(*powers[0], fits=False) is None


def test_a_grid_that_does_not_fit_is_refused_before_the_excess_is_bounded(monkeypatch):
    monkeypatch.setattr(composed_law, "chord_excess", None)
    monkeypatch.setattr(composed_law, "few_frequencies", lambda *given: None)
    monkeypatch.setattr(composed_law, "BYTES_PER_KNOT", 2**40)
    with pytest.raises(composed_law.TooLarge):
        composed([(listed(random.Random(3), 4), 20)], 1e-5, 40)


def test_losses_are_looked_at_where_few_frequencies_matter_though_all_knots_do_not_fit():
    """A rough lower law is of first order: at this cap no grid would be within 1e-5."""
    parts = [(ac.Laplace(2.0), 10**6), (ac.DominatingPMFs((0.5, 0.3, 0.2), (0.2, 0.4, 0.4)), 10**6)]
    given = [(mechanism.pairs()[0], n) for mechanism, n in parts]
    found = pld.epsilon_bounds(given, 1e-5, memory_cap=2**28)
    assert 0.0 < found.upper - found.lower <= 1e-6 * found.upper


def test_readings_take_the_frequencies_that_count_alone():
    weight = 1.0 / 3.0
    pair = Listed((-1.0, 0.25, 0.7), (weight, weight, weight))
    few, _ = composed([(pair, 3000)], 1e-5, 40.0)
    kept = few._lower.excess
    assert 0 < kept.frequency.size <= few.size // 8
    # Those that are left are in the error.
    assert kept.error >= 0.0
    assert np.abs(kept.spectrum).min() > 0.0


def far_apart(count, width, mass=1.0):
    """Return the law of three losses many knots apart, and of their chords."""
    place = np.array([0.5, 0.4 * width + 0.5, width - 1.5])
    weights = mass * np.array([0.3, 0.4, 0.3])
    below, origin = place.astype(int), int(0.4 * width)
    chords = np.zeros(width)
    chords[below] = chords[below + 1] = 0.5 * weights
    atoms = chord_excess.TiltedAtoms(1e-6 * (place - origin), weights, np.full(3, 1e-9), 1e-15)
    return chord_excess.GridPower(Tilted(chords, 0, count), origin, atoms)


def test_few_losses_far_apart_are_summed_one_by_one_where_all_knots_do_not_fit(monkeypatch):
    size = 2**22
    parts = [
        far_apart(100, 60_000),
        chord_excess.GridPower(Tilted(np.full(400, 1.0 / 400.0), 0, 100), 200, None),
    ]
    every = chord_excess.chord_excess(parts, 1e-6, size)
    transform = np.fft.rfft

    def short(values, length=None):
        assert (length or len(values)) < size // 4, "an array of all knots"
        return transform(values, length)

    monkeypatch.setattr(np.fft, "rfft", short)
    # However many terms there are.
    for terms in (chord_excess.direct_terms, lambda weights: 2**50):
        monkeypatch.setattr(chord_excess, "direct_terms", terms)
        few = chord_excess.chord_excess(parts, 1e-6, size, fits=False)
        assert few is not None
        assert few.at(0.01, 0.0) == pytest.approx(every.at(0.01, 0.0), rel=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers_that_overflow_bound_nothing():
    """Nothing times infinity is no number, which is neither kept nor counted as left out."""
    heavy = far_apart(1000, 100, math.exp(0.8))
    light = far_apart(1000, 100, math.exp(-0.7))
    found = chord_excess.chord_excess([heavy, light], 1e-6, 2**10)
    assert found.at(0.0, 0.0) == math.inf


def test_masses_below_the_normal_doubles_keep_their_tilted_weight():
    """Their factors are above e^700, in two steps; what no mass allows is no bound."""
    tilt = Tilt(2.0, 0.0, -720.0)
    masses, distance = np.array([5e-324, 1e-310, 1e-3, 0.0]), np.array([12.0, 3.0, -400.0, 300.0])
    weights, error = tilt.weigh(masses, distance)
    for weight, mass, at, off in zip(weights, masses, distance, error, strict=True):
        exact = mpmath.mpf(float(mass)) * mpmath.exp(2 * mpmath.mpf(float(at)) + 720)
        assert abs(weight - exact) <= off * exact
    assert tilt.weigh(np.array([5e-324]), np.array([300.0]))[0] == np.inf


def test_a_delta_below_the_normal_doubles_is_not_undercut():
    """The largest loss has a mass of 4e-316, most of what is above the others."""
    sigma, q = 1.4195919060205837, 0.2499820324104296
    sampled = ac.PoissonSampled(ac.DiscreteGaussian(sigma), q)
    pair = sampled.pairs()[0]
    with mpmath.workdps(60):
        shape = [
            mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(80)
        ]
        total = shape[0] + 2 * mpmath.fsum(shape[1:])
        q_mass = [shape[abs(k)] / total for k in range(-70, 71)]
        p_mass = [(1 - mpmath.mpf(q)) * b + mpmath.mpf(q) * a for a, b in pairwise([0, *q_mass])]

        def truth(epsilon):
            grown = mpmath.exp(mpmath.mpf(epsilon))
            return mpmath.fsum(max(p - grown * b, 0) for p, b in zip(p_mass, q_mass, strict=True))

        for delta in (1e-317, 1e-320):
            try:
                found = pld.epsilon_bounds([(pair, 1)], delta)
            except TooWide as error:
                found = error.known
            for bounds in (found, sampled.epsilon_bounds(delta)):
                assert truth(bounds.upper) <= delta
                assert bounds.lower == 0.0 or truth(bounds.lower) >= delta
