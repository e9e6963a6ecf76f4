"""Sparse histograms and sums of Laplace losses: ball arithmetic, data sets, adaptive strategies."""

import itertools
import math
import random

import pytest
from flint import arb

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.analyses.hidden_keys import LARGEST_SUM, LaplaceSum
from accountant.analyses.solvers import Grid
from accountant.mechanisms.laplace import LaplacePair
from support.oracle import sparse_histogram as oracle

KINDS = {
    "gaussian": ac.Gaussian,
    "laplace": ac.Laplace,
    "discrete laplace": ac.DiscreteLaplace,
    "discrete gaussian": ac.DiscreteGaussian,
}
WHOLE = ("discrete laplace", "discrete gaussian")
SWEEPS, EACH = 100, 100  # 10^4 random settings in all


def build(kind, scale, threshold, *, keys=1, moved=1, minimum=1, replace=False):
    relation = Relation.REPLACE_ONE if replace else Relation.ADD_OR_REMOVE
    return ac.SparseHistogram(
        KINDS[kind](scale, sensitivity=moved, relation=relation),
        threshold=threshold,
        max_partitions=keys,
        minimum=None if minimum == 1 else minimum,
    )


def random_setting(rng):
    kind = rng.choice(list(KINDS))
    replace = rng.random() < 0.25
    moved = rng.choice((1, 1, 1, 2, 3))
    scale = moved * 10.0 ** rng.uniform(-0.3, 1.2 if kind == "gaussian" else 0.8)
    most = {"gaussian": 12, "laplace": 2, "discrete laplace": 5, "discrete gaussian": 3}[kind]
    if replace:
        most = {"gaussian": 5, "laplace": 1, "discrete laplace": 2, "discrete gaussian": 1}[kind]
    keys = rng.randint(1, most)
    minimum = rng.choice((1, 1, 1, 2, 5))
    tails = 10.0 ** rng.uniform(-0.5, 0.95)
    threshold = minimum * moved + scale * tails * (1.0 if "gauss" in kind else 3.0)
    if kind in WHOLE:
        threshold = float(math.ceil(threshold))
    loss = math.sqrt(keys) * moved / scale * (1.0 if "gauss" in kind else math.sqrt(keys))
    epsilon = loss * rng.uniform(0.0, 1.5)
    return (
        kind,
        scale,
        threshold,
        epsilon,
        {"keys": keys, "moved": moved, "minimum": minimum, "replace": replace},
    )


def check_setting(setting):
    kind, scale, threshold, epsilon, named = setting
    low, high = oracle.delta(kind, scale, threshold, epsilon, **named)
    release = build(kind, scale, threshold, **named)
    found = release.delta_bounds(epsilon)
    upper, lower = float(found.upper), float(found.lower)
    # Sound: no tolerance.
    assert oracle.as_fraction(low) <= upper, setting
    assert lower <= oracle.as_fraction(high) + 1e-300, setting
    assert upper - lower <= 1e-6 * upper + 1e-14, setting
    target = upper * 1.1
    if not 0.0 < target < 1.0 or target < 1e-30:
        return
    at = release.epsilon(target)
    if at < math.inf:
        low, _ = oracle.delta(kind, scale, threshold, at, **named)
        assert oracle.as_fraction(low) <= target, setting


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("sweep", range(SWEEPS))
def test_random_settings_against_ball_arithmetic(sweep):
    rng = random.Random(f"sparse histograms {sweep}")
    for _ in range(EACH):
        check_setting(random_setting(rng))


@pytest.mark.parametrize("seed", range(12))
def test_random_fixed_plans_against_ball_arithmetic(seed):
    rng = random.Random(f"plans {seed}")
    rows = [
        (
            rng.randint(1, 4),
            rng.randint(1, 4),
            rng.choice((1, 2)),
            s := rng.uniform(4.0, 30.0),
            2 + s * rng.uniform(1, 7),
        )
        for _ in range(rng.randint(1, 2))
    ]
    others = rng.choice((0, 1, 3))
    plan = sum(
        n * build("gaussian", s, tau, keys=keys, moved=moved) for n, keys, moved, s, tau in rows
    )
    sigma = rng.uniform(3.0, 20.0)
    if others:
        plan = plan + others * ac.Gaussian(sigma)
    mu2 = oracle.arb(others) / oracle.arb(sigma) ** 2
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        low, high = oracle.gaussian_plan(rows, mu2, epsilon)
        found = plan.delta_bounds(epsilon)
        assert oracle.as_fraction(low) <= float(found.upper)
        assert float(found.lower) <= oracle.as_fraction(high) + 1e-300
        assert float(found.upper) - float(found.lower) <= 1e-9 * float(found.upper) + 1e-15
        assert plan.adaptively().delta(epsilon) >= float(found.lower)


