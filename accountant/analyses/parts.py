"""Parts of a composition: tuples that a scalar analysis takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from accountant import checks
from accountant.errors import ArgumentTypeError, DomainError


@dataclass(frozen=True)
class Part:
    """``count`` runs of (ε, δ)-differentially private mechanisms."""

    epsilon: float
    delta: float = 0.0
    count: int = 1


def merged_parts(values: object) -> tuple[Part, ...]:
    """Check the parts of a composition: tuples (ε, δ) or (ε, δ, count).

    Parts of equal (ε, δ) are merged, and parts that are never run dropped: the composition of
    mechanisms known by (ε, δ) alone does not depend on the order.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise _no_parts(values)
    merged: dict[tuple[float, float], int] = {}
    for value in values:
        if not isinstance(value, tuple) or not 1 <= len(value) <= 3:
            raise _no_parts(value)
        part = Part(*value)
        key = (
            checks.number(checks.FINITE_EPSILON, part.epsilon),
            checks.number(checks.DELTA, part.delta),
        )
        merged[key] = merged.get(key, 0) + checks.whole(checks.COUNT, part.count)
    if not sum(merged.values()) <= checks.MAX_COUNT:
        raise DomainError(f"the counts of all parts must add up to at most 2**53; got {values!r}")
    return tuple(Part(*key, count) for key, count in merged.items() if count > 0)


def tuples(values: object, length: int) -> Iterator[tuple[Any, ...]]:
    """Check that ``values`` are tuples of one length, one by one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentTypeError(f"parts must be an iterable of tuples; got {values!r:.60}")
    for value in values:
        if not isinstance(value, tuple) or len(value) != length:
            raise ArgumentTypeError(f"a part must be a tuple of {length}; got {value!r:.60}")
        yield value


def _no_parts(value: object) -> ArgumentTypeError:
    return ArgumentTypeError(
        "parts must be an iterable of tuples (epsilon, delta) or (epsilon, delta, count);"
        f" got {type(value).__name__} {value!r:.60}"
    )
