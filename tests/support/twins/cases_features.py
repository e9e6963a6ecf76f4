"""Extractors, and trainers behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.learn import (
    Chain,
    Frozen,
    LinearRegression,
    OrientedGradients,
    PerExampleModel,
    PrincipalComponents,
    RandomFourierFeatures,
    UnitNorm,
    train_dp_sgd,
)
from support.dp_sgd_runs import arranged
from support.twins import pairs
from support.twins.cases_descent import SETTINGS, of_the_plan, trained
from support.twins.registry import case
from support.twins.trace import watch

D = 36
PUBLIC = pairs.features(60, D, seed=1)


@dataclass(frozen=True)
class Extraction:
    """An extractor, and tables to try it on."""

    name: str
    covers: tuple[str, ...]
    make: Any
    pairs: Any


def _extractors():
    axes = PUBLIC[:D, :5].copy()
    return {
        "PrincipalComponents": lambda: PrincipalComponents(PUBLIC, 5),
        "PrincipalComponents, whiten": lambda: PrincipalComponents(PUBLIC, 5, whiten=True),
        "RandomFourierFeatures": lambda: RandomFourierFeatures(D, 33, 4.0),
        "OrientedGradients": lambda: OrientedGradients(6, 6, cell=2),
        "UnitNorm": lambda: UnitNorm(0.5),
        "Chain": lambda: Chain(PrincipalComponents(PUBLIC, 5), UnitNorm()),
        "Frozen": lambda: Frozen(lambda X: X @ axes),
    }


def _tables():
    """Ordinary, degenerate and extreme tables, and every number of rows a kernel may care about."""
    yield from pairs.add_or_remove(D, None)
    for n in (2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 65):
        yield pairs.without(f"{n} rows, the first", (pairs.features(n, D),), 0)


def _longer():
    for n in (127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1025):
        for place in (0, n // 2, n - 1):
            yield pairs.without(f"{n} rows, record {place}", (pairs.features(n, D),), place)


EXTRACTIONS = [
    Extraction(name, (f"accountant.learn.{name.split(',')[0]}",), make, (_tables, _longer))
    for name, make in _extractors().items()
]


def rows_apart(extraction, pair):
    """Return what is wrong: a shared record whose features are not the same to the last bit.

    A function that is refused on both is as good as one that maps records by themselves.
    """
    extractor = extraction.make()
    one, other = (watch(lambda data: extractor(*data), data) for data in (pair.left, pair.right))
    if one.outside != other.outside:
        return [f"{one.outside!r} and {other.outside!r}"]
    if one.raised is not None:
        return []
    shared = sorted(set(pair.left_ids) & set(pair.right_ids))
    left = one.result[[pair.left_ids.index(i) for i in shared]]
    right = other.result[[pair.right_ids.index(i) for i in shared]]
    apart = int(np.count_nonzero(left.view(np.uint64) != right.view(np.uint64)))
    return [f"{apart} of {left.size} numbers of other records differ"] if apart else []


def _near_zero(seed, n):
    """Return records whose projection is nothing but round-off: digits decide its direction."""
    random = np.random.default_rng(seed)
    half = random.normal(size=(WIDE, WIDE))
    components = PrincipalComponents(np.concatenate([half, -half]), 1)
    X = random.normal(size=(n, WIDE))
    for _ in range(3):
        X -= components(X) @ np.asarray(components.axes).T
    return components, X


N, WIDE = 32, 64


def _after_extraction(data):
    components, _ = _near_zero(1, N)
    X, y = data
    features = Chain(components, UnitNorm())(X)
    settings = SETTINGS | {
        "steps": 1, "sampler": "full", "sampling_probability": None, "expected_batch_size": N
    }  # fmt: skip
    # Targets beyond reach: a record's clipped gradient is its feature's sign.
    return train_dp_sgd(LinearRegression(1, bias=False), features, y, **arranged(settings))


def _projections():
    _, X = _near_zero(1, N)
    for place in (0, 1, N // 2, N - 1):
        yield pairs.without(f"projections near 0, record {place}", (X, np.full(N, 1e3)), place)


case(
    name="train_dp_sgd behind principal components and unit norms",
    covers=("accountant.learn.PrincipalComponents", "accountant.learn.UnitNorm"),
    run=_after_extraction,
    pairs=_projections,
    charges=of_the_plan(),
)


def batch_normalised_hinge(parameters, X, y):
    """Return gradients that look across records, though not where every target is 0."""
    scores = X @ parameters
    scores = (scores - scores.mean()) / (scores.std() + 1e-9)
    return -(y * (y * scores < 1.0))[:, None] * X


def _hinge_pairs():
    for n in (21, 130):
        X = pairs.features(n, 3)
        yield pairs.without(f"{n} records", (X, pairs.signs(X)), 0)


case(
    name="train_dp_sgd, a hinge of batch-normalised scores",
    covers=("accountant.learn.PerExampleModel",),
    run=trained(
        lambda: PerExampleModel(np.ones(3), batch_normalised_hinge),
        expected_batch_size=60.0, steps=1,
    ),
    pairs=_hinge_pairs,
    charges=of_the_plan(),
    refused=True,
)  # fmt: skip
