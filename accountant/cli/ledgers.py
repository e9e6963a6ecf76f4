"""Ledgers in files: what one holds and has spent, and a budget made, planned and charged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from accountant._basics.display import shown, text_down, text_up
from accountant.cli.group import Command, Group
from accountant.cli.options import (
    AS_MANY,
    COUNT,
    JSON,
    LABEL,
    STDIN,
    attach,
    budget_from,
    budget_options,
    existing,
    parse,
    read,
    read_stdin,
    release_options,
    written,
)
from accountant.cli.output import as_json as print_json
from accountant.cli.output import counted, print_table, progress, refusals, say
from accountant.cli.stores import SECRET_FILE, ledger_at
from accountant.errors import DomainError, LedgerError
from accountant.ledger import Accountant, storage
from accountant.ledger.evaluation import ASSUMED_DELTA
from accountant.ledger.history import labels_of
from accountant.mechanisms.base import Mechanism

# The table of mechanisms has this many rows; then it says how many are left out.
MOST_ROWS = 40
# A row shows this many labels of a mechanism; then it says how many are left out.
MOST_LABELS = 3
# A label is cut after this many letters.
LONGEST = 60


class LedgerPath(click.Path):
    """A ledger: a file, "-" for standard input, or URL#BLOCK for a block of a store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Leave the place of a block as it is."""
        if isinstance(value, str) and value.startswith(("sqlite:", "postgresql:", "postgres:")):
            return value
        return super().convert(value, param, ctx)


LEDGER = click.argument(
    "ledger", type=LedgerPath(exists=True, dir_okay=False, path_type=Path, allow_dash=True)
)


def load(file: Path | str) -> tuple[Accountant, str]:
    """Return the ledger in a file, a store or on standard input, and the digest of its text."""
    if isinstance(file, str):
        secret = os.environ.get(SECRET_FILE)
        book = ledger_at(file, Path(secret) if secret else None)
        return book, f"sha256:{storage.digest(book.to_json().encode())}"
    if file == STDIN:
        name, text = "standard input", read_stdin()
        digest = storage.digest(text.encode())
    else:
        name = str(file)
        text, digest = storage.read(file)
    try:
        return Accountant.from_json(text), f"sha256:{digest}"
    except LedgerError as error:
        raise LedgerError(f"{name}: {error}") from error


@click.command(
    cls=Command,
    examples=(
        "accountant show ledger.json",
        "accountant show ledger.json --delta 1e-5 --delta 1e-6",
        "accountant show - --json < ledger.json",
    ),
)
@LEDGER
@click.option(
    "--delta", "deltas", type=float, multiple=True, help="δ, may be repeated; else LEDGER's own."
)
@JSON
def show(ledger: Path | str, deltas: tuple[float, ...], as_json: bool) -> None:
    """Print what LEDGER holds and the ε it has spent.

    LEDGER is a file that Accountant.save or "accountant train" wrote, or URL#BLOCK, a block of a
    store; "-" is standard input. Left out, δ are those of its budget and of the training runs in
    it, or 1e-5 where it has none.
    """
    book, digest = load(ledger)
    rows = brackets(book, deltas or book.deltas or (ASSUMED_DELTA,))
    relation = "none" if book.relation is None else book.relation.words
    counts = book.counts
    labels = labels_of(book.history, LONGEST).values()
    if as_json:
        print_json(
            {
                "checksum": digest,
                "releases": len(book),
                "records": len(book.history),
                "mechanisms": [
                    {"mechanism": repr(mechanism), "count": count, "labels": list(words)}
                    for (mechanism, count), words in zip(counts, labels, strict=True)
                ],
                "budget": None if book.budget is None else repr(book.budget),
                "epsilons": rows,
                "relation": relation,
            }
        )
        return
    cells = [
        (_joined(words), repr(mechanism), str(count))
        for (mechanism, count), words in zip(counts[:MOST_ROWS], labels, strict=False)
    ]
    print_table(("label", "mechanism", "count"), cells, left=frozenset((0, 1)))
    if len(counts) > MOST_ROWS:
        click.echo(f"… and {len(counts) - MOST_ROWS} further mechanisms")
    print_epsilons(rows)
    if not (deltas or book.deltas):
        click.echo(f"δ = {ASSUMED_DELTA:g} is assumed: neither a budget nor a run recorded one")
    if book.budget is not None:
        click.echo(f"budget: {book.budget!r}")
    click.echo(f"{counted(len(book))}, {relation}, certified; {digest}")


