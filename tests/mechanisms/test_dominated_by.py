"""Lower ends are what some pair of data sets reaches, and 0 where none is known to."""

import itertools
import json
import math
from fractions import Fraction

import pytest

import accountant as ac
from accountant import mechanisms as m
from accountant import sampling
from accountant.composition import parallel
from accountant.derived.joint import JointRelease, SampledReplacement
from accountant.ledger.schema import decode_mechanism, encode_mechanism
from accountant.mechanisms import DominatedBy

REPLACE = ac.NeighbouringRelation.REPLACE_ONE
ZERO_OUT = ac.NeighbouringRelation.ZERO_OUT


def profile(masses, epsilon):
    """Return H(ε) of pairs of masses, exactly."""
    gamma = Fraction(math.exp(epsilon))
    return sum(max(p - gamma * q, Fraction(0)) for p, q in masses)


def powers(pairs):
    """Return the masses of independent outcomes."""
    found = [(Fraction(1), Fraction(1))]
    for pair in pairs:
        found = [(a * p, b * q) for (a, b), (p, q) in itertools.product(found, pair)]
    return found


def test_what_dominates_is_an_upper_end_alone():
    above = 3 * m.Gaussian(2.0)
    release = DominatedBy(above)
    assert release.epsilon(1e-5) == above.epsilon(1e-5)
    assert release.delta(1.0) == above.delta(1.0)
    assert release.epsilon_bounds(1e-5) == ac.Bounds(0.0, above.epsilon(1e-5))
    assert release.delta_bounds(1.0).lower == 0.0
    assert release.rdp(3.0) == above.rdp(3.0)
    assert not release.attained
    assert above.attained
    assert not m.ZCDP(0.1).attained
    assert parallel(above, m.Laplace(1.0)).attained


def test_the_others_keep_their_lower_end():
    release = DominatedBy(m.Gaussian(2.0)) + 2 * m.Laplace(3.0)
    found = release.epsilon_bounds(1e-5)
    known = m.Gaussian(2.0) + 2 * m.Laplace(3.0)
    assert found.upper == pytest.approx(known.epsilon(1e-5), rel=1e-6)
    assert found.lower == (2 * m.Laplace(3.0)).epsilon_bounds(1e-5).lower


def test_it_is_one_in_groups_samples_sets_and_files():
    release = DominatedBy(m.Gaussian(2.0))
    assert release.group(3) == DominatedBy(m.Gaussian(2.0).group(3))
    assert release.under(ZERO_OUT).relation is ZERO_OUT
    sampled = ac.PoissonSampled(release, 0.1)
    assert sampled.epsilon_bounds(1e-5).lower == 0.0
    assert sampled.epsilon(1e-5) == ac.PoissonSampled(m.Gaussian(2.0), 0.1).epsilon(1e-5)
    replaced = ac.PoissonSampled(release.under(REPLACE), 0.1)
    assert replaced.epsilon_bounds(1e-5).lower == 0.0
    beside = parallel(release, m.Laplace(5.0)).epsilon_bounds(1e-5)
    assert beside.lower == m.Laplace(5.0).epsilon_bounds(1e-5).lower < beside.upper
    stored = json.loads(json.dumps(encode_mechanism(release)))
    assert decode_mechanism(stored) == release == eval(repr(release), vars(m))


@pytest.mark.parametrize("k", [2, 10])
def test_blocks_of_an_allocation_are_no_lower_end(k):
    sampler = sampling.RandomAllocation(dataset_size=5000, steps_per_epoch=1000, participations=k)
    assert sampler.mechanism(1.0).epsilon_bounds(1e-6).lower == 0.0
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert 0.0 < found.lower < {2: 0.3620, 10: 1.964}[k]


@pytest.mark.parametrize(
    "sampler",
    [
        sampling.ShuffledBatches(dataset_size=100, batch_size=5, epochs=2),
        sampling.SeparatedPoisson(
            dataset_size=100, sampling_probability=0.1, min_separation=3, steps=20
        ),
    ],
)
def test_samplers_that_are_bounded_from_above_say_so(sampler):
    mechanism = sampler.mechanism(1.0)
    assert not mechanism.attained
    assert mechanism.epsilon_bounds(1e-5).lower == 0.0
    assert sampler.epsilon_bounds(1.0, 1e-5).lower > 0.0


@pytest.mark.parametrize(
    "sampler",
    [
        sampling.ShuffledBatches(dataset_size=5, batch_size=5, epochs=2),
        sampling.SeparatedPoisson(
            dataset_size=100, sampling_probability=0.1, min_separation=1, steps=20
        ),
        sampling.CyclicBatches(dataset_size=100, batch_size=5, epochs=2),
        sampling.PoissonSampler(dataset_size=100, sampling_probability=0.1, steps=20),
    ],
)
def test_samplers_whose_theorem_is_attained_keep_their_mechanism(sampler):
    assert sampler.mechanism(1.0).attained


