"""Domain checks shared by the samplers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from accountant.checks import MAX_COUNT, SIGMA, Argument, Q, count, real
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.relations import NeighbouringRelation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "batch",
    "distance",
    "noise",
    "number",
    "positive",
    "probability",
    "records",
    "settle",
    "share_down",
    "share_up",
    "supported",
]


def positive(name: str, value: object, advice: str = "It counts things") -> int:
    """Check an integer in [1, 2**53]."""
    argument = Argument(
        name, "an integer in [1, 2**53]", lambda x: (x >= 1) & (x <= MAX_COUNT), advice
    )
    return _integer(argument, value)


def records(value: object) -> int:
    """Check a data set's size."""
    return positive("dataset_size", value, "It is the number of records")


def batch(value: object, dataset_size: int) -> int:
    """Check a batch size against the data."""
    size = positive("batch_size", value, "It is the number of records in a batch")
    if size > dataset_size:
        raise DomainError(
            f"batch_size must be at most dataset_size = {dataset_size}; got {size}."
            " A batch cannot hold more records than there are"
        )
    return size


def probability(value: object) -> float:
    """Check a sampling probability."""
    return number(Q._replace(name="sampling_probability"), value)


def noise(value: object) -> float:
    """Check a noise multiplier."""
    return number(SIGMA._replace(name="noise_multiplier"), value)


def supported(
    sampler: str, relation: object, available: Sequence[NeighbouringRelation]
) -> NeighbouringRelation:
    """Return ``relation`` if the sampler has a theorem for it; never substitute another."""
    if not isinstance(relation, NeighbouringRelation):
        raise ArgumentTypeError(f"relation must be a NeighbouringRelation; got {relation!r}")
    if relation in available:
        return relation
    names = " and ".join(repr(one) for one in available)
    raise UnsupportedError(
        f"{sampler} has no theorem for {relation!r}; it has one for {names}."
        " A guarantee under one relation says nothing about another"
    )


def settle(value: Any, **fields: object) -> None:
    """Store checked values on a frozen dataclass under construction."""
    for name, checked in fields.items():
        object.__setattr__(value, name, checked)


def share_up(part: int, whole: int) -> float:
    """Return part / whole as a double that is not below it."""
    nearest = part / whole
    return (
        math.nextafter(nearest, math.inf) if Fraction(nearest) < Fraction(part, whole) else nearest
    )


def share_down(part: int, whole: int) -> float:
    """Return part / whole as a double that is not above it."""
    nearest = part / whole
    return math.nextafter(nearest, 0.0) if Fraction(nearest) > Fraction(part, whole) else nearest


def distance(units: int, noise_multiplier: float) -> float:
    """Return ``units`` contributions in standard deviations of the noise, rounded up."""
    exact = units / noise_multiplier
    return math.nextafter(exact, math.inf) if 0.0 < exact < math.inf else exact


def _integer(argument: Argument, value: object) -> int:
    checked = count(argument, value)
    if not isinstance(checked, float):
        raise ArgumentTypeError(f"{argument.name} must be one integer; got an array")
    return int(checked)


def number(argument: Argument, value: object) -> float:
    """Check one real number."""
    checked = real(argument, value)
    if not isinstance(checked, float):
        raise ArgumentTypeError(f"{argument.name} must be one number; got an array")
    return checked
