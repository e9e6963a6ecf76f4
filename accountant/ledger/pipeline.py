"""Pipelines in TOML or JSON: a list of releases and the values of δ."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from accountant import checks
from accountant._basics import files
from accountant.errors import AccountantError, DomainError
from accountant.ledger import evaluation, schema
from accountant.ledger.accountant import Accountant

_RELEASE = {"mechanism", "parameters", "count", "sampling_probability", "label"}


class Pipeline(NamedTuple):
    """A ledger with all releases recorded, and the δ to answer at."""

    ledger: Accountant
    deltas: tuple[float, ...]


def read(path: Path) -> Pipeline:
    """Read a pipeline from a file whose name ends in .toml or .json.

    Raises
    ------
    DomainError, ArgumentTypeError
        The file is no TOML or JSON, holds an unknown or lacks a required key, or describes a
        release that is none, is a pipe or a device, or has more than a GiB. The message names the
        release.
    OSError
        The file cannot be read.
    """
    content = files.content(path)
    kind = path.suffix.lower()
    if kind not in (".toml", ".json"):
        raise DomainError(f"a pipeline must be a .toml or .json file; got {path.name!r}")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DomainError(f"{path} cannot be read: {error}") from None
    return parse(text, str(path), toml=kind == ".toml")


def parse(text: str, name: str, *, toml: bool | None = None) -> Pipeline:
    """Read a pipeline from text; ``name`` is what messages call it.

    ``toml`` says whether it is TOML; None takes what starts with a brace for JSON.
    """
    is_toml = not text.lstrip().startswith("{") if toml is None else toml
    try:
        document = (
            tomllib.loads(text) if is_toml else json.loads(text, object_pairs_hook=schema.unique)
        )
    except (ValueError, RecursionError) as error:
        raise DomainError(f"{name} cannot be read: {error}") from None
    try:
        schema.keys(document, {"delta", "release"}, "a pipeline")
        deltas = _deltas(document["delta"])
        releases = document["release"]
        if not (isinstance(releases, list) and releases):
            raise DomainError("release must be a list of at least one release")
        ledger = Accountant()
        for position, release in enumerate(releases, start=1):
            _record(ledger, release, position)
    except AccountantError as error:
        raise DomainError(f"{name}: {error}") from error
    return Pipeline(ledger, deltas)


def _deltas(value: object) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise DomainError("delta must hold at least one number")
    return tuple(checks.number(checks.DELTA, item) for item in values)


def _record(ledger: Accountant, release: Any, position: int) -> None:
    where = f"release {position}"
    schema.keys(release, _RELEASE, where, _RELEASE - {"mechanism"})
    label = release.get("label")
    if label is not None:
        where += f" ({label})"
    try:
        mechanism = schema.decode_mechanism(
            {"mechanism": release["mechanism"], "parameters": release.get("parameters", {})},
            defaults=True,
        )
        if "sampling_probability" in release:
            q = checks.number(checks.SAMPLING_PROBABILITY, release["sampling_probability"])
            mechanism = evaluation.sampled(mechanism, q)
        ledger.compose(mechanism, release.get("count", 1), label)
    except AccountantError as error:
        raise DomainError(f"{where}: {error}") from error