def _joined(words: tuple[str, ...]) -> str:
    more = f"; and {len(words) - MOST_LABELS} more" if len(words) > MOST_LABELS else ""
    return "; ".join(words[:MOST_LABELS]) + more


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
    if file == STDIN:
        ledger, deltas = parse(read_stdin(), "standard input")
    else:
        ledger, deltas = read(file)
    rows = brackets(ledger, deltas)
    relation = str(ledger.relation and ledger.relation.words)
    if as_json:
        listed = [
            {"mechanism": repr(item.mechanism), "count": item.count, "label": item.label}
            for item in ledger.history
        ]
        print_json({"epsilons": rows, "releases": listed, "relation": relation})
        return
    cells = [(shown(i.label or ""), repr(i.mechanism), str(i.count)) for i in ledger.history]
    print_table(("label", "mechanism", "count"), cells, left=frozenset((0, 1)))
    print_epsilons(rows)
    click.echo(f"{relation}, certified")


def brackets(ledger: Accountant, deltas: Sequence[float]) -> list[dict[str, float]]:
    """Return certified brackets of ε, one δ a row."""
    rows = []
    with progress("composing", len(deltas) + 1) as advance:
        advance()  # the records were read; so that one δ shows a line, too
        for delta in deltas:
            lower, upper = map(float, ledger.epsilon_bounds(delta))
            rows.append({"delta": delta, "epsilon": upper, "epsilon_lower": lower})
            advance()
    return rows


def print_epsilons(rows: list[dict[str, float]]) -> None:
    """Print certified brackets of ε, one δ a row."""
    cells = [(repr(r["delta"]), text_up(r["epsilon"]), text_down(r["epsilon_lower"])) for r in rows]
    print_table(("δ", "ε ≤", "ε ≥"), cells)


FILE = click.argument("file", type=existing())
_STEP = "--mechanism Gaussian -p noise_multiplier=1 --q 0.001"


@click.group(
    cls=Group,
    sections={"Set up": ("init",), "Spend": ("plan", "charge"), "Ask": ("affordable",)},
    examples=(
        "accountant ledger init budget.json --epsilon 1 --delta 1e-6",
        f"accountant ledger affordable budget.json {_STEP}",
        f"accountant ledger plan budget.json {_STEP} --count 20000 --label 'model 9'",
        f"accountant ledger charge budget.json {_STEP} --count 500",
        "accountant ledger init ladder.json --epsilon 3 --delta 1e-5 --noise 1 2 --q 0.01",
    ),
)
def ledger() -> None:
    """Keep a budget in a file, which processes of one machine spend one after another.

    For several machines, or blocks of a data set, use "accountant store".
    """


@ledger.command(
    cls=Command, examples=("accountant ledger init gaussian.json --epsilon 1 --delta 1e-6",)
)
@click.argument("file", type=written())
@budget_options
@JSON
def init(file: Path, as_json: bool, **budget: Any) -> None:
    """Make FILE, a ledger with a budget; nothing is done if it is there with the same budget."""
    with Accountant.transaction(file, budget_from(**budget)) as book:
        made = repr(book.budget)
    say({"budget": made}, f"{file}: {made}", as_json)


@ledger.command()
@FILE
@release_options
@LABEL
@AS_MANY
@JSON
def plan(file: Path, as_json: bool, **asked: Any) -> None:
    """Set releases aside in FILE before the first release, by exact composition, in full."""
    with refusals(as_json), Accountant.transaction(file) as book:
        planned = book.plan(**asked)
    say({"planned": planned}, f"planned {counted(planned)}", as_json)


@ledger.command()
@FILE
@release_options
@LABEL
@COUNT
@JSON
def charge(file: Path, as_json: bool, count: int, **asked: Any) -> None:
    """Record releases in FILE, before they are made, or refuse."""
    with refusals(as_json), Accountant.transaction(file) as book:
        book.compose(count=count, **asked)
    say({"charged": count, "releases": len(book)}, f"charged {counted(count)}", as_json)


@ledger.command()
@FILE
@release_options
@JSON
def affordable(file: Path, as_json: bool, mechanism: Mechanism) -> None:
    """Print how many more releases the budget of FILE allows, and would allow by each filter."""
    book = Accountant.load(file)
    if book.budget is None:
        raise DomainError(f"{file} has no budget; make one with accountant ledger init")
    allowed, found = book.affordable(mechanism), book.affordable_by_filter(mechanism)
    if as_json:
        print_json({"affordable": allowed, "filter": book.budget.filter, "by_filter": found})
        return
    click.echo(f"{allowed} more fit, by the filter {book.budget.filter!r} of {book.budget!r}")
    print_table(("filter", "releases"), [(name, str(count)) for name, count in found.items()])
    click.echo(_advice(allowed, found))


def _advice(allowed: int, found: dict[str, int]) -> str:
    """Say in one sentence which way of spending to choose."""
    best = max(found, key=lambda name: found[name], default="")
    if not best or found[best] <= allowed:
        return "No other filter allows more."
    if best == "plan":
        return f"Plan {found[best]} before the first release (accountant ledger plan): most fit so."
    return (
        f"The filter {best!r} would allow most, {found[best]}: choose it for a new budget"
        f" (--filter {best}), as a budget is never changed."
    )


COMMANDS = (show, compose, ledger)
