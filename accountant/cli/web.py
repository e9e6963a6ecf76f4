"""``accountant web``: the page that answers in a browser, which comes with the package."""

from __future__ import annotations

import re
import webbrowser
from pathlib import Path

import click

from accountant.cli.group import Command
from accountant.cli.options import JSON
from accountant.cli.output import as_json as print_json

# Written by `make -C web ship`; the full CI makes it once more and compares.
PAGE = Path(__file__).with_name("page.html")


@click.command(cls=Command, examples=("accountant web --path",))
@click.option("--path", is_flag=True, help="Print where the page is, and open nothing.")
@JSON
def web(path: bool, as_json: bool) -> None:
    """Open the page that answers in a browser.

    It is one file, asks no server, and can be mailed to somebody without Python.
    """
    if as_json:
        found = re.search(r'name="made-from" content="([^"]*)"', PAGE.read_text(encoding="utf-8"))
        print_json({"page": str(PAGE), "made_from": found and found[1]})
    elif path or not webbrowser.open(PAGE.as_uri()):
        click.echo(PAGE)
    else:
        click.echo(f"opened {PAGE}")


COMMANDS = (web,)
