"""A limit on the memory that composed distributions keep between questions, over all problems."""

from __future__ import annotations

import weakref
from typing import Protocol

from accountant.locks import ModuleLock

MOST = 256 * 2**20  # bytes

_lock = ModuleLock()
_holders: list[weakref.ref[Holder]] = []  # the last used comes last


class Holder(Protocol):
    """An object that keeps composed distributions for the next question."""

    @property
    def held(self) -> int:
        """The bytes it keeps."""

    def forget(self) -> None:
        """Free them."""


def keep(holder: Holder) -> None:
    """Mark ``holder`` as most recently used; evict the least recently used above the limit."""
    with _lock:
        alive = [one for ref in _holders if (one := ref()) is not None and one is not holder]
        total = holder.held + sum(one.held for one in alive)
        while alive and total > MOST:
            oldest = alive.pop(0)
            total -= oldest.held
            oldest.forget()
        _holders[:] = [weakref.ref(one) for one in (*alive, holder)]
