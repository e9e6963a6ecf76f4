"""Mechanism × sampler × relation × analysis, and mechanism × mechanism: what composes, and how.

Every cell of the first table is a number or a named reason. Every pair of mechanisms that have one
relation composes: ``COMBINATIONS=all pytest -s -m slow tests/cross_cutting/test_combinations.py``
tries all of them and prints how long they took.
"""

import math
import os
import random
import time
from itertools import combinations_with_replacement

import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import PoissonSampled
from accountant.ledger import schema
from support import every_mechanism
from support.every_mechanism import EXAMPLES


def table():
    """Yield (mechanism, sampled, relation, {question: number or reason})."""
    for mechanism in EXAMPLES:
        for sampled in (False, True):
            for relation in Relation:
                yield mechanism, sampled, relation, _row(mechanism, sampled, relation)


def _row(mechanism, sampled, relation):
    try:
        one = mechanism.under(relation)
        if sampled:
            one = PoissonSampled(one, 0.05)
        whole = 10 * one
        analysis = whole.profile().solvers()[0].name
    except ac.UnsupportedError as refusal:
        return {"refused": str(refusal)}
    row = {"analysis": analysis, "epsilon": whole.epsilon(1e-3)}
    try:
        row["renyi"] = whole.rdp(3.0)
    except ac.UnsupportedError as refusal:
        row["renyi"] = str(refusal)
    return row


@pytest.mark.long
def test_every_cell_is_a_number_or_a_reason():
    rows = list(table())
    assert len(rows) == len(EXAMPLES) * 6
    by = {}
    for mechanism, sampled, relation, row in rows:
        if "refused" in row:
            assert "theorem" in row["refused"] or "does not imply" in row["refused"]
            continue
        assert row["epsilon"] >= 0.0
        known = (
            "gaussian",
            "profile",
            "sums",
            "smoothed line",
            "contour",
            "mixture contour",
            "exchange contour",
            "overflow contour",
            "replacement game",
            "grid",
            "renyi",
            "combined",
        )
        assert row["analysis"] in known
        by[repr(mechanism), sampled, relation] = row["epsilon"]
    for (name, sampled, relation), epsilon in by.items():
        plain = by.get((name, False, relation))
        if sampled and plain is not None and math.isfinite(plain):
            assert epsilon <= plain * (1 + 1e-4), name
        zero = by.get((name, sampled, Relation.ZERO_OUT))
        if relation is Relation.ADD_OR_REMOVE and zero is not None:
            assert zero == epsilon, name
        if relation is Relation.REPLACE_ONE:
            assert epsilon >= by[name, sampled, Relation.ADD_OR_REMOVE] * (1 - 1e-4), name


# How often each of two mechanisms runs, and how many pairs of a relation the default tests try.
COUNTS = {(1, 1): 5, (3, 1000): 2, (10**6, 10**6): 0}
MANY = None if os.environ.get("COMBINATIONS") == "all" else 40
DELTA, EPSILON = 1e-6, 1.0
ALL_KINDS = {relation: every_mechanism.under(relation) for relation in Relation}


def pairs_of(relation, counts, most, seed):
    """Return pairs of mechanisms, counted, in an order that the seed decides."""
    rng = random.Random(f"{relation}{counts}{seed}")
    found = list(combinations_with_replacement(ALL_KINDS[relation], 2))
    rng.shuffle(found)
    return [(counts[0] * a, counts[1] * b) for a, b in found[:most]]


def failure(mechanism):
    """Return a probability that the loss is infinite, from what the mechanism states."""
    if isinstance(mechanism, ac.Composition):
        none = math.fsum(n * math.log1p(-failure(part)) for part, n in mechanism.parts)
        return -math.expm1(none)
    if isinstance(mechanism, ac.ApproximateDP):
        return mechanism.delta0
    if isinstance(mechanism, ac.LossDistribution):
        return mechanism.infinite_mass
    if isinstance(mechanism, ac.DominatingPMFs):
        return math.fsum(p for p, q in zip(mechanism.p, mechanism.q, strict=True) if q == 0.0)
    if isinstance(mechanism, ac.SparseHistogram):
        return max(pair.infinite_mass for pair in mechanism.pairs())
    if isinstance(mechanism, PoissonSampled):
        return mechanism.sampling_probability * failure(mechanism.mechanism)
    return 0.0


