"""Questions about DP-SGD with Poisson sampling: ε, δ, σ, steps, q, and ε over steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from accountant import quick
from accountant._basics.display import text_down, text_up
from accountant.cli.group import Command
from accountant.cli.options import JSON, SAMPLING, Sampling, attach, written
from accountant.cli.output import answer, given, print_table, progress, stream_table
from accountant.cli.output import as_json as print_json
from accountant.errors import PrecisionError

RUN = "--batch-size 256 --dataset-size 60000 --epochs 60"


def _sampled(options: dict[str, Any]) -> tuple[float, int]:
    """Return q and the number of steps that the options describe."""
    plan = Sampling.read(**options)
    return plan.probability(), plan.number_of_steps()


@click.command(
    cls=Command,
    examples=(
        f"accountant epsilon {RUN} --sigma 1.1 --delta 1e-5",
        "accountant epsilon --q 0.01 --steps 1000 --sigma 1.1 --delta 1e-5 --json",
        "accountant epsilon --q 1/100 --steps 1000 --sigma 1.1 --delta 1e-5 --method rdp",
        "accountant epsilon --q 1/100 --steps 1000 --sigma 1.1 --delta 1e-5 --user-records 4",
    ),
)
@attach(*SAMPLING, "user", "sigma", "delta")
@click.option(
    "--method", type=click.Choice(["exact", "rdp"]), default="exact", help="The analysis."
)
def epsilon(
    sigma: float, delta: float, user_records: int, method: Any, as_json: bool, **sampling: Any
) -> None:
    """Print the ε spent at a given δ.

    The first number is the guarantee (never below the truth), the second is a lower bound on the
    truth: together they are a proof that nothing is left to gain.
    """
    q, steps = _sampled(sampling)
    spent = quick.get_epsilon(q, sigma, steps, delta, user_records=user_records, method=method)
    if spent == math.inf and delta > 0.0:
        raise PrecisionError(f"no finite ε is certified for {sigma = } and {steps = }")
    values: dict[str, Any] = {"epsilon": spent}
    told = ""
    if method == "exact":
        bounds = quick.epsilon_bounds(q, sigma, steps, delta, user_records=user_records)
        values["epsilon_lower"] = lower = float(bounds.lower)
        told = f"ε ≥ {text_down(lower)}"
    values |= {"q": q, "sigma": sigma, "steps": steps, "delta": delta, "method": method}
    answer(values | {"user_records": user_records}, f"ε ≤ {text_up(spent)}", as_json, told)


@click.command(cls=Command, examples=(f"accountant delta {RUN} --sigma 1.1 --epsilon 2",))
@attach(*SAMPLING, "user", "sigma", "epsilon")
def delta(
    sigma: float, epsilon: float, user_records: int, as_json: bool, **sampling: object
) -> None:
    """Print the δ at which a given ε holds."""
    q, steps = _sampled(sampling)
    bounds = quick.delta_bounds(q, sigma, steps, epsilon, user_records=user_records)
    lower, upper = float(bounds.lower), float(bounds.upper)
    values = {"delta": upper, "delta_lower": lower, "q": q, "sigma": sigma, "steps": steps}
    values |= {"epsilon": epsilon, "user_records": user_records}
    answer(values, f"δ ≤ {text_up(upper)}", as_json, f"δ ≥ {text_down(lower)}")


@click.command(cls=Command, examples=(f"accountant sigma {RUN} --epsilon 3 --delta 1e-5",))
@attach(*SAMPLING, "user", "epsilon", "delta")
def sigma(
    epsilon: float, delta: float, user_records: int, as_json: bool, **sampling: object
) -> None:
    """Print the smallest noise multiplier for a target ε.

    Rounded up, so that the number printed keeps the target.
    """
    q, steps = _sampled(sampling)
    found = quick.calibrate_sigma(epsilon, delta, q, steps, user_records=user_records)
    values = {"sigma": found, "q": q, "steps": steps, "epsilon": epsilon, "delta": delta}
    answer(values | {"user_records": user_records}, f"σ = {text_up(found)}", as_json)


@click.command(
    cls=Command,
    examples=(
        (
            "accountant steps --batch-size 256 --dataset-size 60000 --sigma 1.1 --epsilon 3"
            " --delta 1e-5"
        ),
    ),
)
@attach("q", "batch", "dataset", "user", "sigma", "epsilon", "delta")
def steps(
    sigma: float, epsilon: float, delta: float, user_records: int, as_json: bool, **sampling: Any
) -> None:
    """Print the largest number of steps for a target ε."""
    plan = Sampling.read(**sampling, steps=None, epochs=None)
    q = plan.probability()
    found = quick.calibrate_steps(epsilon, delta, q=q, sigma=sigma, user_records=user_records)
    values = {"steps": found, "q": q, "sigma": sigma, "epsilon": epsilon, "delta": delta}
    told = f"steps = {found} ({text_down(found * q)} epochs)"
    answer(values | {"user_records": user_records}, told, as_json)


@click.command(
    cls=Command,
    examples=(
        "accountant q --steps 14063 --dataset-size 60000 --sigma 1.1 --epsilon 3 --delta 1e-5",
    ),
)
@attach("steps", "dataset", "user", "sigma", "epsilon", "delta")
def q(
    sigma: float, epsilon: float, delta: float, user_records: int, as_json: bool, **sampling: Any
) -> None:
    """Print the largest sampling probability for a target ε.

    With --dataset-size also the largest batch size.
    """
    plan = Sampling(None, **sampling)
    count, dataset_size = plan.number_of_steps(), plan.dataset_size
    found = quick.calibrate_q(epsilon, delta, sigma=sigma, steps=count, user_records=user_records)
    values = {"q": found, "sigma": sigma, "steps": count, "epsilon": epsilon, "delta": delta}
    values["user_records"] = user_records
    headline = f"q = {text_down(found)}"
    if dataset_size is not None:
        # Rounded down exactly: a batch larger by one would need a larger q.
        values["batch_size"] = batch = math.floor(Fraction(found) * dataset_size)
        headline += f" (batch size {batch} of {dataset_size})"
    answer(values, headline, as_json)


@click.command(
    cls=Command,
    examples=(
        f"accountant curve {RUN} --sigma 1.1 --delta 1e-5",
        f"accountant curve {RUN} --sigma 1.1 --delta 1e-5 --points 50 --plot curve.png",
    ),
)
@attach(*SAMPLING, "user", "sigma", "delta")
@click.option(
    "--points", type=click.IntRange(min=2, max=10_000), default=10, help="Rows of the table."
)
@click.option("--plot", type=written(), help="Save a picture (PNG, PDF, …).")
def curve(
    sigma: float,
    delta: float,
    user_records: int,
    points: int,
    plot: Path | None,
    as_json: bool,
    **sampling: Any,
) -> None:
    """Print ε over steps, and save a plot with --plot."""
    q, last = _sampled(sampling)
    # Evenly spaced and ending at the last step; few steps give fewer rows.
    counts = sorted({-(-last * k // points) for k in range(1, points + 1)})
    epsilons = []
    with progress("ε over steps", len(counts)) as advance:
        for n in counts:
            epsilons.append(quick.get_epsilon(q, sigma, n, delta, user_records=user_records))
            advance()
    if plot is not None:
        from accountant.plots import save_curve

        save_curve(plot, counts, epsilons, f"q = {q:.6g}, σ = {sigma:g}, δ = {delta:g}")
    if as_json:
        rows = [{"steps": n, "epsilon": e} for n, e in zip(counts, epsilons, strict=True)]
        setting = {"q": q, "sigma": sigma, "delta": delta, "user_records": user_records}
        answer(setting | {"curve": rows}, "", as_json)
        return
    both = zip(counts, epsilons, strict=True)
    cells = [(str(n), f"{n * q:.4g}", text_up(spent)) for n, spent in both]
    print_table(("steps", "epochs", "ε ≤"), cells)
    click.echo(str(given(q=q, sigma=sigma, delta=delta, user_records=user_records)))
    if plot is not None:
        click.echo(f"saved {plot}")


# Of the columns of `samplers`: the longest name of a sampler and of a relation, five digits.
_WIDTHS = (31, 13, 8, 8, 7)
_WORDS = frozenset((0, 1, 4))


@click.command(
    cls=Command,
    examples=(
        (
            "accountant samplers --dataset-size 1000 --batch-size 100 --epochs 2 --sigma 1"
            " --delta 1e-5 --sampler poisson --sampler shuffled"
        ),
    ),
)
@click.option("--dataset-size", type=int, required=True, help="Number of records.")
@click.option("--batch-size", type=int, required=True, help="Batch size, expected or exact.")
@click.option("--epochs", type=int, required=True, help="Passes over the data.")
@click.option("--sigma", type=float, required=True, help="Noise multiplier.")
@click.option("--delta", type=float, required=True, help="δ, e.g. 1e-5.")
@click.option("--sampler", "names", multiple=True, help="Only this one; may be repeated.")
@click.option("--plot", type=written(), help="Save a picture.")
@JSON
def samplers(names: tuple[str, ...], plot: Path | None, as_json: bool, **run: Any) -> None:
    """Print ε of one run under every sampler, each with its own relation.

    An account for Poisson sampling is wrong for batches that were shuffled: this shows by how much.
    """
    from accountant.compare import SAMPLERS, SamplerRow, SamplerTable, compare_samplers

    chosen = names or SAMPLERS
    sizes = run["dataset_size"], run["batch_size"], run["epochs"], run["sigma"], run["delta"]
    with progress("samplers", len(chosen)) as advance:
        show: Callable[[Sequence[str]], None] | None = None

        def on_row(row: SamplerRow) -> None:
            nonlocal show
            if not as_json:
                # Not before the first row: a question that is refused prints no headings.
                show = show or stream_table(SamplerTable.HEADINGS, _WIDTHS, left=_WORDS)
                show(row.cells())
            advance()

        table = compare_samplers(*sizes, samplers=chosen, on_row=on_row)
    if plot is not None:
        table.plot(plot)
    if as_json:
        rows = [row._asdict() | {"relation": row.relation.name.lower()} for row in table.rows]
        print_json(run | {"rows": rows})
        return
    click.echo("Rows of different relations answer different questions; every ≤ is certified.")
    if plot is not None:
        click.echo(f"saved {plot}")


COMMANDS = (samplers, epsilon, delta, sigma, steps, q, curve)
