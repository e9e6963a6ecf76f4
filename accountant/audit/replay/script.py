"""The events of a run, and what a replay of it meets in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Diverged(BaseException):
    """Ends a replay that makes other releases; no handler of the run's own shall catch it."""


@dataclass(frozen=True)
class Entry:
    """One event of a run: a release, a sample or a public value."""

    kind: str
    name: str
    private: Any
    outcome: Any
    public: dict[str, Any]


class Script:
    """The events of a run, in order; a replay of it gets the outcomes that were recorded.

    Parameters
    ----------
    recorded : Script or None
        That of the recorded run; None while recording.
    """

    def __init__(self, recorded: Script | None = None) -> None:
        self.recorded = recorded
        self.entries: list[Entry] = []

    def meet(
        self, kind: str, name: str, private: Any, make: Callable[[], Any], public: dict[str, Any]
    ) -> Entry | None:
        """Add an event whose outcome is ``make()``, or the recorded one; return what was recorded.

        Raises
        ------
        Diverged
            Another event was recorded at this place, or none.
        """
        past = None
        if self.recorded is not None:
            place, there = len(self.entries), self.recorded.entries
            here = f"the {kind} {name!r}"
            if place >= len(there):
                raise Diverged(f"{here} is one more than were recorded")
            past = there[place]
            if (past.kind, past.name) != (kind, name):
                raise Diverged(f"{here} in place of the {past.kind} {past.name!r}")
        self.entries.append(
            Entry(kind, name, private, make() if past is None else past.outcome, public)
        )
        return past
