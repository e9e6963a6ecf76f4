"""Batches of a fixed size under replace-one: the game from above, real data sets from below."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.analyses.replacement_beside import BesideGame
from accountant.analyses.replacement_game import play, reach
from accountant.analyses.replacement_steps import ReplacementGame, plays
from accountant.sampling import (
    FixedSizeSampled,
    FixedSizeSampler,
    WithReplacementSampled,
    WithReplacementSampler,
)
from accountant.sampling.lattice_envelope import Lattice, LatticeLaw, law_below


def gaussian_profile(distance, epsilon):
    def below(x):
        return 0.5 * math.erfc(-x / math.sqrt(2.0))

    half = distance / 2
    return below(half - epsilon / distance) - math.exp(epsilon) * below(-half - epsilon / distance)


def last_step(q, distance, epsilon):
    """Return the largest profile of one step (Theorem S6)."""
    if epsilon < 0.0:
        return -math.expm1(epsilon) + math.exp(epsilon) * last_step(q, distance, -epsilon)
    return q * gaussian_profile(distance, math.log1p(math.expm1(epsilon) / q))


def two_steps(q, unit, epsilon, triple):
    """Return δ of the triple's step followed by the best last one, by a plain sum."""
    (a, along, across) = triple
    x = np.linspace(-9.0, 13.0, 500)
    y = np.linspace(-9.0, 11.0, 160) if across else np.zeros(1)
    dy = y[1] - y[0] if across else 1.0
    grid, other = np.meshgrid(x, y, indexing="ij")
    noise = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    if across:
        noise = noise * np.exp(-(other**2) / 2) / math.sqrt(2 * math.pi) * dy
    u = 1 - q + q * np.exp(a * unit * (grid - a * unit / 2))
    size = unit**2 * (along**2 + across**2)
    v = 1 - q + q * np.exp(unit * (along * grid + across * other) - size / 2)
    rest = [last_step(q, 2 * unit, e) for e in (epsilon - np.log(u / v)).ravel()]
    return float((noise * u).ravel() @ np.array(rest))


def game(q, sigma, count):
    step = FixedSizeSampled(sigma, batch_size=round(q * 1000), dataset_size=1000)
    ((parts),) = (((step.pairs()[0], count),),)
    assert plays(parts)
    return ReplacementGame(parts)


@pytest.mark.long
@pytest.mark.parametrize(("q", "sigma", "epsilon"), [(0.05, 1.0, 0.7), (0.2, 2.0, 0.4)])
def test_two_steps_are_above_what_data_reach(q, sigma, epsilon):
    found = game(q, sigma, 2).delta_bounds(epsilon)
    turned = math.sqrt(2.0)
    reached = [
        two_steps(q, 1.0 / sigma, epsilon, triple)
        for triple in ((2.0, 0.0, 0.0), (1.0, -1.0, 0.0), (turned, 0.0, turned), (1.8, 0.5, 1.1))
    ]
    assert found.upper >= max(reached) * (1.0 - 1e-9)
    assert found.upper <= 1.08 * max(reached)
    assert found.lower <= max(reached) * (1.0 + 1e-6)


def test_the_game_is_below_the_symmetric_pair_and_above_every_fixed_choice():
    sampler = FixedSizeSampler(dataset_size=10_000, batch_size=100, steps=1000)
    found = sampler.epsilon_bounds(1.0, 1e-5)
    # More than by standing out in every step, 13.36; the pair of Theorem S6.
    assert 13.40 < found.lower < 13.45
    standing_out = 1000 * ac.PoissonSampled(ac.Gaussian(0.5), 0.01)
    assert standing_out.epsilon(1e-5) * 1.003 < found.lower
    assert found.upper < found.lower * 1.0045
    assert found.upper < 14.82
    steps = sampler.mechanism(1.0)
    assert steps.explain(1e-5).analysis == "replacement game"
    assert steps.delta(found.upper) == pytest.approx(1e-5, rel=0.02)
    assert steps.epsilon_bounds(0.0).upper == math.inf


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.5])
def test_what_the_game_cannot_tell_the_pair_does(delta):
    step = FixedSizeSampled(3.0, batch_size=7, dataset_size=70)
    found = (3 * step).epsilon_bounds(delta)
    assert 0.0 <= found.lower <= found.upper < math.inf
    assert found.upper <= (3 * ac.Gaussian(1.5)).epsilon(delta) * (1 + 1e-9)


