"""Questions beyond one DP-SGD run: pipelines of releases, and one run under every sampler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from accountant._basics.display import shown, text_down, text_up
from accountant.cli.group import Command
from accountant.cli.options import JSON, STDIN, attach, existing, read_stdin, written
from accountant.cli.output import as_json as print_json
from accountant.cli.output import print_table, progress, stream_table
from accountant.ledger import Accountant

# Of the columns of `samplers`: the longest name of a sampler and of a relation, five digits.
_WIDTHS = (31, 13, 8, 8, 7)
_WORDS = frozenset((0, 1, 4))


@click.command(
    cls=Command,
    examples=("accountant compose pipeline.toml", "accountant compose - --json < pipeline.json"),
)
@click.argument("file", type=existing(stdin=True))
@attach()
def compose(file: Path, as_json: bool) -> None:
    """Print the ε of a pipeline described in FILE, TOML or JSON.

    FILE holds "delta", a number or a list, and a list "release" of {mechanism, parameters, count,
    sampling_probability, label}; "-" is standard input. A ledger saved by Python or by
    "accountant train" is read by "accountant show" instead.
    """
    from accountant.ledger import pipeline

    if file == STDIN:
        ledger, deltas = pipeline.parse(read_stdin(), "standard input")
    else:
        ledger, deltas = pipeline.read(file)
    rows = brackets(ledger, deltas)
    relation = str(ledger.relation and ledger.relation.words)
    if as_json:
        releases = [
            {"mechanism": repr(item.mechanism), "count": item.count, "label": item.label}
            for item in ledger.history
        ]
        print_json({"epsilons": rows, "releases": releases, "relation": relation})
        return
    cells = [
        (shown(item.label or ""), repr(item.mechanism), str(item.count)) for item in ledger.history
    ]
    print_table(("label", "mechanism", "count"), cells, left=frozenset((0, 1)))
    print_epsilons(rows)
    click.echo(f"{relation}, certified")


def brackets(ledger: Accountant, deltas: Sequence[float]) -> list[dict[str, float]]:
    """Return certified brackets of ε, one δ a row."""
    rows = []
    with progress("composing", len(deltas) + 1) as advance:
        advance()  # the records were read; so that one δ shows a line, too
        for delta in deltas:
            ends = ledger.epsilon_bounds(delta)
            rows.append(
                {"delta": delta, "epsilon": float(ends.upper), "epsilon_lower": float(ends.lower)}
            )
            advance()
    return rows


def print_epsilons(rows: list[dict[str, float]]) -> None:
    """Print certified brackets of ε, one δ a row."""
    print_table(
        ("δ", "ε ≤", "ε ≥"),
        [
            (repr(row["delta"]), text_up(row["epsilon"]), text_down(row["epsilon_lower"]))
            for row in rows
        ],
    )


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


COMMANDS = (compose, samplers)
