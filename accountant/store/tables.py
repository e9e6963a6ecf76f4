"""The tables of a store, and the steps from each version of them to the next.

``head`` has one row, the end of the journal; writers take turns by locking it. ``journal`` is only
added to. All other tables follow from it, and ``verify`` derives them anew: ``budgets`` and
``kinds`` hold texts once, ``prices`` what a release of a kind adds to the sums of a budget,
``blocks`` the sums, ``accounts`` how many releases of each kind a block holds.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from accountant.errors import LedgerError
from accountant.store.chain import Chain

if TYPE_CHECKING:
    from accountant.store.database import Database

__all__ = ["VERSION", "migrate", "opened"]

_FIRST = (
    """CREATE TABLE accountant_store (
        version {integer} NOT NULL, identity TEXT NOT NULL, keyed {integer} NOT NULL)""",
    """CREATE TABLE accountant_head (
        id {integer} PRIMARY KEY CHECK (id = 1), seq {integer} NOT NULL, digest TEXT NOT NULL)""",
    """CREATE TABLE accountant_journal (
        seq {integer} PRIMARY KEY, time {integer} NOT NULL, action TEXT NOT NULL,
        key TEXT UNIQUE, body TEXT NOT NULL, digest TEXT NOT NULL)""",
    """CREATE TABLE accountant_budgets (
        id {integer} PRIMARY KEY, digest TEXT NOT NULL UNIQUE, text TEXT NOT NULL)""",
    """CREATE TABLE accountant_kinds (
        id {integer} PRIMARY KEY, digest TEXT NOT NULL UNIQUE, text TEXT NOT NULL)""",
    """CREATE TABLE accountant_prices (
        budget {integer} NOT NULL REFERENCES accountant_budgets (id),
        kind {integer} NOT NULL REFERENCES accountant_kinds (id),
        cost TEXT NOT NULL, PRIMARY KEY (budget, kind))""",
    """CREATE TABLE accountant_blocks (
        id {integer} PRIMARY KEY, address TEXT {bytewise} NOT NULL UNIQUE,
        budget {integer} REFERENCES accountant_budgets (id), deltas TEXT NOT NULL,
        relation TEXT NOT NULL, sums TEXT NOT NULL)""",
    """CREATE TABLE accountant_accounts (
        block {integer} NOT NULL, kind {integer} NOT NULL,
        held {integer} NOT NULL CHECK (held >= 0 AND held <= 9007199254740992),
        PRIMARY KEY (block, kind))""",
    """CREATE TABLE accountant_reservations (
        key TEXT PRIMARY KEY, seq {integer} NOT NULL, until {integer} NOT NULL,
        state TEXT NOT NULL, used {integer} NOT NULL)""",
)

# Releases planned before the first: [kind, cap, label] each.
_SECOND = ("ALTER TABLE accountant_blocks ADD COLUMN planned TEXT NOT NULL DEFAULT '[]'",)

# The statements that lead from each version to the next; a released version is never changed.
MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _SECOND)
VERSION = len(MIGRATIONS)


def opened(database: Database, chain: Chain) -> str:
    """Return the identity of the store that is there; LedgerError if it is not this version's."""
    try:
        row = database.execute("SELECT version, identity, keyed FROM accountant_store").fetchone()
    except Exception as error:
        if database.is_missing(error):
            database.rollback()
            raise LedgerError(
                "this database holds no store; make one by accountant store init, or by create=True"
            ) from error
        raise
    if row is None:
        raise LedgerError("this store has lost its version: its table accountant_store is empty")
    version, identity, keyed = row
    if version > VERSION:
        raise LedgerError(
            f"this store has version {version}, written by a newer release of this package, which"
            f" reads up to version {VERSION}. Upgrade to read it"
        )
    if version < VERSION:
        raise LedgerError(
            f"this store has version {version}, this release needs version {VERSION}; open it once"
            " with create=True, or run accountant store init, and the tables are brought up to date"
        )
    if bool(keyed) != chain.keyed:
        what = "needs its secret" if keyed else "has no secret; open it without"
        raise LedgerError(f"this store {what}")
    return str(identity)


def migrate(database: Database, chain: Chain) -> None:
    """Make the tables, or bring those of an older version up to date; two at once do no harm."""
    present = _version(database)
    if present >= VERSION:
        return
    database.begin()
    try:
        # Whoever comes second has waited, and finds everything done.
        done = _version(database) if present else 0
        for step in MIGRATIONS[done:]:
            for statement in step:
                text = statement.format(integer=database.integer, bytewise=database.bytewise)
                database.execute(text)
        if not done:
            identity = secrets.token_hex(16)
            database.execute(
                "INSERT INTO accountant_store VALUES (?, ?, ?)",
                (VERSION, identity, int(chain.keyed)),
            )
            database.execute(
                "INSERT INTO accountant_head VALUES (1, 0, ?)", (chain.first(identity),)
            )
        database.execute("UPDATE accountant_store SET version = ?", (VERSION,))
        database.commit()
    except BaseException:
        database.rollback()
        # Another process made them first.
        if not present and _version(database) == VERSION:
            return
        raise


def _version(database: Database) -> int:
    try:
        row = database.execute("SELECT version FROM accountant_store").fetchone()
    except Exception as error:
        if not database.is_missing(error):
            raise
        return 0
    return VERSION if row is None else int(row[0])  # ``opened`` says what is wrong
