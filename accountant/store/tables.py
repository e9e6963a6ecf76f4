"""The tables of a store, and whether they are as they were created.

``head`` has one row, the end of the journal; writers take turns by locking it. ``journal`` is only
added to. All other tables follow from it, and ``verify`` derives them anew: ``budgets`` and
``kinds`` hold texts once, ``blocks`` what was planned on each ([kind, cap, label]), ``accounts``
how many releases of each kind it holds, which is all that decisions look at.
"""

from __future__ import annotations

import secrets

from accountant.errors import LedgerError
from accountant.store.chain import Chain
from accountant.store.database import Database
from accountant.store.texts import digest

_TABLES = (
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
    """CREATE TABLE accountant_blocks (
        id {integer} PRIMARY KEY, address TEXT {bytewise} NOT NULL UNIQUE,
        budget {integer} REFERENCES accountant_budgets (id), deltas TEXT NOT NULL,
        relation TEXT NOT NULL, planned TEXT NOT NULL)""",
    """CREATE TABLE accountant_accounts (
        block {integer} NOT NULL, kind {integer} NOT NULL,
        held {integer} NOT NULL CHECK (held >= 0 AND held <= 9007199254740992),
        PRIMARY KEY (block, kind))""",
    """CREATE TABLE accountant_reservations (
        key TEXT PRIMARY KEY, seq {integer} NOT NULL, until {integer} NOT NULL,
        state TEXT NOT NULL, used {integer} NOT NULL)""",
)

VERSION = 1


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
    if version != VERSION:
        raise LedgerError(
            f"this store has version {version}, and this release reads version {VERSION} alone."
            " Open it with the release that made it"
        )
    if bool(keyed) != chain.keyed:
        what = "needs its secret" if keyed else "has no secret; open it without"
        raise LedgerError(f"this store {what}")
    return str(identity)


def create(database: Database, chain: Chain) -> None:
    """Make the tables where there are none; two at once do no harm.

    The schema's digest is a part of the identity, and so of every hash of the journal.
    """
    if _exists(database):
        return
    database.begin()
    try:
        for statement in _TABLES:
            database.execute(statement.format(integer=database.integer, bytewise=database.bytewise))
        identity = f"{secrets.token_hex(16)}:{schema(database)}"
        database.execute(
            "INSERT INTO accountant_store VALUES (?, ?, ?)", (VERSION, identity, int(chain.keyed))
        )
        database.execute("INSERT INTO accountant_head VALUES (1, 0, ?)", (chain.first(identity),))
        database.commit()
    except BaseException:
        database.rollback()
        if not _exists(database):  # another process made them first
            raise


def schema(database: Database) -> str:
    """Return the digest of all that the database says of the tables: columns, triggers, …"""
    rows = database.execute(database.schema).fetchall()
    return digest("\n".join(sorted(repr(tuple(row)) for row in rows)))


def is_as_created(database: Database, identity: str) -> bool:
    """Tell whether the tables are what they were when the store was made."""
    return identity.rpartition(":")[2] == schema(database)


def _exists(database: Database) -> bool:
    try:
        database.execute("SELECT version FROM accountant_store").fetchone()
    except Exception as error:
        if not database.is_missing(error):
            raise
        return False
    return True