def test_integers_are_not_said_to_reach_their_gaussian():
    for release in (
        sampling.discrete_gaussian_sum_of_vectors(20.0, coordinates=100),
        sampling.skellam_sum_of_vectors(400.0, sampling_probability=0.1),
    ):
        assert (10 * release).epsilon_bounds(1e-5).lower == 0.0


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("noise", ["gumbel", "exponential", "laplace"])
def test_two_candidates_reach_the_lower_end_of_a_noisy_maximum(noise, scale):
    """Scores change places: the noise's difference is logistic, or one or two Laplace noises."""
    release = m.ReportNoisyMax(scale, noise)
    z = 1.0 / scale
    tail = {
        "gumbel": 1.0 / (1.0 + math.exp(z)),
        "exponential": 0.5 * math.exp(-z),
        "laplace": 0.25 * math.exp(-z) * (2.0 + z),
    }[noise]
    masses = [(Fraction(1 - tail), Fraction(tail)), (Fraction(tail), Fraction(1 - tail))]
    for count in (1, 3):
        law = powers([masses] * count)
        for epsilon in (0.0, 0.3 * z, 1.5 * z):
            truth = profile(law, epsilon)
            below = (count * release.from_below()).delta_bounds(epsilon)
            assert below.lower <= truth * (1 + Fraction(1, 10**9))
            assert (count * release).delta(epsilon) >= truth * (1 - Fraction(1, 10**9))
            if count > 1 or noise != "gumbel":
                found = (count * release).delta_bounds(epsilon).lower
                assert found == pytest.approx(float(truth), rel=1e-6, abs=1e-12)


def test_a_selection_reaches_its_pair_once_alone():
    release = m.ExponentialMechanism(1.0)
    assert release.attained_alone
    assert not release.attained
    assert release.epsilon_bounds(1e-3).width < 1e-9
    assert (1 * release).epsilon_bounds(1e-3).width < 1e-9
    ends = (30 * release).epsilon_bounds(1e-5)
    assert 12.9 < ends.lower < 13.0 < ends.upper < 15.85
    odds = 1.0 / (1.0 + math.exp(0.5))
    halves = m.DominatingPMFs((1.0 - odds, odds), (odds, 1.0 - odds))
    assert ends.lower <= (30 * halves).epsilon(1e-5)
    more = 30 * release + m.Laplace(2.0) + m.PureDP(0.1)
    assert more.epsilon_bounds(1e-5).lower > ends.lower
    sampled = 1000 * ac.PoissonSampled(release, 0.05)
    assert 0.0 < sampled.epsilon_bounds(1e-5).lower < sampled.epsilon(1e-5)


def test_the_orders_of_a_replacement_are_chosen_by_data():
    """Two laws of replacing a record: every step has one order, and data choose which."""
    first, second = (0.5, 0.3, 0.2), (0.2, 0.4, 0.4)
    release = m.DominatingPMFs(first, second, relation=REPLACE)
    one = [(Fraction(p), Fraction(q)) for p, q in zip(first, second, strict=True)]
    other = [(q, p) for p, q in one]
    for epsilon in (0.1, 0.5, 1.0):
        truth = max(
            profile(powers(orders), epsilon) for orders in itertools.product((one, other), repeat=3)
        )
        low, high = (3 * release).delta_bounds(epsilon)
        assert low <= float(truth) * (1 + 1e-12)
        assert high >= float(truth) * (1 - 1e-12)


@pytest.mark.long
def test_of_too_many_ways_each_is_one_that_data_meet():
    branches = parallel(m.Gaussian(2.0), m.Laplace(1.5), m.RandomizedResponse(0.6))
    assert _worse_when_adaptive(10 * branches) > 0.0
    many = 60 * parallel(m.Gaussian(9.0), m.Laplace(8.0), m.PureDP(0.1), m.Laplace(9.0))
    assert _worse_when_adaptive(10 * branches + many) >= 0.0


def _worse_when_adaptive(release):
    found = release.epsilon_bounds(1e-5)
    adaptive = release.adaptively().epsilon_bounds(1e-5)
    assert found.upper <= adaptive.upper * (1 + 1e-9)
    assert found.lower < found.upper
    return found.lower


def test_searches_reach_what_one_run_does():
    run = m.Gaussian(4.0)
    search = ac.BestOfRuns(run, 0.1, eta=0.0)
    assert search.epsilon_bounds(1e-5).lower == run.epsilon_bounds(1e-5).lower
    assert ac.BestOfRuns(run, 1.0).attained
    assert ac.BestOfPoissonRuns(run, 3.0).epsilon_bounds(1e-5).lower == 0.0


def test_releases_on_one_sample_reach_their_composition():
    both = m.Gaussian(4.0) + m.Laplace(4.0)
    found = JointRelease(both).epsilon_bounds(1e-5)
    assert found.lower == both.epsilon_bounds(1e-5).lower
    assert found.lower < found.upper


@pytest.mark.parametrize("count", [1, 3])
def test_a_record_replaced_in_a_fixed_batch_reaches_the_pair_of_a_removal(count):
    noise = m.Laplace(2.0, relation=REPLACE)
    step = SampledReplacement(noise, 0.1)
    removal = ac.PoissonSampled(m.Laplace(1.0), 0.1)
    found = (count * step).epsilon_bounds(1e-5)
    assert found.lower == pytest.approx((count * removal).epsilon_bounds(1e-5).lower, rel=1e-3)
    assert found.lower <= (count * removal).epsilon(1e-5)
    blank = SampledReplacement(noise, 0.1, relation=ZERO_OUT)
    assert (count * blank).epsilon_bounds(1e-5).lower == 0.0


@pytest.mark.parametrize(
    "release",
    [
        m.ReportNoisyMax(2.0, relation=REPLACE),
        m.Laplace(2.0, relation=REPLACE) + m.Gaussian(3.0, relation=REPLACE),
        ac.BestOfRuns(m.Gaussian(4.0, relation=REPLACE), 0.5),
    ],
)
def test_a_pair_made_of_upper_ends_has_no_lower_end(release):
    assert ac.PoissonSampled(release, 0.1).epsilon_bounds(1e-5).lower == 0.0


def test_a_selection_on_a_sample_reaches_its_pair_once_alone():
    step = ac.PoissonSampled(m.ExponentialMechanism(1.0), 0.1)
    assert step.epsilon_bounds(1e-3).width < 1e-6
    assert (2 * step).epsilon_bounds(1e-3).width > 0.01
