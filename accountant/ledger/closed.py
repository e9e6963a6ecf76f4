"""Ledgers in copied and pickled results: they answer questions and record no more."""

from __future__ import annotations

from typing import Any

from accountant.ledger.accountant import Accountant


class HoldsLedger:
    """A value with a ``ledger``, of which copies and pickles hold a closed ledger.

    A copy of a ledger that could be charged would spend one budget twice. So what a copied result
    holds has all the records, answers every question, and refuses to record.
    """

    ledger: Accountant

    def __getstate__(self) -> dict[str, Any]:
        book = self.ledger
        return self.__dict__ | {"ledger": (book.history, book.budget, book.deltas, book.planned)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        entries, budget, deltas, planned = state["ledger"]
        ledger = Accountant(budget)
        ledger._restore(entries, planned)
        ledger._deltas.update(deltas)
        ledger._ended = True
        self.__dict__.update(state | {"ledger": ledger})
