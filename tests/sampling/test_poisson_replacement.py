"""A record exchanged in a sample, against laws written out in full, in balls and in fractions."""

import dataclasses
import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mpf

import accountant as ac
from accountant import PoissonSampled, sampling
from accountant.derived.joint import SampledReplacement
from accountant.relations import NeighbouringRelation
from accountant.sampling import FixedSizeSampled, TruncatedPoissonSampled
from accountant.sampling.exchange_pair import ExchangePair
from accountant.sampling.poisson_replacement import PoissonReplacement, TruncatedReplacement
from support.oracle.finite_laws import EPSILONS, geometric, hockey, mix, product
from support.oracle.monotone_ratio import replaced

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


ADD = NeighbouringRelation.ADD_OR_REMOVE


@pytest.fixture(autouse=True)
def three_hundred_bits():
    with ctx.workprec(300):
        yield


def tail(x):
    return (arb(x) / arb(2).sqrt()).erfc() / 2


def reached(event, contributions, q, epsilon):
    """Return P(event) - e^ε Q(event) as a ball: every event is a lower bound on the profile.

    ``event`` is a half-line (start, sign) in standard deviations of the noise.
    """
    start, sign = event
    q, away = arb(q), []
    for moved in contributions:
        away.append((1 - q) * tail(start) + q * tail(arb(start) - sign * moved))
    return away[0] - arb(epsilon).exp() * away[1]


def events(mu):
    for x in (-2.0, -0.5, 0.0, 0.3, 1.0, 2.5, 4.0, 7.0):
        yield from ((x + shift * mu, sign) for shift in (0.0, 0.5, 1.0) for sign in (1, -1))


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("q", [5e-324, 1e-200, 1e-12, 1e-4, 0.1, 0.5, 0.9, 1.0 - 2.0**-53, 1.0])
@pytest.mark.parametrize("noise", [1e-200, 0.05, 0.3, 1.0, 20.0, 1e6, 1e12])
def test_gaussian_noise_is_never_told_apart_better(noise, q):
    bound = PoissonSampled(ac.Gaussian(noise, relation=REPLACE), q)
    mu = 1 / arb(noise)
    unit = 1.0 / noise if noise > 0.01 else 1.0
    pairs = [(1, -1), (-1, 1), (1, 0), (0, 1), (0.3, -1)]
    for epsilon in (0.0, 1e-9, 0.01, 0.3, 2.0, 30.0):
        found = arb(bound.delta(epsilon))
        for pair, event in itertools.product(pairs, events(unit)):
            moved = [mu * one for one in pair]
            assert not reached(event, moved, q, epsilon) > found


@pytest.mark.parametrize(
    ("noise", "q"), [(1.0, 0.01), (0.5, 0.3), (4.0, 0.9), (0.2, 1e-3), (2.0, 0.1)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.5])
def test_its_bracket_is_tight_where_contributions_are_opposite(noise, q, epsilon):
    bounds = PoissonSampled(ac.Gaussian(noise, relation=REPLACE), q).delta_bounds(epsilon)
    truth = replaced(arb(noise), arb(q))(epsilon)
    assert bounds.lower <= truth <= bounds.upper
    assert bounds.upper <= float(truth.mid()) * 1.001 + 1e-9


def test_composed_gaussians_on_one_sample_are_one_gaussian():
    parts = 3 * ac.Gaussian(6.0, relation=REPLACE) + ac.Gaussian(
        4.0, sensitivity=0.5, relation=REPLACE
    )
    noise = 1.0 / math.sqrt(3 / 36 + 0.25 / 16)
    for whole in (parts, 1 * ac.Gaussian(noise, relation=REPLACE)):
        bounds = PoissonSampled(whole, 0.1).delta_bounds(0.2)
        assert bounds.upper == pytest.approx(
            PoissonReplacement(noise, sampling_probability=0.1).delta(0.2), rel=1e-9
        )
    assert PoissonSampled(parts, 0.1).pairs()[0].distance >= 1.0 / noise * (1.0 - 1e-15)
    assert PoissonSampled(0 * ac.Gaussian(1.0, relation=REPLACE), 0.1).epsilon(0.0) == 0.0
    wide = PoissonSampled(ac.Gaussian(3.0, sensitivity=3.0, relation=REPLACE), 0.2)
    assert wide.pairs() == PoissonReplacement(1.0, sampling_probability=0.2).pairs()


