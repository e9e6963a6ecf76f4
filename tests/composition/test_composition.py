"""The algebra of mechanisms and the choice of analysis, against values found another way."""

import copy
import math
import pickle
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import PoissonSampled, parallel
from accountant.composition import Composition, Parallel
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms import Gaussian, Laplace
from accountant.relations import NeighbouringRelation
from support.toy_mechanisms import Skewed

STEP = PoissonSampled(ac.Gaussian(1.1), 0.01)


def namespace():
    return {name: getattr(ac, name) for name in ac.__all__}


def test_the_example_of_the_manual():
    whole = 10_000 * STEP + ac.Gaussian(4) + ac.Laplace(2)
    assert repr(whole) == (
        "10000 * PoissonSampled(Gaussian(1.1), 0.01) + Gaussian(4.0) + Laplace(2.0)"
    )
    assert eval(repr(whole), namespace()) == whole
    lower, upper = whole.epsilon_bounds(1e-5)
    assert 5.66 < lower <= upper < 5.67
    assert upper - lower < 1e-5
    # More is spent than on the steps alone, less than by basic composition.
    assert (10_000 * STEP).epsilon(1e-5) < lower
    assert "grid" in str(whole.explain(1e-5))


@given(
    counts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=6),
    seed=st.randoms(use_true_random=False),
)
def test_composition_is_commutative_and_merges(counts, seed):
    parts = [ac.Gaussian(2.0), ac.Laplace(2.0), STEP, ac.PureDP(0.1), ac.RandomizedResponse(1.0)]
    terms = [n * parts[i] for i, n in counts]
    shuffled = list(terms)
    seed.shuffle(shuffled)

    def added(values):
        total = values[0]
        for value in values[1:]:
            total = total + value
        return total

    whole = added(terms)
    if any(n for _, n in counts):
        assert whole == added(shuffled)
        assert hash(whole) == hash(added(shuffled))
        assert eval(repr(whole), namespace()) == whole
        assert sum(n for _, n in whole.parts) == sum(n for _, n in counts)


def test_repeats():
    a = ac.Laplace(1.0)
    assert a + a + a == 3 * a == a * 3 == 2 * a + a
    assert 2 * (3 * a) == 6 * a
    assert np.int64(3) * a == 3 * a
    assert (0 * a).epsilon(1e-6) == 0.0
    assert 0 * ac.Gaussian(1.0) + a == 1 * a
    assert (1 * a).epsilon_bounds(1e-6) == a.epsilon_bounds(1e-6)
    for wrong in (10.0, True, "3", 2.5):
        with pytest.raises(TypeError):
            wrong * a
    with pytest.raises(ac.DomainError):
        -1 * a
    with pytest.raises(TypeError):
        a + 1.0


def test_mixed_relations_raise():
    replace = ac.Laplace(1.0, relation=Relation.REPLACE_ONE)
    with pytest.raises(ac.UnsupportedError, match=r"under\(relation\)"):
        ac.Gaussian(1.0) + replace
    both = ac.Gaussian(1.0).under(Relation.REPLACE_ONE) + replace
    assert both.relation is Relation.REPLACE_ONE
    with pytest.raises(ac.UnsupportedError):
        parallel(ac.Gaussian(1.0), replace)


def profile_of_responses(epsilon, count, at):
    """Return δ at ``at`` of ``count`` randomised responses, in as many digits as are set."""
    yes = 1 / (1 + mp.exp(-mpf(epsilon)))
    total = mpf(0)
    for k in range(count + 1):  # k losses +ε
        p = math.comb(count, k) * yes**k * (1 - yes) ** (count - k)
        q = math.comb(count, k) * (1 - yes) ** k * yes ** (count - k)
        total += max(p - mp.exp(mpf(at)) * q, 0)
    return total


