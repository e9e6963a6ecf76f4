"""``accountant store``: the budgets that a team shares."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accountant._basics import files
from accountant._basics.display import text_up
from accountant.cli.group import FAILED, Command, Group
from accountant.cli.options import (
    AS_MANY,
    COUNT,
    JSON,
    LABEL,
    attached,
    budget_from,
    budget_options,
    existing,
    release_options,
    written,
)
from accountant.cli.output import as_json as print_json
from accountant.cli.output import counted, print_table, refusals, say
from accountant.composition import composed
from accountant.errors import DomainError
from accountant.ledger import Accountant, Budget

if TYPE_CHECKING:  # a store takes long to import, and other commands need none
    from accountant.store import Block, Receipt, Store


URL = click.argument("url")
ADDRESSES = click.argument("blocks", nargs=-1, required=True)
SECRET_FILE = "ACCOUNTANT_SECRET_FILE"
# Bytes of a secret: no key of HMAC gains by more than a block of its hash.
LONGEST_SECRET = 1 << 16
SECRET = click.option(
    "--secret-file",
    type=existing(),
    envvar=SECRET_FILE,
    help=f"Holds the secret of the journal's hashes, to the byte; ${SECRET_FILE}.",
)
LEASE = click.option("--lease", type=float, default=3600.0, show_default=True, help="In seconds.")
KEY = click.option("--key", help="Idempotency key: repeated with it, charged once.")


@contextmanager
def _opened(
    url: str, secret_file: Path | None, *, create: bool = False, everyone: Budget | None = None
) -> Iterator[Store]:
    from accountant import store

    secret = None if secret_file is None else files.content(secret_file, LONGEST_SECRET)
    with store.open(url, create=create, secret=secret, everyone=everyone) as shared:
        yield shared


def _shared(command: Callable[..., None]) -> Callable[..., None]:
    """Open the store at URL for a command, and attach what all such commands take."""

    @functools.wraps(command)
    def run(url: str, secret_file: Path | None, **given: Any) -> None:
        with _opened(url, secret_file) as shared, refusals(given["as_json"]):
            command(shared, **given)

    return SECRET(JSON(run))


def _spends(count: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Attach what a command takes that spends budgets of blocks."""
    attach = attached(URL, ADDRESSES, release_options, LABEL, KEY, count)
    return lambda command: attach(_shared(command))


def ledger_at(place: str, secret_file: Path | None) -> Accountant:
    """Return the ledger of a block from URL#tenant/dataset/block."""
    url, mark, address = place.rpartition("#")
    if not mark:
        # Without the URL, which may hold a password.
        raise DomainError("name a block of the store: URL#tenant/dataset/block")
    with _opened(url, secret_file) as shared:
        return shared.ledger(address)


@click.group(
    cls=Group,
    sections={
        "Set up": ("init", "blocks", "import"),
        "Spend": ("plan", "charge", "reserve", "commit", "abort", "expire"),
        "Ask": ("show", "verify", "export"),
    },
    examples=(
        "accountant store init sqlite:///budget.db",
        (
            "accountant store blocks sqlite:///budget.db acme/visits/2026-01 acme/visits/2026-02"
            " --epsilon 1 --delta 1e-6"
        ),
        (
            "accountant store charge sqlite:///budget.db 'acme/visits/*' --mechanism Gaussian"
            " -p noise_multiplier=40 --key dashboard-7"
        ),
        (
            "accountant store reserve sqlite:///budget.db acme/visits/2026-01 --mechanism Gaussian"
            " -p noise_multiplier=2 --q 0.001 --count 500 --key model-8"
        ),
        "accountant store commit sqlite:///budget.db model-8 --count 420",
        "accountant store show sqlite:///budget.db",
        "accountant store verify sqlite:///budget.db",
        "accountant store export sqlite:///budget.db acme/visits/2026-01 -o block.json",
    ),
)
def store() -> None:
    """Budgets that pipelines, services and training jobs share.

    URL is sqlite:///PATH or postgresql://… A block is tenant/dataset/block; tenant/dataset/* is
    every block of a data set.
    """


@store.command(cls=Command, examples=("accountant store init sqlite:///budget.db",))
@attached(URL, budget_options, SECRET, JSON)
def init(url: str, secret_file: Path | None, as_json: bool, **budget: Any) -> None:
    """Make the tables at URL, where there are none.

    A budget is one for all people, which every charge to any block spends, too: for tenants whose
    analysts see each other's results about the same people.
    """
    given = any(value is not None for value in budget.values())
    everyone = budget_from(**budget) if given else None
    with _opened(url, secret_file, create=True, everyone=everyone) as shared:
        head = str(shared.head())  # without the URL, which may hold a password
    say({"head": head}, f"ready, head {head}", as_json)


@store.command()
@URL
@click.argument("blocks", nargs=-1)
@budget_options
@_shared
def blocks(shared: Store, blocks: tuple[str, ...], as_json: bool, **budget: Any) -> None:
    """Make BLOCKS, each with its own budget; without BLOCKS, list those that are there."""
    if not blocks:
        _print_blocks(shared.blocks(), as_json)
        return
    made = shared.add_blocks(blocks, budget_from(**budget))
    say({"made": made, "blocks": blocks}, f"{made} of {len(blocks)} blocks are new", as_json)


@store.command(
    cls=Command,
    examples=(
        "accountant store blocks sqlite:///budget.db acme/visits/2026-03 --epsilon 1 --delta 1e-6",
        (
            "accountant store plan sqlite:///budget.db acme/visits/2026-03 --mechanism Gaussian"
            " -p noise_multiplier=2 --q 0.001 --label 'model 9'"
        ),
    ),
)
@_spends(AS_MANY)
def plan(shared: Store, as_json: bool, **asked: Any) -> None:
    """Set releases aside on BLOCKS before the first release, by exact composition, in full."""
    planned = shared.plan(**asked)
    say({"planned": planned}, f"planned {counted(planned)}", as_json)


