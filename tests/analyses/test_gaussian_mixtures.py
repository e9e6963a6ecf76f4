"""Users with several records, draws, mixtures, their compositions: the contour, and beyond it."""

import math
import random
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest

import accountant as ac
from accountant.analyses import gaussian_mixtures
from accountant.analyses.dispatch import solver
from accountant.analyses.gaussian_mixtures import Contour, covers, fits
from accountant.analyses.solvers import Grid
from accountant.composition.problems import problems_of
from accountant.mechanisms.gaussian import GaussianPair
from accountant.mechanisms.mixture import MixturePair
from accountant.pairs.base import GaussianMixture
from accountant.sampling.fixed_size import WithReplacementSampled
from support.draws import between
from support.oracle.moments import enclosing_decimals
from support.oracle.shift_compositions import NotConverged, Saddle, epsilon_for, line


def user(q, sigma, records):
    return ac.PoissonSampled(ac.Gaussian(sigma), q).group(records)


@pytest.mark.parametrize(
    ("records", "batch", "epochs", "sigma"), [(60_000, 256, 60, 1.1), (500_000, 1024, 5, 0.7)]
)
def test_draws_with_replacement_are_narrow(records, batch, epochs, sigma):
    steps = -(-records * epochs // batch)
    bounds = (
        steps * WithReplacementSampled(sigma, batch_size=batch, dataset_size=records)
    ).epsilon_bounds(1e-5)
    assert 0.0 < bounds.upper - bounds.lower <= 1e-6


def one_way(pair, count, delta, kind):
    return kind(((pair, count),)).epsilon_bounds(delta)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_contour_and_grid_agree(seed):
    """Two analyses without common code bracket one truth."""
    draw = random.Random(seed)
    for _ in range(4):
        q, sigma = 10 ** draw.uniform(-4, -0.7), 10 ** draw.uniform(-0.2, 1.0)
        steps, records = int(10 ** draw.uniform(0.8, 3.0)), draw.randint(2, 6)
        delta = 10 ** draw.uniform(-9, -1)
        for pair in user(q, sigma, records).pairs():
            part = pair.gaussian_mixture
            if part is None or not covers(part):
                continue
            one = one_way(pair, steps, delta, Contour)
            two = one_way(pair, steps, delta, Grid)
            assert max(one.lower, two.lower) <= min(one.upper, two.upper)


def test_the_roundings_of_weights_are_inside():
    """The exact binomial law: weights as fractions lie between those handed to the core."""
    q, records, steps, delta = 0.003, 12, 5000, 1e-7
    for pair in user(q, 1.3, records).pairs():
        contour = Contour(((pair, steps),))
        (cut,) = contour._cut(delta)
        p = Fraction(q)
        exact = [
            math.comb(records, k) * p**k * (1 - p) ** (records - k) for k in range(records + 1)
        ]
        kept = len(cut.more_weights)
        for k in range(1, kept + 1):
            assert (
                Fraction(cut.less_weights[k - 1]) <= exact[k] <= Fraction(cut.more_weights[k - 1])
            )
        left_out = sum(exact[kept + 1 :])
        assert cut.missing >= steps * left_out / exact[0]
        assert cut.missing < 1e-9 * delta


def test_shifts_are_cut_for_the_answer():
    """A far smaller δ than 1e-14 needs the shifts that matter there."""
    part = ac.PoissonSampled(ac.Gaussian(6.58), 1.49e-5).group(40)
    (lower, upper) = (2119 * part).delta_bounds(0.1)
    assert 1e-150 < lower <= upper <= lower * (1.0 + 1e-9)


class Alone(Contour):
    """Without the grid, which would hide what the contour misses."""

    def _narrowed(self, found, **question):
        return found


def stated(pair, part):
    """A pair that states other shifts."""

    class Stated(MixturePair):
        @property
        def gaussian_mixture(self):
            return part

    return Stated(pair.sigma, pair.shifts, pair.weights, pair.add)


@pytest.mark.long
@pytest.mark.parametrize("add", [False, True])
def test_shifts_left_out_count(add):
    """Theorem D8(b): a mixture cut much too early still brackets the whole one."""
    whole = MixturePair(1.0, (0.0, 1.0, 2.0, 3.0), (0.988999, 0.01, 0.001, 1e-6), add)
    part = GaussianMixture(1.0, (1.0, 2.0), (0.01, 0.001), add, remainder=1.0000001e-6)
    exact = Alone(((whole, 50),)).delta_bounds(0.3)
    cut = Alone(((stated(whole, part), 50),))
    (loose,), bounds = cut._cut(1e-6), cut.delta_bounds(0.3)
    assert loose.missing >= 50 * 1e-6
    assert bounds.lower <= exact.upper
    assert bounds.upper >= exact.lower
    assert bounds.upper - bounds.lower >= 0.9 * loose.missing


def test_sampling_a_mixture_thins_its_shifts():
    mixture = ac.MixtureOfGaussians(
        1.0, sensitivities=[0.0, 1.0, 2.0], probabilities=[0.9, 0.08, 0.02]
    )
    thinned = ac.MixtureOfGaussians(
        1.0, sensitivities=[0.0, 1.0, 2.0], probabilities=[0.99, 0.008, 0.002]
    )
    one = (300 * ac.PoissonSampled(mixture, 0.1)).epsilon_bounds(1e-6)
    two = (300 * thinned).epsilon_bounds(1e-6)
    # The probabilities of the second are rounded and add up to one only so far.
    assert math.isclose(one.upper, two.upper, rel_tol=1e-9)
    assert one.upper - one.lower <= 1e-9


def test_a_group_of_one_is_one_record():
    single = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)
    mixture = ac.MixtureOfGaussians(1.0, sensitivities=[0.0, 1.0], probabilities=[0.99, 0.01])
    one = (1000 * single).epsilon_bounds(1e-6)
    two = (1000 * mixture).epsilon_bounds(1e-6)
    assert max(one.lower, two.lower) <= min(one.upper, two.upper)


