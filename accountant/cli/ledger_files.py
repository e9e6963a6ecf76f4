"""``accountant ledger``: the budget in a file, made, planned and charged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from accountant.cli.budgets import budget_from, budget_options
from accountant.cli.group import Command, Group
from accountant.cli.options import JSON, existing, written
from accountant.cli.output import as_json as print_json
from accountant.cli.output import counted, print_table, say
from accountant.cli.releases import AS_MANY, COUNT, LABEL, mechanism_from, release_options
from accountant.errors import BudgetExceeded, DomainError

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


COMMANDS = (ledger,)
