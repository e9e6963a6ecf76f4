"""Conversion of mechanisms and their parameters to JSON and back, without execution.

Values are written as JSON writes them; what it cannot write is wrapped in an object with one key:
``{"number": "inf"}``, ``{"relation": "ADD_OR_REMOVE"}``, ``{"array": [...]}``. A mechanism is
``{"mechanism": NAME, "parameters": {...}}``, NAME from an explicit registry. Reading is strict: an
unknown name, key or type, a missing or a repeated key, or a NaN where none was written is refused.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import math
from typing import Any, cast

import numpy as np

from accountant import composition, derived, mechanisms, sampling
from accountant.errors import (
    AccountantError,
    ArgumentTypeError,
    DomainError,
    LedgerError,
    UnsupportedError,
)
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation

_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_MAX_DEPTH = 64

_registered: dict[str, type[Mechanism]] = {}

# Packages above the ledger have mechanisms of their own, which register themselves when their
# module is imported. A ledger imports one by this fixed table if a file names it. It imports no
# name that comes from a file.
_ELSEWHERE = {"ObjectivePerturbation": "accountant.learn.convex.mechanism"}


def register(kind: type[Mechanism]) -> type[Mechanism]:
    """Make a mechanism of one's own known to ledger files, by its class name.

    Parameters
    ----------
    kind : type
        A frozen dataclass that derives from Mechanism. Its fields are what is written; it is built
        again by calling it with them.

    Returns
    -------
    type
        ``kind``, so that this is a decorator.

    Raises
    ------
    ArgumentTypeError
        ``kind`` is no such class.
    DomainError
        Another class has the name.
    """
    if not (_is_mechanism(kind)):
        raise ArgumentTypeError(f"register needs a frozen dataclass of Mechanism; got {kind!r}")
    known = _registry().get(kind.__name__)
    if known is not None and known is not kind:
        raise DomainError(f"register needs a new name; {kind.__name__!r} is taken by {known!r}")
    if kind.__module__ != (home := _ELSEWHERE.get(kind.__name__, kind.__module__)):
        raise DomainError(f"register needs a new name; {kind.__name__!r} is taken by {home}")
    _registered[kind.__name__] = kind
    return kind


def names() -> list[str]:
    """Return the names a file may use, sorted."""
    return sorted({*_registry(), *_ELSEWHERE})


def encode_mechanism(mechanism: Mechanism, depth: int = 0) -> dict[str, Any]:
    """Write a mechanism as its name and its fields; what could not be read again is refused."""
    name = type(mechanism).__name__
    if _registry().get(name) is not type(mechanism):
        raise UnsupportedError(f"{type(mechanism)!r} is not known to files; register it")
    return {"mechanism": name, "parameters": encode_fields(mechanism, depth)}


def decode_mechanism(value: object, *, defaults: bool = False, depth: int = 0) -> Mechanism:
    """Build a mechanism from its name and its parameters.

    With ``defaults``, parameters that have one may be left out, as people write them.
    """
    keys(value, {"mechanism", "parameters"}, "a mechanism")
    assert isinstance(value, dict)
    name, parameters = value["mechanism"], value["parameters"]
    kind = _find(name) if isinstance(name, str) else None
    if kind is None:
        raise LedgerError(f"unknown mechanism {name!r:.80}; {_meant(name)}")
    required, optional = _arguments(kind)
    keys(parameters, required, f"the parameters of {name}", optional if defaults else frozenset())
    arguments = {key: decode_value(item, depth + 1, defaults) for key, item in parameters.items()}
    try:
        return kind(**arguments)
    except AccountantError as error:
        raise LedgerError(f"{name} refuses its parameters: {error}") from error
    except (TypeError, ValueError, ArithmeticError) as error:
        raise LedgerError(f"{name} cannot be built from its parameters: {error}") from error


def _meant(name: object) -> str:
    """Say which names are like an unknown one, or else all names."""
    known = {each.lower(): each for each in names()}
    near = difflib.get_close_matches(str(name)[:80].lower(), known, n=3)
    if near:
        return f"did you mean {' or '.join(known[each] for each in near)}?"
    return f"known are {', '.join(known.values())}"


@functools.lru_cache(maxsize=256)
def _arguments(kind: type[Mechanism]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of all arguments of a mechanism, and of those that have a default."""
    fields = [f for f in dataclasses.fields(cast(Any, kind)) if f.init]
    none = dataclasses.MISSING
    optional = (f for f in fields if f.default is not none or f.default_factory is not none)
    return frozenset(map(_argument, fields)), frozenset(map(_argument, optional))


