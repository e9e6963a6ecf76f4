"""Addresses of blocks, tenant/dataset/block; budgets, mechanisms and sums as a store keeps them."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy.fft  # noqa: F401

import accountant.analyses.pld
import accountant.calibration
import accountant.derived  # noqa: F401
from accountant.errors import AccountantError, ArgumentTypeError, DomainError, LedgerError
from accountant.ledger import Budget, schema
from accountant.mechanisms.base import Mechanism

# The block of all people: where there is one, it is charged with every other (Theorem B3).
EVERYONE = "everyone/all/all"

_PART = r"[A-Za-z0-9._:=@+-]{1,120}"
_ADDRESS = re.compile(rf"{_PART}/{_PART}/{_PART}")
_PATTERN = re.compile(rf"{_PART}/{_PART}/({_PART}|\*)")
_TOKEN = re.compile(r"[!-~]{1,200}")
_MUST = "must be tenant/dataset/block, each of at most 120 letters, digits or . _ : = @ + -"


def address_of(value: object) -> str:
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
        raise DomainError("blocks must name at least one block; got none")
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


def range_of(pattern: str) -> tuple[str, str]:
    """Return what the addresses of a pattern are not below, and what they are below."""
    return pattern[:-1], pattern[:-2] + "0"  # in ASCII the digit 0 follows the slash


compact = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def digest(text: str) -> str:
    """Return what an index holds in place of a text of any length."""
    return hashlib.sha256(text.encode()).hexdigest()


@functools.lru_cache(maxsize=1 << 16)
def text_of_mechanism(mechanism: Mechanism) -> str:
    """Write a mechanism as ledger files do."""
    return compact(schema.encode_mechanism(mechanism))


@functools.lru_cache(maxsize=1 << 16)
def mechanism_of(text: str) -> Mechanism:
    """Read what :func:`text_of_mechanism` wrote."""
    return schema.decode_mechanism(_parsed(text))


def text_of_budget(budget: Budget) -> str:
    """Write a budget as ledger files do, with the orders it chose."""
    return compact(schema.encode_fields(budget))


@functools.lru_cache(maxsize=4096)
def budget_of(text: str) -> Budget:
    """Read what :func:`text_of_budget` wrote."""
    value = _parsed(text)
    if not isinstance(value, dict):
        raise LedgerError(f"a budget must be an object; got {text:.80}")
    try:
        return Budget(**{name: schema.decode_value(item, 1) for name, item in value.items()})
    except (AccountantError, TypeError) as error:
        raise LedgerError(f"a budget of this store cannot be read: {error}") from error


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=schema.unique)
    except ValueError as error:
        raise LedgerError(f"a text of this store is damaged: {error}") from error
