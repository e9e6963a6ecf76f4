"""Questions about a saved ledger: its contents, and the statement for a reviewer."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accountant.cli.compositions import brackets, print_epsilons
from accountant.cli.group import Command
from accountant.cli.options import JSON, STDIN, read_stdin, require_different, written
from accountant.cli.output import as_json as print_json
from accountant.cli.output import print_table, progress
from accountant.cli.stores import SECRET_FILE, ledger_at
from accountant.display import text_up
from accountant.errors import DomainError, LedgerError

if TYPE_CHECKING:
    from accountant.ledger import Accountant

__all__ = ["COMMANDS"]

# Rows of the table of mechanisms before "and so on".
MOST_ROWS = 40
FORMATS = ("html", "md", "json")


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
    from accountant.report import ASSUMED_DELTA

    book, digest = load(ledger)
    rows = brackets(book, deltas or book.deltas or (ASSUMED_DELTA,))
    relation = "none" if book.relation is None else book.relation.words
    counts = book.counts
    if as_json:
        print_json(
            {
                "checksum": digest,
                "releases": len(book),
                "records": len(book.history),
                "mechanisms": [
                    {"mechanism": repr(mechanism), "count": count} for mechanism, count in counts
                ],
                "budget": None if book.budget is None else repr(book.budget),
                "epsilons": rows,
                "relation": relation,
            }
        )
        return
    cells = [(repr(mechanism), str(count)) for mechanism, count in counts[:MOST_ROWS]]
    print_table(("mechanism", "count"), cells, left=frozenset((0,)))
    if len(counts) > MOST_ROWS:
        click.echo(f"… and {len(counts) - MOST_ROWS} further mechanisms")
    print_epsilons(rows)
    if not (deltas or book.deltas):
        click.echo(f"δ = {ASSUMED_DELTA:g} is assumed: neither a budget nor a run recorded one")
    if book.budget is not None:
        click.echo(f"budget: {book.budget!r}")
    click.echo(f"{len(book)} releases, {relation}, certified; {digest}")


@click.command(
    cls=Command,
    examples=(
        "accountant report ledger.json -o report.html",
        "accountant report ledger.json -o report.md --delta 1e-6 --unit 'one patient'",
        "accountant report - --format json < ledger.json",
    ),
)
@LEDGER
@click.option(
    "--output", "-o", type=written(), help="Where it goes (.html, .md, .json); else it is printed."
)
@click.option("--format", "kind", type=click.Choice(FORMATS), help="If OUTPUT's name does not say.")
@click.option("--delta", type=float, help="δ of the headline; LEDGER's own, or 1e-5, if left out.")
@click.option("--title", default="Privacy statement", show_default=True)
@click.option("--unit", default="one record of the data set", help="What one record is, in words.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, unrounded; as --format json.")
def report(
    ledger: Path | str, output: Path | None, kind: str | None, as_json: bool, **words: Any
) -> None:
    """Write the privacy statement of LEDGER for a reviewer.

    One self-contained page (or Markdown, or JSON): what was released, certified ε at several δ,
    what an attacker can achieve, looser analyses, and what a reviewer must check. LEDGER is a file,
    or URL#BLOCK for a block of a store; "-" is standard input.
    """
    kind = _kind(output, kind, as_json)
    named = ledger if isinstance(ledger, Path) and ledger != STDIN else None
    require_different(LEDGER=named, OUTPUT=output)
    from accountant.report import STAGES, statement

    book, digest = load(ledger)
    with progress("composing", STAGES) as advance:
        made = statement(book, checksum=digest, advance=advance, **words)
    text = {"html": made.html, "md": made.markdown, "json": made.json}[kind]()
    if output is None:
        click.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8")
    epsilon, delta = text_up(made.headline.epsilon), made.headline.delta
    values = {"epsilon": made.headline.epsilon, "delta": delta, "report": str(output)}
    if as_json:
        print_json(values)
        return
    click.echo(f"ε ≤ {epsilon} at δ = {delta:g}, {made.relation}; saved {output}")


def _kind(output: Path | None, kind: str | None, as_json: bool) -> str:
    """Return the format that the options and the name of the output agree on."""
    suffix = "" if output is None else output.suffix.lower().lstrip(".")
    suffix = {"htm": "html", "markdown": "md"}.get(suffix, suffix)
    if kind is None and output is None and as_json:
        return "json"
    found = kind or suffix or "html"
    if found not in FORMATS:
        raise DomainError(
            f"--output must end in .html, .md or .json, or --format say which; got {output}"
        )
    return found


COMMANDS = (show, report)
