"""Replace-one has no directions: releases that lean either way, against laws written in full."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant.composition.problems import problems_of, problems_or_none, symmetrised_pairs
from accountant.derived.joint import SampledReplacement
from accountant.ledger import Accountant, Budget, Odometer

REPLACE = ac.NeighbouringRelation.REPLACE_ONE
ZERO_OUT = ac.NeighbouringRelation.ZERO_OUT
EPSILONS = (0.0, 0.3, 1.0, 2.0, 3.0, 4.0, 4.5, 5.0, 8.0)
FIXED = [
    ((0.001, 0.999), (0.1, 0.9)),
    ((0.25, 0.75), (0.5, 0.5)),
    ((0.01, 0.19, 0.8), (0.2, 0.2, 0.6)),
]


def laws(rng, outcomes):
    """Return two laws with masses in multiples of 2**-20, so that sums are exact."""
    found = []
    for _ in range(2):
        cuts = sorted(rng.sample(range(1, 2**20), outcomes - 1))
        ends = [0, *cuts, 2**20]
        found.append(tuple((b - a) / 2**20 for a, b in itertools.pairwise(ends)))
    return tuple(found)


RANDOM = [laws(random.Random(k), 2 + k % 3) for k in range(5)]


def product(laws):
    """Return the masses of a product, exactly."""
    return [math.prod(map(Fraction, row)) for row in itertools.product(*laws)]


def hockey(p, q, epsilon):
    """Return H(ε), at an e^ε rounded up: a lower bound on the truth by next to nothing."""
    scale = Fraction(math.exp(epsilon)) * (1 + Fraction(1, 2**50))
    return sum(max(a - scale * b, Fraction(0)) for a, b in zip(p, q, strict=True))


def worst(pairs, epsilon):
    """Return the largest profile over all ways the releases may lean."""
    return max(
        hockey(product(one for one, _ in row), product(two for _, two in row), epsilon)
        for row in itertools.product(*([(p, q), (q, p)] for p, q in pairs))
    )


@pytest.mark.long(keep=12)
@pytest.mark.parametrize(("p", "q"), FIXED + RANDOM)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_releases_that_lean_either_way(p, q, count):
    one = ac.DominatingPMFs(p, q, relation=REPLACE)
    for epsilon in EPSILONS:
        truth = worst([(p, q)] * count, epsilon)
        assert truth <= (count * one).delta(epsilon)


@pytest.mark.long
def test_different_releases_that_lean_either_way():
    for (p, q), (r, s) in itertools.pairwise(FIXED + RANDOM):
        both = sum(
            (ac.DominatingPMFs(*pair, relation=REPLACE) for pair in ((p, q), (r, s))),
            start=0 * ac.DominatingPMFs(p, q, relation=REPLACE),
        )
        for epsilon in EPSILONS[1::3]:
            assert worst([(p, q), (r, s)], epsilon) <= both.delta(epsilon)


def test_the_two_directions_alone_would_be_too_small():
    p, q = FIXED[0]
    there, back = ([(p, q)] * 2, [(q, p)] * 2)
    one_way = max(
        hockey(product(a for a, _ in row), product(b for _, b in row), 4.5) for row in (there, back)
    )
    assert worst([(p, q)] * 2, 4.5) > 1.8 * one_way
    # Adding and removing have an order: there they are all there is.
    assert (2 * ac.DominatingPMFs(p, q)).delta(4.5) == pytest.approx(float(one_way), rel=1e-6)


def test_a_pair_that_is_its_own_reverse_keeps_its_digits():
    symmetric = ac.DominatingPMFs((0.55, 0.45), (0.45, 0.55), relation=REPLACE)
    assert len(symmetric.pairs()) == 1
    bounds = (10 * symmetric).epsilon_bounds(1e-4)
    assert bounds == (10 * ac.DominatingPMFs((0.55, 0.45), (0.45, 0.55))).epsilon_bounds(1e-4)
    assert bounds.upper - bounds.lower < 1e-5


def divergence(p, q, order):
    moment = sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
    return math.log(moment) / (order - 1)


@pytest.mark.parametrize(("p", "q"), FIXED)
def test_budgets_and_odometers_charge_the_worse_order_each_time(p, q):
    one, order = ac.DominatingPMFs(p, q, relation=REPLACE), 3.0
    other = ac.DominatingPMFs(q, p, relation=REPLACE)
    each = max(divergence(p, q, order), divergence(q, p, order))
    for first, second in ((one, other), (one, one)):
        ledger = Accountant(Budget(40.0, 1e-6, orders=order, filter="renyi"))
        ledger.compose(first)
        ledger.compose(second)
        ledger.compose(first + second)
        assert ledger.remaining().spent >= 4 * each * (1 - 1e-12)
        # With the order fixed, an odometer adds the same to what was spent.
        reading = Odometer(1e-6, orders=[order])
        pure = max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True))
        # Nor is any above basic composition (Theorem L18).
        least = min(4 * each + math.log(1e6) / (order - 1), 4 * pure)
        assert reading.epsilon(ledger) >= least * (1 - 1e-12)
        assert reading.over_steps(ledger)[-1] >= least * (1 - 1e-12)
    assert (2 * one + other).rdp(order) >= 3 * each * (1 - 1e-12)


def test_on_a_sample_of_everybody_an_order_is_not_made_up():
    p, q = FIXED[0]
    inner = ac.DominatingPMFs(p, q, relation=REPLACE)
    whole = SampledReplacement(inner, 1.0, relation=ZERO_OUT)
    assert len(whole.pairs()) == 1
    for epsilon in EPSILONS:
        assert worst([(p, q)] * 2, epsilon) <= (2 * whole).delta(epsilon)


def test_losses_given_by_functions_lean_either_way():
    q, x = 0.2, np.linspace(-9.0, 10.0, 1201)
    (pair, _) = ac.PoissonSampled(ac.Gaussian(1.0), q).pairs()

    def tail(law, above):
        def masses(t):
            edges = np.atleast_1d(np.asarray(t, dtype=np.float64))
            rows = getattr(pair.masses(np.sort(edges)), law)
            sums = np.cumsum(rows[::-1])[::-1][1:] if above else np.cumsum(rows)[:-1]
            return sums[np.searchsorted(np.sort(edges), edges)]

        return masses

    one = ac.mechanisms.LossDistribution(
        tail("p", False), tail("p", True), tail("q", False), tail("q", True),
        losses=pair.support, relative_error=1e-12, relation=REPLACE,
    )  # fmt: skip
    assert len(symmetrised_pairs(one)) == 1
    blank = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    mixed = (1.0 - q) * blank + q * np.exp(-0.5 * (x - 1.0) ** 2) / math.sqrt(2.0 * math.pi)
    cell = (x[1] - x[0]) ** 2
    there, back = np.outer(mixed, blank), np.outer(blank, mixed)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        for p, r in ((there, back), (np.outer(mixed, mixed), np.outer(blank, blank))):
            truth = float(np.maximum(p - math.exp(epsilon) * r, 0.0).sum() * cell)
            assert truth <= (2 * one).delta(epsilon) + 1e-6


def test_the_order_in_which_releases_are_written_decides_nothing():
    """Mechanisms that sort by their numbers, by their text, and that differ in one field alone."""
    parts = [
        *(ac.PoissonSampled(ac.Gaussian(s), q) for s in (1.5, 0.7, math.inf) for q in (0.1, 0.02)),
        ac.PoissonSampled(ac.Gaussian(1.5, sensitivity=2.0), 0.1),
        ac.PoissonSampled(ac.Gaussian(0.7, sensitivity=0.5), 0.1),
        ac.PoissonSampled(ac.Gaussian(0.7), 1.0),
        ac.PoissonSampled(ac.Laplace(1.5), 0.1),
        ac.PoissonSampled(ac.PoissonSampled(ac.Gaussian(1.5), 0.1), 0.1),
        ac.Gaussian(1.5),
        ac.Gaussian(0.7),
    ]
    counted = [(part, 1 + k % 3) for k, part in enumerate(parts)]
    expected = problems_of(ac.Composition(tuple(counted)))
    for seed in range(20):
        random.Random(seed).shuffle(counted)
        assert problems_of(ac.Composition(tuple(counted))) == expected


ASYMMETRIC = ((0.001, 0.999), (0.1, 0.9))


def test_every_release_is_in_the_problem_as_often_as_it_is_made():
    """Mechanisms of equal pairs, repeated parts, and what releases nothing, against plain lists."""
    rng = random.Random(3)
    known = [
        ac.Gaussian(1.5),
        ac.Gaussian(3.0, sensitivity=2.0),
        ac.Gaussian(math.inf),
        ac.PureDP(0.2),
        ac.PureDP(0.0),
        ac.PoissonSampled(ac.Gaussian(0.7), 0.1),
        ac.PoissonSampled(ac.Laplace(1.5), 0.1),
        ac.DominatingPMFs(*ASYMMETRIC),
    ]
    for _ in range(30):
        parts = tuple((rng.choice(known), rng.randrange(1, 5)) for _ in range(rng.randrange(1, 7)))
        expected = []
        for place in (0, -1):
            counts = {}
            for mechanism, n in parts:
                pair = mechanism.pairs()[place]
                if pair.pure_epsilon > 0.0:
                    counts[pair] = counts.get(pair, 0) + n
            if counts not in expected:
                expected.append(counts)
        made = problems_of(ac.Composition(parts))
        found = [dict(each) for each in made]
        assert [len(each) for each in found] == [len(each) for each in made]
        assert found == expected


def test_equal_pairs_of_different_mechanisms_are_added_up():
    alike = [
        (ac.Gaussian(1.5), ac.Gaussian(3.0, sensitivity=2.0)),
        (ac.Laplace(2.0), ac.PoissonSampled(ac.Laplace(2.0), 1.0)),
        (ac.PureDP(0.5), ac.RandomizedResponse(0.5)),
    ]
    for one, same in alike:
        assert one != same
        assert problems_of(3 * one + 4 * same) == (((one.pairs()[0], 7),),)
    # What is met in several of disjoint sets, and beside them, is met as often as all together.
    (p, q), (r, s) = ASYMMETRIC, FIXED[1]
    often, once = ac.DominatingPMFs(p, q), ac.DominatingPMFs(r, s)
    run = often + 2 * ac.parallel(often, once, adaptive=False)
    for epsilon in EPSILONS:
        assert split([(p, q)], 3, epsilon) <= run.delta(epsilon)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_worse_direction_is_among_the_problems(count):
    for p, q in (ASYMMETRIC, ASYMMETRIC[::-1]):
        run = count * ac.DominatingPMFs(p, q)
        assert len(problems_of(run)) == 2
        for epsilon in EPSILONS:
            there, back = product([p] * count), product([q] * count)
            truth = max(hockey(there, back, epsilon), hockey(back, there, epsilon))
            assert truth <= run.delta(epsilon)


def split(laws, count, epsilon):
    """Return the largest profile over all ways to meet one of several laws at each release."""
    found = Fraction(0)
    for row in itertools.product(laws, repeat=count):
        p, q = product(one for one, _ in row), product(two for _, two in row)
        found = max(found, hockey(p, q, epsilon), hockey(q, p, epsilon))
    return found


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_way_to_meet_disjoint_sets_is_among_the_problems(count):
    laws = [*FIXED[:2], ((0.3, 0.7), (0.6, 0.4))]
    branches = [ac.DominatingPMFs(p, q) for p, q in laws]
    run = count * ac.parallel(*branches, adaptive=True)
    for epsilon in EPSILONS:
        assert split(laws, count, epsilon) <= run.delta(epsilon)


@pytest.mark.long
def test_too_many_ways_are_charged_at_the_worst_of_each_release():
    laws = [((0.5 - k / 64, 0.5 + k / 64), (0.5, 0.5)) for k in range(2, 14)]
    once = ac.parallel(*(ac.DominatingPMFs(p, q) for p, q in laws))
    run = 3 * once
    assert problems_or_none(run) == ()
    assert problems_of(run) != ()
    for epsilon in EPSILONS[:4]:
        # Each record is in one of the sets, which may be any.
        truth = max(split([law], 3, epsilon) for law in laws)
        assert truth <= run.delta(epsilon)
    assert problems_or_none(once) == problems_of(once) != ()
