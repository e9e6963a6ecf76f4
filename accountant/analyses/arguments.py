"""The arguments of scalar analyses: their domains, and the refusal of arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from accountant import checks
from accountant.checks import Argument
from accountant.errors import ArgumentTypeError, DomainError

__all__ = [
    "COUNT",
    "EPSILON_PART",
    "FPR",
    "MU",
    "OMEGA",
    "ORDER",
    "PRIOR",
    "RHO",
    "Part",
    "parts",
    "scalar",
    "tuples",
    "whole",
]

EPSILON_PART = Argument(
    "epsilon", "a finite number >= 0", lambda x: (x >= 0.0) & (x < math.inf), "It is in nats"
)
COUNT = Argument(
    "count",
    "an integer in [0, 2**53]",
    lambda x: (x >= 0) & (x <= checks.MAX_COUNT),
    "It says how often the mechanism is run",
)
ORDER = Argument(
    "order",
    "a finite Rényi order > 1",
    lambda x: (x > 1.0) & (x < math.inf),
    "At order 1 the divergence is Kullback-Leibler's, at infinity it is unbounded",
)
RHO = Argument(
    "rho", "a number >= 0", lambda x: x >= 0.0, "It bounds the Rényi divergence by rho * order"
)
OMEGA = Argument(
    "omega", "a Rényi order > 1", lambda x: x > 1.0, "The Rényi curve is bounded below this order"
)
MU = Argument(
    "mu", "a number >= 0", lambda x: x >= 0.0, "It is a distance of means in standard deviations"
)
FPR = Argument(
    "fpr",
    "a false-positive rate in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "It is the probability that the attack accuses a record that was not used",
)
PRIOR = Argument(
    "prior",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "It is the attacker's probability, before the release, that the record was used",
)


@dataclass(frozen=True)
class Part:
    """``count`` runs of (ε, δ)-differentially private mechanisms."""

    epsilon: float
    delta: float = 0.0
    count: int = 1


def scalar(argument: Argument, value: object) -> float:
    """Check one number; arrays are refused."""
    checked = checks.real(argument, value)
    if isinstance(checked, float):
        return checked
    raise ArgumentTypeError(
        f"{argument.name} must be one number; got an array. Call the function once for each element"
    )


def whole(argument: Argument, value: object) -> int:
    """Check one count; floats, bools and arrays are refused."""
    checked = checks.count(argument, value)
    if isinstance(checked, float):
        return int(checked)
    raise ArgumentTypeError(f"{argument.name} must be one integer; got an array")


def parts(values: object) -> tuple[Part, ...]:
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
        key = scalar(EPSILON_PART, part.epsilon), scalar(checks.DELTA, part.delta)
        merged[key] = merged.get(key, 0) + whole(COUNT, part.count)
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
