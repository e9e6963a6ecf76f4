"""Units apart: every NumPy trainer and scikit-learn estimator, with randomness at its default."""

from unittest import mock

import numpy as np
import pytest

from accountant.learn import blocks as aggregate
from accountant.learn.models import network
from support.twins import cases, pairs
from support.units_apart.numpy_units import WITHOUT_PARTS, units_apart

EVERY = {
    case.name: case
    for case in cases()
    if not case.refused and next((p.left_ids for p in case.pairs()), ())
}


def first(case):
    return next(pair for pair in case.pairs() if min(len(pair.left[0]), len(pair.right[0])) > 1)


@pytest.mark.long(keep=19)
@pytest.mark.parametrize("name", EVERY)
def test_what_a_record_adds_depends_on_no_other(name):
    wrong, parts = units_apart(EVERY[name], first(EVERY[name]))
    assert not wrong
    assert parts.of_records or name.startswith(WITHOUT_PARTS)


def standardised(original):
    def features(*given):
        rows = original(*given)
        return np.ascontiguousarray(rows - rows.mean(axis=0))

    return features


def with_dropout(original):
    """Masks of NumPy's global generator, a block at a time: a record's depends on its place."""

    def forward(self, x):
        kept = np.random.random(x.shape) < 0.9  # noqa: NPY002
        return original(self, np.where(kept, x, 0.0))

    return forward


def scaled_by_the_batch(original):
    """A millionth of the sum: far less than a record's bound."""

    def add_rows(*given):
        original(*given)
        totals = given[-1]
        totals.gradient *= 1.0 + 1e-6 * totals.records

    return add_rows


@pytest.mark.parametrize(
    ("place", "name", "change"),
    [
        (network, "features", standardised),
        (network.Network, "_forward", with_dropout),
        (network.Network, "add_rows", scaled_by_the_batch),
    ],
    ids=["standardised", "dropout", "batch"],
)
def test_a_planted_fault_is_noticed(place, name, change):
    case = EVERY["train_dp_sgd, LogisticRegression"]
    with mock.patch.object(place, name, change(getattr(place, name))):
        assert units_apart(case, first(case))[0]


def whole(found, places):
    return np.asarray(found)[places]


def test_a_list_read_as_a_whole_is_noticed():
    case = EVERY["private_block_median"]
    rows = pairs.features(21, 2).tolist()
    ids = tuple(range(22))
    pair = pairs.Pair(
        "a word", ([*rows, ["n/a", 0.5]],), (rows,), ids, ids[:-1], 21, "add or remove"
    )
    assert not units_apart(case, pair)[0]
    with mock.patch.object(aggregate, "records_at", whole):
        assert "shard: another record's part changed" in units_apart(case, pair)[0]
