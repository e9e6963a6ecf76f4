"""Sampled pairs against enumeration, fixed-size, with replacement and capped; refusals of all."""

import math
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf
from scipy.special import logsumexp

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import derived, sampling
from accountant.sampling.replacement_pair import wang_balle_kasiviswanathan
from accountant.sampling.truncated_poisson import overflow_probability
from support import every_mechanism
from support.oracle.composed import ball
from support.oracle.monotone_ratio import shifted


@pytest.fixture(autouse=True)
def many_digits():
    with ctx.workprec(200):
        yield


# Fixed size ------------------------------------------------------------------------------------


def mixture_profile(weights, shifts):
    """Return H of Σ w N(s, 1) against N(0, 1), and of the reversed pair, of rational weights."""
    return shifted(arb(1), map(ball, shifts), map(ball, weights))


def fixed_size_truth(noise, batch, records):
    """One step: enumerate the batches of all records -1 but one, which is +1 or -1."""
    hit = Fraction(comb(records - 1, batch - 1), comb(records, batch))
    seen = [0 in subset for subset in combinations(range(records), batch)]
    assert Fraction(sum(seen), len(seen)) == hit == Fraction(batch, records)
    return mixture_profile((1 - hit, hit), (0, Fraction(2) / Fraction(noise)))


@pytest.mark.long
@pytest.mark.parametrize(("batch", "records"), [(1, 6), (2, 5), (3, 6), (5, 6)])
@pytest.mark.parametrize("noise", [0.7, 2.0])
def test_fixed_size_covers_enumeration(batch, records, noise):
    pair = sampling.FixedSizeSampled(noise, batch_size=batch, dataset_size=records).pairs()[0]
    for epsilon in (0.1, 0.5, 1.5, 3.0):
        remove, add = (each(epsilon) for each in fixed_size_truth(noise, batch, records))
        bounds = pair.profile(epsilon)
        assert arb(bounds.upper) >= remove.max(add)
        assert arb(bounds.upper) <= remove.max(add) * (1 + arb(10) ** -9)  # attained
        assert arb(bounds.lower) <= remove * (1 + arb(10) ** -9)


def test_the_symmetric_pair_is_its_own_mirror():
    pair = sampling.FixedSizeSampled(0.9, batch_size=7, dataset_size=100).pairs()[0]
    edges = np.array([-2.0, -0.5, -0.1, 0.1, 0.5, 2.0])
    found = pair.masses(edges)
    assert np.allclose(found.p, found.q[::-1], rtol=1e-12)
    assert found.p.sum() == pytest.approx(1.0, abs=1e-12)
    # The mass at zero belongs to the cell that ends there.
    at_zero = pair.masses(np.array([0.0]))
    near = pair.masses(np.array([-1e-9, 1e-9]))
    assert near.p[1] == pytest.approx((1 - 0.07) * math.erf(2 / 0.9 / math.sqrt(8)), rel=1e-6)
    assert at_zero.p.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.long(keep=7)
@pytest.mark.parametrize("order", [2, 3, 8, 30])
@pytest.mark.parametrize("q", [0.001, 0.1])
def test_renyi_of_fixed_size(order, q):
    pair = sampling.FixedSizeSampled(1.5, batch_size=round(1000 * q), dataset_size=1000).pairs()[0]
    edges = np.linspace(-3.0, 60.0, 400_001)
    cells = pair.masses(edges)
    # No loss of a cell is below its left edge; what is left of all edges counts for nothing.
    live = cells.q[1:] > 0.0
    least = logsumexp(order * edges[live] + np.log(cells.q[1:][live])) / (order - 1)
    assert pair.rdp(float(order)) >= least
    assert pair.rdp(float(order)) <= wang_balle_kasiviswanathan(order, q, 2 / 1.5) * (1 + 1e-12)


def test_full_batches_of_fixed_size():
    # q = 1: nothing is amplified, and the bound is that of a replaced record.
    plain = ac.Gaussian(1.1, relation=Relation.REPLACE_ONE)
    found = sampling.FixedSizeSampler(dataset_size=20, batch_size=20, steps=3).epsilon(1.1, 1e-5)
    exact = (3 * plain).epsilon(1e-5)
    assert exact <= found <= exact * (1 + 1e-5)


@pytest.mark.long
def test_fixed_size_many_steps():
    found = sampling.FixedSizeSampler(
        dataset_size=100_000, batch_size=100, steps=10_000
    ).epsilon_bounds(1.0, 1e-6)
    assert 6.3 < found.lower < found.upper < 6.81


