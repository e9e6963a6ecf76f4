"""Checks that composed values are mechanisms under one relation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from accountant.errors import ArgumentTypeError, UnsupportedError
from accountant.mechanisms.base import Mechanism


def must_be_mechanism(value: object) -> None:
    """Raise if a value is not a mechanism."""
    if not isinstance(value, Mechanism):
        raise ArgumentTypeError(
            f"only mechanisms compose, such as Gaussian(1.1) or n * PoissonSampled(...);"
            f" got {value!r}"
        )


def same_relation(mechanisms: Iterable[Mechanism]) -> None:
    """Raise if the relations differ."""

    def same(first: Mechanism, other: Mechanism) -> Mechanism:
        if first.relation is other.relation:
            return first
        raise UnsupportedError(
            f"guarantees under different relations do not compose: {first!r} is under"
            f" {first.relation!r}, {other!r} under {other.relation!r}. State one under the"
            " other's, as in mechanism.under(relation)"
        )

    reduce(same, mechanisms)
