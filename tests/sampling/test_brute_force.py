"""Every sampler in two steps: its law by enumeration, the batches it draws, and δ by quadrature.

Nothing of the package computes the laws or δ here. Samplers of matrix mechanisms with more than
one band are enumerated in the files of their own.
"""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy import stats

from accountant import NeighbouringRelation as Relation
from accountant import matrix, sampling

AXIS = np.linspace(-11.0, 11.0, 441)
CELL = (AXIS[1] - AXIS[0]) ** 2
# Relative error of the sum over a grid of a function with a kink: of second order in its spacing.
QUADRATURE = 1e-3
N, Q = 3, 0.3


def counted(records):
    """How often each record is in a batch."""
    return tuple(records.count(i) for i in range(N))


def twice(step):
    """Two independent steps of one law."""
    found = defaultdict(float)
    for (a, p), (b, q) in itertools.product(step.items(), repeat=2):
        found[a, b] += p * q
    return found


def equally(rows):
    found = defaultdict(float)
    for row in rows:
        found[row] += 1.0 / len(rows)
    return found


def coins(cap=N):
    """Independent coins; more than ``cap`` heads are cut down to a uniform subset."""
    found = defaultdict(float)
    for heads in itertools.product((0, 1), repeat=N):
        chance = math.prod(Q if h else 1.0 - Q for h in heads)
        drawn = [i for i in range(N) if heads[i]]
        kept = list(itertools.combinations(drawn, min(cap, len(drawn))))
        for subset in kept:
            found[counted(subset)] += chance / len(kept)
    return found


def picks():
    """Every record picks one of two steps."""
    rows = []
    for chosen in itertools.product((0, 1), repeat=N):
        rows.append(tuple(counted([i for i in range(N) if chosen[i] == step]) for step in range(2)))
    return equally(rows)


def orders(size):
    """Permutations, cut into batches."""
    return equally(
        [(counted(p[:size]), counted(p[size:])) for p in itertools.permutations(range(N))]
    )


def pauses():
    """Coins, except for who took part in the step before."""
    found = defaultdict(float)
    for first, p in coins().items():
        free = [i for i in range(N) if not first[i]]
        for heads in itertools.product((0, 1), repeat=len(free)):
            chance = math.prod(Q if h else 1.0 - Q for h in heads)
            drawn = [i for i, h in zip(free, heads, strict=True) if h]
            found[first, counted(drawn)] += p * chance
    return found


# What the others contribute, the record, and what is in its place.
BLANK, OPPOSITE, TURNED = (0.0, 1.0, 0.0), (-1.0, 1.0, -1.0), (0.0, 1.0, -1.0)
REPLACE = Relation.REPLACE_ONE
SIZED = {"batch_size": 2, "steps": 2}
EPOCH = {"batch_size": 2, "epochs": 1}
COINS = {"sampling_probability": Q, "steps": 2}
SUBSETS = twice(equally([counted(c) for c in itertools.combinations(range(N), 2)]))
DRAWS = twice(equally([counted(c) for c in itertools.product(range(N), repeat=2)]))
IN_ORDER = {(counted((0, 1)), counted((2,))): 1.0}
WHOLE = {(counted((0, 1, 2)), counted((0, 1, 2))): 1.0}
ONE_BAND = matrix.banded_square_root(2, bands=1)
ROWS = {
    "poisson": ("PoissonSampler", COINS, twice(coins()), BLANK),
    "truncated": (
        "TruncatedPoissonSampler", COINS | {"cap": 1}, twice(coins(1)), (*OPPOSITE[:2], 0.0)
    ),
    "allocation": ("RandomAllocation", {"steps_per_epoch": 2, "epochs": 1}, picks(), BLANK),
    "fixed size": ("FixedSizeSampler", SIZED, SUBSETS, OPPOSITE),
    "with replacement": ("WithReplacementSampler", SIZED, DRAWS, OPPOSITE),
    "with replacement, replace-one": ("WithReplacementSampler", SIZED, DRAWS, OPPOSITE),
    "shuffled": ("ShuffledBatches", EPOCH, orders(2), (*OPPOSITE[:2], 0.0)),
    "shuffled, replace-one": ("ShuffledBatches", EPOCH, orders(2), OPPOSITE),
    "cyclic": ("CyclicBatches", EPOCH, IN_ORDER, BLANK),
    "full batch": ("FullBatch", {"steps": 2}, WHOLE, BLANK),
    "poisson, replace-one": ("PoissonSampler", COINS, twice(coins()), TURNED),
    "truncated, replace-one": (
        "TruncatedPoissonSampler", COINS | {"cap": 2}, twice(coins(2)), TURNED
    ),
    "cyclic, replace-one": ("CyclicBatches", EPOCH, IN_ORDER, TURNED),
    "full batch, replace-one": ("FullBatch", {"steps": 2}, WHOLE, TURNED),
    "cyclic poisson": ("CyclicPoisson", COINS | {"bands": 1}, twice(coins()), BLANK),
    "balls in bins": ("BallsInBins", {"bins": 2, "strategy": ONE_BAND}, picks(), BLANK),
    "separated": ("SeparatedPoisson", COINS | {"min_separation": 2, "bands": 1}, pauses(), BLANK),
}  # fmt: skip