@dataclasses.dataclass(frozen=True, repr=False)
class TwoAnswers(ac.Mechanism):
    """An answer of two, with the probabilities of the first for two values and for none."""

    values: tuple[float, float, float]

    @property
    def relation(self):
        return REPLACE

    @property
    def covers_removal(self):
        return True

    def pairs(self):
        first, second, _ = self.values
        return ac.DominatingPMFs(
            (first, 1 - first), (second, 1 - second), infinite_loss=True
        ).pairs()


@pytest.mark.long(keep=7)
@pytest.mark.parametrize("values", [(0.75, 0.25, 0.5), (0.5, 0.125, 0.25), (1.0, 0.5, 0.75)])
@pytest.mark.parametrize("q", [2.0**-30, 0.125, 0.5, 1.0 - 2.0**-53])
def test_any_mechanism_is_bounded_in_exact_fractions(values, q):
    bound = PoissonSampled(TwoAnswers(values), q)
    a, b, r = map(Fraction, values)
    share = Fraction(q)
    laws = [(1 - share) * r + share * one for one in (a, b, r)]
    for p, other in itertools.permutations(laws, 2):
        for ratio in (Fraction(1), Fraction(9, 8), Fraction(3, 2), 1 + Fraction(1, 2**20)):
            truth = max(p - ratio * other, 1 - p - ratio * (1 - other), Fraction(0))
            # The profile falls: a little below log(ratio) it is at least the truth there.
            below = math.log(ratio) * (1.0 - 1e-15)
            assert Fraction(bound.delta(below)) >= truth


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    "mechanism",
    [
        ac.Laplace(2.0, relation=REPLACE),
        ac.DiscreteGaussian(2.0, relation=REPLACE),
        ac.DiscreteGaussianVector(3.0, relation=REPLACE),
        ac.DiscreteLaplace(2.0, relation=REPLACE),
        ac.ReportNoisyMax(4.0, relation=REPLACE),
        ac.AboveThreshold(4.0, query_scale=8.0, relation=REPLACE),
        ac.Gaussian(4.0, relation=REPLACE) + ac.Laplace(4.0, relation=REPLACE),
        ac.BestOfRuns(ac.Gaussian(6.0, relation=REPLACE), 0.5),
    ],
    ids=repr,
)
def test_every_noise_on_contributions_is_amplified(mechanism):
    for q in (1e-12, 0.01, 0.5):
        one = PoissonSampled(mechanism, q)
        assert one.relation is REPLACE
        assert one.delta(0.1) <= min(q, mechanism.delta(0.1)) * (1.0 + 1e-9)
        assert one.delta(0.1) >= PoissonSampled(mechanism.under(ADD), q).delta_bounds(0.1).lower
    assert PoissonSampled(mechanism, 0.01).epsilon(1e-5) < 0.5 * mechanism.epsilon(1e-5)
    assert PoissonSampled(mechanism, 0.0).epsilon(0.0) == 0.0
    whole = PoissonSampled(mechanism, 1.0).delta(0.3)
    assert mechanism.delta_bounds(0.3).lower <= whole <= mechanism.delta(0.3) * 1.0001
    composed = 2 * PoissonSampled(mechanism, 0.1)
    assert 0.0 < composed.epsilon(1e-4) <= (2 * mechanism).epsilon(1e-4)
    assert PoissonSampled(mechanism.under(ADD), 0.1).under(REPLACE) == PoissonSampled(
        mechanism, 0.1
    )


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("q", [5e-324, 1e-322])
@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("scale", [1.0, 5.0, 100.0])
def test_a_rate_below_the_normal_doubles_is_not_nothing(scale, relation, q):
    """Half the bound on the loss, times q, underflows; the profile is positive all the same."""
    for noise in (ac.Laplace(scale, relation=relation), 2 * ac.Laplace(scale, relation=relation)):
        one = PoissonSampled(noise, q)
        assert one.delta(0.0) > 0.0
        assert one.epsilon(0.0) > 0.0
        assert (3 * one).delta(0.0) > 0.0


@pytest.mark.long
def test_a_sample_of_a_sample_is_one_at_the_product_of_the_rates():
    noise = ac.Gaussian(1.0, relation=REPLACE)
    nested = PoissonSampled(PoissonSampled(noise, 0.25), 0.5)
    assert nested.delta(0.1) == pytest.approx(PoissonSampled(noise, 0.125).delta(0.1), rel=1e-9)
    assert nested.delta(0.1) >= PoissonSampled(noise, 0.125).delta_bounds(0.1).lower
    tiny = PoissonSampled(PoissonSampled(noise, 1e-200), 1e-200)
    assert 0.0 < tiny.delta(0.0) < 1e-300