def wrong_with(one, other):
    """Yield what is wrong with the answers about the composition of two releases."""
    whole = one + other
    epsilon, delta = whole.epsilon_bounds(DELTA), whole.delta_bounds(EPSILON)
    if not 0.0 <= epsilon.lower <= epsilon.upper:
        yield f"{epsilon} is no bracket of ε"
    if not 0.0 <= delta.lower <= delta.upper <= 1.0:
        yield f"{delta} is no bracket of δ"
    if epsilon.upper == math.inf and not failure(whole) > DELTA * (1.0 - 1e-9):
        yield "no bound on ε, though the loss is finite with probability 1 - δ"
    parts = (one, other)
    if epsilon.upper < max(part.epsilon_bounds(DELTA).lower for part in parts):
        yield f"{epsilon} is less than one part costs"
    if delta.upper < max(part.delta_bounds(EPSILON).lower for part in parts):
        yield f"{delta} is less than one part costs"
    # Basic composition, to the width that a grid may have.
    most = sum(part.epsilon(DELTA / 2) for part in parts)
    if epsilon.upper > most * (1.0 + 1e-4) + 1e-12:
        yield f"{epsilon} is more than {most} by basic composition"
    most = sum(part.delta(EPSILON / 2) for part in parts)
    # A pair of chords over a profile exceeds it where the profile is negligible.
    if delta.upper > most * (1.0 + 1e-3) + 1e-12:
        yield f"{delta} is more than {most} by basic composition"


def report(pairs):
    """Return what is wrong with pairs, and how many processor seconds each took."""
    wrong, took = [], []
    for one, other in pairs:
        start = time.process_time()
        try:
            found = list(wrong_with(one, other))
        except ac.AccountantError as error:
            found = [f"{type(error).__name__}: {error}"]
        took.append((time.process_time() - start, f"{one!r:.60} + {other!r:.60}"))
        wrong += [(took[-1][1], each) for each in found]
    return wrong, sorted(took)


def test_every_public_mechanism_is_among_the_pairs():
    shown = {type(each).__name__ for each in every_mechanism.EVERY}
    others = {  # registered by other tests
        name
        for name, kind in schema._registered.items()
        if not kind.__module__.startswith("accountant.")
    }
    made = {"Composition", "LossDistribution", "RenyiCurve"} | set(schema.names()) - others
    # A product is a pair's own form; what a file may register is named by its package.
    assert made - shown <= {"Composition"}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("counts", [one for one in COUNTS if COUNTS[one]], ids=str)
@pytest.mark.parametrize("relation", Relation, ids=lambda each: each.name)
def test_pairs_of_mechanisms_compose(relation, counts):
    wrong, _ = report(pairs_of(relation, counts, COUNTS[counts], "default"))
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("relation", Relation, ids=lambda each: each.name)
def test_many_pairs_of_mechanisms_compose(relation, counts):
    wrong, took = report(pairs_of(relation, counts, MANY, "slow"))
    times = [seconds for seconds, _ in took]
    print(f"\n{len(took)} pairs: median {times[len(times) // 2]:.2f} s, slowest")
    print(*(f"{seconds:6.1f} s {names}" for seconds, names in took[-5:]), sep="\n")
    assert not wrong


def test_a_composition_that_costs_less_than_a_part_would_be_seen(monkeypatch):
    real = ac.Composition.epsilon_bounds

    def shrunk(self, delta):
        found = real(self, delta)
        return ac.Bounds(0.0, found.upper * (0.5 if len(self.parts) > 1 else 1.0))

    monkeypatch.setattr(ac.Composition, "epsilon_bounds", shrunk)
    monkeypatch.setattr(ac.Gaussian, "epsilon_bounds", real)
    assert [*wrong_with(ac.Gaussian(1.0), 1 * ac.Laplace(5.0))]
