"""Mechanism × sampler × relation × analysis: every cell is a number or a named reason."""

import math

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant import PoissonSampled
from support.example_mechanisms import EXAMPLES


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


def test_every_cell_is_a_number_or_a_reason():
    rows = list(table())
    assert len(rows) == len(EXAMPLES) * 6
    by = {}
    for mechanism, sampled, relation, row in rows:
        if "refused" in row:
            assert "theorem" in row["refused"] or "does not imply" in row["refused"]
            continue
        assert row["epsilon"] >= 0.0
        assert row["analysis"] in ("gaussian", "contour", "mixture contour", "grid", "renyi")
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
