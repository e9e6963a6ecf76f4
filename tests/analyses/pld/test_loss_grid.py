"""One part on a grid, law by law: nothing is lost, and stated errors are covered."""

import math

import mpmath
import numpy as np
import pytest

from accountant.analyses.pld import Composed
from accountant.analyses.pld.loss_grid import LossGrid, discretise, edges_around
from accountant.learn.convex.losses import Logistic
from accountant.learn.convex.mechanism import dominating_pair
from accountant.mechanisms import Gaussian, Laplace
from accountant.pairs.base import DominatingPair, Masses
from support import grid_pairs

ERROR = 1e-3


def profile(law, masses, infinite, epsilon):
    losses = law.knots.losses()
    return float((masses * np.maximum(-np.expm1(epsilon - losses), 0.0)).sum()) + infinite


@pytest.mark.parametrize("first", [-40, -5, 0])
@pytest.mark.parametrize("last", [5, 40])
@pytest.mark.parametrize("mechanism", [Laplace(0.7), Gaussian(0.8)])
def test_no_mass_is_lost_at_either_end(mechanism, first, last):
    """The grid may be shorter than the loss: what is below goes to its first knot."""
    pair = mechanism.pairs()[0]
    law = discretise(pair, LossGrid(0.0, 0.125, first, last), isinstance(mechanism, Laplace))
    assert law.upper.sum() + law.infinite_upper >= 1.0
    assert law.lower.sum() + law.infinite_lower <= 1.0
    for epsilon in (-3.0, -0.5, 0.0, 0.4):
        exact = mechanism.delta(epsilon) if epsilon >= 0.0 else None
        found = profile(law, law.upper, law.infinite_upper, epsilon - law.loss_error)
        if exact is not None:
            assert found >= exact * (1 - 1e-9)
        else:
            # H(ε) = 1 - e^ε + e^ε H(-ε): both pairs are their own reverses.
            reverse = -np.expm1(epsilon) + np.exp(epsilon) * mechanism.delta(-epsilon)
            assert found >= reverse * (1 - 1e-9)


class Blurred(DominatingPair):
    """A pair whose masses are off by all of the error it states, in the unsafe direction."""

    def __init__(self, pair, sign):
        self.pair, self.sign = pair, sign

    @property
    def support(self):
        return self.pair.support

    def masses(self, edges):
        found = self.pair.masses(edges)
        off = self.sign * ERROR
        return Masses(found.p / (1.0 + off), found.q / (1.0 - off), ERROR * (1.0 + 1e-9))


@pytest.mark.parametrize("spacing", [0.5, 0.125, 0.03])
def test_masses_off_by_their_stated_error_are_covered(spacing):
    mechanism = Gaussian(0.8)
    knots = LossGrid(0.0, spacing, -round(12.0 / spacing), round(12.0 / spacing))
    for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0):
        exact = mechanism.delta(epsilon)
        law = discretise(Blurred(mechanism.pairs()[0], 1.0), knots, False)
        assert profile(law, law.upper, law.infinite_upper, epsilon - law.loss_error) >= exact
        law = discretise(Blurred(mechanism.pairs()[0], -1.0), knots, False)
        assert profile(law, law.lower, law.infinite_lower, epsilon + law.loss_error) <= exact