def is_the_worst(release, kind, scale, threshold, epsilon, pairs, width, minimum=1):
    """Whether a release's δ is the largest divergence of data sets; pairs have a last outcome."""
    worst = max(
        oracle.brute_force(kind, scale, threshold, epsilon, *pair, top, minimum)
        for *pair, top in pairs
    )
    assert worst <= release.delta(epsilon) * (1.0 + 1e-12)
    assert worst == pytest.approx(release.delta(epsilon), rel=width)


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize(("keys", "minimum"), [(1, 1), (2, 1), (1, 3)])
@pytest.mark.parametrize(
    ("scale", "threshold", "epsilon"), [(1.0, 4, 0.9), (2.0, 7, 0.97), (1.5, 5, 0.2)]
)
def test_no_data_sets_differ_by_more(kind, keys, minimum, scale, threshold, epsilon):
    release = build(kind, scale, float(threshold), keys=keys, minimum=minimum)
    far = threshold + math.ceil(60 * scale)
    top, pairs = far + math.ceil(60 * scale), []
    others = {0, 1, 2, minimum - 1, threshold // 2, threshold, far}
    for counts in itertools.product(sorted(others), repeat=keys):
        moved = tuple(count + 1 for count in counts)
        pairs += [(counts, moved, top), (moved, counts, top)]
    is_the_worst(release, kind, scale, threshold, keys * epsilon, pairs, 1e-8, minimum)


@pytest.mark.parametrize(("scale", "threshold", "epsilon"), [(1.0, 5, 1.3), (2.0, 9, 1.05)])
def test_no_replacement_differs_by_more(scale, threshold, epsilon):
    kind = "discrete laplace"
    release = build(kind, scale, float(threshold), replace=True)
    far = threshold + math.ceil(60 * scale)
    top = far + math.ceil(60 * scale)
    # One user has the first key, the other the second.
    counts = itertools.product((0, 1, threshold // 2, far), repeat=2)
    pairs = [((a + 1, b), (a, b + 1), top) for a, b in counts]
    is_the_worst(release, kind, scale, threshold, epsilon, pairs, 1e-9)


def test_rows_in_any_keys_differ_by_no_more():
    """At most three rows of a user, over one to three keys (Theorem N7)."""
    scale, threshold, epsilon = 1.0, 6, 1.8
    release = ac.SparseHistogram(ac.DiscreteLaplace(scale), threshold=float(threshold), max_rows=3)
    far, pairs = threshold + 40, []
    for split in ((3,), (2, 1), (1, 1, 1), (1,), (2,)):
        end = threshold + (80 if len(split) < 3 else 60)
        for counts in itertools.product((0, threshold, far), repeat=len(split)):
            if len(split) == 3 and far in counts and threshold in counts:
                continue  # as many outcomes as the machine can list
            moved = tuple(a + b for a, b in zip(counts, split, strict=True))
            pairs += [(counts, moved, end), (moved, counts, end)]
    is_the_worst(release, "discrete laplace", scale, threshold, epsilon, pairs, 1e-6)


@pytest.mark.parametrize("rounds", [2, 3])
@pytest.mark.parametrize("keys", [1, 2])
@pytest.mark.parametrize("scale", [0.7, 2.0])
def test_no_adaptive_strategy_is_worth_more(rounds, keys, scale):
    threshold = math.ceil(1 + 2.5 * scale)
    release = build("discrete laplace", scale, float(threshold), keys=keys)
    log_p = float(oracle.hidden("discrete laplace", scale, threshold, 1).log().mid())
    end = 1.0 / scale
    high = 1.0 / (1.0 + math.exp(-end))
    old = ((end, high), (-end, 1.0 - high))
    for epsilon in (0.1 * end, 0.9 * end, 1.7 * keys * end):
        worst = max(
            oracle.adaptive_value(rounds, epsilon, log_p, keys, old, direction)
            for direction in (0, 1)
        )
        charged = (rounds * release).adaptively().delta(epsilon)
        assert worst <= charged * (1.0 + 1e-9)
        assert charged <= 1.6 * worst
        assert (rounds * release).delta(epsilon) <= worst * (1.0 + 1e-9)


def test_too_many_alternatives_have_a_bound_still():
    """Six different histograms with eight keys each have half a million alternatives."""
    rows = [(1, 8, 1, 20.0 + i, 120.0 + 7.0 * i) for i in range(6)]
    plan = sum(build("gaussian", s, tau, keys=k) for _, k, _, s, tau in rows)
    found = plan.delta_bounds(1.0)
    assert 0.0 < float(found.lower) <= float(found.upper) <= 2.0 * float(found.lower)


def test_boxes_that_are_not_split_are_bounded(monkeypatch):
    from accountant.analyses import hidden_keys
    from accountant.analyses.dispatch import _remembered

    plan = 4 * build("gaussian", 17.0, 111.0, keys=10) + build("gaussian", 11.0, 71.0, keys=9)
    exact = plan.delta(1.4)
    for most in (1, 3, 9):
        monkeypatch.setattr(hidden_keys, "MOST_BOXES", most)
        _remembered.cache_clear()
        assert exact * (1.0 - 1e-12) <= plan.delta(1.4) <= 2.0 * exact
    _remembered.cache_clear()


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 2.0])
def test_a_sampled_part_beside_it_is_no_own_reverse(epsilon):
    """The reversed pair of a sample is another one: its profile below 0 is bounded."""
    release = build("gaussian", 2.0, 3.0, keys=2)  # seldom hidden, so that ε moves below 0
    sampled = ac.PoissonSampled(ac.Gaussian(1.0), 0.3)
    whole = release + sampled
    assert whole.delta(epsilon) >= release.delta(epsilon)
    assert whole.delta(epsilon) >= float(sampled.delta_bounds(epsilon).lower)
    for j in (1, 2):
        parts = sampled + j * hidden_pair(2.0, 3.0)
        if j == 1:
            parts = parts + ac.Gaussian(2.0)
        assert whole.delta(epsilon) >= float(parts.delta_bounds(epsilon).lower)


def hidden_pair(sigma, tau):
    q = 0.5 * math.erfc((tau - 1.0) / sigma / math.sqrt(2.0))
    return ac.mechanisms.DominatingPMFs((1.0 - q, q), (1.0, 0.0), infinite_loss=True)


@pytest.mark.parametrize("reach", [1e-3, 0.05, 0.7, 3.0, 11.0])
@pytest.mark.parametrize("count", [1, 2])
def test_few_releases_against_rigorous_integrals(reach, count):
    found = LaplaceSum(((LaplacePair(reach), count),))
    for share in (0.0, 0.1, 0.499, 0.5, 0.77, 0.99, 0.999999):
        epsilon = share * count * reach
        truth = oracle._laplace(arb(reach), count, arb(epsilon))
        bounds = found.delta_bounds(epsilon)
        assert oracle.as_fraction(truth.lower()) <= float(bounds.upper)
        assert float(bounds.lower) <= oracle.as_fraction(truth.upper())
        assert float(bounds.upper) - float(bounds.lower) <= 1e-8 * float(bounds.upper) + 2e-16


@pytest.mark.parametrize(("reach", "count"), [(0.05, 10), (0.3, 20), (1.0, 5), (0.02, 64)])
def test_more_releases_against_the_grid(reach, count):
    parts = ((LaplacePair(reach), count),)
    assert LaplaceSum.covers(parts)
    closed, grid = LaplaceSum(parts), Grid(parts)
    for share in (0.0, 0.2, 0.5):
        epsilon = share * math.sqrt(count) * 3.0 * reach
        one, other = closed.delta_bounds(epsilon), grid.delta_bounds(epsilon)
        assert float(one.lower) <= float(other.upper)
        assert float(other.lower) <= float(one.upper)
        assert float(one.upper) == pytest.approx(float(other.upper), rel=1e-5)


@pytest.mark.parametrize(("reach", "count"), [(0.05, 10), (1.0, 2), (2.0, 30)])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9, 1e-20])
def test_an_epsilon_has_its_delta(reach, count, delta):
    found = LaplaceSum(((LaplacePair(reach), count),))
    bounds = found.epsilon_bounds(delta)
    upper, lower = float(bounds.upper), float(bounds.lower)
    assert float(found.delta_bounds(upper).upper) <= delta
    assert lower == 0.0 or float(found.delta_bounds(lower).lower) >= delta * (1.0 - 1e-9)
    assert upper - lower <= 1e-8 * (1.0 + upper)


def test_laws():
    found = LaplaceSum(((LaplacePair(0.4), 12),))
    values = [float(found.delta_bounds(e).upper) for e in (0.0, 0.5, 1.0, 2.0, 4.0, 4.8, 4.9)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.0
    slopes = [
        (b - a) / (math.exp(y) - math.exp(x))
        for (x, a), (y, b) in itertools.pairwise(zip((0.0, 0.5, 1.0, 2.0), values, strict=False))
    ]
    assert slopes == sorted(slopes)


def test_what_it_covers():
    assert LaplaceSum.covers(((LaplacePair(1.0), 3),))
    assert not LaplaceSum.covers(((LaplacePair(1.0), 100),))
    assert not LaplaceSum.covers(((LaplacePair(LARGEST_SUM), 2),))
    assert not LaplaceSum.covers(((LaplacePair(1.0), 1), (ac.Gaussian(1.0).pairs()[0], 1)))
