"""A shared store of budgets: many processes and machines spend the budgets of blocks together.

``open`` opens one in a file of SQLite or in PostgreSQL. Everything is decided by the filters of
:mod:`accountant.ledger`; docs/store.md describes what is promised and what happens in failures.

``store``, ``texts``
    What clients call; addresses of blocks, and what is kept as text.
``charges``, ``blocks``, ``decisions``
    One turn of writing each: charge, reserve, plan and settle; make and read blocks; who can pay.
``journal``
    The journal, its hashes, the tables and a turn of writing.
``verification``
    Whether the journal is whole and the tables follow from it.
``database``, ``sqlite``, ``postgres``
    One call at a time, and the little in which the two databases differ.
"""

from accountant.store.blocks import Block
from accountant.store.decisions import BlockExceeded
from accountant.store.journal import Head
from accountant.store.store import Receipt, Store, open  # noqa: A004 (as files are opened)
from accountant.store.verification import Verification

__all__ = ["Block", "BlockExceeded", "Head", "Receipt", "Store", "Verification", "open"]
