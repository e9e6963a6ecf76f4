"""A store with rows of every kind, and its database in the hands of someone who may write to it."""

import math

import pytest

import accountant as ac
from accountant import store
from accountant.ledger import Accountant, Budget
from accountant.store import verification
from accountant.store.journal import Chain
from accountant.store.sqlite import SQLite

STEP = ac.PoissonSampled(ac.Gaussian(2.0), 0.001)


def filled(path, secret=None, rounds=20):
    made = store.open(f"sqlite:///{path}", create=True, secret=secret)
    made.add_blocks([f"a/d/{k}" for k in range(5)], Budget(1.0, 1e-6))
    made.add_blocks("a/e/1", Budget(1.0, 1e-6, filter="gaussian"))
    taken = Accountant(Budget(1.0, 1e-6))
    taken.compose(ac.Gaussian(20.0), 2)
    made.import_ledger("a/f/1", taken)
    made.add_blocks("a/g/1", Budget(1.0, 1e-6))
    made.plan("a/g/1", STEP, 5, "plan")
    made.charge("a/g/1", STEP, 2)
    for k in range(rounds):
        made.charge(["a/d/1", "a/d/2"], STEP, 1 + k, f"label {k}", time=k / 7)
        held = made.reserve("a/d/*", ac.Gaussian(100.0 + k % 3), 3, lease=1e-6 if k == 3 else 9.0)
        if k % 3 == 0 and k != 3:
            made.abort(held.key)
        if k % 3 == 1:
            made.commit(held.key, 2)
        with pytest.raises(store.BlockExceeded):
            made.charge("a/e/1", ac.Gaussian(0.1))
    made.expire()
    assert made.verify().passed, made.verify()
    return made


class Tampered:
    """The database in the hands of someone who may write to it; nothing is kept."""

    def __init__(self, path, secret=None):
        self.base = SQLite(str(path), False)
        self.base.connect(math.inf)
        self.chain = Chain(secret)
        self.identity = self.base.execute("SELECT identity FROM accountant_store").fetchone()[0]
        rows = self.base.execute("SELECT * FROM accountant_journal ORDER BY seq").fetchall()
        self.rows = [list(row) for row in rows]

    def verified(self, rows, head=None, end=None, statements=()):
        base = self.base
        base.execute("BEGIN")
        try:
            base.execute("DELETE FROM accountant_journal")
            for row in rows:
                base.execute("INSERT INTO accountant_journal VALUES (?, ?, ?, ?, ?, ?)", row)
            if end is not None:
                base.execute("UPDATE accountant_head SET seq = ?, digest = ?", end)
            for statement in statements:
                base.execute(statement)
            return verification.verify(base, self.chain, self.identity, head)
        finally:
            base.rollback()