@pytest.mark.long
@pytest.mark.parametrize(
    ("q", "sigma", "steps", "records"), [(0.2, 3.0, 200, 100), (0.3, 1.0, 50, 60)]
)
def test_users_who_are_nearly_always_sampled(q, sigma, steps, records):
    """No record is ever unused with a chance that the doubles' rounding covers."""
    for pair in user(q, sigma, records).pairs():
        contour = Alone(((pair, steps),)).epsilon_bounds(1e-6)
        grid = Grid(((pair, steps),), (1e-3,)).epsilon_bounds(1e-6)
        assert contour.upper - contour.lower <= 1e-9 * contour.upper
        assert grid.lower <= contour.upper
        assert contour.lower <= grid.upper


@pytest.mark.parametrize("weights", [[0.0, 1.0], [1e-250, 1.0]])
def test_what_the_contour_does_not_cover_is_answered_as_before(weights):
    mixture = ac.MixtureOfGaussians(2.0, sensitivities=[0.0, 1.0], probabilities=weights)
    bounds = (40 * mixture).epsilon_bounds(1e-5)
    plain = (40 * ac.Gaussian(2.0)).epsilon_bounds(1e-5)
    assert math.isclose(bounds.upper, plain.upper, rel_tol=1e-2)
    assert bounds.upper >= bounds.lower


SEVERAL = 100 * user(1e-3, 1.0, 5) + 100 * user(2e-3, 1.1, 3) + ac.Gaussian(3.0)


@pytest.mark.parametrize("delta", [0.0, 0.3, 1e-15])
@pytest.mark.parametrize("many", [2 * user(1e-3, 1.0, 5), 30 * user(1e-3, 1.0, 5), SEVERAL])
def test_ends_of_the_range(delta, many):
    """Nothing raises, and brackets are ordered, next to the ends of δ."""
    bounds = many.epsilon_bounds(delta)
    assert 0.0 <= bounds.lower <= bounds.upper
    if delta > 0.0:
        assert many.delta_bounds(float(bounds.upper)).lower <= delta


@pytest.mark.parametrize("other", [None, 50 * user(0.01, 1.0, 2)])
def test_epsilon_zero_and_infinity(other):
    many = 500 * user(0.002, 1.0, 6)
    many = many if other is None else many + other
    at_zero = many.delta_bounds(0.0)
    assert 0.0 < at_zero.lower <= at_zero.upper <= at_zero.lower * (1.0 + 1e-6)
    assert tuple(many.delta_bounds(math.inf)) == (0.0, 0.0)


def binomial(q, records):
    p = Fraction(q)
    return [math.comb(records, k) * p**k * (1 - p) ** (records - k) for k in range(1, records + 1)]