@pytest.mark.long
@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_with_replacement_is_near_what_data_reach(sigma):
    sampler = WithReplacementSampler(
        dataset_size=10_000, batch_size=100, steps=300, relation=ac.NeighbouringRelation.REPLACE_ONE
    )
    found = sampler.epsilon_bounds(sigma, 1e-5)
    assert found.lower < found.upper < found.lower * 1.09
    steps = sampler.mechanism(sigma)
    assert steps.explain(1e-5).analysis == "replacement game"
    # What is added or removed is at most as far as what is replaced.
    removed = WithReplacementSampler(dataset_size=10_000, batch_size=100, steps=300)
    assert removed.epsilon_bounds(sigma, 1e-5).lower <= found.upper
    assert sigma > 1.0 or removed.epsilon_bounds(sigma, 1e-5).upper < found.lower


@pytest.mark.long
@pytest.mark.parametrize(("sigma", "count"), [(2.0, 6000), (8.0, 10**6), (25.0, 40), (0.3, 2000)])
def test_beyond_the_game_lower_ends_are_what_data_reach(sigma, count):
    """They were those of the pair of Theorem S6, above what the game allows."""
    steps = count * FixedSizeSampled(sigma, batch_size=5, dataset_size=1000)
    reached = count * ac.PoissonSampled(ac.Gaussian(0.5 * sigma), 0.005)
    found, most = steps.epsilon_bounds(1e-6), reached.epsilon_bounds(1e-6)
    assert most.lower * (1.0 - 1e-6) <= found.lower <= most.upper
    assert most.lower <= found.upper
    assert steps.delta_bounds(found.upper).upper <= 1e-6 * (1.0 + 1e-6)
    assert steps.delta_bounds(most.upper).lower <= 1e-6
    assert steps.delta_bounds(found.lower * 0.999).upper >= 1e-6
    explained = steps.explain(1e-6)
    assert explained.analysis == "grid"
    assert "stands out" in explained.contributions[0].account
    beside = steps + ac.PureDP(0.5, relation=ac.NeighbouringRelation.REPLACE_ONE)
    assert beside.epsilon_bounds(1e-6).lower <= most.upper + 0.5


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("sigma", "size", "count"), [(20.0, 500, 100), (1.0, 10, 6000)])
def test_beyond_the_game_a_large_delta_has_the_upper_end_of_the_pair(sigma, size, count):
    """It was 1: a wide bracket was seen by a ratio, which 1 and a large lower end do not have."""
    steps = count * FixedSizeSampled(sigma, batch_size=size, dataset_size=1000)
    found = steps.delta_bounds(0.0)
    assert found.lower < found.upper < 1.0 - 0.15 * (1.0 - found.lower)
    laplace = ac.Laplace(2.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    found = (steps + 3 * laplace).delta_bounds(0.0)
    assert found.lower < found.upper < 1.0 - 0.15 * (1.0 - found.lower)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("sigma", [1e-150, 1e-200, 1e-308])
def test_next_to_no_noise_is_no_error_beyond_the_game(sigma):
    """A record that stands out is told as surely with the least noise of the core."""
    steps = 5 * FixedSizeSampled(sigma, batch_size=2, dataset_size=1000)
    found = steps.epsilon_bounds(1e-6)
    assert 1e198 < found.lower <= found.upper
    assert steps.delta_bounds(1.0).upper < 0.01
    twice = WithReplacementSampler(
        dataset_size=1000, batch_size=2, steps=5, relation=ac.NeighbouringRelation.REPLACE_ONE
    ).mechanism(sigma)
    assert twice.epsilon_bounds(1e-6).lower < math.inf
    assert twice.delta_bounds(1.0).upper < 0.01


REPLACE = Relation.REPLACE_ONE
STEP = FixedSizeSampled(2.0, batch_size=5, dataset_size=100)


def response(bound):
    return ac.RandomizedResponse(bound, relation=REPLACE)


@pytest.mark.long
@pytest.mark.parametrize(("q", "sigma", "epsilon", "bound"), [(0.05, 1.0, 0.9, 0.3)])
def test_two_steps_and_a_response_are_above_what_data_reach(q, sigma, epsilon, bound):
    """Data may be chosen after the response, so both of its outcomes have their own best."""
    step = FixedSizeSampled(sigma, batch_size=round(q * 1000), dataset_size=1000)
    found = (2 * step + response(bound)).delta_bounds(epsilon)
    triples = ((2.0, 0.0, 0.0), (1.0, -1.0, 0.0))
    yes = math.exp(bound) / (1.0 + math.exp(bound))
    reached = math.fsum(
        weight * max(two_steps(q, 1.0 / sigma, at, each) for each in triples)
        for weight, at in ((yes, epsilon - bound), (1.0 - yes, epsilon + bound))
    )
    assert found.upper >= reached * (1.0 - 1e-9)
    assert found.upper <= 1.08 * reached
    assert found.lower <= reached * (1.0 + 1e-6)


def test_one_step_and_a_response_are_exact():
    """The oracle of one step: its profile is attained at every ε, whichever release is first."""
    step = FixedSizeSampled(1.0, batch_size=50, dataset_size=1000)
    found = (step + response(0.3)).delta_bounds(0.9)
    yes = math.exp(0.3) / (1.0 + math.exp(0.3))
    reached = yes * last_step(0.05, 2.0, 0.6) + (1.0 - yes) * last_step(0.05, 2.0, 1.2)
    assert found.lower <= reached * (1.0 + 1e-9)
    assert reached <= found.upper * (1.0 + 1e-9)


OTHERS = [
    3 * ac.PureDP(0.8, relation=REPLACE),
    1 * ac.Gaussian(1e6, relation=REPLACE),
    1 * ac.ZCDP(0.01, relation=REPLACE),
]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("delta", [1e-14, 0.3])
def test_brackets_hold_each_other_and_basic_composition(other, delta):
    steps = 100 * STEP
    found = (steps + other).epsilon_bounds(delta)
    assert found.lower <= found.upper
    assert found.upper >= steps.epsilon_bounds(delta).lower
    assert found.upper >= other.epsilon_bounds(delta).lower
    most = steps.epsilon(delta / 2) + other.epsilon(delta / 2)
    assert found.upper <= most * (1.0 + 1e-4)


@pytest.mark.long
def test_as_narrow_as_alone():
    """The pair of Theorem S6 gave 16.622 and 28.799, and lower ends above what data reach."""
    for other, most in (
        (3 * ac.PureDP(0.8, relation=REPLACE), 14.2605),
        (20 * ac.Laplace(2.0, relation=REPLACE), 26.752),
    ):
        whole = 1000 * STEP + other
        found = whole.epsilon_bounds(1e-6)
        assert found.upper <= most
        assert found.upper <= 1.014 * found.lower
        assert whole.delta_bounds(found.lower).upper >= 1e-6
        assert whole.delta_bounds(found.upper).lower <= 1e-6
        assert isinstance(whole.profile().solvers()[0], BesideGame)


@pytest.mark.long
def test_a_game_is_played_where_other_data_sets_give_the_lower_end():
    """The pair of Theorem S6 gives δ = 1.48e-6."""
    shuffled = ac.ShuffleModel(ac.RandomizedResponse(0.5, k=4), dataset_size=1000)
    whole = (1000 * STEP + 3 * ac.PureDP(0.8, relation=REPLACE) + shuffled).profile()
    assert whole.below is not None
    assert whole.delta(14.0) <= 1.466e-6


@pytest.mark.long
def test_two_kinds_of_steps():
    """One kind is played, the other has its pair: less than both apart."""
    repeated = WithReplacementSampled(1.0, batch_size=5, dataset_size=1000, relation=REPLACE)
    whole = 30 * STEP + 10 * repeated
    found = whole.epsilon_bounds(1e-6)
    apart = [30 * STEP, 10 * repeated]
    assert max(each.epsilon_bounds(1e-6).lower for each in apart) <= found.upper
    assert found.lower <= found.upper <= sum(each.epsilon(3e-7) for each in apart)
    accounts = [part.account for part in whole.explain(1e-6).contributions]
    assert any("adversary" in each for each in accounts)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 30.0, 700.0])
