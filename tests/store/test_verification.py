"""Every change of a journal is reported, and so is every table that does not follow from it."""

import json
import random

import pytest

import accountant as ac
from accountant import store
from accountant.errors import DomainError, LedgerError
from accountant.ledger import Budget
from accountant.store.journal import Chain
from support.store_tampering import STEP, Tampered, filled

COLUMNS = ("time", "action", "key", "body", "digest")
SECRET = b"sixteen bytes and more"


def changed(rng, row):
    """Return a row in which one field is another value of its type."""
    row = list(row)
    field = rng.choice([1, 2, 3, 4, 5])
    if field == 1:
        row[1] += rng.choice([-1, 1, 10**6])
    elif field == 3 and row[3] is None:
        row[3] = rng.choice(["", "key", "None"])
    elif field == 3:
        row[3] = rng.choice([None, row[3] + " ", row[3][:-1]])
    else:
        at = rng.randrange(len(row[field]))
        letter = rng.choice([c for c in '0123456789abcdef"[]\n ' if c != row[field][at]])
        row[field] = row[field][:at] + letter + row[field][at + 1 :]
    return row


def renumbered(rows):
    return [[number, *row[1:]] for number, row in enumerate(rows, start=1)]


def tampered(rng, rows):
    """Return what is left after one edit, deletion, insertion or swap inside the journal."""
    rows = [list(row) for row in rows]
    kind = rng.choice(["edit", "delete", "close up", "insert", "swap", "swap all"])
    at = rng.randrange(len(rows) - 1)
    other = rng.choice([k for k in range(len(rows)) if k != at])
    if kind == "edit":
        rows[at] = changed(rng, rows[at])
    elif kind == "delete":
        del rows[at]
    elif kind == "close up":
        del rows[at]
        rows = renumbered(rows)
    elif kind == "insert":
        copied = list(rows[other])
        copied[3] = None if copied[3] is None else "another"
        rows = renumbered([*rows[:at], copied, *rows[at:]])
    else:
        first = 1 if kind == "swap" else 2
        last = 6 if kind == "swap" else 5
        rows[at][first:last], rows[other][first:last] = (
            rows[other][first:last],
            rows[at][first:last],
        )
        if rows[at][first:last] == rows[other][first:last]:
            return tampered(rng, rows)
    return rows


def report_all(path, trials, secret):
    filled(path, secret).close()
    hands = Tampered(path, secret)
    assert hands.verified(hands.rows).passed
    rng = random.Random(trials)
    for _ in range(trials):
        rows = tampered(rng, hands.rows)
        assert rows != hands.rows
        found = hands.verified(rows)
        assert not found.passed
        assert found.faults


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("secret", [None, SECRET])
def test_changes_inside_the_journal_are_reported(path, secret):
    report_all(path, 100, secret)


@pytest.mark.slow
@pytest.mark.parametrize("secret", [None, SECRET])
def test_a_thousand_changes_inside_the_journal_are_reported(path, secret):
    report_all(path, 1000, secret)


def test_a_row_with_a_hash_of_its_own_is_seen_by_the_next(path):
    """Without a secret anybody can compute the hash of a row that he changed."""
    filled(path).close()
    hands = Tampered(path)
    for at in range(len(hands.rows) - 1):
        rows = [list(row) for row in hands.rows]
        rows[at][1] += 1
        before = rows[at - 1][5] if at else hands.chain.first(hands.identity)
        rows[at][5] = hands.chain.next(before, *rows[at][:5])
        found = hands.verified(rows)
        assert (
            found.faults[0] == f"row {at + 2} does not follow from the row before: one was changed"
        )