MIXTURE = ac.MixtureOfGaussians(1.0, sensitivities=[0.0, 1.0, 2.0], probabilities=[0.9, 0.08, 0.02])
COMPOSITIONS = {
    "two users": 1000 * user(0.01, 1.0, 4) + 500 * user(0.005, 1.2, 8),
    "a user and a plain release": 1000 * user(0.01, 1.0, 4) + ac.Gaussian(5.0),
    "a user and sampled steps": 300 * user(0.01, 1.0, 4)
    + 1000 * ac.PoissonSampled(ac.Gaussian(1.2), 0.01),
    "draws and a user": 500 * WithReplacementSampled(1.0, batch_size=256, dataset_size=60_000)
    + 300 * user(0.002, 0.9, 3),
    "a mixture, sampled and not": 30 * MIXTURE + 400 * ac.PoissonSampled(MIXTURE, 0.05),
    "many records": 2000 * user(0.001, 2.0, 100) + 2000 * user(0.002, 3.0, 50) + ac.Gaussian(9.0),
}


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("mechanism", COMPOSITIONS.values(), ids=COMPOSITIONS)
def test_compositions_are_narrow_without_a_grid(mechanism, monkeypatch):
    monkeypatch.setattr(Contour, "_narrowed", lambda _, found, **question: found)
    for delta in (1e-6, 1e-10):
        bounds = mechanism.epsilon_bounds(delta)
        assert 0.0 < bounds.upper - bounds.lower <= 1e-9 * bounds.upper
        back = mechanism.delta_bounds(float(bounds.upper))
        assert back.lower <= delta
        assert back.upper - back.lower <= 1e-7 * back.upper


def random_problem(seed):
    """(parts of one direction, the same as exact laws for the oracle, remove)."""
    draw = random.Random(f"composition {seed}")
    mechanism, laws = None, []
    for kind in draw.choice(
        [("user", "user"), ("user", "plain"), ("user", "one"), ("user", "user", "plain")]
    ):
        sigma, steps = between(draw, 0.6, 6.0), int(between(draw, 20, 1e4))
        q, records = Fraction(between(draw, 1e-4, 0.1)), draw.randint(2, 7)
        if kind == "plain":
            sigma, steps = between(draw, 2.0, 20.0), draw.randint(1, 4)
            part, law = ac.Gaussian(sigma), (sigma, [], [], steps)
        else:
            records = 1 if kind == "one" else records
            part = user(float(q), sigma, records)
            shifts = [float(k) for k in range(1, records + 1)]
            law = (sigma, shifts, binomial(q, records), steps)
        mechanism = steps * part if mechanism is None else mechanism + steps * part
        laws.append(law)
    remove = draw.random() < 0.5
    (parts,) = [
        parts
        for parts in problems_of(mechanism)
        if all(pair.gaussian_part or pair.gaussian_mixture.add != remove for pair, _ in parts)
        and any(pair.gaussian_part is None for pair, _ in parts)
    ]
    return parts, laws, remove, draw.uniform(-30.0, -2.0)


def misses(seeds, kind=Alone):
    """The seeds whose brackets do not contain the truth, and how many could be judged."""
    wrong, judged = [], 0
    for seed in seeds:
        parts, laws, remove, goal = random_problem(seed)
        epsilon = epsilon_for(Saddle(laws, remove), goal)
        try:
            if not epsilon >= 0.0:
                continue
            low, high = map(Decimal, enclosing_decimals(line(laws, epsilon, remove, 3000)))
        except NotConverged:
            continue
        judged += 1
        found = kind(parts).delta_bounds(epsilon)
        if not (Decimal(float(found.lower)) <= high and Decimal(float(found.upper)) >= low):
            wrong.append(seed)
    return wrong, judged


@pytest.mark.parametrize(
    ("seeds", "least"),
    [
        pytest.param(range(16), 10, marks=pytest.mark.long),
        pytest.param(range(1000, 1300), 200, marks=pytest.mark.slow),
    ],
)
def test_exact_weights_are_inside(seeds, least):
    """The binomial laws as fractions, in ball arithmetic."""
    wrong, judged = misses(seeds)
    assert not wrong
    assert judged >= least


@pytest.mark.long
def test_a_wrong_count_is_noticed(monkeypatch):
    from accountant.analyses import mixed

    right = mixed.delta_bounds

    def fewer(parts, epsilon, direction, mixtures):
        first, *rest = mixtures
        return right(parts, epsilon, direction, (first._replace(steps=first.steps - 1), *rest))

    monkeypatch.setattr(mixed, "delta_bounds", fewer)
    assert misses(range(4))[0]