@pytest.mark.parametrize("count", [1, 7, 60])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_randomised_response_in_high_precision(count, power):
    """Repeats are not dropped: k-fold randomised response, exactly."""
    mechanism = count * ac.RandomizedResponse(math.log(3.0))
    lower, upper = mechanism.delta_bounds(math.log(2.5) * power)
    with mp.workdps(60):
        assert lower <= profile_of_responses(math.log(3.0), count, math.log(2.5) * power) <= upper
    assert upper - lower <= 1e-4 * upper + 1e-300


def test_gaussians_merge_to_one():
    whole = 3 * ac.Gaussian(2.0) + 2 * ac.Gaussian(1.0, sensitivity=0.7) + ac.GDP(0.4)
    mu = math.sqrt(3 / 4 + 2 * 0.49 + 0.16)
    assert whole.mu() == pytest.approx(mu, rel=1e-14)
    assert whole.mu() >= mu * (1 - 1e-15)
    lower, upper = whole.epsilon_bounds(1e-6)
    one = ac.Gaussian(1.0 / mu).epsilon_bounds(1e-6)
    assert lower <= one.upper
    assert one.lower <= upper
    assert upper - lower < 1e-10 * upper
    assert whole.rho() == pytest.approx(mu**2 / 2, rel=1e-13)
    assert whole.explain(1e-6).analysis == "gaussian"


def laplace_delta(a, count, epsilon):
    """Invert the transform of the Laplace loss on a line, with plain numpy."""
    y = (np.arange(2_000_000) + 0.5) * 0.01
    s = 3.0 + 1j * y
    moment = (s * np.exp((s - 1) * a) + (s - 1) * np.exp(-s * a)) / (2 * s - 1)
    return float(
        (moment**count * np.exp(-epsilon * (s - 1)) / (s * (s - 1))).real.sum() * 0.01 / np.pi
    )


@pytest.mark.long
@pytest.mark.parametrize(("a", "count", "epsilon"), [(0.1, 100, 2.0), (0.5, 20, 4.0)])
def test_laplace_against_its_transform(a, count, epsilon):
    lower, upper = (count * ac.Laplace(1.0, sensitivity=a)).delta_bounds(epsilon)
    truth = laplace_delta(a, count, epsilon)
    # The oracle's integral ends at y = 20,000: it moves in the seventh digit.
    assert lower * (1 - 1e-6) <= truth <= upper * (1 + 1e-6)
    assert upper <= lower * (1 + 1e-4)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.1])
def test_two_and_three_laplaces_exactly(epsilon):
    """One loss at a time: the profile of k + 1 is the mean of that of k, in high precision."""
    a = mpf(0.7)

    def one(e):
        if e >= a:
            return mpf(0)
        return 1 - mp.exp((e - a) / 2) if e >= -a else 1 - mp.exp(e)

    def next_profile(profile, kinks):
        def mean(e):
            points = sorted({-a, a, *(e - k for k in kinks if -a < e - k < a)})
            inner = mp.quad(lambda x: mp.exp((x - a) / 2) / 4 * profile(e - x), points)
            return profile(e - a) / 2 + mp.exp(-a) / 2 * profile(e + a) + inner

        return mean

    mp.dps, digits = 20, mp.dps
    try:
        two = next_profile(one, [-a, a])
        three = next_profile(two, [-2 * a, 0, 2 * a])
        for count, truth in ((2, two(mpf(epsilon))), (3, three(mpf(epsilon)))):
            lower, upper = (count * ac.Laplace(1.0, sensitivity=0.7)).delta_bounds(epsilon)
            assert mpf(lower) * (1 - mpf(10) ** -14) <= truth <= mpf(upper) * (1 + mpf(10) ** -14)
            assert upper - lower <= 1e-5 * upper + 1e-300
    finally:
        mp.dps = digits


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_grid_and_contour_agree(count):
    """The same release, once as a Gaussian and once as a mixture the contour does not know."""
    for q, sigma in ((0.01, 1.0), (0.2, 3.0)):
        mixture = ac.MixtureOfGaussians(sigma, sensitivities=[0.0, 1.0], probabilities=[1.0 - q, q])
        exact = (count * PoissonSampled(ac.Gaussian(sigma), q)).delta_bounds(0.4)
        grid = (count * mixture).delta_bounds(0.4)
        assert grid.lower <= exact.upper
        assert exact.lower <= grid.upper


