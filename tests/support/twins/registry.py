"""How every trainer is run on twins, and what it charges."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from support.twins.comparison import Charge
from support.twins.pairs import Pair


@dataclass(frozen=True)
class Case:
    """One way to run something that sees private records.

    Attributes
    ----------
    name : str
        Of the case.
    covers : tuple of str
        Public names, with their modules, that the case exercises.
    run : callable
        ``run(data)`` with the data of a pair; returns what is released.
    pairs : callable
        Returns the pairs of the default run.
    charges : callable
        ``charges(result, pair)`` says what the releases have cost, in order.
    without : frozenset of str
        Attributes that the documentation calls private.
    replays : bool
        Whether a run that is handed the twin's releases must return the same result.
    quiet : bool
        Whether normal noise is left out, for functions that add it themselves.
    refused : bool
        Whether every pair must be refused, for what no charge could cover.
    more : callable
        Further pairs, for the slow run.
    """

    name: str
    covers: tuple[str, ...]
    run: Callable[[Any], Any]
    pairs: Callable[[], Iterable[Pair]]
    charges: Callable[[Any, Pair], Sequence[Charge]] = lambda result, pair: ()
    without: frozenset[str] = frozenset()
    replays: bool = True
    quiet: bool = False
    refused: bool = False
    more: Callable[[], Iterable[Pair]] = tuple


CASES = []


ROOMS = [f"accountant.learn.{name}" for name in ["convex", "selection", "pate", "blocks", "local"]]
ROOMS += ["accountant.learn.generation", "accountant.learn", "accountant.adapters.sklearn"]


def case(name, covers=(), **given):
    """Register a case; it covers what its name begins with where it does not say more."""
    first = name.split(",")[0].split()[0]
    rooms = (room for room in ROOMS if covers or first in importlib.import_module(room).__all__)
    found = Case(name, covers or (f"{next(rooms)}.{first}",), **given)
    CASES.append(found)
    return found
