"""The grid: brackets against ball arithmetic, with zero tolerance on the unsafe side."""

import math
import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb

from accountant.analyses import pld
from accountant.analyses.contour import core as contour
from accountant.bounds import Bounds
from accountant.errors import DomainError, PrecisionError
from support.grid_pairs import (
    Atoms,
    Gaussian,
    Laplace,
    SubsampledGaussian,
    discrete_gaussian,
    randomized_response,
)
from support.oracle import composed as oracle
from support.oracle import compositions as laws

DELTAS = (0.2, 1e-3, 1e-6, 1e-15, 1e-30)
COUNTS = (1, 2, 7, 100, 1000, 100_000)


def assert_epsilon(bounds, truth, delta, width=1e-6):  # width None: any
    """``truth`` is the exact profile; ε(delta) lies between the ends, and they are close."""
    lower, upper = bounds
    assert truth(upper) <= delta
    assert lower == 0.0 or truth(lower) >= delta
    assert width is None or upper - lower <= width * upper


def assert_delta(bounds, truth):
    lower, upper = bounds
    assert arb(lower) <= truth
    assert truth <= arb(upper)


def assert_both(parts, truth, delta):
    bounds = pld.epsilon_bounds(parts, delta)
    assert_epsilon(bounds, truth, delta)
    epsilon = 0.8 * bounds.upper
    assert_delta(pld.delta_bounds(parts, epsilon), truth(epsilon))


@oracle.precision(400)
def outcomes(p, q, count, epsilon):
    return laws.profile(laws.power(laws.masses(p, q), count), epsilon)


class TestSoundAndTight:
    @pytest.mark.long(keep=57)
    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("count", COUNTS)
    @pytest.mark.parametrize("eps0", [1e-3, 0.1, 1.0, 5.0])
    def test_randomized_response(self, eps0, count, delta):
        if count == 100_000 and (eps0, delta) != (0.1, 1e-6):
            pytest.skip("the oracle takes its time; once is enough")

        parts = [(randomized_response(eps0), count)]
        assert_both(parts, partial(oracle.randomized_response, eps0, count), delta)

    @pytest.mark.long(keep=17)
    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("count", [1, 2, 5, 12])
    @pytest.mark.parametrize("scale", [0.2, 1.0, 30.0, 1000.0])
    def test_laplace(self, scale, count, delta):
        assert_both([(Laplace(scale), count)], partial(oracle.laplace, scale, count), delta)

    @pytest.mark.long(keep=10)
    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("count", COUNTS)
    @pytest.mark.parametrize("total", [0.01, 1.0, 4.0])
    def test_gaussian(self, total, count, delta):
        if count == 100_000 and total == 0.01:
            pytest.skip(
                "the masses' own relative error, 1e-13 a step, is worth more than the width"
            )
        mu = total / math.sqrt(count)
        assert_both([(Gaussian(mu), count)], partial(oracle.gaussian, mu, count=count), delta)

    @pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-15, 1e-30])
    @pytest.mark.parametrize("count", [1, 10, 1000, 100_000])
    @pytest.mark.parametrize("sigma", [0.7, 5.0, 100.0])
    def test_width_of_discrete_gaussian(self, sigma, count, delta):
        lower, upper = pld.epsilon_bounds([(discrete_gaussian(sigma), count)], delta)
        assert 0.0 <= upper - lower <= 1e-6 * upper

    @pytest.mark.parametrize("scale", [1e2, 1e4])
    def test_tiny_epsilon_after_many_compositions(self, scale):
        lower, upper = pld.epsilon_bounds([(Laplace(scale), 100_000 if scale > 1e3 else 10)], 1e-3)
        assert 0.0 < lower <= upper <= lower * (1 + 1e-6)

    @pytest.mark.long(keep=1)
    @pytest.mark.parametrize("add", [False, True])
    @pytest.mark.parametrize(
        ("q", "sigma", "steps", "delta"),
        [
            (0.01, 1.0, 1000, 1e-6),
            (0.1, 3.0, 500, 1e-5),
            (0.01, 1.0, 10, 1e-15),
            (0.3, 0.8, 3, 1e-8),
        ],
    )
    def test_subsampled_gaussian_overlaps_the_contour(self, q, sigma, steps, delta, add):
        bounds = pld.epsilon_bounds([(SubsampledGaussian(q, sigma, add), steps)], delta)
        direction = contour.ADD if add else contour.REMOVE
        lower, upper = contour.epsilon_bounds(q, sigma, float(steps), delta, direction)
        assert bounds.lower <= upper
        assert lower <= bounds.upper
        assert bounds.width <= 1e-6 * bounds.upper

    def test_subsampled_gaussian_reference(self):
        # (q=.01, sigma=1, n=1000, eps=1): 0.00261242057862
        lower, upper = pld.delta_bounds([(SubsampledGaussian(0.01, 1.0), 1000)], 1.0)
        assert lower <= 0.00261242057863
        assert upper >= 0.00261242057861
        assert upper <= lower * (1 + 5e-6)