def test_ends_of_the_range(epsilon):
    found = (1000 * STEP + response(0.5)).delta_bounds(epsilon)
    assert 0.0 <= found.lower <= found.upper <= 1.0
    assert (1000 * STEP + response(0.5)).epsilon_bounds(0.0).upper == math.inf


def normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def one_step(q, shift, epsilon):
    """Return the profile of (1-q)N(0) + qN(s) against N(0), and of the reverse."""
    strike = math.exp(epsilon)

    def standing_out(k):
        if k <= 1.0 - q:
            return 1.0 - k
        x = math.log((k - 1.0 + q) / q) / shift + shift / 2.0
        return (1.0 - q - k) * normal(-x) + q * normal(shift - x)

    return standing_out(strike), 1.0 - strike + strike * standing_out(1.0 / strike)


def two_steps_out(q, shift, epsilon):
    """Return δ of the better choice, followed by the better one: a plain sum of outcomes."""
    x = np.linspace(-9.0, 9.0 + shift, 4000)
    plain = np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi) * (x[1] - x[0])
    ratio = 1.0 - q + q * np.exp(shift * (x - 0.5 * shift))
    first = [max(one_step(q, shift, epsilon - math.log(r))) for r in ratio]
    second = [max(one_step(q, shift, epsilon + math.log(r))) for r in ratio]
    return max(float((plain * ratio) @ first), float(plain @ second))