def test_a_cut_tail_is_seen_by_a_head_that_was_kept(path):
    with filled(path) as made:
        head = made.head()
        assert made.verify(head).passed
        made.charge("a/d/1", STEP)
        assert made.verify(head).passed
        later = made.head()
    hands = Tampered(path)
    short = hands.rows[:-1]
    end = short[-1][0], short[-1][5]
    body = json.loads(hands.rows[-1][4])
    block, kind = body["blocks"][0][0], body["entries"][0][0]

    mended = [
        f"UPDATE accountant_accounts SET held = held - 1 WHERE block = {block} AND kind = {kind}"
    ]
    # Whoever cuts a row and mends what followed from it is not seen from inside.
    assert hands.verified(short, end=end, statements=mended).passed
    found = hands.verified(short, later, end, mended)
    assert found.found == 1
    assert found.faults[0].startswith("the journal has been cut or is an older copy: row ")
    other = store.Head(head.rows, "0" * 64)
    assert "is another one" in " ".join(hands.verified(hands.rows, other).faults)


def test_an_older_copy_is_seen_by_a_head_that_was_kept(path, tmp_path):
    with filled(path) as made:
        older = store.Head(*made.head())
    copy = tmp_path / "older.db"
    copy.write_bytes(path.read_bytes())
    with store.open(f"sqlite:///{path}") as made:
        made.charge("a/d/1", STEP)
        head = made.head()
    with store.open(f"sqlite:///{copy}") as restored:
        assert restored.verify().passed  # nothing inside tells
        assert restored.verify(older).passed
        assert not restored.verify(head).passed


def test_a_chain_without_a_secret_can_be_made_anew_and_one_with_it_cannot(path):
    """What the page says that an unkeyed chain cannot see."""
    for secret, seen in ((None, False), (SECRET, True)):
        where = path.with_suffix(".keyed") if secret else path
        filled(where, secret).close()
        hands = Tampered(where, secret)
        forger = Chain(None)
        rows, digest = [list(row) for row in hands.rows], forger.first(hands.identity)
        at = next(k for k, row in enumerate(rows) if row[2] == "refuse")
        rows[at][1] += 1
        for row in rows:
            row[5] = digest = forger.next(digest, *row[:5])
        found = hands.verified(rows, end=(rows[-1][0], digest))
        assert found.passed is not seen


@pytest.mark.long(keep=5)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accountant_blocks SET budget = NULL WHERE address = 'a/d/1'",
        "UPDATE accountant_blocks SET address = 'a/d/x' WHERE address = 'a/d/1'",
        "UPDATE accountant_blocks SET relation = '' WHERE address = 'a/d/1'",
        "UPDATE accountant_blocks SET deltas = '[0.5]'",
        "UPDATE accountant_accounts SET held = held - 1 WHERE block = 2 AND held > 0",
        "DELETE FROM accountant_accounts WHERE held = 2",
        "DELETE FROM accountant_accounts",
        "UPDATE accountant_blocks SET planned = '[]'",
        "UPDATE accountant_reservations SET until = until + 1",
        "UPDATE accountant_reservations SET state = 'aborted' WHERE state = 'open'",
        "DELETE FROM accountant_reservations WHERE state = 'open'",
        "UPDATE accountant_budgets SET text = replace(text, '1e-06', '0.1')",
        "UPDATE accountant_kinds SET text = replace(text, '2.0', '3.0')",
        "UPDATE accountant_kinds SET digest = 'x' || digest",
        "UPDATE accountant_head SET seq = seq - 1",
        "UPDATE accountant_head SET digest = '0'",
        "INSERT INTO accountant_accounts VALUES (99, 1, 1)",
    ],
)
def test_tables_follow_from_the_journal(path, statement):
    filled(path, rounds=5).close()
    hands = Tampered(path)
    found = hands.verified(hands.rows, statements=[statement])
    assert not found.passed, statement


def test_many_faults_are_counted_and_a_few_listed(path):
    filled(path).close()
    hands = Tampered(path)
    found = hands.verified([[*row[:5], "0"] for row in hands.rows])
    assert found.found > len(found.faults) == 20


