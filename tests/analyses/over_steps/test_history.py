"""ε after releases of different kinds, above the truth and close to it; prefixes of histories."""

import math
from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountant as ac
from accountant.analyses.over_steps import history
from accountant.analyses.over_steps.curve import known_bounds
from accountant.analyses.over_steps.history import (
    Part,
    check_length,
    composed_bounds,
    counts_after,
    counts_at,
    first,
)
from accountant.errors import UnsupportedError
from accountant.ledger import Accountant
from support.oracle import compositions as laws
from support.oracle.composed import ball
from support.oracle.monotone_ratio import gaussian

DELTA = 1e-5
STEP = ac.PoissonSampled(ac.Gaussian(1.1), 0.01)
OTHER = ac.PoissonSampled(ac.Gaussian(1.3), 0.02)


def ledger_of(*entries):
    ledger = Accountant()
    for mechanism, count in entries:
        ledger.compose(mechanism, count)
    return ledger


KINDS = [("gauss", 2.0), ("gauss", 9.0), ("pure", 0.05), ("pure", 0.6), ("approximate", 0.3)]


@settings(max_examples=12)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 4)), min_size=1, max_size=5),
    st.floats(1e-8, 6e-6),
    st.sampled_from([None, 0, 3]),
)
def test_no_prefix_is_below_the_truth(entries, own, checkpoints):
    made = {
        "gauss": ac.Gaussian,
        "pure": lambda e: ac.RandomizedResponse(e, k=2),
        "approximate": lambda e: ac.ApproximateDP(e, delta=own),
    }
    ledger, truths, square, counts = Accountant(), [], ball(0), Counter()
    for (kind, value), count in entries:
        ledger.compose(made[kind](value), count)
        for _ in range(count):
            if kind == "gauss":
                square += 1 / ball(value) ** 2
            else:
                counts[value, own if kind == "approximate" else 0.0] += 1
            parts = [laws.power(laws.response(e, 2, d), n) for (e, d), n in counts.items()]
            density = gaussian(square.sqrt()) if square > 0 else None
            truths.append(partial(laws.profile, laws.product(parts), density=density))
    curve = ledger.epsilon_over_steps(DELTA, checkpoints=checkpoints)
    assert curve.shape == (len(ledger),)
    assert (curve[1:] >= curve[:-1]).all()
    for epsilon, truth in zip(curve.tolist(), truths, strict=True):
        assert epsilon == math.inf or not truth(epsilon) > DELTA * (1 + 1e-12)
    near = min(float(curve[-1] - 1e-4) / (1 + 1e-4), 50.0)
    if checkpoints is None and near > 0.0:
        assert not truths[-1](near) < DELTA


