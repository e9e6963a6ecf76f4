"""Rows that someone appends who may write to the database, and computes the hashes of."""

import json

import pytest

import accountant as ac
from accountant import store
from accountant.ledger import Budget
from support.store_tampering import Tampered


def forged(hands, *rows):
    """Return what ``verify`` finds after rows (action, key, body) and the tables they lead to."""
    written = [list(row) for row in hands.rows]
    for action, key, body, *time in rows:
        number, digest = written[-1][0] + 1, written[-1][5]
        told = [number, *(time or [written[-1][1]]), action, key, json.dumps(body)]
        written.append([*told, hands.chain.next(digest, *told)])
    found = hands.verified(written, end=(written[-1][0], written[-1][5]))
    # What he did to the tables does not matter: this is of the journal alone.
    return [fault for fault in found.faults if "is not what the journal says" not in fault]


@pytest.fixture
def attacked(path):
    """A store of one block that is full to its budget, a release of which is reserved."""
    with store.open(f"sqlite:///{path}", create=True) as made:
        made.add_blocks("a/b/c", Budget(1.0, 1e-6))
        made.charge("a/b/c", ac.Gaussian(20.0), 17)
        made.reserve("a/b/c", ac.Gaussian(20.0), 1, key="held")
        with pytest.raises(store.BlockExceeded):
            made.charge("a/b/c", ac.Gaussian(20.0))
        assert made.verify().passed
    return Tampered(path)


def row_of(hands, action):
    return next(row for row in hands.rows if row[2] == action)


def test_rows_that_could_not_be_written_are_faults_though_their_hashes_are_right(attacked):
    kind, block, held = (row_of(attacked, each)[0] for each in ("kind", "block", "reserve"))
    now, until = attacked.rows[-1][1], json.loads(row_of(attacked, "reserve")[4])["until"]
    on = {"blocks": [[block, block]]}
    one = on | {"entries": [[kind, 1, None, None]]}
    abort = ("abort", None, {"reservation": held, "used": 0})
    assert forged(attacked) == []
    assert forged(attacked, abort) == []  # what a client might do; only a kept head tells
    assert forged(attacked, ("expire", None, {"reservation": held}, until)) == []
    again = on | {"entries": [[kind, 1, None, None]], "until": until}
    for fault, *rows in (
        ("KeyError", ("price", None, {"budget": 1, "kind": kind, "cost": "0 0"})),
        ("settled", *[abort] * 9),
        ("settled", abort, ("commit", None, {"reservation": held, "used": 1})),
        ("no more than", ("commit", None, {"reservation": held, "used": 2})),
        ("no more than", ("commit", None, {"reservation": held, "used": -3})),
        ("an abort of all", ("abort", None, {"reservation": held, "used": 1})),
        ("KeyError", ("abort", None, {"reservation": held + 7, "used": 0})),
        ("its time", (*abort, until)),
        ("its time", ("expire", None, {"reservation": held}, now)),
        ("more than its budget", ("charge", "k", one)),
        ("more than its budget", abort, ("charge", "k", one), ("charge", "l", one)),
        # Given back at once, and still more than there was to give.
        (
            "more than its budget",
            ("reserve", "k", again),
            ("abort", None, {"reservation": attacked.rows[-1][0] + 2, "used": 0}),
        ),
        ("count from 1", ("charge", "k", on | {"entries": [[kind, -8, None, None]]})),
        ("count from 1", ("charge", "k", on | {"entries": [[kind, True, None, None]]})),
        ("a kind that", ("charge", "k", on | {"entries": [[kind + 90, 1, None, None]]})),
        ("KeyError", ("charge", "k", one | {"blocks": [[block + 90, block + 90]]})),
        ("its key", ("charge", None, one)),
        ("before all charges", ("import", None, one)),
        ("before all releases", ("plan", "k", one)),
        ("another address", ("block", None, json.loads(row_of(attacked, "block")[4]))),
        ("KeyError", ("erase", None, one)),
    ):
        found = forged(attacked, *rows)
        assert found, rows
        assert fault in " ".join(found), (rows, found)


def test_a_block_under_replace_one_is_alone(attacked):
    one = ac.Gaussian(90.0, relation=ac.NeighbouringRelation.REPLACE_ONE)
    from accountant.store.texts import text_of_mechanism

    number = attacked.rows[-1][0]
    blocks = [
        ("block", None, {"address": f"a/x/{k}", "budget": None, "deltas": []}) for k in range(2)
    ]
    kind = ("kind", None, {"mechanism": json.loads(text_of_mechanism(one))})
    charge = ("charge", "k", {"blocks": [[number + 1] * 2], "entries": [[number + 3, 1, "", None]]})
    assert "several blocks" in " ".join(forged(attacked, *blocks, kind, charge))


def test_peaks_of_different_kinds_are_not_added_up(path):
    """Each was held at a time of its own: together they would be beyond the budget."""
    with store.open(f"sqlite:///{path}", create=True) as made:
        made.add_blocks("a/b/c", Budget(1.0, 1e-6))
        for k in range(6):
            step = ac.Gaussian(20.0 + k)
            most = made.affordable("a/b/c", step)
            held = made.reserve("a/b/c", step, most)
            made.commit(held.key, 1) if k % 2 else made.abort(held.key)
        assert made.verify().passed