def _find(name: str) -> type[Mechanism] | None:
    """Return the class of a name, importing the package's own module for it where need be."""
    if name in _ELSEWHERE and name not in _registered:
        importlib.import_module(_ELSEWHERE[name])
    return _registry().get(name)


def _registry() -> dict[str, type[Mechanism]]:
    """Return name -> class: what the package exports by name, and what was registered."""
    return _built_in() | _registered if _registered else _built_in()


@functools.lru_cache(maxsize=1)
def _built_in() -> dict[str, type[Mechanism]]:
    packages = (mechanisms, composition, derived, sampling)
    each = {name: getattr(package, name) for package in packages for name in package.__all__}
    return {name: kind for name, kind in each.items() if _is_mechanism(kind)}


def _is_mechanism(kind: object) -> bool:
    frozen = getattr(kind, "__dataclass_params__", None)
    return isinstance(kind, type) and issubclass(kind, Mechanism) and bool(frozen and frozen.frozen)


def encode_fields(value: Any, depth: int = 0) -> dict[str, Any]:
    """Write the fields of a dataclass."""
    fields = (f for f in dataclasses.fields(value) if f.init)
    return {_argument(f): _encode(getattr(value, f.name), depth + 1) for f in fields}


def _argument(part: dataclasses.Field[Any]) -> str:
    # As mechanisms name their arguments: a field cannot be called as one of their questions.
    return str(part.metadata.get("argument", part.name))


def _encode(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise UnsupportedError("what is nested so deeply cannot be read from a ledger file again")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"number": repr(number)}
    if isinstance(value, NeighbouringRelation):
        return {"relation": value.name}
    if isinstance(value, Mechanism):
        return encode_mechanism(value, depth + 1)
    if isinstance(value, (tuple, list)):
        return [_encode(item, depth + 1) for item in value]
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1:
        return {"array": [_encode(item, depth + 1) for item in value.tolist()]}
    raise UnsupportedError(f"a {type(value).__name__} cannot be written to a ledger file")


def decode_value(value: Any, depth: int, defaults: bool = False) -> Any:
    """Read one value."""
    if depth > _MAX_DEPTH:
        raise LedgerError("this ledger is nested too deeply")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return tuple(decode_value(item, depth + 1, defaults) for item in value)
    if not isinstance(value, dict):
        raise LedgerError(f"a ledger must hold JSON values; got a {type(value).__name__}")
    if set(value) == {"mechanism", "parameters"}:
        return decode_mechanism(value, defaults=defaults, depth=depth + 1)
    if len(value) == 1:
        ((tag, content),) = value.items()
        if isinstance(content, str):
            if tag == "number" and content in _NUMBERS:
                return _NUMBERS[content]
            if tag == "relation" and content in NeighbouringRelation.__members__:
                return NeighbouringRelation[content]
        elif tag == "array" and isinstance(content, list):
            items = [decode_value(item, depth + 1) for item in content]
            if all(isinstance(item, float) for item in items):
                return np.array(items, dtype=np.float64)
    raise LedgerError(f"a ledger holds an unknown value: {value!r:.80}")


def keys(
    value: object,
    required: set[str] | frozenset[str],
    what: str,
    optional: set[str] | frozenset[str] = frozenset(),
) -> None:
    """Refuse what is no object with exactly the required keys; the optional may be missing."""
    if not isinstance(value, dict):
        raise LedgerError(f"{what} must be an object; got the {type(value).__name__} {value!r:.60}")
    if unknown := sorted(set(value) - required, key=str):
        listing = ", ".join(sorted(required))
        raise LedgerError(f"{what} must not have the unknown key {unknown[0]!r:.60}: {listing}")
    if missing := sorted(required - set(value) - optional):
        raise LedgerError(f"{what} must have the key {missing[0]!r}")


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of JSON's pairs, refusing repeated keys."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise LedgerError("this ledger is damaged: a key is repeated")
    return result
