"""A shared store of budgets: many processes and machines spend the budgets of blocks together.

``open`` opens one in a file of SQLite or in PostgreSQL. Everything is decided by the filters of
:mod:`accountant.ledger`; docs/store.md describes what is promised and what happens in failures.

``opening``, ``store``, ``addresses``, ``refusal``
    What clients call; the names of blocks; what is raised where a block cannot pay.
``charges``, ``settlements``, ``plans``, ``blocks``, ``decisions``
    One turn of writing each: charge and reserve, commit and abort, plan, make blocks; who can pay.
``transaction``, ``chain``, ``tables``, ``texts``
    The journal and its hashes; the tables and their versions; what they hold as text.
``readings``, ``verification``, ``replay``
    Questions; whether the journal is whole and the tables follow from it.
``database``, ``sqlite``, ``postgres``
    The little in which the two databases differ.
"""

from accountant.store.chain import Head
from accountant.store.opening import open  # noqa: A004 (as files are opened)
from accountant.store.readings import Block
from accountant.store.refusal import BlockExceeded
from accountant.store.store import Receipt, Store
from accountant.store.verification import Verification

__all__ = ["Block", "BlockExceeded", "Head", "Receipt", "Store", "Verification", "open"]
