"""Options that several commands share, and their parsers; releases, budgets and pipelines."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import sys
import tomllib
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from accountant import checks
from accountant._basics import files
from accountant._basics.rounding import fraction_up
from accountant.errors import AccountantError, DomainError
from accountant.ledger import Accountant, Budget, schema
from accountant.mechanisms.base import Mechanism
from accountant.sampling import PoissonSampled

Attached = TypeVar("Attached", bound=Callable[..., Any])

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, unrounded.")
STDIN = Path("-")


def existing(stdin: bool = False) -> click.Path:
    """Return the type of a file to read; ``-`` is standard input where that is allowed."""
    return click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=stdin)


class Written(click.Path):
    """A file to write, in a folder that is there: known before the work, not after it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse a folder that is not there."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"No such file or directory: the folder {str(path.parent)!r}", param, ctx)
        return path


def written() -> click.Path:
    """Return the type of a file to write."""
    return Written(dir_okay=False, path_type=Path)


def require_different(**files: Path | None) -> None:
    """Refuse names of one file: what is written last would destroy the data, or the record."""
    named = [(name, path) for name, path in files.items() if path is not None]
    for place, (name, path) in enumerate(named):
        for other, earlier in named[:place]:
            if _is_same(earlier, path):
                raise DomainError(f"{other} and {name} must be different files; both are {path}")


def _is_same(first: Path, second: Path) -> bool:
    if os.path.realpath(first) == os.path.realpath(second):
        return True
    try:
        return first.samefile(second)
    except OSError:
        return False  # one is not there yet


def read_stdin() -> str:
    """Return what standard input holds, as text."""
    content = sys.stdin.buffer.read(files.MOST_BYTES + 1)
    if len(content) > files.MOST_BYTES:
        raise DomainError("standard input is too large to be a ledger or a pipeline")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise DomainError("standard input is no UTF-8 text") from None


def exactly(ctx: click.Context, param: click.Parameter, value: str | None) -> Fraction | None:
    """Read a decimal or a quotient without rounding it."""
    try:
        if value is None:
            return None
        if "/" not in value and abs(Decimal(value).adjusted()) > 400:
            # 1e999999999 would become a billion digits, and no double.
            raise OverflowError
        return Fraction(value)
    except (ValueError, ArithmeticError):
        raise click.BadParameter(f"{value!r} is not a number", ctx, param) from None


class Sampling(NamedTuple):
    """How often records are used, as far as the options say."""

    q: Fraction | None
    steps: int | None
    dataset_size: int | None

    @classmethod
    def read(
        cls,
        q: Fraction | None,
        steps: int | None,
        batch_size: int | None,
        dataset_size: int | None,
        epochs: Fraction | None,
    ) -> Sampling:
        """Reconcile the two ways of saying it."""
        if q is not None and batch_size is not None:
            raise DomainError("give either --q or --batch-size with --dataset-size, not both")
        if steps is not None and epochs is not None:
            raise DomainError("give either --steps or --epochs, not both")
        if batch_size is not None:
            if dataset_size is None:
                raise DomainError("--batch-size needs --dataset-size")
            if batch_size > dataset_size:
                most = f"--dataset-size = {dataset_size}"
                raise DomainError(f"--batch-size must be at most {most}; got {batch_size}")
            q = Fraction(batch_size, dataset_size)
        if epochs is not None:
            if not q:
                raise DomainError("--epochs needs --batch-size with --dataset-size, or --q > 0")
            if epochs < 0:
                raise DomainError(f"--epochs must be >= 0; got {float(epochs)!r}")
            # A part of a step is a step.
            steps = math.ceil(epochs / q)
        return cls(q, steps, dataset_size)

    def probability(self) -> float:
        """Return q as a double that is not below it."""
        if self.q is None:
            raise DomainError("give --batch-size and --dataset-size, or --q")
        if not 0 <= self.q <= 1:
            raise DomainError(f"--q must be a sampling probability in [0, 1]; got {self.q}")
        return fraction_up(self.q)

    def number_of_steps(self) -> int:
        """Return the number of steps."""
        if self.steps is None:
            raise DomainError("say how many steps: --steps or --epochs")
        return self.steps


