"""Copies of what may be spent only once: refused, or ledgers that record no more."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from accountant.errors import UnsupportedError


class Uncopied:
    """What can be neither copied nor pickled, because it holds what may be spent only once."""

    # What to do instead: of a copy, and of a pickle.
    _COPIED: ClassVar[str]
    _PICKLED: ClassVar[str]

    def __copy__(self) -> NoReturn:
        raise UnsupportedError(self._COPIED)

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise UnsupportedError(self._COPIED)

    def __reduce__(self) -> Any:
        raise UnsupportedError(self._PICKLED)


class HoldsLedger:
    """A value with a ``ledger``, of which copies and pickles hold a closed ledger.

    A copy of a ledger that could be charged would spend one budget twice. So what a copied result
    holds has all the records, answers every question, and refuses to record.
    """

    ledger: Any

    def __getstate__(self) -> dict[str, Any]:
        book = self.ledger
        held = type(book), book.history, book.budget, book.deltas, book.planned
        return self.__dict__ | {"ledger": held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind, entries, budget, deltas, planned = state["ledger"]
        ledger = kind(budget)
        ledger._restore(entries, planned)
        ledger._deltas.update(deltas)
        ledger._ended = True
        self.__dict__.update(state | {"ledger": ledger})
