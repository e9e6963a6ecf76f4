"""A record exchanged in a sample, against laws written out in full.

The oracles enumerate outcomes, or integrate densities, and share no code with the package.
"""

import itertools
import math
import random

import numpy as np
import pytest
from mpmath import mpf

import accountant as ac
from accountant.derived.sampled_replacement import SampledReplacement
from accountant.sampling import FixedSizeSampled, TruncatedPoissonSampled
from accountant.sampling.exchange_pair import ExchangePair
from accountant.sampling.poisson_replacement import PoissonReplacement, TruncatedReplacement
from support.oracle.finite_laws import EPSILONS, geometric, hockey, mix, product

REPLACE = ac.NeighbouringRelation.REPLACE_ONE
ZERO_OUT = ac.NeighbouringRelation.ZERO_OUT


pytestmark = pytest.mark.usefixtures("sixty_digits")


# A record exchanged in a sample.


def subsets(records, size):
    return list(itertools.combinations(range(records), size))


@pytest.mark.long
@pytest.mark.parametrize("rate", [0.3, 1.0])
@pytest.mark.parametrize(("others", "size"), [((0, 1, 1), 2), ((1, -1, 0, 1), 2), ((0, 0, 0), 1)])
def test_a_uniform_subset_with_two_shared_releases(rate, others, size):
    # The sum of the batch, twice, with discrete Laplace noise; contributions in [-1, 1].
    base = 2 * ac.DiscreteLaplace(1.0 / rate, sensitivity=1, relation=REPLACE)
    records = len(others) + 1
    bound = SampledReplacement(base, size / records)

    def law(record):
        data = (record, *others)
        batches = [sum(data[i] for i in batch) for batch in subsets(records, size)]
        return mix(*((mpf(1) / len(batches), product(*(geometric(rate, s),) * 2)) for s in batches))

    for old, new in ((1, -1), (-1, 1), (0, 1), (1, 0)):
        p, q = law(old), law(new)
        for epsilon in EPSILONS:
            assert hockey(p, q, epsilon) <= bound.delta(epsilon)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("others", [(), (1,), (0, -1)])
@pytest.mark.parametrize("q", [0.1, 0.6])
def test_a_poisson_sample_in_which_a_record_is_replaced(q, others):
    rate = 0.7
    bound = SampledReplacement(
        1 * ac.DiscreteLaplace(1.0 / rate, sensitivity=1, relation=REPLACE), q
    )

    def law(record):
        data, parts = (record, *others), []
        for coins in itertools.product((0, 1), repeat=len(data)):
            chance = math.prod(mpf(q) if coin else 1 - mpf(q) for coin in coins)
            total = sum(v for v, coin in zip(data, coins, strict=True) if coin)
            parts.append((chance, geometric(rate, total)))
        return mix(*parts)

    for old, new in ((1, -1), (-1, 0), (0, 1)):
        for epsilon in EPSILONS:
            truth = hockey(law(old), law(new), epsilon)
            assert truth <= bound.delta(epsilon)


@pytest.mark.long
def test_gaussian_noise_on_a_uniform_subset_is_the_samplers_own_pair_in_one_step():
    noise = ac.Gaussian(1.5, relation=REPLACE)
    one = SampledReplacement(noise, 0.04)
    own = FixedSizeSampled(1.5, batch_size=4, dataset_size=100)
    assert one.epsilon(1e-5) == pytest.approx(own.epsilon(1e-5), rel=1e-9)
    # Several steps of sums are bounded by Theorem S19, which is sharper.
    several = (50 * one).epsilon(1e-5)
    assert several * 0.9 <= (50 * own).epsilon(1e-5) <= several
    chords = 50 * SampledReplacement(1 * noise, 0.04)
    assert (50 * own).epsilon_bounds(1e-5).lower <= chords.epsilon(1e-5) <= several * 1.02


# The Gaussian pair of replacement under Poisson sampling.


def densities(x, y, v, q):
    """Return the density at (x, y) of noise N(0, I) around 0 or, with probability q, v."""
    away = np.exp(-0.5 * ((x - v[0]) ** 2 + (y - v[1]) ** 2))
    return ((1 - q) * np.exp(-0.5 * (x**2 + y**2)) + q * away) / (2 * math.pi)


GRID = np.linspace(-8.0, 8.0, 321)
X, Y = np.meshgrid(GRID, GRID)
CELL = (GRID[1] - GRID[0]) ** 2