def test_a_schedule_goes_through_the_contour():
    schedule = sum(
        (50 * PoissonSampled(ac.Gaussian(1.0 + 0.1 * i), 0.01) for i in range(5)), 2 * ac.GDP(0.1)
    )
    assert schedule.explain(1e-5).analysis == "contour"
    lower, upper = schedule.epsilon_bounds(1e-5)
    assert upper - lower < 1e-7 * upper
    # One part as a mixture of shifts.
    mixed = schedule + 1 * ac.MixtureOfGaussians(
        1e6, sensitivities=[0.0, 1.0], probabilities=[0.9, 0.1]
    )
    assert mixed.explain(1e-5).analysis == "mixture contour"
    assert mixed.epsilon_bounds(1e-5).lower <= upper * (1 + 1e-5)
    assert lower <= mixed.epsilon_bounds(1e-5).upper


def test_a_renyi_part_is_bounded_with_the_others_and_apart():
    whole = 100 * STEP + ac.ZCDP(0.05)
    assert whole.explain(1e-5).analysis == "combined"
    # The part may release nothing, so that the lower end is that of the others.
    assert whole.epsilon_bounds(1e-5).lower == (100 * STEP).epsilon_bounds(1e-5).lower
    # Replacing zCDP by the Gaussian that attains it can only cost less.
    assert whole.epsilon(1e-5) > (100 * STEP + ac.Gaussian(math.sqrt(10.0))).epsilon(1e-5)
    order = 8.0
    assert whole.rdp(order) >= (100 * STEP).rdp(order) + 0.05 * order


def test_zcdp_converts_like_the_formula():
    epsilon = ac.ZCDP(0.1).epsilon(1e-6)
    orders = [1.0 + math.exp(x / 100.0) for x in range(-300, 900)]
    best = min(
        0.1 * a + math.log1p(-1 / a) - (math.log(1e-6) + math.log(a)) / (a - 1) for a in orders
    )
    assert best * (1 - 1e-4) <= epsilon <= best * (1 + 1e-4)


def test_infinite_losses_stay_apart_from_renyi():
    whole = ac.ZCDP(0.1) + 3 * ac.ApproximateDP(0.0, delta=1e-6)
    assert whole.epsilon(1e-6) == math.inf
    assert whole.epsilon(1e-5) >= ac.ZCDP(0.1).epsilon(7.0001e-6)
    assert whole.epsilon(1e-5) <= ac.ZCDP(0.1).epsilon(6.999e-6)
    assert whole.rdp(2.0) == math.inf
    assert 3e-6 * (1 - 1e-5) <= whole.delta(math.inf) <= 3e-6


def test_pure_epsilon_at_zero_delta():
    whole = 3 * ac.Laplace(2.0) + ac.RandomizedResponse(0.25)
    assert whole.epsilon(0.0) == 1.75
    assert whole.delta(2.0) == 0.0
    assert ac.Gaussian(1.0).epsilon(0.0) == math.inf
    assert ac.Gaussian(1.0).epsilon_bounds(0.0).lower == math.inf


