"""Conversion of whole ledgers to one JSON document and back.

Each different mechanism is written once, and a record is a line ``[mechanism, count, label, time]``
that names it by its number: a million records take some fifty bytes each, and are read without
building a million mechanisms. The δ at which a ledger is stated, and the releases that were planned
before the first, are written where there are some.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from accountant.errors import (
    AccountantError,
    ArgumentTypeError,
    LedgerError,
    UnsupportedError,
)
from accountant.ledger import schema
from accountant.ledger.budget import Budget
from accountant.ledger.history import Entry, entry, record
from accountant.mechanisms.base import Mechanism

FORMAT = "accountant-ledger"
# The version that is written.
VERSION = 4
# The oldest version that is read: it has neither plans nor δ, and version 3 has no plans.
OLDEST = 2

# The keys of "ledger", and those that are left out where there is nothing.
_PARTS = {"budget", "deltas", "entries", "mechanisms", "planned"}
_OPTIONAL = {"deltas", "planned"}

# The fields of a budget that files without them need not have.
_NEWER = {"kinds", "level", "packets"}

# Records that are put into canonical form at a time.
_BATCH = 4096

_compact = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


class Contents(NamedTuple):
    """What a ledger file holds."""

    entries: list[Entry]
    budget: Budget | None
    deltas: tuple[float, ...] = ()
    planned: tuple[Entry, ...] = ()


def encode(
    entries: Iterable[Entry],
    budget: Budget | None,
    revision: str | None = None,
    deltas: tuple[float, ...] = (),
    planned: Iterable[Entry] = (),
) -> str:
    """Write a ledger as one JSON document with its checksum.

    ``revision`` makes the text unlike any other, so that two files are never mistaken for one
    because two writers recorded the same.
    """
    table = _Table()
    lines = [_compact(table.line(*each)) for each in enumerate(entries)]
    menu = [table.line(*each) for each in enumerate(planned)]
    rest: dict[str, Any] = {"budget": None if budget is None else _encode_budget(budget)}
    rest |= {"deltas": list(deltas)} if deltas else {}
    rest |= {"planned": menu} if menu else {}
    rest["mechanisms"] = table.mechanisms
    head = {
        "format": FORMAT,
        "version": VERSION,
        "revision": revision,
        "checksum": _digest(revision, rest, [",".join(lines)]),
    }
    parts = {name: json.dumps(value, allow_nan=False) for name, value in rest.items()}
    parts["mechanisms"] = _listed([json.dumps(each, allow_nan=False) for each in table.mechanisms])
    parts["entries"] = _listed(lines)
    body = ",\n".join(f'  "{name}": {text}' for name, text in parts.items())
    return f'{json.dumps(head, indent=1)[:-2]},\n "ledger": {{\n{body}\n }}\n}}\n'


class _Table:
    """The mechanisms of a file, each once, and the records that name them by their numbers."""

    def __init__(self) -> None:
        self.mechanisms: list[dict[str, Any]] = []
        self._numbers: dict[Mechanism, int] = {}
        self._known: dict[int, int] = {}

    def line(self, position: int, item: Entry) -> list[Any]:
        """Return a record as it is written."""
        number = self._known.get(id(item.mechanism))
        if number is None:
            number = self._numbers.setdefault(item.mechanism, len(self._numbers))
            if number == len(self.mechanisms):
                self.mechanisms.append(_encode_mechanism(position, item.mechanism))
            self._known[id(item.mechanism)] = number
        return [number, item.count, item.label, item.time]


def _encode_mechanism(position: int, mechanism: Mechanism) -> dict[str, Any]:
    try:
        return schema.encode_mechanism(mechanism)
    except UnsupportedError as error:
        raise UnsupportedError(f"record {position} cannot be written: {error}") from None


def _listed(lines: list[str]) -> str:
    return "[\n   " + ",\n   ".join(lines) + "\n  ]" if lines else "[]"


def decode(text: object) -> Contents:
    """Read what :func:`encode` wrote; LedgerError for anything else."""
    if not isinstance(text, str):
        raise ArgumentTypeError(f"a ledger must be a str of JSON; got the {type(text).__name__}")
    document = _parse(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise LedgerError(f'this is no ledger: it must be a JSON object with "format": "{FORMAT}"')
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise LedgerError(f"a ledger's version must be an integer >= 1; got {version!r}")
    if version > VERSION:
        raise LedgerError(
            f"this ledger has version {version}, written by a newer release of this package, which"
            f" reads up to version {VERSION}. Upgrade to read it"
        )
    if version < OLDEST:
        raise LedgerError(f"this ledger has version {version}, which no release has written")
    schema.keys(document, {"format", "version", "revision", "checksum", "ledger"}, "a ledger")
    body = document["ledger"]
    if document["checksum"] != checksum(document["revision"], body):
        raise LedgerError("this ledger is damaged: its contents do not match its checksum")
    schema.keys(body, _PARTS, '"ledger"', _OPTIONAL)
    for name in set(body) - {"budget"}:
        if not isinstance(body[name], list):
            raise LedgerError(f'"{name}" must be a list')
    budget = None if body["budget"] is None else _decode_budget(body["budget"])
    mechanisms = _decode_mechanisms(body["mechanisms"])
    planned: tuple[Entry, ...] = ()
    if "planned" in body:
        planned = _decode_planned(body["planned"], mechanisms, budget)
    deltas = _decode_deltas(body.get("deltas", []))
    return Contents(_decode_entries(body["entries"], mechanisms), budget, deltas, planned)


def _decode_planned(
    values: list[Any], mechanisms: list[Mechanism], budget: Budget | None
) -> tuple[Entry, ...]:
    """Read what was planned: at least one record, and a budget that it was planned within."""
    if not values or budget is None:
        raise LedgerError('"planned" must be a list of at least one record, and needs a budget')
    return tuple(_decode_entries(values, mechanisms))


def _decode_deltas(values: list[Any]) -> tuple[float, ...]:
    """Read the δ of a ledger, each in (0, 1), increasing."""
    known = [value for value in values if type(value) is float and 0.0 < value < 1.0]
    if known != values or known != sorted(set(known)):
        raise LedgerError(f'"deltas" must be increasing numbers in (0, 1); got {values!r:.80}')
    return tuple(known)


def _decode_mechanisms(values: list[Any]) -> list[Mechanism]:
    found = []
    for number, value in enumerate(values):
        try:
            # Checked as every record's mechanism is.
            found.append(entry(schema.decode_mechanism(value), 1).mechanism)
        except AccountantError as error:
            raise LedgerError(f"mechanism {number}: {error}") from error
    return found


def _decode_entries(values: list[Any], mechanisms: list[Mechanism]) -> list[Entry]:
    """Turn the list of records into entries, in place: there may be a million of them."""
    for position, value in enumerate(values):
        if type(value) is not list or len(value) != 4:
            raise LedgerError(
                f"record {position} must be [mechanism, count, label, time]; got {value!r:.80}"
            )
        number, count, label, time = value
        if type(number) is not int or not 0 <= number < len(mechanisms):
            raise LedgerError(
                f"record {position} must name one of {len(mechanisms)} mechanisms by its number,"
                f" from 0; got {number!r:.40}"
            )
        try:
            values[position] = record(mechanisms[number], count, label, time)
        except AccountantError as error:
            raise LedgerError(f"record {position}: {error}") from error
    return values


def _encode_budget(budget: Budget) -> dict[str, Any]:
    fields = schema.encode_fields(budget)
    # Only where there are some: without them older versions read the file.
    return {
        name: value for name, value in fields.items() if name not in _NEWER or value is not None
    }


def _decode_budget(value: object) -> Budget:
    fields = {f.name for f in dataclasses.fields(Budget)}
    schema.keys(value, fields, '"budget"', _NEWER)
    assert isinstance(value, dict)
    try:
        return Budget(**{key: schema.decode_value(item, 1) for key, item in value.items()})
    except AccountantError as error:
        raise LedgerError(f'"budget": {error}') from error


def checksum(revision: object, body: object) -> str:
    """Return the digest of ``[revision, body]`` as JSON with sorted keys and no spaces."""
    try:
        if not (isinstance(body, dict) and isinstance(body.get("entries"), list)):
            return _hashed([_compact([revision, body])])
        rest = {name: value for name, value in body.items() if name != "entries"}
        return _digest(revision, rest, _batches(body["entries"]))
    except RecursionError:
        raise LedgerError("this ledger is nested too deeply") from None


def _batches(entries: list[Any]) -> Iterator[str]:
    """Yield the canonical text of the entries piece by piece; all at once it takes much memory."""
    for start in range(0, len(entries), _BATCH):
        yield ("," if start else "") + _compact(entries[start : start + _BATCH])[1:-1]


def _digest(revision: object, rest: dict[str, Any], entries: Iterable[str]) -> str:
    """Return the checksum of a ledger with the entries whose canonical text comes in pieces."""

    def pieces() -> Iterator[str]:
        yield f"[{_compact(revision)},{{"
        for k, name in enumerate(sorted({*rest, "entries"})):
            yield f"{',' * (k > 0)}{_compact(name)}:"
            if name == "entries":
                yield "["
                yield from entries
                yield "]"
            else:
                yield _compact(rest[name])
        yield "}]"

    return _hashed(pieces())


def _hashed(pieces: Iterable[str]) -> str:
    # json writes every double's shortest repr, so equal contents have equal text.
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode())
    return "sha256:" + digest.hexdigest()


def _parse(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=schema.unique, parse_constant=_no_constant, parse_float=_finite
        )
    except LedgerError:
        raise
    except (ValueError, RecursionError) as error:
        raise LedgerError(f"this ledger is damaged or truncated: {error}") from error


def _no_constant(text: str) -> float:
    raise LedgerError(f"this ledger is damaged: {text} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise LedgerError(f"this ledger is damaged: {text:.40} is no double")
    return number