@pytest.mark.parametrize("seed", range(4))
def test_no_two_contributions_are_told_apart_better(seed):
    rng = random.Random(seed)
    mu, q = rng.uniform(0.5, 2.0), rng.choice([0.03, 0.1, 0.5, 0.9])
    bound = PoissonReplacement(1.0 / mu, sampling_probability=q)
    for _ in range(4):
        v, w = (
            mu * rng.choice([1.0, rng.random()]) * np.array([math.cos(t), math.sin(t)])
            for t in (rng.uniform(0, 7), rng.uniform(0, 7))
        )
        p, r = densities(X, Y, v, q), densities(X, Y, w, q)
        for epsilon in (0.0, 0.02, 0.2, 0.8, 2.0):
            truth = float(np.maximum(p - math.exp(epsilon) * r, 0.0).sum() * CELL)
            assert truth <= bound.delta(epsilon) + 1e-6  # of the quadrature


@pytest.mark.parametrize(
    ("mu", "q"), [(1.0, 0.01), (0.2, 0.1), (3.0, 0.3), (1e-4, 0.5), (8.0, 0.01)]
)
def test_losses_and_scores_are_inverse_and_odd(mu, q):
    pair = ExchangePair(mu, q)
    x = np.linspace(-20.0, 20.0, 401)
    loss = pair.loss(x)
    assert (np.diff(loss) >= 0.0).all()
    assert np.allclose(loss, -loss[::-1], atol=1e-12)
    t = np.array([-30.0, -2.0, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 2.0, 30.0])
    assert np.allclose(pair.loss(pair.scores(t)), t, rtol=1e-9, atol=pair.loss_error)


def test_scores_lie_within_the_error_the_pair_states():
    mpmath = pytest.importorskip("mpmath")
    rng = random.Random(3)
    with mpmath.workdps(50):
        for _ in range(300):
            mu, q = (
                10 ** rng.uniform(-9, 1.5),
                rng.choice([10 ** rng.uniform(-12, -0.01), 0.9999999]),
            )
            pair, start = ExchangePair(mu, q), rng.uniform(-40.0 - mu, 40.0 + mu)
            t = float(pair.loss(np.array([start]))[0]) * 10 ** rng.uniform(-8, 0)
            x, unit = mpmath.mpf(float(pair.scores(np.array([t]))[0])), mpmath.mpf(mu)
            up, down = (
                (1 - mpmath.mpf(q)) + q * mpmath.exp(unit * (sign * x - unit / 2))
                for sign in (1, -1)
            )
            assert abs(mpmath.log(up / down) - t) <= pair.loss_error


@pytest.mark.parametrize(("mu", "q"), [(1.0, 0.01), (0.2, 0.1), (2.0, 0.5)])
@pytest.mark.parametrize("order", [1.01, 2.0, 6.5])
def test_its_renyi_divergence_by_quadrature(mu, q, order):
    x = np.linspace(-14.0, 14.0 + order * mu, 200_001)
    base = np.log(1 - q) - 0.5 * x * x
    up, down = (np.logaddexp(base, np.log(q) - 0.5 * (x - sign * mu) ** 2) for sign in (1.0, -1.0))
    width = (x[1] - x[0]) / math.sqrt(2 * math.pi)
    excess = np.exp(order * up + (1 - order) * down).sum()
    excess += ((order - 1) * np.exp(down) - order * np.exp(up)).sum()
    truth = math.log1p(float(excess) * width) / (order - 1)
    found = ExchangePair(mu, q).rdp(order)
    assert truth * (1 - 1e-7) <= found <= truth * 1.001


def test_replacing_is_between_one_change_and_two():
    for noise, q, n in ((1.0, 0.01, 300), (3.0, 0.2, 50), (0.7, 0.5, 3)):
        one = (n * ac.PoissonSampled(ac.Gaussian(noise), q)).epsilon(1e-5)
        replaced = (n * PoissonReplacement(noise, sampling_probability=q)).epsilon(1e-5)
        assert (
            one
            < replaced
            < (n * SampledReplacement(ac.Gaussian(noise, relation=REPLACE), q)).epsilon(1e-5)
        )
        assert replaced <= (n * ac.Gaussian(noise, relation=REPLACE)).epsilon(1e-5)
    assert PoissonReplacement(math.inf, sampling_probability=0.1).epsilon(1e-9) == 0.0
    assert PoissonReplacement(1.0, sampling_probability=0.0).epsilon(1e-9) == 0.0
    whole = ac.Gaussian(1.0, relation=REPLACE)
    assert PoissonReplacement(1.0, sampling_probability=1.0).epsilon(1e-5) == whole.epsilon(1e-5)
    assert PoissonReplacement(1e-3, sampling_probability=0.5).epsilon(1e-5) > 1e4