def test_parallel_pays_for_the_worst_branch():
    a, b = 10 * ac.Laplace(1.0), 3 * ac.Gaussian(1.0)
    both = parallel(a, b)
    assert both.epsilon(1e-5) == max(a.epsilon(1e-5), b.epsilon(1e-5))
    assert both == parallel(b, a)
    assert eval(repr(both), namespace()) == both
    assert both.rdp(3.0) == max(a.rdp(3.0), b.rdp(3.0))
    assert (both + ac.Gaussian(2.0)).epsilon(1e-5) == max(
        (a + ac.Gaussian(2.0)).epsilon(1e-5), (b + ac.Gaussian(2.0)).epsilon(1e-5)
    )
    # Twice: the worst of three splits.
    one, other = ac.Laplace(1.0), ac.Gaussian(1.0)
    assert (2 * parallel(one, other)).epsilon(1e-5) == max(
        whole.epsilon(1e-5) for whole in (2 * one, one + other, 2 * other)
    )
    # In too many ways to try all: no less than the sets that are the same each time, and not much
    # more, for the worst branch is nearly the worst each time.
    least = parallel(1000 * one, 1000 * other).epsilon_bounds(1e-5).lower
    assert least <= (1000 * parallel(one, other)).epsilon(1e-5) <= 1.05 * least
    with pytest.raises(ac.UnsupportedError, match="two branches"):
        parallel(one.under(Relation.REPLACE_ONE), other.under(Relation.REPLACE_ONE))


@settings(max_examples=15)
@given(st.floats(0.0, 1.0))
def test_tradeoff_of_a_gaussian(fpr):
    """Below Φ(Φ⁻¹(1 - x) - μ), closely."""
    found = ac.Gaussian(1.0).tradeoff(fpr)
    if fpr in (0.0, 1.0):
        assert found == pytest.approx(1.0 - fpr, abs=1e-9)
        return
    if fpr <= 1e-15:
        return
    with mp.workdps(60):
        quantile = mp.sqrt(2) * mp.erfinv(1 - 2 * mpf(fpr))
        truth = mp.ncdf(quantile - 1)
        assert found <= truth * (1 + mpf(10) ** -30) + mpf(10) ** -30
        assert found >= float(truth) - 1e-4


def test_tradeoff_takes_both_directions():
    remove, add = STEP.pairs()
    assert remove != add
    values = [(50 * STEP).tradeoff(x) for x in (0.01, 0.1, 0.5)]
    assert all(a > b for a, b in pairwise(values))


def test_explain_adds_up():
    whole = 200 * STEP + 5 * ac.Laplace(3.0)
    found = whole.explain(1e-6)
    assert found.epsilon == whole.epsilon_bounds(1e-6)
    assert sum(part.share for part in found.contributions) == pytest.approx(1.0)
    assert {part.mechanism for part in found.contributions} == {STEP, ac.Laplace(3.0)}
    assert "ε ≤" in str(found)


def test_bad_questions():
    asked = [(STEP.epsilon, (-1e-9, 1.0, math.nan)), (STEP.delta, (-0.1, math.nan))]
    asked += [(STEP.rdp, (1.0,)), (STEP.tradeoff, (1.5,)), (ac.Composition, ((),))]
    for question, values in asked:
        for bad in values:
            with pytest.raises(ac.DomainError):
                question(bad)
    with pytest.raises(ac.ArgumentTypeError):
        ac.Composition(((1.0, 2),))


@pytest.mark.parametrize(
    ("mechanism", "largest"),
    [
        (3 * ac.Laplace(2.0), 1.5),
        (2 * ac.RandomizedResponse(0.7) + ac.Laplace(1.0), 2.4),
        (4 * ac.PoissonSampled(ac.Laplace(1.0), 0.5), 4.0 * math.log1p(0.5 * math.expm1(1.0))),
        (ac.DiscreteLaplace(4.0) + ac.PureDP(0.5), 0.75),
    ],
)
def test_bounded_losses_at_delta_zero(mechanism, largest):
    bounds = mechanism.epsilon_bounds(0.0)
    assert bounds.lower <= largest
    assert largest <= bounds.upper <= largest * (1 + 1e-9) + 0.3 * ("Poisson" in repr(mechanism))
    assert bounds.lower >= bounds.upper * (1 - 1e-6)


