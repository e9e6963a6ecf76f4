"""Addresses of blocks, tenant/dataset/block, in words that need no quoting; and finding them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from accountant.errors import ArgumentTypeError, DomainError
from accountant.store.database import Database, Query

# The block of all people: where there is one, it is charged with every other (Theorem B3).
EVERYONE = "everyone/all/all"

_PART = r"[A-Za-z0-9._:=@+-]{1,120}"
_ADDRESS = re.compile(rf"{_PART}/{_PART}/{_PART}")
_PATTERN = re.compile(rf"{_PART}/{_PART}/({_PART}|\*)")
_TOKEN = re.compile(r"[!-~]{1,200}")
_MUST = "must be tenant/dataset/block, each of at most 120 letters, digits or . _ : = @ + -"


def exact(value: object) -> str:
    """Check the address of one block."""
    return _matched("address", value, _ADDRESS, _MUST)


def named(values: object) -> tuple[str, ...]:
    """Check the blocks that a release names: addresses, or tenant/dataset/* for all of a data set.

    Returns them sorted, each once; at least one.
    """
    listed = (values,) if isinstance(values, str) else values
    if not isinstance(listed, Iterable):
        raise ArgumentTypeError(f"blocks must be addresses; got the {type(values).__name__}")
    must = f"{_MUST}, or tenant/dataset/* for every block of a data set"
    found = tuple(sorted({_matched("blocks", value, _PATTERN, must) for value in listed}))
    if not found:
        raise DomainError(
            "blocks must name at least one block; a release about none is not charged"
        )
    return found


def siblings(address: str) -> str:
    """Return the pattern of all blocks of the same data set."""
    return address.rpartition("/")[0] + "/*"


def token(value: object) -> str:
    """Check an idempotency key."""
    must = "must be 1 to 200 visible ASCII characters without spaces"
    return _matched("key", value, _TOKEN, must)


def _matched(name: str, value: object, form: re.Pattern[str], must: str) -> str:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name} must be a str; got the {type(value).__name__}")
    if not form.fullmatch(value):
        raise DomainError(f"{name} {must}; got {value!r:.200}")
    return value


def runs(numbers: Iterable[int]) -> list[list[int]]:
    """Write increasing numbers as [first, last] of each run."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def blocks_of(body: dict[str, Any]) -> Iterator[int]:
    """Return the numbers of the blocks that a row of the journal names."""
    for first, last in body["blocks"]:
        yield from range(first, last + 1)


def find(database: Database, named: Sequence[str]) -> Query:
    """Return the condition on blocks ``b`` of addresses and patterns, and its values."""
    exact = [name for name in named if not name.endswith("/*")]
    conditions: list[str] = []
    values: list[object] = []
    if exact:
        condition, found = database.among("b.address", exact)
        conditions.append(condition)
        values += found
    for name in named:
        if name.endswith("/*"):
            conditions.append("b.address >= ? AND b.address < ?")
            values += range_of(name)
    return " OR ".join(conditions), tuple(values)


def range_of(pattern: str) -> tuple[str, str]:
    """Return what the addresses of a pattern are not below, and what they are below."""
    return pattern[:-1], pattern[:-2] + "0"  # in ASCII the digit 0 follows the slash
