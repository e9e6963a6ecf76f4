"""The comparison of neighbours notices planted faults, and only those."""

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import accountant.learn.selection as selection
from accountant.noise import Grid, SecureGenerator
from support.twins import pairs, walk
from support.twins.comparison import Charge, twins
from support.twins.registry import Case

X = pairs.features(9, 2)
X[4] *= 50.0
PAIR = pairs.without("nine records", (X,), 4)


def release(X, *, deviation=4.0, look=lambda X: None, step=0.25):
    """Clip rows to one, add them up, release the sum: (1/deviation)-GDP but for the grid."""
    rows = X / np.maximum(1.0, np.abs(X).sum(axis=1, keepdims=True))
    look(X)
    # Cut off towards zero, row by row: no rounding is left for the account.
    total = (np.trunc(rows / step) * step).sum(axis=0)
    return Grid(step).release_gaussian(total, deviation, SecureGenerator(1))


def judged(run, charged=Fraction(1, 16), pair=PAIR, **given):
    case = Case(
        "planted", (), lambda data: run(*data), lambda: [pair],
        lambda result, pair: [Charge(1, squared=charged)], **given,
    )  # fmt: skip
    return twins(case, pair, seconds=1.0)[0]


def test_a_sum_of_clipped_rows_passes():
    assert judged(release) == []


def test_a_charge_that_is_too_small_by_a_hair_is_noticed():
    moved = np.trunc(X[4] / max(1.0, np.abs(X[4]).sum()) / 0.25) * 0.25
    exact = sum(Fraction(v) ** 2 for v in moved.tolist()) / 16
    assert exact > 0
    assert judged(release, exact) == []
    assert judged(release, exact * (1 - Fraction(1, 10**40)))


def quiet(X):
    return release(X, deviation=2.0)


def across_rows(X):
    return release(X / np.abs(X).max(axis=0))


def sizes_its_noise(X):
    return release(X, deviation=len(X) * 1.0)


def returns_the_number(X):
    return release(X), len(X)


def returns_a_private_bit(X):
    return release(X), bool((np.abs(X) > 10.0).any())


def warns(X):
    def look(X):
        if len(X) == 9:
            np.float64(1.0) / np.float64(0.0)

    return release(X, look=look)


def raises(X):
    def look(X):
        if len(X) == 9:
            raise ValueError("nine")

    return release(X, look=look)


def raises_with_a_number(X):
    raise ValueError(f"{len(X)} records are too many")


def prints(X):
    return release(X, look=lambda X: print(len(X)))


def releases_twice(X):
    found = release(X)
    return release(X) if len(X) == 9 else found


def not_finite(X):
    return release(np.where(X[-1] == X, np.nan, X))


def never_returns(X):
    while len(X) == 9:
        pass
    return release(X)


@pytest.mark.long(keep=11)
@pytest.mark.parametrize(
    "planted",
    [
        quiet, across_rows, sizes_its_noise, returns_the_number, returns_a_private_bit, warns,
        raises, raises_with_a_number, prints, releases_twice, not_finite, never_returns,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_a_planted_fault_is_noticed(planted):
    assert judged(planted)


def test_a_result_that_is_refused_to_both_alike_is_no_fault():
    def refuses(X):
        raise ValueError("too many columns")

    assert judged(refuses) == []


def test_what_is_documented_as_private_may_differ():
    class Result:
        def __init__(self, X):
            self.released, self.raw = release(X), X

    assert judged(Result)
    assert judged(Result, without=frozenset({"raw"})) == []


def test_a_new_trainer_without_a_case_is_noticed():
    def train_new_thing(X, y, *, rng=None):
        return X, y, rng

    with (
        mock.patch.object(selection, "train_new_thing", train_new_thing, create=True),
        mock.patch.object(selection, "__all__", [*selection.__all__, "train_new_thing"]),
    ):
        assert "accountant.learn.selection.train_new_thing" in walk.unaccounted(set())


def test_what_draws_in_a_module_of_its_own_needs_a_case_too():
    from accountant.learn.selection import noisy_max as module

    def release_quietly(x, generator):
        return x, generator

    release_quietly.__module__ = module.__name__
    with mock.patch.object(module, "release_quietly", release_quietly, create=True):
        assert f"{module.__name__}.release_quietly" in walk.unaccounted(set())
