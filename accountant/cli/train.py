"""``accountant train``: trains a model for a target ε and writes model, ledger and statement."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from accountant._basics.display import text_up
from accountant.cli.group import Command
from accountant.cli.options import JSON, existing, require_different, written
from accountant.cli.output import as_json as print_json
from accountant.errors import DomainError
from accountant.ledger import Accountant

if TYPE_CHECKING:  # loading the trainers takes long
    from accountant.learn import TrainingResult
    from accountant.learn.plan import Plan

MODELS = ("logistic", "softmax", "linear", "ridge", "mlp")
OPTIMIZERS = ("sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "dp-adam")
FILE = written()


# What the trainer calls them.
NAMES = {
    "target_epsilon": "--epsilon",
    "expected_batch_size": "--batch-size",
    "dataset_size": "the number of records",
    "X": "the features",
    "y": "the target",
}


@click.command(
    cls=Command,
    names=NAMES,
    examples=(
        (
            "accountant train data.csv -o model.npz --target label --epsilon 2 --delta 1e-5"
            " --batch-size 60 --epochs 5"
        ),
    ),
)
@click.argument("data", type=existing())
@click.option("--output", "-o", type=FILE, required=True, help="Where the model goes (.npz).")
@click.option("--epsilon", type=float, required=True, help="The ε of this run, in nats.")
@click.option("--delta", type=float, required=True, help="δ, e.g. 1e-5.")
@click.option("--batch-size", type=float, required=True, help="Expected batch size.")
@click.option(
    "--sampling-probability",
    type=float,
    help="Of a record. Left out: batch size over number of records, which is then public.",
)
@click.option("--steps", type=int, help="Number of steps.")
@click.option("--epochs", type=float, help="Passes over the data, in place of --steps.")
@click.option("--model", "kind", type=click.Choice(MODELS), default="logistic", show_default=True)
@click.option("--classes", type=int, help="Number of classes (softmax, mlp); it is public.")
@click.option("--hidden", default="64", show_default=True, help="Hidden widths of mlp, as 64,32.")
@click.option("--target", help="The target's column, by name or number; the last if left out.")
@click.option("--features", help="Columns of features, as age,dose; all others if left out.")
@click.option("--unit-rows", is_flag=True, help="Scale every record to norm 1.")
@click.option("--penalty", type=float, default=0.0, help="Weight of half the squared weights.")
@click.option("--clipping-norm", type=float, default=1.0, show_default=True)
@click.option("--optimizer", type=click.Choice(OPTIMIZERS), default="momentum", show_default=True)
@click.option("--learning-rate", type=float, default=1.0, show_default=True)
@click.option("--averaging", type=click.Choice(["last", "mean", "ema"]), default="mean")
@click.option("--float32", "single", is_flag=True, help="Compute in single precision.")
@click.option("--ledger", type=FILE, help="Charge this ledger; OUTPUT.ledger.json if left out.")
@click.option("--checkpoint", type=FILE, help="Resume from and save to; as secret as the data.")
@click.option("--seed", type=int, help="For tests: the result is not private.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@JSON
def train(
    data: Path, output: Path, kind: str, ledger: Path | None, as_json: bool, **given: Any
) -> None:
    """Train a model on DATA (CSV, Parquet or NPZ) by DP-SGD.

    A CSV holds numbers, with or without a line of names; a Parquet file has named columns; an NPZ
    holds X and y, or named columns. Encode words before, by a vocabulary that does not come from
    the data. The ε printed is that of everything in the ledger: of earlier runs, too.
    """
    from accountant.cli import table

    ledger = ledger or output.with_suffix(".ledger.json")
    require_different(DATA=data, OUTPUT=output, LEDGER=ledger, CHECKPOINT=given["checkpoint"])
    if (given["steps"] is None) == (given["epochs"] is None):
        raise DomainError("say how many steps, by one of --steps and --epochs")
    X, y, names = table.read(data, given.pop("target"), given.pop("features"))
    if not len(X) and given["sampling_probability"] is None:
        raise DomainError(f"{data} holds no records")
    result, record = _run(X, y, kind, ledger, **given)
    save(output, result, kind, names)
    plan = result.plan
    values = {
        "epsilon": result.epsilon,
        "run_epsilon": result.run_epsilon,
        "delta": result.delta,
        "steps": result.steps,
        "sampling_probability": plan.sampling_probability,
        "noise_multiplier": plan.noise_multiplier,
        "private": result.private,
        "statement": result.statement,
        "model": str(output),
        "ledger": None if record is None else str(record),
    }
    if as_json:
        print_json(values)
        return
    if result.private:
        click.echo(f"ε ≤ {text_up(result.epsilon)} at δ = {result.delta:g}")
    click.echo(result.statement)
    click.echo(f"saved {output}" if record is None else f"saved {output} and {record}")


def _run(
    X: NDArray[np.float64], y: NDArray[np.float64], kind: str, record: Path, **given: Any
) -> tuple[TrainingResult, Path | None]:
    """Charge the ledger for all steps, then make them; without a ledger when none was charged."""
    from accountant.learn import Batches, Checkpoint, Noise, UnitNorm, Watch, train_dp_sgd

    if given["unit_rows"]:
        X = UnitNorm()(X)
    model = build(kind, X.shape[1], given)
    model.check(X, y)
    checkpoint = given["checkpoint"]
    charged: list[Path] = []

    def charge(plan: Plan) -> None:
        if plan.steps and given["seed"] is None:
            charged.append(record)
            charge_file(record, plan)

    result = train_dp_sgd(
        model,
        X,
        y,
        batches=Batches(
            given["batch_size"],
            steps=given["steps"],
            epochs=given["epochs"],
            sampling_probability=given["sampling_probability"],
        ),
        noise=Noise(target_epsilon=given["epsilon"]),
        clipping_norm=given["clipping_norm"],
        delta=given["delta"],
        optimizer=optimiser(given["optimizer"], given["learning_rate"]),
        averaging=given["averaging"],
        rng=given["seed"],
        checkpoint=None if checkpoint is None else Checkpoint(checkpoint),
        watch=Watch(progress=not given["quiet"], on_plan=charge),
    )
    if not charged:
        return result, None
    # The file may hold earlier runs, and what others charged meanwhile.
    return replace(result, ledger=Accountant.load(record)), record


def charge_file(record: Path, plan: Plan) -> None:
    """Charge all steps of a plan to the ledger in a file, except those it already holds.

    This happens before the first gradient: after a crash the file says too much, never too little.
    """
    from accountant.learn.account import count_charged

    step, label = plan.mechanism, f"accountant train: {plan.run}"
    with Accountant.transaction(record) as book:
        if plan.delta > 0.0:
            book.note_delta(plan.delta)
        # A resumed run is in the ledger already, unless this is another one.
        known = count_charged(book, step, label)
        wanted = plan.charges(plan.steps)
        if known < wanted:
            book.compose(step, wanted - known, label)


def build(kind: str, columns: int, given: dict[str, Any]) -> Any:
    """Return the model that the options describe."""
    from accountant import learn

    dtype = np.float32 if given["single"] else np.float64
    penalty = given["penalty"]
    classes = given["classes"]
    if kind in ("softmax", "mlp") and classes is None:
        raise DomainError(f"--model {kind} needs --classes; counting them would look at the data")
    made: dict[str, Callable[[], Any]] = {
        "logistic": lambda: learn.LogisticRegression(columns, penalty=penalty, dtype=dtype),
        "softmax": lambda: learn.SoftmaxRegression(columns, classes, penalty=penalty, dtype=dtype),
        "linear": lambda: learn.LinearRegression(columns, dtype=dtype),
        "ridge": lambda: learn.RidgeRegression(columns, penalty=penalty, dtype=dtype),
    }
    if kind != "mlp":
        return made[kind]()
    try:
        hidden = [int(width) for width in given["hidden"].split(",") if width.strip()]
    except ValueError:
        raise DomainError(f"--hidden must be integers, as 64,32; got {given['hidden']!r}") from None
    return learn.MultilayerPerceptron((columns, *hidden, classes), dtype=dtype)


def optimiser(name: str, rate: float) -> Any:
    """Return the optimiser of that name."""
    from accountant import learn

    made: dict[str, Callable[[], learn.optimizers.Optimizer]] = {
        "sgd": lambda: learn.SGD(rate),
        "momentum": lambda: learn.SGD(rate, 0.9),
        "nesterov": lambda: learn.SGD(rate, 0.9, nesterov=True),
        "adagrad": lambda: learn.AdaGrad(rate),
        "rmsprop": lambda: learn.RMSProp(rate),
        "adam": lambda: learn.Adam(rate),
        "adamw": lambda: learn.AdamW(rate),
        "dp-adam": lambda: learn.DPAdam(rate),
    }
    return made[name]()


def save(
    path: Path, result: TrainingResult, kind: str, names: tuple[str, ...] | None = None
) -> None:
    """Write parameters, public settings and the statement into one NPZ file."""
    about = {
        "model": kind,
        "features": None if names is None else list(names),
        "statement": result.statement,
        "private": result.private,
        "epsilon": result.epsilon if math.isfinite(result.epsilon) else "inf",
        "plan": result.plan.describe(),
        "history": result.history.public,
    }
    with path.open("wb") as file:
        np.savez(file, parameters=result.parameters, about=np.array(json.dumps(about)))