@pytest.mark.long
def test_dropping_the_mass_at_zero_would_be_noticed():
    pair = sampling.FixedSizeSampled(1.0, batch_size=1, dataset_size=4).pairs()[0]
    bounds = (50 * sampling.FixedSizeSampled(1.0, batch_size=1, dataset_size=4)).epsilon_bounds(
        1e-4
    )
    # Self-composition of the one-sided pair alone is what the data sets of the witness reach.
    assert (
        bounds.upper
        > sampling.FixedSizeSampler(dataset_size=4, batch_size=1, steps=50)
        .epsilon_bounds(1.0, 1e-4)
        .lower
    )
    assert pair.masses(np.array([-1e-12, 1e-12])).p[1] > 0.3


# With replacement ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("batch", "records"), [(1, 2), (2, 3), (3, 4), (4, 6)])
def test_with_replacement_covers_enumeration(batch, records):
    noise = 1.5
    hits = [draw.count(0) for draw in product(range(records), repeat=batch)]
    weights = [Fraction(hits.count(k), len(hits)) for k in range(batch + 1)]
    shifts = [2 * k / Fraction(noise) for k in range(batch + 1)]
    one = sampling.WithReplacementSampled(noise, batch_size=batch, dataset_size=records)
    for truths, pair in zip(mixture_profile(weights, shifts), one.pairs(), strict=True):
        cells = pair.masses(np.linspace(-8.0, 60.0, 2001))
        for epsilon in (0.2, 1.0, 3.0):
            truth = truths(epsilon)
            edges = np.linspace(-8.0, 60.0, 2001)
            # Merging outcomes into cells hides, so the cells' own profile is a lower bound.
            sure = float(np.maximum(cells.p - math.exp(epsilon) * cells.q, 0.0).sum())
            assert arb(sure) <= truth * (1 + arb(10) ** -9)
            # Splitting a cell gains at most its P-mass; only the one that holds ε splits.
            gap = float(cells.p[np.searchsorted(edges, epsilon, side="left")])
            assert arb(sure + gap) >= truth * (1 - arb(10) ** -9)


@pytest.mark.long
def test_the_naive_mixture_under_reports():
    """A record that is drawn displaces another: shifts of k instead of 2k are too small."""
    weights = (Fraction(4, 9), Fraction(4, 9), Fraction(1, 9))
    displaced, naive = (mixture_profile(weights, (0, k, 2 * k))[0](1.0) for k in (2, 1))
    assert naive < displaced / 2
    assert (
        sampling.WithReplacementSampled(1.0, batch_size=2, dataset_size=3).delta(1.0) >= displaced
    )


@pytest.mark.parametrize("order", [1.001, 1.5, 2.0, 3.0, 2.5])
def test_renyi_with_replacement(order):
    remove, add = sampling.WithReplacementSampled(3.0, batch_size=3, dataset_size=30).pairs()
    x = np.linspace(-12.0, 20.0, 200_001)
    base = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    weights = [comb(3, k) * (1 / 30) ** k * (29 / 30) ** (3 - k) for k in range(4)]
    ratio = sum(w * np.exp(2 * k / 3 * x - 2 * k * k / 9) for k, w in enumerate(weights))
    exact = math.log(float(base @ ratio**order)) / (order - 1)
    reverse = math.log(float(base @ ratio ** (1 - order))) / (order - 1)
    assert remove.finite_rdp(order) >= exact * (1 - 1e-9)
    assert add.rdp(order) >= reverse * (1 - 1e-9)
    assert add.rdp(order) <= reverse * 1.01
    if order < 2.0:
        assert remove.finite_rdp(order) <= exact * 1.01
    if order.is_integer():
        assert remove.finite_rdp(order) <= exact * (1 + 1e-8)


# Truncated Poisson -----------------------------------------------------------------------------


@pytest.mark.parametrize(("records", "q", "size"), [(5, 0.3, 2), (40, 0.1, 12), (9, 0.5, 9)])
def test_overflow_probability(records, q, size):
    exact = sum(
        comb(records, k) * Fraction(q) ** k * (1 - Fraction(q)) ** (records - k)
        for k in range(size, records + 1)
    )
    found = Fraction(overflow_probability(records, q, size))
    assert exact <= found <= exact * (1 + Fraction(1, 10**9))


def test_truncation_lies_between_poisson_and_the_additive_bound():
    noise, q, n, cap, steps, epsilon = 1.0, 0.02, 1000, 40, 50, 1.2
    sampler = sampling.TruncatedPoissonSampler(
        dataset_size=n, sampling_probability=q, cap=cap, steps=steps
    )
    found = sampler.mechanism(noise).delta(epsilon)
    poisson = ac.get_delta(q, noise, steps, epsilon)
    overflow = overflow_probability(n, q, cap + 1)
    additive = poisson + steps * overflow * (1 + math.exp(epsilon))
    assert poisson <= found
    assert found <= additive * 3  # the coin is that of n - 1 others filling the batch
    bounds = sampler.epsilon_bounds(noise, 1e-4)
    assert bounds.lower <= bounds.upper


# Refusals --------------------------------------------------------------------------------------