@pytest.mark.parametrize(
    "mechanism",
    [
        ac.PureDP(1.0, relation=REPLACE),
        ac.GDP(1.0, relation=REPLACE),
        ac.ZCDP(0.1, relation=REPLACE),
        ac.RandomizedResponse(1.0, relation=REPLACE),
        ac.ExponentialMechanism(1.0, relation=REPLACE),
        ac.Gaussian(1.0, relation=REPLACE) + ac.PureDP(1.0, relation=REPLACE),
        sampling.FixedSizeSampled(1.0, batch_size=5, dataset_size=100),
        SampledReplacement(ac.Gaussian(1.0, relation=REPLACE), 0.1),
    ],
    ids=repr,
)
def test_a_bound_on_replacing_alone_is_refused_with_the_reason(mechanism):
    assert not mechanism.covers_removal
    with pytest.raises(ac.UnsupportedError, match="says nothing of a sample without") as refusal:
        PoissonSampled(mechanism, 0.1)
    assert "SampledReplacement" in str(refusal.value)
    assert "add-or-remove" in str(refusal.value)


def test_groups_under_replace_one_are_refused():
    one = PoissonSampled(ac.Gaussian(1.0, relation=REPLACE), 0.1)
    assert one.group(1) == one
    with pytest.raises(ac.UnsupportedError, match="group"):
        one.group(2)


def test_the_former_names_are_the_same_thing():
    assert PoissonReplacement(2.0, sampling_probability=0.1) == PoissonSampled(
        ac.Gaussian(2.0, relation=REPLACE), 0.1
    )
    for relation in (REPLACE, ZERO_OUT):
        now = sampling.TruncatedPoissonSampled(
            2.0, sampling_probability=0.1, cap=5, dataset_size=100, relation=relation
        )
        assert (
            TruncatedReplacement(
                2.0, sampling_probability=0.1, cap=5, dataset_size=100, relation=relation
            )
            == now
        )


@pytest.mark.parametrize("relation", list(NeighbouringRelation))
def test_the_samplers_account_for_every_relation(relation):
    plain = sampling.PoissonSampler(
        dataset_size=100, sampling_probability=0.1, steps=20, relation=relation
    )
    assert plain.mechanism(2.0) == 20 * PoissonSampled(ac.Gaussian(2.0, relation=relation), 0.1)
    cut = sampling.TruncatedPoissonSampler(
        dataset_size=100, sampling_probability=0.1, cap=20, steps=20, relation=relation
    )
    step = sampling.TruncatedPoissonSampled(
        2.0, sampling_probability=0.1, cap=20, dataset_size=100, relation=relation
    )
    assert cut.mechanism(2.0) == 20 * step
    for sampler in (plain, cut):
        lower, upper = sampler.epsilon_bounds(2.0, 1e-5)
        assert 0.5 * upper < lower <= upper


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("sigma", [1e-300, 1e-3, 0.02, 0.0316, 0.0317, 1e9, 1.1e9, 1e10, 1e300])
@pytest.mark.parametrize("q", [1e-9, 0.01, 0.5])
def test_a_record_that_is_not_drawn_is_not_seen(sigma, q):
    """Lower ends are of the sample also where the pair is that of the noise unsampled."""
    release = ac.PoissonSampled(ac.Gaussian(sigma, relation=ac.NeighbouringRelation.REPLACE_ONE), q)
    seen = q * min(1.0, 1.0 / sigma)  # by data processing: TV of two normals 2/σ apart
    for epsilon in (0.0, 1.0):
        found = release.delta_bounds(epsilon)
        assert found.lower <= seen * (1.0 + 1e-15)
        assert found.upper >= found.lower
    assert (3 * release).delta_bounds(0.0).lower <= 3.0 * seen * (1.0 + 1e-15)


@pytest.mark.long
def test_noise_that_hides_nothing_costs_what_the_draws_cost():
    """Theorem D25: at most as many shifts as draws, whose number is binomial."""
    relation, steps, delta = ac.NeighbouringRelation.REPLACE_ONE, 30, 1e-5
    release = steps * ac.PoissonSampled(ac.Gaussian(0.03, relation=relation), 0.01)
    # Two thirds of what δ allows go to the draws, the rest to the noise.
    draws, tail = 0, 1.0
    while tail > 0.67 * delta:
        tail -= math.comb(steps, draws) * 0.01**draws * 0.99 ** (steps - draws)
        draws += 1
    plain = ac.Gaussian(0.03 / math.sqrt(draws), relation=relation).epsilon_bounds(0.33 * delta)
    found = release.epsilon_bounds(delta)
    assert found.lower <= found.upper <= float(plain.upper) * (1.0 + 1e-9)
