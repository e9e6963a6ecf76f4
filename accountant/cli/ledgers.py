"""Ledgers in files: what one holds and has spent, and a budget made, planned and charged."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from accountant._basics.display import shown
from accountant.cli.compositions import brackets, print_epsilons
from accountant.cli.group import Command, Group
from accountant.cli.options import JSON, STDIN, existing, read_stdin, written
from accountant.cli.output import as_json as print_json
from accountant.cli.output import counted, print_table, say
from accountant.cli.releases import (
    AS_MANY,
    COUNT,
    LABEL,
    budget_from,
    budget_options,
    mechanism_from,
    release_options,
)
from accountant.cli.stores import SECRET_FILE, ledger_at
from accountant.errors import BudgetExceeded, DomainError, LedgerError
from accountant.ledger import Accountant

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
    from accountant.ledger import Accountant, storage

    if isinstance(file, str):
        secret = os.environ.get(SECRET_FILE)
        book = ledger_at(file, Path(secret) if secret else None)
        return book, f"sha256:{hashlib.sha256(book.to_json().encode()).hexdigest()}"
    if file == STDIN:
        text = read_stdin()
        digest = hashlib.sha256(text.encode()).hexdigest()
        try:
            return Accountant.from_json(text), f"sha256:{digest}"
        except LedgerError as error:
            raise LedgerError(f"standard input: {error}") from error
    text, digest = storage.read(file)
    try:
        return Accountant.from_json(text), f"sha256:{digest}"
    except LedgerError as error:
        raise LedgerError(f"{file}: {error}") from error


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
    from accountant.ledger.evaluation import ASSUMED_DELTA

    book, digest = load(ledger)
    rows = brackets(book, deltas or book.deltas or (ASSUMED_DELTA,))
    relation = "none" if book.relation is None else book.relation.words
    counts = book.counts
    labels = _labels(book)
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


def _labels(book: Accountant) -> list[tuple[str, ...]]:
    """Return the labels of each mechanism of ``book.counts``, in order of first appearance."""
    found: dict[Any, dict[str, None]] = {mechanism: {} for mechanism, _ in book.counts}
    for item in book.history:
        if item.label:
            found[item.mechanism][shown(item.label, LONGEST)] = None
    return [tuple(words) for words in found.values()]


def _joined(words: tuple[str, ...]) -> str:
    more = f"; and {len(words) - MOST_LABELS} more" if len(words) > MOST_LABELS else ""
    return "; ".join(words[:MOST_LABELS]) + more


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
    from accountant.ledger import Accountant

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
    mechanism = mechanism_from(asked["name"], asked["parameters"], asked["q"])
    with _charged(file, as_json) as book:
        planned = book.plan(mechanism, asked["count"], asked["label"])
    say({"planned": planned}, f"planned {counted(planned)}", as_json)


@ledger.command()
@FILE
@release_options
@LABEL
@COUNT
@JSON
def charge(file: Path, as_json: bool, **asked: Any) -> None:
    """Record releases in FILE, before they are made, or refuse."""
    mechanism = mechanism_from(asked["name"], asked["parameters"], asked["q"])
    with _charged(file, as_json) as book:
        book.compose(mechanism, asked["count"], asked["label"])
    count = asked["count"]
    say({"charged": count, "releases": len(book)}, f"charged {counted(count)}", as_json)


@ledger.command()
@FILE
@release_options
@JSON
def affordable(file: Path, as_json: bool, **asked: Any) -> None:
    """Print how many more releases the budget of FILE allows, and would allow by each filter."""
    from accountant.ledger import Accountant

    mechanism = mechanism_from(asked["name"], asked["parameters"], asked["q"])
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


@contextmanager
def _charged(file: Path, as_json: bool) -> Iterator[Any]:
    """Open a ledger to write; print a refusal as JSON, if that is wanted."""
    from accountant.ledger import Accountant

    try:
        with Accountant.transaction(file) as book:
            yield book
    except BudgetExceeded as error:
        if as_json:
            print_json({"refused": str(error)})
        raise


COMMANDS = (show, ledger)