def plain_step(value, lattice, law):
    """Return what a law makes of values at multiples of the spacing, by a plain sum."""
    at = lattice.spacing * np.arange(value.size)
    losses = lattice.spacing * lattice.places()

    def continued(epsilon):
        inside = np.interp(np.exp(np.abs(epsilon)), np.exp(at), value)
        return np.where(epsilon >= 0, inside, -np.expm1(epsilon) + np.exp(epsilon) * inside)

    return continued(at[:, None] - losses) @ law.masses + law.infinite


@pytest.mark.parametrize("stride", [4, 16])
def test_a_game_is_hardly_above_plain_sums_and_never_below(stride):
    rng = np.random.default_rng(stride)
    lattice = Lattice(0.2 / stride, stride, 6)
    laws = []
    for _ in range(3):
        masses = rng.random(lattice.places().size) * np.exp(-np.abs(lattice.losses()))
        masses[lattice.places() < -lattice.stride] = 0.0
        masses /= masses.sum() * (1.0 + 1e-3)
        laws.append(LatticeLaw(masses, 1e-3, 0.0, 0.0, 0.0))
    size = 10
    value = np.maximum(-np.expm1(lattice.spacing * np.arange(stride * size + 1.0)), 0.0)
    for count in (1, 2, 3):
        value = np.max([plain_step(value, lattice, law) for law in laws], axis=0)
        found = play(tuple(laws), lattice, count, size).delta
        assert (found >= np.minimum(value, 1.0) * (1.0 - 1e-12))[:-1].all()
        # Chords over a stride, on values that are convex in e^ε.
        assert found[0] <= value[0] * (1.0 + 0.02 * count)


@pytest.mark.parametrize(("q", "shift", "epsilon"), [(0.05, 2.0, 0.7), (0.3, 1.0, 0.2)])
def test_two_steps_are_below_their_exact_sum(q, shift, epsilon):
    law, offset = law_below((1.0 - q, q), shift, 0.0, 0.005, 1200)
    found = reach(law, (0.005, offset), 2, 1.0)
    truth = two_steps_out(q, shift, epsilon)
    assert 0.98 * truth < found.at(epsilon) <= truth
    # The least ε there is above it, in the sense of the bound.
    assert found.epsilon_of(truth) <= epsilon < found.epsilon_of(0.9 * truth) + 0.1


@pytest.mark.parametrize("share", [0.1, 0.8, 3.0, 1e4])
def test_an_error_of_losses_beyond_the_spacing_lowers_what_is_reached(share):
    law, offset = law_below((0.95, 0.05), 2.0, 0.0, 0.005, 1200)
    found = reach(law._replace(loss_error=share * 0.005), (0.005, offset), 2, 1.0)
    truth = reach(law, (0.005, offset), 2, 1.0)
    assert 0.0 <= found.at(0.7) <= truth.at(0.7)