MIXES = {
    "a release with a δ of its own between runs": [
        (STEP, 60), (ac.ApproximateDP(0.1, delta=1e-6), 1), (OTHER, 60)
    ],
    "a few pure releases": [(ac.PureDP(0.1), 3), (ac.Laplace(20.0), 3)],
    "taken in turn": [(ac.Laplace(20.0), 1), (ac.Gaussian(8.0), 1)] * 12,
    "one at the end": [(ac.Gaussian(9.0), 20), (ac.Laplace(10.0), 1)],
    "equal ones with a δ": [(ac.ApproximateDP(0.1, delta=1e-7), 20)],
}  # fmt: skip


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if "between" in name else ()) for name in MIXES],
)
def test_every_prefix_is_close_to_its_exact_composition(name):
    ledger = ledger_of(*MIXES[name])
    curve = ledger.epsilon_over_steps(DELTA)
    assert (curve[1:] >= curve[:-1]).all()
    steps = len(ledger)
    for length in sorted({1, 2, steps // 4, steps // 2, 3 * steps // 4, steps - 1, steps} - {0}):
        low, high = composed_bounds(counts_after(ledger.history, length), DELTA)
        assert low <= curve[length - 1] <= 1.2 * high, length
    assert curve[-1] <= ledger.epsilon(DELTA) * (1 + 1e-12)


def test_what_has_a_delta_of_its_own_among_different_steps_is_added_to_them():
    schedule_of = [(ac.PoissonSampled(ac.Gaussian(1.0 + 0.01 * k), 0.05), 3) for k in range(20)]
    alone = ledger_of(*schedule_of).epsilon_over_steps(DELTA)
    ledger = ledger_of(*schedule_of[:10], (ac.ApproximateDP(0.1, delta=1e-6), 1), *schedule_of[10:])
    curve = ledger.epsilon_over_steps(DELTA, checkpoints=0)
    tight = known_bounds(ledger.history, DELTA)
    assert np.isfinite(curve).all()
    assert (tight[1:] >= tight[:-1]).all()
    assert (tight <= curve * (1 + 1e-12)).all()
    # Steps alone cost no more; with the release no more than its ε and a larger share of δ.
    assert tight[:30] == pytest.approx(alone[:30], rel=1e-12)
    assert (alone[30:] <= tight[31:]).all()
    assert (tight[31:] <= alone[30:] + 0.1 + 0.02 * alone[30:]).all()


def test_more_lost_than_delta_allows_is_infinite_from_there_on():
    ledger = ledger_of((STEP, 5), (ac.ApproximateDP(0.1, delta=6e-6), 2), (ac.Gaussian(5.0), 5))
    for checkpoints in (None, 0):
        curve = ledger.epsilon_over_steps(DELTA, checkpoints=checkpoints)
        assert np.isfinite(curve[:6]).all()
        assert (curve[6:] == math.inf).all()


def test_losses_beyond_delta_may_come_before_the_first_gaussian_step():
    ledger = ledger_of((ac.ApproximateDP(1.0, delta=3e-6), 7), (STEP, 4))
    curve = ledger.epsilon_over_steps(DELTA)
    for count in (1, 2, 3):
        truth = ledger_of((ac.ApproximateDP(1.0, delta=3e-6), count)).epsilon_bounds(DELTA)
        assert truth.lower <= curve[count - 1] <= count * (1.0 + 1e-12)
    assert (curve[3:] == math.inf).all()


class Curveless:
    """A pair whose divergence is unknown, or none."""

    def __init__(self, found):
        self.found = found

    def finite_rdp(self, order):
        if self.found is None:
            raise UnsupportedError("no curve")
        return self.found


@pytest.mark.parametrize(
    ("found", "used"),
    [(None, math.inf), (math.nan, math.inf), (-1e-9, 0.0), (-math.inf, 0.0), (0.5, 0.5)],
)
def test_a_divergence_that_is_not_known_bounds_nothing(found, used):
    assert history._finite_divergence(Curveless(found), 2.0) == used


# Equal mechanisms need not be one object.
PLAIN = st.sampled_from([1.0, 2.0, 3.0]).map(ac.Gaussian)
HISTORIES = st.lists(st.builds(Part, PLAIN, st.integers(1, 9)), max_size=8)


def written_out(history):
    return [item.mechanism for item in history for _ in range(item.count)]


@given(HISTORIES, st.sets(st.integers(1, 80)))
def test_the_counts_of_a_prefix(history, lengths):
    releases = written_out(history)
    reached = sorted(n for n in lengths if n <= len(releases))
    found = list(counts_at(history, sorted(lengths)))
    assert [n for n, _ in found] == reached
    for n, counts in found:
        # In the order of their first release.
        assert counts == tuple(Counter(releases[:n]).items())
        assert counts_after(history, n) == counts
        assert written_out(first(history, n)) == releases[:n]


def test_histories_too_long_for_a_curve_are_refused():
    check_length([Part(ac.Gaussian(1.0), 10**7)])
    with pytest.raises(ac.DomainError, match="10000001"):
        check_length([Part(ac.Gaussian(1.0), 10**7), Part(ac.Gaussian(1.0), 1)])