def test_a_cap_that_is_never_reached_changes_nothing():
    for relation in (REPLACE, ZERO_OUT):
        loose = TruncatedReplacement(
            2.0, sampling_probability=0.1, cap=100, dataset_size=100, relation=relation
        )
        plain = PoissonReplacement(2.0, sampling_probability=0.1)
        if relation is ZERO_OUT:
            plain = ac.PoissonSampled(ac.Gaussian(2.0, relation=ZERO_OUT), 0.1)
        assert loose.epsilon(1e-4) == pytest.approx(plain.epsilon(1e-4), rel=1e-6)
        tight = TruncatedReplacement(
            2.0, sampling_probability=0.1, cap=12, dataset_size=100, relation=relation
        )
        full = SampledReplacement(ac.Gaussian(2.0, relation=REPLACE), 0.1, relation=relation)
        assert plain.epsilon(1e-3) < tight.epsilon(1e-3) < full.epsilon(1e-3)
    added = TruncatedPoissonSampled(2.0, sampling_probability=0.1, cap=12, dataset_size=100)
    blank = TruncatedReplacement(
        2.0, sampling_probability=0.1, cap=12, dataset_size=100, relation=ZERO_OUT
    )
    assert blank.delta(0.3) == pytest.approx(added.delta(0.3), rel=0.2)


@pytest.mark.parametrize("relation", [REPLACE, ZERO_OUT], ids=repr)
def test_a_truncated_sample_written_out(relation):
    # Three records on a line, a cap of one, noise by quadrature.
    q, noise, x = 0.6, 0.8, np.linspace(-9.0, 9.0, 20_001)
    bound = TruncatedReplacement(
        noise, sampling_probability=q, cap=1, dataset_size=3, relation=relation
    )

    def law(data):
        density = np.zeros_like(x)
        for coins in itertools.product((0, 1), repeat=3):
            chosen = [v for v, coin in zip(data, coins, strict=True) if coin]
            chance = math.prod(q if coin else 1 - q for coin in coins)
            for kept in chosen or [0.0]:
                density += chance / max(len(chosen), 1) * np.exp(-0.5 * ((x - kept) / noise) ** 2)
        return density / (noise * math.sqrt(2 * math.pi))

    news = (0.0,) if relation is ZERO_OUT else (-1.0, 0.3)
    for others in ((1.0, -1.0), (-1.0, -1.0), (1.0, 1.0)):
        for old, new in [(a, b) for b in news for a in (1.0, -1.0)]:
            p, r = law((old, *others)), law((new, *others))
            for one, other in ((p, r), (r, p)):
                for epsilon in (0.0, 0.2, 0.9, 2.0):
                    excess = np.maximum(one - math.exp(epsilon) * other, 0.0).sum() * (x[1] - x[0])
                    assert float(excess) <= bound.delta(epsilon) + 1e-6


# Arguments.


def test_what_has_no_theorem_is_refused():
    with pytest.raises(ac.UnsupportedError, match="must be bounded under"):
        SampledReplacement(ac.Gaussian(1.0), 0.1)
    with pytest.raises(ac.UnsupportedError, match="no theorem"):
        SampledReplacement(
            ac.Gaussian(1.0, relation=REPLACE), 0.1, relation=ac.NeighbouringRelation.ADD_OR_REMOVE
        )
    with pytest.raises(ac.ArgumentTypeError):
        SampledReplacement(1.0, 0.1)
    for make in (
        lambda: SampledReplacement(ac.Gaussian(1.0, relation=REPLACE), 1.5),
        lambda: PoissonReplacement(-1.0, sampling_probability=0.5),
        lambda: PoissonReplacement(1.0, sampling_probability=math.nan),
        lambda: TruncatedReplacement(1.0, sampling_probability=0.5, cap=0, dataset_size=10),
    ):
        with pytest.raises(ac.DomainError):
            make()


@pytest.mark.parametrize("noise", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("relation", ["REPLACE_ONE", "ZERO_OUT"])
def test_loose_renyi_bounds_of_a_blend_do_not_overflow(noise, relation):
    replace = ac.NeighbouringRelation.REPLACE_ONE
    relation = ac.NeighbouringRelation[relation]
    cut = TruncatedReplacement(
        noise, sampling_probability=0.1, cap=5, dataset_size=20, relation=relation
    )
    for order in (1.0001, 2.0, 20.0, 1e3, 1e6):
        assert 0.0 < cut.rdp(order) <= ac.Gaussian(noise, relation=replace).rdp(order) * 1.0001
