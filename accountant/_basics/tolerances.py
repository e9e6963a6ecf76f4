"""The relative widths of brackets that grids try for, in turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TOLERANCES = (1e-6, 1e-4, 1e-2)
# A caller who prints few digits asks for others.
_wanted: ContextVar[tuple[float, ...]] = ContextVar("tolerances", default=TOLERANCES)


@contextmanager
def relative_width(tolerance: float) -> Iterator[None]:
    """Ask no grid for less than a relative ``tolerance`` meanwhile, in this thread."""
    token = _wanted.set((tolerance, *(each for each in TOLERANCES if each > tolerance)))
    try:
        yield
    finally:
        _wanted.reset(token)


def wanted_tolerances() -> tuple[float, ...]:
    """Return the widths that are asked for now."""
    return _wanted.get()
