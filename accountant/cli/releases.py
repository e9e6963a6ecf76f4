"""Releases and budgets as people write them: options, and pipelines in TOML or JSON.

A pipeline is a list of releases and the values of δ.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from accountant import checks
from accountant._basics import files
from accountant.cli.options import attached, existing
from accountant.errors import AccountantError, DomainError
from accountant.ledger import Accountant, Budget, schema
from accountant.mechanisms.base import Mechanism
from accountant.sampling import PoissonSampled

COUNT = click.option("--count", type=int, default=1, show_default=True, help="How many releases.")
LABEL = click.option("--label", help="Words for the history.")
AS_MANY = click.option("--count", type=int, help="How many releases; as many as fit, if left out.")
_OPTIONS = attached(
    click.option("--mechanism", "name", required=True, help="As Gaussian; accountant.mechanisms."),
    click.option("--parameter", "-p", "parameters", multiple=True, help="NAME=VALUE of it."),
    click.option("--q", type=float, help="Sampling probability of a Poisson sample."),
)


def release_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Attach what describes a release; the command gets its ``mechanism``."""

    @functools.wraps(command)
    def run(name: str, parameters: tuple[str, ...], q: float | None, **others: Any) -> Any:
        return command(mechanism=_described(name, parameters, q), **others)

    return _OPTIONS(run)


def _described(name: str, parameters: tuple[str, ...], q: float | None) -> Mechanism:
    values = {}
    for each in parameters:
        key, mark, text = each.partition("=")
        if not mark or key in values:
            raise DomainError(f"--parameter must be NAME=VALUE, each name once; got {each!r:.80}")
        values[key] = _value(text)
    release = {"mechanism": name, "parameters": values}
    try:
        return _mechanism(release if q is None else release | {"sampling_probability": q})
    except AccountantError as error:
        raise DomainError(f"--mechanism: {error}") from error


def _value(text: str) -> Any:
    """Return a number as people write it, as .3 or inf, else what JSON means, or words."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text.strip()):
        return float(text)
    return {"number": "inf"} if text.strip() in ("inf", "∞") else text


budget_options = attached(
    click.option("--epsilon", type=float, help="ε of the budget, in nats."),
    click.option("--delta", type=float, help="δ of the budget; 0, if left out: pure releases."),
    click.option("--filter", "rule", help="As of a Budget; moments, or pure, if left out."),
    click.option("--share", type=float, help="The part of δ for releases with a δ of their own."),
    click.option(
        "--kinds",
        type=existing(),
        help="For --filter kinds: a pipeline, as for accountant compose, that lists them.",
    ),
    click.option(
        "--noise",
        type=(float, float),
        metavar="LOW HIGH",
        help="For --filter kinds: DP-SGD with noise multipliers between them, at --q.",
    ),
    click.option("--q", type=float, help="Sampling probability of --noise."),
    click.option("--rho", type=float, help="ρ of a budget in zero-concentrated privacy, alone."),
    click.option("--mu", type=float, help="μ of a budget in Gaussian privacy, alone."),
)


def budget_from(
    epsilon: float | None,
    delta: float | None,
    rule: str | None,
    share: float | None,
    kinds: Path | None,
    noise: tuple[float, float] | None,
    q: float | None,
    rho: float | None,
    mu: float | None,
) -> Budget:
    """Return the budget that the options describe."""
    if rho is not None or mu is not None:
        others = (epsilon, delta, rule, share, kinds, noise, q)
        if (rho is not None and mu is not None) or any(each is not None for each in others):
            raise DomainError("--rho, or --mu, describes a budget alone; leave the others out")
        return Budget.mu(mu) if rho is None and mu is not None else Budget.rho(rho or 0.0)
    if epsilon is None:
        raise DomainError(
            "a budget needs --epsilon; with --delta, or without one for pure releases. Or --rho, or"
            " --mu"
        )
    delta = delta or 0.0
    by_kinds = rule == "kinds" or (rule is None and (kinds is not None or noise is not None))
    if not by_kinds:
        if kinds is not None or noise is not None or q is not None:
            raise DomainError("--kinds, --noise and --q belong to --filter kinds; leave them out")
        return Budget(epsilon, delta, rule or "", share=share)
    if (kinds is None) == (noise is None) or (noise is None) != (q is None):
        raise DomainError("--filter kinds needs --kinds FILE, or --noise LOW HIGH and --q")
    if noise is not None and q is not None:
        return Budget.for_noise(epsilon, delta, sampling_probability=q, noise_multipliers=noise)
    assert kinds is not None
    listed = [mechanism for mechanism, _ in read(kinds).ledger.counts]
    return Budget(epsilon, delta, "kinds", share=share, kinds=listed)


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
        ledger.compose(_mechanism(release), release.get("count", 1), label)
    except AccountantError as error:
        raise DomainError(f"{where}: {error}") from error


def _mechanism(release: dict[str, Any]) -> Mechanism:
    described = {"mechanism": release["mechanism"], "parameters": release.get("parameters", {})}
    mechanism = schema.decode_mechanism(described, defaults=True)
    if "sampling_probability" not in release:
        return mechanism
    q = checks.number(checks.SAMPLING_PROBABILITY, release["sampling_probability"])
    return PoissonSampled(mechanism, q)