REPLACE, ADD, ZERO = Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE, Relation.ZERO_OUT
BATCHES = {"dataset_size": 9, "batch_size": 3}


@pytest.mark.parametrize(
    ("make", "relation", "named"),
    [
        (partial(sampling.RandomAllocation, dataset_size=9, steps_per_epoch=3),
         REPLACE, "ADD_OR_REMOVE"),
        (partial(sampling.Allocated, 1.0, steps=3), REPLACE, "ADD_OR_REMOVE"),
        (partial(sampling.ShuffledBatches, **BATCHES, epochs=1), ADD, "ZERO_OUT"),
        (partial(sampling.CyclicBatches, **BATCHES, epochs=1), ADD, "ZERO_OUT"),
        (partial(sampling.FixedSizeSampler, **BATCHES, steps=1), ADD, "REPLACE_ONE"),
        (partial(sampling.FixedSizeSampled, 1.0, **BATCHES), ADD, "REPLACE_ONE"),
        (partial(sampling.MatrixMechanism, np.eye(2)), ADD, "ZERO_OUT"),
        (partial(sampling.amplify, 1.0, delta=0.0, sampling_probability=0.1, sampler="fixed size"),
         ADD, "REPLACE"),
        (partial(sampling.WithReplacementSampler, **BATCHES, steps=1), ZERO, "REPLACE_ONE"),
    ],
)  # fmt: skip
def test_what_has_no_theorem_is_refused(make, relation, named):
    with pytest.raises(ac.UnsupportedError, match=named):
        make(relation=relation)


SAMPLERS = [
    sampling.RandomAllocation(dataset_size=10, steps_per_epoch=5, epochs=2, participations=2),
    sampling.ShuffledBatches(dataset_size=10, batch_size=5, epochs=2, relation=REPLACE),
    sampling.PoissonSampler(dataset_size=10, sampling_probability=0.5, steps=2),
]
KNOWN = [one for one in every_mechanism.SAMPLED if "LossDistribution" not in repr(one)]


@pytest.mark.parametrize("one", [*KNOWN, *SAMPLERS], ids=repr)
def test_values_print_as_they_are_made(one):
    again = eval(repr(one), vars(ac) | vars(ac.mechanisms) | vars(derived) | vars(sampling))
    assert again == one
    assert hash(again) == hash(one)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("q", [1e-310, 1e-200, 1e-20, 0.001, 0.5, 1.0 - 2.0**-40])
@pytest.mark.parametrize("scale", [9.0, 0.01, 1e-3, 1e6])
def test_a_shared_sample_of_bounded_losses_has_bounded_losses(scale, q):
    """The largest loss of a sample, in fractions of the odds: removal and addition."""
    found = ac.PoissonSampled(2 * ac.Laplace(scale), q).epsilon(0.0)
    with mp.workdps(350):
        odds = mp.exp(2 / mpf(scale))
        removal = mp.log(1 + mpf(q) * (odds - 1))
        addition = -mp.log(1 + mpf(q) * (1 / odds - 1))
        truth = max(removal, addition)
        assert found >= truth
        # Beyond 700 nats the loss of the sample counts as that of the whole.
        assert found <= truth * (1 + mpf(10) ** -14) + mpf(10) ** -307 or 2.0 / scale > 700.0
    assert found <= 2.0 / scale * (1.0 + 1e-12)


@pytest.mark.parametrize(
    "inner", [ac.ApproximateDP(0.0, delta=5e-322), ac.ApproximateDP(3e-188, delta=1e-200)], ids=repr
)
def test_a_used_record_is_lost_however_seldom(inner):
    """The product of two chances underflowed, and nothing was left of it."""
    for rate in (2.6e-297, 1e-300, 5e-324):
        sampled = ac.PoissonSampled(inner, rate)
        assert sampled.delta(1e-3) > 0.0
        assert sampled.epsilon(0.0) == math.inf


# Draws that are not listed ----------------------------------------------------------------------


@pytest.mark.long
def test_lower_ends_of_samples_leave_out_draws_that_are_not_listed():
    """At ε = 500 the truth is 1e-6 of what is not listed, which lower ends counted."""
    q, draws = 0.1, sampling.WithReplacementSampled(1.0, batch_size=100, dataset_size=1000)
    sample = ac.PoissonSampled(draws, q)
    assert sample.pairs()[0].left_out == sample.pairs()[0].infinite_mass > 0.0
    assert sample.pairs()[1].left_out == 0.0
    share = Fraction(q)
    weights = [share * Fraction(comb(100, k) * 999 ** (100 - k), 1000**100) for k in range(101)]
    weights[0] += 1 - share
    with ctx.workprec(1200):
        removal, _ = mixture_profile(weights, range(0, 202, 2))
        for epsilon in (350.0, 500.0):
            truth, bounds = removal(epsilon), sample.delta_bounds(epsilon)
            assert arb(bounds.lower) <= truth <= arb(bounds.upper)