class TestRandomCompositions:
    @pytest.mark.long
    def test_rational_atoms(self):
        rng = random.Random(1)
        for _ in range(150):
            size, count = rng.randint(2, 4), rng.randint(1, 6)
            parts = [[rng.randint(1, 50) for _ in range(size)] for _ in range(2)]
            p, q = ([Fraction(m, sum(part)) for m in part] for part in parts)
            epsilon = rng.uniform(0.0, 2.0)
            truth = outcomes(p, q, count, epsilon)
            pair = Atoms([float(m) for m in p], [float(m) for m in q])
            try:
                bounds = pld.delta_bounds([(pair, count)], epsilon, tolerance=1e-3)
            except PrecisionError:
                continue  # a kink at epsilon; nothing was claimed
            assert_delta(bounds, truth)

    @pytest.mark.long
    def test_randomized_response_everywhere(self):
        rng = random.Random(2)
        for _ in range(300):
            eps0 = 10 ** rng.uniform(-3, 1)
            count = int(10 ** rng.uniform(0, 3))
            delta = 10 ** rng.uniform(-30, -0.2)
            truth = lambda e, a=eps0, k=count: oracle.randomized_response(a, k, e, 400)  # noqa: E731
            parts = [(randomized_response(eps0), count)]
            assert_epsilon(pld.epsilon_bounds(parts, delta), truth, delta, width=None)

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("seed", "problems"), [(3, 15), pytest.param(4, 100, marks=pytest.mark.slow)]
    )
    def test_a_composed_gaussian_is_a_gaussian(self, seed, problems):
        rng = random.Random(seed)
        for _ in range(problems):
            mus = [10 ** rng.uniform(-2, 0.3) for _ in range(rng.randint(1, 3))]
            counts = [rng.randint(1, 40) for _ in mus]
            total = sum((arb(m) ** 2 * k for m, k in zip(mus, counts, strict=True)), arb(0)).sqrt()
            delta = 10 ** rng.uniform(-25, -1)
            parts = [(Gaussian(m), k) for m, k in zip(mus, counts, strict=True)]
            assert_epsilon(
                pld.epsilon_bounds(parts, delta), lambda e, m=total: oracle.gaussian(m, e), delta
            )

    @pytest.mark.long
    def test_splitting_a_count_changes_nothing(self):
        for pair in (Laplace(2.0), discrete_gaussian(2.0), SubsampledGaussian(0.05, 1.0)):
            whole = pld.epsilon_bounds([(pair, 30)], 1e-6)
            split = pld.epsilon_bounds([(pair, 11), (pair, 19)], 1e-6)
            assert whole.lower <= split.upper
            assert split.lower <= whole.upper

    def test_incommensurate_lattices(self):
        kinds = (1.0, 3), (math.sqrt(2.0), 2)
        law = laws.product([laws.power(laws.response(e), n) for e, n in kinds])
        parts, truth = [(randomized_response(e), n) for e, n in kinds], partial(laws.profile, law)
        for delta in (1e-1, 1e-2, 1e-9):
            assert_epsilon(pld.epsilon_bounds(parts, delta), truth, delta)


class TestAtInfinity:
    def test_mass_at_infinity_is_added(self):
        p = [Fraction(9, 10) * Fraction(3, 4), Fraction(9, 10) * Fraction(1, 4), Fraction(1, 10)]
        q = [Fraction(1, 4), Fraction(3, 4), Fraction(0)]
        lattice = (math.log(0.3), math.log(9.0))
        pair = Atoms([float(m) for m in p], [float(m) for m in q], lattice)
        for epsilon in (0.0, 0.5, 2.0, 10.0):
            bounds = pld.delta_bounds([(pair, 3)], epsilon)
            assert_delta(bounds, outcomes(p, q, 3, epsilon))

    def test_epsilon_is_infinite_below_it(self):
        pair = Atoms([0.9, 0.1], [1.0, 0.0])
        assert pld.epsilon_bounds([(pair, 2)], 0.15) == Bounds(math.inf, math.inf)
        assert pld.epsilon_bounds([(pair, 2)], 0.2).upper == 0.0

    def test_infinite_epsilon(self):
        assert pld.delta_bounds([(Gaussian(1.0), 2)], math.inf) == Bounds(0.0, 0.0)