def made(name):
    """Return a sampler, the law of its two steps, and the data."""
    kind, given, law, data = ROWS[name]
    relation = {"relation": REPLACE} if name.endswith("replace-one") else {}
    return getattr(sampling, kind)(dataset_size=N, **given, **relation), law, data


CASES = {name: made(name) for name in ROWS}
# Where data that adapt to the outputs reach more than the fixed data of this page.
ADAPTIVE = {"fixed size", "with replacement, replace-one"}


@pytest.mark.parametrize("name", CASES)
def test_drawn_batches_follow_the_law(name):
    sampler, law, _ = CASES[name]
    runs = 3000
    rng = np.random.default_rng(17)
    seen = Counter(
        tuple(counted(batch.tolist()) for batch in sampler.batches(rng)) for _ in range(runs)
    )
    assert set(seen) <= set(law)
    if len(law) > 1:
        expected = np.array([runs * p for p in law.values()])
        counts = np.array([seen[key] for key in law], dtype=float)
        rare = expected < 5.0
        if rare.any():
            expected = np.append(expected[~rare], expected[rare].sum())
            counts = np.append(counts[~rare], counts[rare].sum())
        assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


def density(law, others, own, noise):
    """The density of the two releases on a grid."""
    sums = defaultdict(float)
    for steps, chance in law.items():
        sums[tuple(own * row[0] + others * sum(row[1:]) for row in steps)] += chance
    found = np.zeros((AXIS.size, AXIS.size))
    for means, chance in sums.items():
        one, two = (np.exp(-0.5 * ((AXIS - m) / noise) ** 2) for m in means)
        found += chance * np.multiply.outer(one, two)
    return found / (2.0 * math.pi * noise**2)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("noise", [1.0])
@pytest.mark.parametrize("name", CASES)
def test_no_bracket_excludes_what_two_steps_lose(name, noise):
    sampler, law, (others, own, without) = CASES[name]
    one, two = (density(law, others, each, noise) for each in (own, without))
    for epsilon in (0.1, 1.0):
        grown = math.exp(epsilon)
        lost = max(
            float(np.maximum(a - grown * b, 0.0).sum()) * CELL for a, b in ((one, two), (two, one))
        )
        assert lost * (1.0 - QUADRATURE) <= sampler.mechanism(noise).delta(epsilon) + 1e-9
        if name not in ADAPTIVE:
            for witness in sampler.worst_case_instances(noise):
                reached = witness.mechanism.delta_bounds(epsilon).lower - witness.excess
                assert reached <= _most(name, noise, epsilon, lost) * (1.0 + QUADRATURE)


def _most(name, noise, epsilon, lost):
    """The larger of two data sets, for samplers whose lower end may be that of the other."""
    _, law, found = CASES[name]
    if found == BLANK:
        return lost
    grown, most = math.exp(epsilon), lost
    one, two = (density(law, 0.0, each, noise) for each in (1.0, 0.0))
    for a, b in ((one, two), (two, one)):
        most = max(most, float(np.maximum(a - grown * b, 0.0).sum()) * CELL)
    return most


def test_a_step_without_a_record_that_may_take_part_is_empty():
    sampler = sampling.SeparatedPoisson(
        dataset_size=4, sampling_probability=1.0, min_separation=3, steps=6
    )
    sizes = [batch.size for batch in sampler.batches(1)]
    assert sizes == [4, 0, 0, 4, 0, 0]
