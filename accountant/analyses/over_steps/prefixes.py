"""Prefixes of a history: their lengths, what was released up to there, and its exact ε."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from accountant._typing import FloatArray
from accountant.composition import composed
from accountant.errors import AccountantError, DomainError
from accountant.mechanisms.base import Mechanism

# One row of doubles for each release: the answer itself has this size.
MAX_STEPS = 10**7


class Step(Protocol):
    """A mechanism, and how often in a row it was released."""

    @property
    def mechanism(self) -> Mechanism:
        """What was released."""

    @property
    def count(self) -> int:
        """How many times in a row, >= 1."""


@dataclass(frozen=True, slots=True)
class Part:
    """The plainest step."""

    mechanism: Mechanism
    count: int


Steps: TypeAlias = "Sequence[Step]"
Counts: TypeAlias = "tuple[tuple[Mechanism, int], ...]"


def check_length(history: Steps) -> None:
    """Refuse histories whose curve would not fit into memory."""
    steps = sum(item.count for item in history)
    if not steps <= MAX_STEPS:
        raise DomainError(
            f"one number for each release is given for at most {MAX_STEPS} releases;"
            f" this ledger has {steps}"
        )


def evenly(length: int, points: int) -> list[int]:
    """Return about ``points`` lengths up to ``length``, evenly spaced."""
    return sorted({-(-length * k // points) for k in range(1, points + 1)} - {0})


def spread(steps: int, growth: float = 1.07) -> list[int]:
    """Return counts up to ``steps``, each at most ``growth`` times the one before, or one more."""
    counts, n = [], 1
    while n < steps:
        counts.append(n)
        n = max(n + 1, math.floor(growth * n))
    return [*counts, steps]


def counts_at(history: Steps, lengths: Iterable[int]) -> Iterator[tuple[int, Counts]]:
    """Yield each of the increasing ``lengths``, >= 1, with the merged counts up to there."""
    wanted = iter(lengths)
    upcoming = next(wanted, None)
    # By identity first: a ledger that was loaded holds one object of each mechanism, and hashing a
    # million of them would take longer than all the rest.
    same: dict[int, Mechanism] = {}
    known: dict[Mechanism, Mechanism] = {}
    done, counts = 0, dict[int, int]()
    for item in history:
        mechanism = same.get(id(item.mechanism))
        if mechanism is None:
            mechanism = known.setdefault(item.mechanism, item.mechanism)
            same[id(item.mechanism)] = mechanism
        key = id(mechanism)
        before = counts.get(key, 0)
        while upcoming is not None and upcoming <= done + item.count:
            counts[key] = before + upcoming - done
            yield upcoming, tuple((same[k], n) for k, n in counts.items())
            upcoming = next(wanted, None)
        if upcoming is None:
            return
        counts[key] = before + item.count
        done += item.count


def counts_after(history: Steps, length: int) -> Counts:
    """Return the merged counts of the first ``length`` releases, >= 1."""
    return next((counts for _, counts in counts_at(history, [length])), ())


def first(history: Steps, length: int) -> list[Part]:
    """Return the first ``length`` releases."""
    kept = []
    for item in history:
        if length <= 0:
            break
        kept.append(Part(item.mechanism, min(item.count, length)))
        length -= item.count
    return kept


def composed_bounds(counts: Counts, delta: float) -> tuple[float, float]:
    """Bracket ε(delta) of the composition, from 0 to infinity where none can be certified."""
    try:
        found = composed(counts).epsilon_bounds(delta)
    except AccountantError:
        # Too dear or unknown: what else is known of the prefix stands.
        return 0.0, math.inf
    return float(found.lower), float(found.upper)


def monotone(curve: FloatArray) -> None:
    """Lower each bound to the next one, in place: the truth grows with the number of releases."""
    np.copyto(curve, np.minimum.accumulate(curve[::-1])[::-1])