@store.command()
@_spends(COUNT)
def charge(shared: Store, as_json: bool, **asked: Any) -> None:
    """Charge a release to each of BLOCKS, or to none."""
    _say_charged(shared.charge(**asked), as_json)


@store.command()
@_spends(attached(COUNT, LEASE))
def reserve(shared: Store, as_json: bool, **asked: Any) -> None:
    """Charge a release to each of BLOCKS, so that some can be given back while the lease lasts."""
    _say_charged(shared.reserve(**asked), as_json)


@store.command()
@URL
@click.argument("key")
@click.option("--count", type=int, help="How many releases were made; all, if left out.")
@_shared
def commit(shared: Store, key: str, count: int | None, as_json: bool) -> None:
    """Say how many releases of the reservation KEY were made; the rest is given back."""
    row = shared.commit(key, count)
    say({"key": key, "row": row}, f"committed {key}, row {row}", as_json)


@store.command()
@URL
@click.argument("key")
@_shared
def abort(shared: Store, key: str, as_json: bool) -> None:
    """Say that nothing of the reservation KEY was released, and give it back."""
    row = shared.abort(key)
    say({"key": key, "row": row}, f"aborted {key}, row {row}", as_json)


@store.command()
@URL
@_shared
def expire(shared: Store, as_json: bool) -> None:
    """Write down which reservations count in full for ever, because their lease has ended."""
    keys = shared.expire()
    say({"expired": keys}, f"{len(keys)} expired: {' '.join(keys)}", as_json)


@store.command()
@URL
@click.argument("blocks", nargs=-1)
@_shared
def show(shared: Store, blocks: tuple[str, ...], as_json: bool) -> None:
    """Print what BLOCKS, or all, have spent and have left."""
    _print_blocks(shared.blocks(blocks or None), as_json)


@store.command()
@URL
@click.option("--head", help="ROWS:DIGEST as an earlier verify printed it, kept elsewhere.")
@_shared
def verify(shared: Store, head: str | None, as_json: bool) -> None:
    """Check that the journal is whole and that every account follows from it."""
    from accountant.store import Head

    found = shared.verify(None if head is None else Head.parse(head))
    if as_json:
        print_json({"passed": found.passed, "head": str(found.head), "faults": found.faults})
    else:
        for fault in found.faults:
            click.echo(fault)
        click.echo(f"{found.found} faults; head {found.head}")
    if not found.passed:
        raise click.exceptions.Exit(FAILED)


@store.command()
@URL
@click.argument("block")
@click.option("--output", "-o", type=written(), help="A ledger file; else it is printed.")
@SECRET
def export(url: str, block: str, output: Path | None, secret_file: Path | None) -> None:
    """Write BLOCK as a ledger."""
    with _opened(url, secret_file) as shared:
        ledger = shared.ledger(block)
    if output is None:
        click.echo(ledger.to_json(), nl=False)
    else:
        ledger.save(output)


@store.command(name="import")
@URL
@click.argument("block")
@click.argument("ledger", type=existing())
@_shared
def import_(shared: Store, block: str, ledger: Path, as_json: bool) -> None:
    """Make BLOCK of the LEDGER in a file: its budget, and all its records."""
    book = Accountant.load(ledger)
    shared.import_ledger(block, book)
    say({"block": block, "releases": len(book)}, f"{counted(len(book))} in {block}", as_json)


def _say_charged(made: Receipt, as_json: bool) -> None:
    again = "; it was charged before" if made.repeated else ""
    say(made._asdict(), f"charged, row {made.row}, key {made.key}{again}", as_json)


def _print_blocks(found: list[Block], as_json: bool) -> None:
    rows = [_described(block) for block in found]
    if as_json:
        print_json({"blocks": rows})
        return
    cells = []
    for row in rows:
        left = row["left"]
        # Rounded down: never more than there is.
        percent = "" if left is None else f"{int(1000 * left) / 10} %"
        spent = [f"{text_up(each['epsilon'])} at δ = {each['delta']:g}" for each in row["epsilons"]]
        counts = str(row["releases"]), str(row["reserved"])
        cells.append((row["block"], *counts, percent, "; ".join(spent)))
    headings = ("block", "releases", "of them reserved", "left", "ε ≤")
    print_table(headings, cells)  # an address is never folded


def _described(block: Block) -> dict[str, Any]:
    # Blocks of one data set often hold the same.
    left, epsilons = _spending(block._replace(address="", reserved=0))
    return {
        "block": block.address,
        "budget": None if block.budget is None else repr(block.budget),
        "left": left,
        "relation": "none" if block.relation is None else block.relation.words,
        "releases": block.releases,
        "reserved": block.reserved,
        "mechanisms": [{"mechanism": repr(m), "count": n} for m, n in block.counts],
        "epsilons": epsilons,
    }


@functools.cache
def _spending(block: Block) -> tuple[float | None, list[dict[str, float]]]:
    """Return the part that is left of a block's budget, and the ε spent at its δ."""
    own = () if block.budget is None or block.budget.level else (block.budget.delta,)
    whole = composed(block.counts) if block.counts else None
    rows = [
        {"delta": delta, "epsilon": 0.0 if whole is None else float(whole.epsilon(delta))}
        for delta in dict.fromkeys((*own, *block.deltas))
    ]
    return None if block.budget is None else block.remaining().fraction, rows


COMMANDS = (store,)