def _few(steps):
    parts = [PoissonSampled(ac.Gaussian(0.8 + 0.002 * k), 0.01) for k in range(steps)]
    return ac.Composition(tuple((part, 1) for part in parts)), steps * parts[0]


def test_a_few_different_steps_are_as_tight_as_the_grid():
    mechanism, costlier = _few(8)
    bounds = mechanism.epsilon_bounds(1e-5)
    assert bounds.upper - bounds.lower <= 1e-6 * bounds.upper
    assert bounds.lower <= costlier.epsilon_bounds(1e-5).upper


def test_more_different_steps_are_as_tight_as_renyi():
    mechanism, costlier = _few(60)
    # the contour alone: tens; Rényi loses up to a factor of three here
    assert mechanism.epsilon_bounds(1e-5).upper <= 4.0 * costlier.epsilon_bounds(1e-5).upper


def test_an_equal_question_has_an_equal_answer():
    release = ac.sampling.WithReplacementSampled(
        2.0, batch_size=5, dataset_size=100, relation=ac.NeighbouringRelation.REPLACE_ONE
    )
    for mechanism in (release, 3 * ac.PoissonSampled(ac.DiscreteGaussian(2.0), 0.01)):
        first = mechanism.epsilon_bounds(1e-5)
        assert all(mechanism.epsilon_bounds(1e-5) == first for _ in range(4))


def test_a_sum_of_many_mechanisms_is_built_in_linear_time():
    sigmas = [1.0 + i / 20_000 for i in range(20_000)]
    began = time.process_time()
    together = sum((ac.Gaussian(sigma) for sigma in sigmas), start=0 * ac.Gaussian(7.0))
    assert [part.noise_multiplier for part, _ in together.parts] == sigmas
    assert time.process_time() - began < 5.0  # a minute and more, where every sum copies its parts
    unread = sum((ac.Gaussian(sigma) for sigma in sigmas), start=0 * ac.Gaussian(7.0))
    assert pickle.loads(pickle.dumps(unread)) == copy.copy(unread) == together


def test_directions_are_kept_apart():
    mixed = 3 * Skewed(0.25, 0.5) + Skewed(1.0, 0.125) + 2 * Skewed(0.0, 1.0)
    remove, add = mixed.pairs()
    assert remove.rdp(2.0) == 2 * (3 * 0.25 + 1.0)
    assert add.rdp(2.0) == 2 * (3 * 0.5 + 0.125 + 2.0)
    assert len((2 * Gaussian(1.0)).pairs()) == 1
    remove, add = Parallel((Skewed(0.25, 0.5), Skewed(1.0, 0.125))).pairs()
    assert (remove.rdp(2.0), add.rdp(2.0)) == (2.0, 1.0)
    assert len(Parallel((Gaussian(1.0), Gaussian(2.0))).pairs()) == 1


def test_counts_of_parts():
    a, b = Gaussian(1.0), Laplace(2.0)
    assert (a + a + 0 * b).parts == ((a, 2),)
    assert (0 * a + 0 * b).parts == ((a, 0),)
    assert (2 * (a + 3 * b) + b).parts == ((a, 2), (b, 7))
    assert (2**53 * a).parts == ((a, 2**53),)
    for build in (lambda: 2**53 * a + a, lambda: (2**53 + 1) * a, lambda: Composition(())):
        with pytest.raises(DomainError):
            build()
    with pytest.raises(DomainError):
        Parallel(())
    for build in (
        lambda: Parallel((a, a.under(NeighbouringRelation.REPLACE_ONE))),
        lambda: Parallel((a.under(NeighbouringRelation.REPLACE_ONE),)),
        lambda: a + a.under(NeighbouringRelation.REPLACE_ONE),
    ):
        with pytest.raises(UnsupportedError):
            build()
    assert repr(1 * a) == "1 * Gaussian(1.0)"
    assert repr(2 * a + b) == "2 * Gaussian(1.0) + Laplace(2.0)"