SAMPLING = ("q", "steps", "batch", "dataset", "epochs")
_SHARED = {
    "q": click.option("--q", callback=exactly, help="Sampling probability, as 0.01 or 256/60000."),
    "steps": click.option("--steps", type=int, help="Number of steps."),
    "batch": click.option(
        "--batch-size", type=click.IntRange(min=0), help="Expected batch size, in place of --q."
    ),
    "dataset": click.option(
        "--dataset-size", type=click.IntRange(min=1), help="Number of records."
    ),
    "epochs": click.option(
        "--epochs", callback=exactly, help="Passes over the data, in place of --steps."
    ),
    "sigma": click.option(
        "--sigma", type=float, required=True, help="Noise multiplier: noise over clipping norm."
    ),
    "user": click.option(
        "--user-records", type=click.IntRange(min=1), default=1, help="Most records of one user."
    ),
    "delta": click.option("--delta", type=float, required=True, help="δ, e.g. 1e-5."),
    "epsilon": click.option("--epsilon", type=float, required=True, help="ε, in nats."),
}


def attached(*options: Callable[[Attached], Attached]) -> Callable[[Attached], Attached]:
    """Return what attaches options to a command, in this order."""

    def to(command: Attached) -> Attached:
        for option in reversed(options):
            command = option(command)
        return command

    return to


def attach(*names: str) -> Callable[[Attached], Attached]:
    """Attach the shared options called ``names``, and ``--json`` to all."""
    return attached(*(_SHARED[name] for name in names), JSON)


# Releases and budgets. A pipeline is a list of releases and the values of δ, in TOML or JSON.

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
    click.option("--kinds", type=existing(), help="For --filter kinds: a pipeline of them."),
    click.option("--noise", type=(float, float), help="For --filter kinds: from, to; at --q."),
    click.option("--q", type=float, help="Sampling probability of --noise."),
    click.option("--rho", type=float, help="ρ of a budget in zero-concentrated privacy, alone."),
    click.option("--mu", type=float, help="μ of a budget in Gaussian privacy, alone."),
)


def budget_from(**options: Any) -> Budget:
    """Return the budget that the options of ``budget_options`` describe."""
    given = {name: value for name, value in options.items() if value is not None}
    for level in {"rho", "mu"} & set(given):
        if len(given) > 1:
            raise DomainError("--rho, or --mu, describes a budget alone; leave the others out")
        return Budget.rho(given[level]) if level == "rho" else Budget.mu(given[level])
    if "epsilon" not in given:
        raise DomainError("a budget needs --epsilon, with or without --delta; or --rho; or --mu")
    epsilon, delta = given.pop("epsilon"), given.pop("delta", 0.0)
    share, rule = given.pop("share", None), given.pop("rule", "")
    if not rule and ("kinds" in given or "noise" in given):
        rule = "kinds"
    if rule != "kinds":
        if given:
            raise DomainError("--kinds, --noise and --q belong to --filter kinds; leave them out")
        return Budget(epsilon, delta, rule, share=share)
    if set(given) == {"noise", "q"}:
        rate, noise = given["q"], given["noise"]
        return Budget.for_noise(epsilon, delta, sampling_probability=rate, noise_multipliers=noise)
    if set(given) != {"kinds"}:
        raise DomainError("--filter kinds needs --kinds FILE, or --noise LOW HIGH and --q")
    listed = [mechanism for mechanism, _ in read(given["kinds"]).ledger.counts]
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
        reads = json.JSONDecoder(object_pairs_hook=schema.unique).decode
        document = (tomllib.loads if is_toml else reads)(text)
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
