"""The relative widths of brackets that grids try for, in turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TOLERANCES = (1e-6, 1e-4, 1e-2)
# A caller who prints few digits asks for others.
_wanted: ContextVar[tuple[float, ...]] = ContextVar("tolerances", default=TOLERANCES)
# And δ of one release that such a caller does not miss.
_negligible: ContextVar[float] = ContextVar("negligible delta", default=0.0)


@contextmanager
def relative_width(tolerance: float, negligible: float = 0.0) -> Iterator[None]:
    """Ask no grid for less than a relative ``tolerance`` meanwhile, in this thread.

    Nor a release for what changes its δ by less than ``negligible``.
    """
    token = _wanted.set((tolerance, *(each for each in TOLERANCES if each > tolerance)))
    other = _negligible.set(negligible)
    try:
        yield
    finally:
        _negligible.reset(other)
        _wanted.reset(token)


def wanted_tolerances() -> tuple[float, ...]:
    """Return the widths that are asked for now."""
    return _wanted.get()


def negligible_delta() -> float:
    """Return the δ of one release that is not missed now; 0 where every digit counts."""
    return _negligible.get()
