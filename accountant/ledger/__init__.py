"""The ledger: an append-only record of releases, budgets that refuse, and durable files.

``accountant``, ``history``, ``evaluation``
    What was released, what is asked about it, and who computes the answer; odometers.
``budget``, ``meters``, ``basic``, ``filters``, ``kinds``
    What must not be exceeded, and the meters that watch over it.
``plans``
    What was set aside before the first release, refusals, and what would fit instead.
``individual``
    Spends of single records.
``schema``, ``document``, ``storage``
    Mechanisms as text, ledgers as documents and files.
"""

from accountant.ledger.accountant import Accountant
from accountant.ledger.budget import Budget
from accountant.ledger.evaluation import Odometer
from accountant.ledger.history import Entry
from accountant.ledger.individual import IndividualFilter
from accountant.ledger.meters import Remaining
from accountant.ledger.schema import register

__all__ = [
    "Accountant",
    "Budget",
    "Entry",
    "IndividualFilter",
    "Ledger",
    "Odometer",
    "Remaining",
    "register",
]

# One class, two names: the field says accountant, and a trainer fills its ledger.
Ledger = Accountant