def test_a_row_that_cannot_be_read_is_a_fault(path):
    filled(path, rounds=2).close()
    hands = Tampered(path)
    for body in ("", "{", "[]", "null", json.dumps({"blocks": 3}), "[" * 10000):
        for at in range(len(hands.rows)):
            rows = [list(row) for row in hands.rows]
            rows[at][4] = body
            assert not hands.verified(rows).passed


def test_a_secret_is_needed_where_there_is_one(path):
    filled(path, SECRET, rounds=1).close()
    with pytest.raises(LedgerError, match="needs its secret"):
        store.open(f"sqlite:///{path}")
    with store.open(f"sqlite:///{path}", secret=b"another secret of some length") as wrong:
        assert not wrong.verify().passed
    other = path.with_name("other.db")
    filled(other, rounds=1).close()
    with pytest.raises(LedgerError, match="has no secret"):
        store.open(f"sqlite:///{other}", secret=SECRET)
    with pytest.raises(DomainError, match="must have >= 16 bytes"):
        store.open(f"sqlite:///{path}", secret=b"short")


def test_a_head_is_written_and_read():
    head = store.Head(12, "0a" * 32)
    assert store.Head.parse(str(head)) == head
    for wrong in ("", "12", "x:" + "0a" * 32, "12:zz", "-1:" + "0a" * 32):
        with pytest.raises(DomainError):
            store.Head.parse(wrong)


TRIGGER = (
    "CREATE TRIGGER less AFTER INSERT ON accountant_accounts BEGIN"
    " UPDATE accountant_accounts SET held = 0; END"
)
UNCHECKED = (
    "CREATE TABLE accountant_accounts (block INTEGER, kind INTEGER, held INTEGER,"
    " PRIMARY KEY (block, kind))"
)


@pytest.mark.parametrize(
    "statements",
    [
        (TRIGGER,),
        ("DROP TABLE accountant_reservations", "CREATE VIEW accountant_reservations AS SELECT 1"),
        ("ALTER TABLE accountant_accounts ADD COLUMN more INTEGER",),
        ("CREATE UNIQUE INDEX accountant_one ON accountant_journal (digest)",),
        ("DROP TABLE accountant_accounts", UNCHECKED),
    ],
)
def test_tables_are_as_they_were_created(path, statements):
    filled(path, rounds=1).close()
    base = Tampered(path).base
    for statement in statements:
        base.execute(statement)
    base.close()
    with store.open(f"sqlite:///{path}") as opened:
        try:
            faults = opened.verify().faults
        except LedgerError as error:
            faults = [str(error)]
    assert any("as they were created" in fault or "no such column" in fault for fault in faults)


SUPPRESSED = (
    "CREATE TRIGGER less BEFORE UPDATE ON accountant_accounts FOR EACH ROW EXECUTE FUNCTION"
    " suppress_redundant_updates_trigger()"
)
POSTGRES = [
    SUPPRESSED,
    "CREATE RULE less AS ON INSERT TO accountant_journal DO INSTEAD NOTHING",
    "ALTER TABLE accountant_accounts ALTER COLUMN held SET DEFAULT 0",
    "ALTER TABLE accountant_accounts DROP CONSTRAINT accountant_accounts_held_check",
    "ALTER TABLE accountant_accounts SET UNLOGGED",
    "ALTER TABLE accountant_blocks ENABLE ROW LEVEL SECURITY",
    "CREATE TABLE more () INHERITS (accountant_accounts)",
    "CREATE TEMPORARY TABLE accountant_accounts (block bigint, kind bigint, held bigint)",
]


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("statement", POSTGRES)
def test_tables_of_a_server_are_as_they_were_created(server, statement):
    with store.open(server.fresh(), create=True) as opened:
        opened.add_blocks("a/b/c", Budget(1.0, 1e-6))
        assert opened.verify().passed
        opened._database.execute(statement)
        assert "as they were created" in " ".join(opened.verify().faults)


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
