"""The output of answers: JSON unrounded, text rounded to the safe side, progress bars."""

from __future__ import annotations

import codecs
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from accountant._basics.display import json_value
from accountant.errors import BudgetExceeded

SYMBOLS = {"q": "q", "sigma": "σ", "steps": "steps", "epsilon": "ε", "delta": "δ"}


def as_json(values: dict[str, Any]) -> None:
    """Print one JSON object; infinities, which JSON does not have, are strings."""
    click.echo(json.dumps(json_value(values), allow_nan=False))


def say(values: dict[str, Any], sentence: str, wants_json: bool) -> None:
    """Print what was done, as JSON or as a sentence."""
    if wants_json:
        as_json(values)
    else:
        click.echo(sentence)


@contextmanager
def refusals(wants_json: bool) -> Iterator[None]:
    """Print what a refusal says as JSON, if that is wanted."""
    try:
        yield
    except BudgetExceeded as error:
        if wants_json:
            as_json(error.as_dict())
        raise


def counted(releases: int) -> str:
    """Return a number of releases in words."""
    return "1 release" if releases == 1 else f"{releases} releases"


def answer(values: dict[str, Any], headline: str, wants_json: bool, lower: str = "") -> None:
    """Print the answer: every value as JSON, or the headline and what it is about."""
    if wants_json:
        as_json(values | {"relation": "add-or-remove"})
        return
    from rich.text import Text

    console = terminal(soft_wrap=True)
    console.print(Text(headline, style="bold").append(f"   {lower}" if lower else "", style="dim"))
    asked = next(iter(values))
    console.print(given(**{name: v for name, v in values.items() if name != asked}))


def given(*, user_records: int = 1, **values: object) -> Any:
    """Return one dim line that repeats the question."""
    from rich.text import Text

    shown = (f"{SYMBOLS[name]} = {v!r}" for name, v in values.items() if name in SYMBOLS)
    of = "" if user_records == 1 else f" of a user's records, at most {user_records}"
    return Text(f"{', '.join(shown)}; add-or-remove{of}, certified", style="dim")


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: frozenset[int] = frozenset()
) -> None:
    """Print a table; columns are right-aligned unless their number is in ``left``."""
    from rich.table import Table
    from rich.text import Text

    encoding = terminal().encoding
    headings = [plain(heading, encoding) for heading in headings]
    rows = [[plain(cell, encoding) for cell in row] for row in rows]
    table = Table()
    for number, heading in enumerate(headings):
        # Words may be folded; a number must never be cut.
        table.add_column(
            heading,
            justify="left" if number in left else "right",
            overflow="fold",
            no_wrap=number not in left,
        )
    for row in rows:
        # Text takes every character as it is: a label may hold rich's markup.
        table.add_row(*(Text(cell) for cell in row))
    # Wider than the terminal rather than a number cut: what is lost would be its last digits.
    cells = [headings, *rows]
    least = sum(
        8 if number in left else max(len(row[number]) for row in cells)
        for number in range(len(headings))
    )
    least += 3 * len(headings) + 1
    terminal(width=max(least, terminal().width)).print(table)


def stream_table(
    headings: Sequence[str], widths: Sequence[int], *, left: frozenset[int] = frozenset()
) -> Callable[[Sequence[str]], None]:
    """Print the headings; the function that is returned prints a row as soon as it is known.

    ``widths`` are the least widths of the columns; those in ``left`` are left-aligned.
    """
    encoding = terminal().encoding

    def show(cells: Sequence[str]) -> None:
        texts = [plain(cell, encoding) for cell in cells]
        padded = (
            text.ljust(width) if number in left else text.rjust(width)
            for number, (text, width) in enumerate(zip(texts, widths, strict=True))
        )
        click.echo("  ".join(padded).rstrip())

    show(headings)
    return show


def terminal(**settings: Any) -> Any:
    """Return rich's console for standard output."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            # The reader, head say, has enough; Group.main ends quietly.
            raise BrokenPipeError

    return Terminal(highlight=False, **settings)


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Show how far long work is, on a terminal only; yields the function that advances it.

    What is printed meanwhile stands above the bar if it goes to the same terminal.
    """
    if total < 2 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = TextColumn(label), BarColumn(), MofNCompleteColumn(), Remaining()
    to_terminal = sys.stdout.isatty()
    with Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=to_terminal
    ) as shown:
        task = shown.add_task(label, total=total)
        yield lambda: shown.advance(task)


HANDLER = "accountant-plain"
# ASCII by another name: click writes UTF-8 to every stream that calls itself ASCII.
ASCII = "accountant_ascii"
_SIGNS = {
    "≤": "<=",
    "≥": ">=",
    "ε": "eps",
    "δ": "delta",
    "σ": "sigma",
    "μ": "mu",
    "α": "alpha",
    "ρ": "rho",
    "∞": "inf",
    "×": "x",
    "·": "*",
    "–": "-",
    "−": "-",
    "→": "->",
    "…": "...",
    "√": "sqrt",
    "é": "e",
    "²": "^2",
    "≠": "!=",
    "≈": "~",
    "’": "'",
    "“": '"',
    "”": '"',
}


def plain(text: str, encoding: str | None) -> str:
    """Return ``text`` with signs spelled out that ``encoding`` does not have."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return "".join(_SIGNS.get(letter, letter) for letter in text)
    return text


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Spell what cannot be encoded, as an error handler of codecs."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_SIGNS.get(letter, "?") for letter in lost), error.end


def spell_out(stream: Any) -> None:
    """Let a stream spell the signs that its encoding does not have."""
    if isinstance(stream, io.TextIOWrapper):
        ascii_only = codecs.lookup(stream.encoding).name == "ascii"
        stream.reconfigure(encoding=ASCII if ascii_only else None, errors=HANDLER)


def _find(name: str) -> codecs.CodecInfo | None:
    if name != ASCII:
        return None
    real = codecs.lookup("ascii")
    return codecs.CodecInfo(*real, real.incrementalencoder, real.incrementaldecoder, ASCII)


codecs.register(_find)
codecs.register_error(HANDLER, _spell)
