"""Options that several commands share, and their parsers."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from accountant._basics.rounding import fraction_up
from accountant.errors import DomainError

Attached = TypeVar("Attached", bound=Callable[..., Any])

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, unrounded.")
STDIN = Path("-")
# As ledger files: a device has no end.
MAX_BYTES = 1 << 30


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
                raise DomainError(
                    f"{other} and {name} must be different files; both are {path}, and one would"
                    " overwrite the other"
                )


def _is_same(first: Path, second: Path) -> bool:
    if os.path.realpath(first) == os.path.realpath(second):
        return True
    try:
        return first.samefile(second)
    except OSError:
        return False  # one is not there yet


def read_stdin() -> str:
    """Return what standard input holds, as text."""
    content = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
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
                raise DomainError(
                    f"--batch-size must be at most --dataset-size = {dataset_size};"
                    f" got {batch_size}"
                )
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
            raise DomainError(
                "say how records are sampled: --batch-size and --dataset-size, or --q"
            )
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
        "--user-records",
        type=click.IntRange(min=1),
        default=1,
        help="Largest number of records of one user; above 1 the guarantee is one for users.",
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