class TestGridLaws:
    @pytest.mark.long(keep=1)
    @pytest.mark.parametrize("spacing", [0.3, 0.05, 0.004])
    @pytest.mark.parametrize(
        "pair",
        [
            grid_pairs.Gaussian(0.7),
            grid_pairs.Laplace(1.3),
            grid_pairs.SubsampledGaussian(0.2, 0.9, True),
        ],
        ids=lambda pair: type(pair).__name__,
    )
    def test_profiles_enclose_the_true_one_everywhere(self, pair, spacing):
        """At knots and between them, in plain arithmetic with a margin far below the gap."""
        knots = LossGrid(0.0, spacing, -math.ceil(4 / spacing), math.ceil(4 / spacing))
        law = discretise(pair, knots, False)
        t = knots.losses()
        for epsilon in np.linspace(-3.9, 3.9, 301):
            p, q, _ = pair.masses(np.array([epsilon]))
            true = p[1] - math.exp(epsilon) * q[1]
            stick = np.maximum(-np.expm1(epsilon - t), 0.0)
            assert law.lower @ stick + law.infinite_lower <= true + 1e-14
            assert law.upper @ stick + law.infinite_upper >= true - 1e-14

    def test_laws_differ_in_second_order(self):
        pair, widths = grid_pairs.Gaussian(1.0), []
        for n in (100, 200, 400):
            law = discretise(pair, LossGrid(0.0, 6.0 / n, -n, n + n // 4), False)
            t = law.knots.losses()
            stick = np.maximum(-np.expm1(0.5 - t), 0.0)
            widths.append((law.upper - law.lower) @ stick)
        assert widths[1] < 0.3 * widths[0]
        assert widths[2] < 0.3 * widths[1]

    def test_atoms_on_knots_cost_nothing(self):
        pair = grid_pairs.randomized_response(1.0)
        law = discretise(pair, LossGrid(-1.0, 2.0, 0, 1), True)
        assert law.upper == pytest.approx(law.lower, rel=1e-13)

    @pytest.mark.long(keep=6)
    @pytest.mark.parametrize("above", [1e-9, 0.1, 0.5, 0.93])
    @pytest.mark.parametrize("spacing", [0.1, 1e-2])
    @pytest.mark.parametrize("has_atoms", [False, True])
    def test_an_atom_in_the_first_cell_costs_nothing_below_it(self, above, spacing, has_atoms):
        """Its losses are those of Laplace noise: an atom at either end, the upper one on a knot."""
        most = 1.0 / 3.0
        cells = math.ceil(2.0 * most / spacing - above)
        knots = LossGrid(most, 2.0 * most / (cells - 1.0 + above), -cells, 0)
        law = discretise(Laplace(3.0).pairs()[0], knots, has_atoms)
        with mpmath.workdps(40):
            for epsilon in np.linspace(-1.2, 1.2, 31) * most:
                at = mpmath.mpf(float(epsilon))
                if epsilon < -most:
                    true = 1 - mpmath.exp(at)
                else:
                    true = max(1 - mpmath.exp((at - mpmath.mpf(1) / 3) / 2), mpmath.mpf(0))
                low = exact_profile(law, law.lower, at + law.loss_error)
                assert low <= true
                assert exact_profile(law, law.upper, at - law.loss_error) >= true or not has_atoms
                assert true - low <= (spacing**2 if epsilon < -most else spacing)


def exact_profile(law, masses, epsilon):
    """Return the finite part of a law's profile without round-off; ``epsilon`` is of mpmath."""
    knots, total = law.knots, mpmath.mpf(0)
    offset, spacing = mpmath.mpf(knots.offset), mpmath.mpf(knots.spacing)
    for i in np.flatnonzero(masses):
        loss = offset + (knots.first + int(i)) * spacing
        if loss > epsilon:
            total -= mpmath.mpf(float(masses[i])) * mpmath.expm1(epsilon - loss)
    return total


PAIR = dominating_pair(Logistic(), 1.0 / 3.0, 0.5)  # of ε = 0 with a probability of about a half


def twice(epsilon):
    """Return the profile of two releases, by quadrature over the loss of the first."""
    z = np.linspace(-9.0, 9.0, 6001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    second = [PAIR.profile(epsilon - loss).upper for loss in PAIR._loss(z).tolist()]
    return float(np.trapezoid(density * second, z))


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.3, 0.8, 2.0])
def test_a_least_loss_that_has_mass_is_not_lost_from_below(epsilon):
    assert PAIR.support[0] == 0.0
    assert PAIR.masses(np.zeros(1)).p[0] > 0.01
    found = Composed([(PAIR, 2)]).delta_bounds(epsilon)
    truth = twice(epsilon)
    assert found.lower <= truth * (1.0 + 1e-6)
    assert truth <= found.upper * (1.0 + 1e-6)
    assert found.upper - found.lower <= 2e-5 * found.upper


def test_a_million_releases_have_a_lower_end():
    found = Composed([(PAIR, 10**6)], tolerance=1e-4).epsilon_bounds(1e-6)
    assert found.upper - found.lower <= 1e-4 * found.upper


mp = mpmath.mpf


pytestmark = pytest.mark.usefixtures("sixty_digits")


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
    law = discretise(pair, knots, True)
    margin = 2.0**-40 * 2.25
    assert law.loss_error == 16 * 2.0**-53 * 2.25 + margin
    expected = [*(x - margin for x in t), *(x + margin for x in t), *(x + 0.25 for x in t[:-1])]
    assert pair.edges.tolist() == sorted(expected)


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


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("mu", [0.3, 1.1])
@pytest.mark.parametrize("has_atoms", [True, False])
def test_laws_enclose_closely(mu, has_atoms):
    knots = LossGrid(0.01, 0.05, -120, 160)
    law = discretise(grid_pairs.Gaussian(mu), knots, has_atoms)
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