class TestFace:
    def test_nothing_composed(self):
        assert pld.epsilon_bounds([], 1e-6) == Bounds(0.0, 0.0)
        assert pld.delta_bounds([(Laplace(1.0), 0)], 0.0) == Bounds(0.0, 0.0)

    def test_one_object_answers_the_whole_profile(self):
        composed = pld.Composed([(Laplace(1.0), 10)])
        previous = 1.0
        for epsilon in np.linspace(0.0, 9.9, 12):
            bounds = composed.delta_bounds(float(epsilon))
            assert bounds.lower <= previous
            assert_delta(bounds, oracle.laplace(1.0, 10, float(epsilon)))
            previous = bounds.upper

    def test_refuses_what_does_not_fit(self):
        with pytest.raises(PrecisionError, match=r"memory_cap.*Raise memory_cap"):
            pld.epsilon_bounds([(Laplace(1.0), 10_000)], 1e-6, tolerance=1e-9, memory_cap=2**22)

    @pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
    def test_refuses_a_bad_delta(self, delta):
        with pytest.raises(DomainError):
            pld.epsilon_bounds([(Laplace(1.0), 1)], delta)

    def test_refuses_a_float_count(self):
        with pytest.raises(TypeError):
            pld.epsilon_bounds([(Laplace(1.0), 2.0)], 1e-3)


class TestFarFromItsReach:
    """Whatever is asked, a valid bracket or PrecisionError, and no warning from arithmetic."""

    MIXES = (
        [(Gaussian(100.0), 100), (Laplace(4.0), 1)],  # losses of half a million
        [(Gaussian(1.0), 1)],
        [(Laplace(1.0), 10)],
        [(Laplace(1e-3), 1), (Gaussian(0.2), 1)],
        [(Laplace(1e6), 1), (Gaussian(1e-6), 1)],
        [(randomized_response(20.0), 3)],
        [(SubsampledGaussian(0.01, 1.0), 1000), (Laplace(3.0), 1)],
    )

    @staticmethod
    def asked(question):
        try:
            with np.errstate(all="raise", under="ignore"):
                return question()
        except PrecisionError:
            return None

    @pytest.mark.long(keep=6)
    @pytest.mark.parametrize("parts", MIXES)
    def test_of_delta(self, parts):
        composed, least = pld.Composed(parts, tolerance=1e-3), 1.0
        for epsilon in (0.0, 1.0, 30.0, 100.0, 1e3, 1e5, 1e6, 1e8, 1e300):
            bounds = self.asked(lambda e=epsilon: composed.delta_bounds(e))
            if bounds is not None:
                assert 0.0 <= bounds.lower <= bounds.upper <= 1.0
                assert bounds.lower <= least  # the profile falls
                least = min(least, bounds.upper)
        assert least <= 1e-100

    @pytest.mark.long(keep=3)
    @pytest.mark.parametrize("parts", MIXES)
    def test_of_epsilon(self, parts):
        composed, least = pld.Composed(parts, tolerance=1e-3), math.inf
        for delta in (1e-320, 1e-300, 1e-200, 1e-20, 0.1, 0.9):
            bounds = self.asked(lambda d=delta: composed.epsilon_bounds(d))
            if bounds is not None:
                assert 0.0 <= bounds.lower <= bounds.upper
                assert bounds.lower <= least
                least = bounds.upper

    @pytest.mark.parametrize("epsilon", [5.0, 9.0, 12.0, 25.0, 36.0, 38.0, 100.0])
    def test_contains_the_truth(self, epsilon):
        assert_delta(pld.delta_bounds([(Gaussian(1.0), 1)], epsilon), oracle.gaussian(1.0, epsilon))

    @pytest.mark.parametrize("total", [40.0, 80.0])
    def test_losses_beyond_the_exponentials(self, total):
        parts = [(Gaussian(total / 10.0), 100)]
        bounds = self.asked(lambda: pld.epsilon_bounds(parts, 1e-6, tolerance=0.1))
        truth = oracle.gaussian
        assert truth(total / 10.0, bounds.upper, 100) <= 1e-6
        assert truth(total / 10.0, bounds.lower, 100) >= 1e-6

    def test_a_heavy_lowest_knot_outside_the_window(self):
        # all mass of the Gaussian far below is one atom, which no tail bound sees as rare
        parts = [(Gaussian(3.0), 1), (randomized_response(0.5), 20)]
        bounds = pld.epsilon_bounds(parts, 1e-100)
        assert 0.0 < bounds.lower <= bounds.upper <= bounds.lower * (1.0 + 1e-6)


class Moved(Laplace):
    """The pair whose losses may be off."""

    loss_error = 0.01


class TestLossErrorOfPairs:
    def test_moves_both_ends_outwards(self):
        exact = pld.epsilon_bounds([(Laplace(1.0), 5)], 1e-3)
        moved = pld.epsilon_bounds([(Moved(1.0), 5)], 1e-3, tolerance=0.1)
        assert moved.lower <= exact.lower - 0.049
        assert moved.upper >= exact.upper + 0.049

    def test_below_zero(self):
        exact = pld.delta_bounds([(Laplace(1.0), 1)], 0.0)
        moved = pld.delta_bounds([(Moved(1.0), 1)], 0.0, tolerance=0.1)
        assert moved.lower < exact.lower
        assert moved.upper > exact.upper
        assert moved.upper >= oracle.laplace(1.0, 1, 0.0)
