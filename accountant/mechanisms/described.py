"""Values whose text is the shortest call that makes them, and how records are chosen, in words."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from typing import Any, NamedTuple


class Described:
    """A dataclass whose ``repr`` is the shortest constructor call."""

    def parameters(self) -> dict[str, Any]:
        """Return the keyword arguments of the shortest constructor call that makes this value."""
        found: dict[str, Any] = {}
        for name, argument, default, _ in _parts(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if default is MISSING or value != default:
                found[argument] = value
        return found

    def __repr__(self) -> str:
        """Return the shortest constructor call."""
        shown = []
        for name, argument, default, by_name in _parts(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if default is MISSING and not by_name:
                shown.append(repr(value))
            elif value is not default and (default is MISSING or value != default):
                shown.append(f"{argument}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


@cache
def _parts(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """Return name, argument, default of each field, and whether it is keyword-only."""
    # A field cannot have the name of a question (epsilon, delta, mu, rho), an argument can.
    return tuple(
        (
            part.name,
            str(part.metadata.get("argument", part.name)),
            part.default,
            part.kw_only is True,
        )
        for part in fields(kind)
    )


class Selection(NamedTuple):
    """How a mechanism chooses records, in words, and what a reviewer must find in the code."""

    words: str
    check: str
