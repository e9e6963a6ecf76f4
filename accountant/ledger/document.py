"""Conversion of whole ledgers to one JSON document and back.

Each different mechanism is written once, and a record is a line ``[mechanism, count, label, time]``
that names it by its number: a million records take some fifty bytes each, and are read without
building a million mechanisms.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from accountant.errors import AccountantError, ArgumentTypeError, LedgerError, UnsupportedError
from accountant.ledger import schema
from accountant.ledger.budget import Budget
from accountant.ledger.history import Entry, entry, record
from accountant.mechanisms.base import Mechanism

FORMAT = "accountant-ledger"
VERSION = 1

# The keys of "ledger".
_PARTS = {"budget", "deltas", "entries", "mechanisms", "planned"}

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
    body = {
        "budget": None if budget is None else schema.encode_fields(budget),
        "deltas": list(deltas),
        "mechanisms": table.mechanisms,
        "planned": menu,
    }
    digest = _digest(revision, body, [",".join(lines)])
    head = {"format": FORMAT, "version": VERSION, "revision": revision, "checksum": digest}
    parts = {
        "budget": json.dumps(body["budget"], allow_nan=False),
        "deltas": json.dumps(body["deltas"]),
        "planned": _listed([_compact(line) for line in menu]),
        "mechanisms": _listed([json.dumps(each, allow_nan=False) for each in table.mechanisms]),
        "entries": _listed(lines),
    }
    listed = ",\n  ".join(f'"{name}": {part}' for name, part in parts.items())
    return f'{json.dumps(head, indent=1)[:-2]},\n "ledger": {{\n  {listed}\n }}\n}}\n'


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
                try:
                    self.mechanisms.append(schema.encode_mechanism(item.mechanism))
                except UnsupportedError as error:
                    raise UnsupportedError(f"record {position} is not written: {error}") from None
            self._known[id(item.mechanism)] = number
        return [number, item.count, item.label, item.time]


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
    if version != VERSION:
        raise LedgerError(f"a ledger's version must be {VERSION}; got {version}")
    schema.keys(document, {"format", "version", "revision", "checksum", "ledger"}, "a ledger")
    body = document["ledger"]
    if document["checksum"] != checksum(document["revision"], body):
        raise LedgerError("this ledger is damaged: its contents do not match its checksum")
    schema.keys(body, _PARTS, '"ledger"')
    for name in _PARTS - {"budget"}:
        if not isinstance(body[name], list):
            raise LedgerError(f'"{name}" must be a list')
    budget = None if body["budget"] is None else _decode_budget(body["budget"])
    deltas = _decode_deltas(body["deltas"])
    mechanisms = _decode_mechanisms(body["mechanisms"])
    planned = tuple(_decode_entries(body["planned"], mechanisms))
    if planned and budget is None:
        raise LedgerError('what is "planned" needs a budget')
    return Contents(_decode_entries(body["entries"], mechanisms), budget, deltas, planned)


def _decode_deltas(values: list[Any]) -> tuple[float, ...]:
    """Read the δ of a ledger: each in (0, 1), increasing."""
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
            raise LedgerError(f"record {position} must be of four parts; got {value!r:.80}")
        number, count, label, time = value
        if type(number) is not int or not 0 <= number < len(mechanisms):
            raise LedgerError(f"record {position} must name a mechanism; got {number!r:.40}")
        try:
            values[position] = record(mechanisms[number], count, label, time)
        except AccountantError as error:
            raise LedgerError(f"record {position}: {error}") from error
    return values


def _decode_budget(value: object) -> Budget:
    fields = {f.name for f in dataclasses.fields(Budget)}
    schema.keys(value, fields, '"budget"')
    assert isinstance(value, dict)
    try:
        return Budget(**{key: schema.decode_value(item, 1) for key, item in value.items()})
    except AccountantError as error:
        raise LedgerError(f'"budget": {error}') from error


def checksum(revision: object, body: object) -> str:
    """Return the digest of ``[revision, body]`` as JSON with sorted keys and no spaces."""
    try:
        if isinstance(body, dict) and set(body) == _PARTS and isinstance(body["entries"], list):
            return _digest(revision, body, _batches(body["entries"]))
        return "sha256:" + hashlib.sha256(_compact([revision, body]).encode()).hexdigest()
    except RecursionError:
        raise LedgerError("this ledger is nested too deeply") from None


def _batches(entries: list[Any]) -> Iterator[str]:
    """Yield the canonical text of the entries piece by piece; all at once it takes much memory."""
    for start in range(0, len(entries), _BATCH):
        yield ("," if start else "") + _compact(entries[start : start + _BATCH])[1:-1]


def _digest(revision: object, body: dict[str, Any], entries: Iterable[str]) -> str:
    """Return the digest where the text of the entries comes in pieces."""
    # json writes every double's shortest repr, so equal contents have equal text.
    before = {name: body[name] for name in ("budget", "deltas")}
    after = {name: body[name] for name in ("mechanisms", "planned")}
    digest = hashlib.sha256(f'[{_compact(revision)},{_compact(before)[:-1]},"entries":['.encode())
    for piece in entries:
        digest.update(piece.encode())
    digest.update(f"],{_compact(after)[1:]}]".encode())
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