@pytest.mark.long
@pytest.mark.parametrize("add", [False, True])
def test_shifts_that_every_part_leaves_out_count(add, monkeypatch):
    """Theorem D9: mixtures cut much too early still bracket the whole ones."""
    whole, cut = [], []
    for sigma, last, steps in ((1.0, 1e-18, 500), (2.0, 3e-5, 400)):
        weights = (0.989 - last, 0.01, 0.001, last)
        full = MixturePair(sigma, (0.0, 1.0, 2.0, 3.0), weights, add)
        whole.append((full, steps))
        part = GaussianMixture(sigma, (1.0, 2.0), (0.01, 0.001), add, remainder=last * (1 + 1e-9))
        cut.append((stated(full, part), steps))
    exact, loose = Alone(tuple(whole)), Alone(tuple(cut))
    for epsilon in (1.0, 3.0, 5.0):
        truth, bounds = exact.delta_bounds(epsilon), loose.delta_bounds(epsilon)
        assert truth.upper - truth.lower <= 1e-8 * truth.upper
        assert bounds.lower <= truth.lower
        assert bounds.upper >= truth.upper
    if add:
        return
    # The same with the second part's share forgotten.
    monkeypatch.setattr(gaussian_mixtures, "_missing", lambda cuts: cuts[0].missing)
    forgetful = Alone(tuple(cut)).delta_bounds(9.0)
    assert forgetful.upper < exact.delta_bounds(9.0).lower


@pytest.mark.parametrize("seed", range(2))
def test_contour_and_grid_agree_on_compositions(seed):
    """Two analyses without common code bracket one truth."""
    draw = random.Random(seed)
    for _ in range(3):
        mechanism = int(between(draw, 10, 300)) * user(
            between(draw, 1e-4, 0.1), between(draw, 0.7, 5.0), draw.randint(2, 5)
        ) + draw.randint(1, 3) * ac.Gaussian(between(draw, 1.0, 9.0))
        delta = between(draw, 1e-9, 0.1)
        for parts in problems_of(mechanism):
            one = Alone(parts).epsilon_bounds(delta)
            two = Grid(parts, (1e-3,)).epsilon_bounds(delta)
            assert max(one.lower, two.lower) <= min(one.upper, two.upper)


GROWING = {
    "steps": [
        steps * WithReplacementSampled(1.0, batch_size=256, dataset_size=60_000)
        for steps in (2, 50, 500, 1000, 2350, 10_000)
    ],
    "records": [700 * user(0.005, 1.1, records) for records in (1, 2, 3, 5, 8, 20)],
    "parts": [
        300 * user(0.01, 1.0, 3) + n * user(0.02, 1.5, 4) + ac.Gaussian(sigma)
        for n, sigma in ((1, 9.0), (30, 9.0), (200, 9.0), (200, 6.0), (2000, 6.0))
    ],
}


@pytest.mark.parametrize("growing", GROWING.values(), ids=GROWING)
def test_more_of_anything_never_costs_less(growing):
    ends = [each.epsilon_bounds(1e-6) for each in growing]
    for before, after in pairwise(ends):
        assert before.upper <= after.lower


def test_what_is_chosen():
    mixture, other = user(0.01, 1.0, 4), user(0.02, 1.0, 3)
    sampled, plain = ac.PoissonSampled(ac.Gaussian(1.0), 0.1), ac.Gaussian(3.0)
    several = mixture + other, mixture + sampled, 3 * mixture + plain + sampled, plain + sampled
    for mechanism in (1 * mixture, 2 * mixture, *several):
        for parts in problems_of(mechanism):
            assert type(solver(parts)) is Contour
    for parts in problems_of(mixture + ac.Laplace(3.0)):
        assert type(solver(parts)) is not Contour


def test_one_direction_only():
    removal, addition = user(0.01, 1.0, 4).pairs()
    assert fits(((removal, 3), (GaussianPair(2.0), 1)))
    assert fits(((addition, 3), (GaussianPair(2.0), 1)))
    assert not fits(((removal, 3), (addition, 1)))
    assert not fits(((removal, 3), (GaussianPair(2.0, 0.5, True), 1)))
    assert not fits(((GaussianPair(2.0), 3), (GaussianPair(3.0), 1)))


def test_an_inexact_noise_multiplier_is_rounded_both_ways(monkeypatch):
    """Lower ends are those of the most noise."""
    from accountant.analyses import mixed

    asked = []

    def record(parts, delta, direction, mixtures):
        asked.append(parts[0].noise_multiplier)
        return 1.0, 1.0

    monkeypatch.setattr(mixed, "epsilon_bounds", record)
    pair = GaussianPair(3.0, exact=False)
    Alone(((user(0.01, 1.0, 4).pairs()[0], 300), (pair, 1))).epsilon_bounds(1e-6)
    most = pair.gaussian_part.most_noise
    assert asked == [3.0, most]
    assert most > 3.0
