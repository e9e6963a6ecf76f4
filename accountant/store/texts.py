"""Budgets, mechanisms and sums as the texts that a store keeps."""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any

# All that a text may name, and that deciding about it needs, is imported before the first call: in
# the child of a fork in the middle of an import the module would stay half made.
import numpy.fft  # noqa: F401

import accountant.analyses.pld
import accountant.calibration
import accountant.derived  # noqa: F401
from accountant.errors import AccountantError, LedgerError
from accountant.ledger import Budget, schema
from accountant.mechanisms.base import Mechanism

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