@pytest.mark.long
def test_a_lattice_that_would_be_too_long_is_left_out():
    sampler = FixedSizeSampler(dataset_size=10**7, batch_size=10, steps=100)
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert 0.0 <= found.lower <= found.upper < math.inf


def best_of_three_steps(weights, unit):
    """Return ε and δ of three steps by standing out or hiding, by quadrature on a plain grid."""
    epsilon = 60.0 * np.sinh(9.5 * np.linspace(0.0, 1.0, 500)) / math.sinh(9.5)
    x = np.linspace(-9.0, 9.0 + 6.0 * unit, 6001)
    means = 2.0 * unit * np.arange(len(weights))
    densities = np.exp(-0.5 * (x - means[:, None]) ** 2) / math.sqrt(2.0 * math.pi)
    p, plain = weights @ densities * (x[1] - x[0]), densities[0] * (x[1] - x[0])
    losses = np.log(p / np.maximum(plain, 1e-300))
    value = np.zeros(epsilon.size)
    for _ in range(3):
        at = epsilon[:, None] - losses
        inside = np.interp(np.abs(at), epsilon, value)
        value = np.where(at >= 0, inside, -np.expm1(at) + np.exp(np.minimum(at, 0)) * inside) @ p
    return epsilon, value


@pytest.mark.long
def test_three_steps_with_replacement_are_flat_at_their_largest_delta():
    """δ falls by 3e-3 per unit of ε here: a bracket of δ of 5e-4 of itself is one of 30 % of ε."""
    weights = np.array([math.comb(5, k) * 0.01**k * 0.99 ** (5 - k) for k in range(6)])
    epsilon, delta = best_of_three_steps(weights, 1.0 / 0.35)
    reached = float(np.interp(-0.139, -delta, epsilon))
    assert 0.0400 < reached < 0.0415
    steps = WithReplacementSampler(
        dataset_size=100, batch_size=5, steps=3, relation=ac.NeighbouringRelation.REPLACE_ONE
    ).mechanism(0.35)
    found = steps.epsilon_bounds(0.139)
    assert 0.98 * reached < found.lower <= reached * (1.0 + 2e-3)
    assert reached * (1.0 - 2e-3) <= found.upper < 0.0548
    found = steps.delta_bounds(0.04)
    at = float(np.interp(0.04, epsilon, delta))
    assert found.lower <= at * (1.0 + 1e-6)
    assert at * (1.0 - 1e-6) <= found.upper < at * 1.0008


@pytest.mark.long
def test_many_steps_of_a_large_data_set():
    """The brackets were [36.487, 36.757] and [7.837, 7.883]."""
    sampler = FixedSizeSampler(dataset_size=10**6, batch_size=2231, steps=4000)
    found = sampler.epsilon_bounds(0.669, 1e-6)
    standing_out = 4000 * ac.PoissonSampled(ac.Gaussian(0.3345), 0.002231)
    assert standing_out.epsilon(1e-6) < 36.4872 < 36.57 < found.lower
    assert found.lower < found.upper < 36.7575
    repeated = WithReplacementSampler(
        dataset_size=25_000, batch_size=250, steps=500, relation=ac.NeighbouringRelation.REPLACE_ONE
    )
    found = repeated.epsilon_bounds(1.2, 1e-5)
    assert 7.832 < found.lower < found.upper < 7.8829


def test_an_error_of_losses_raises_no_less_than_losses_that_are_larger_by_it():
    lattice, error, count = Lattice(0.1, 1, 8), 1e-3, 3
    losses = lattice.losses()
    masses = np.exp(0.5 * losses - np.abs(losses))  # of a pair that is its own reverse
    masses *= 0.999 / masses.sum()
    found = play((LatticeLaw(masses, 1e-3, 0.0, 0.0, error),), lattice, count, 40)
    # All that is larger by the error, exactly: values by recursion, without knots.
    drawn = [(loss + error, mass) for loss, mass in zip(losses, masses, strict=True)]

    def value(epsilon, steps):
        if steps == 0:
            return max(-math.expm1(epsilon), 0.0)
        return 1e-3 + sum(mass * value(epsilon - loss, steps - 1) for loss, mass in drawn)

    for place in (0, 1, 5, 9):
        assert found.delta[place] >= value(float(found.epsilon[place]), count) * (1.0 - 1e-12)
