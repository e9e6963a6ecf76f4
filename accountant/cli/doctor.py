"""``accountant doctor``: checks the numbers of this installation."""

from __future__ import annotations

import platform
import sys
from typing import Any

import click

import accountant
from accountant.cli.group import ANSWERED, FAILED, Command
from accountant.cli.options import JSON
from accountant.cli.output import as_json as print_json
from accountant.cli.output import print_table
from accountant.selftest import Check

REQUIRED = ("numpy", "scipy", "click", "rich", "jinja2")
OPTIONAL = ("matplotlib", "scikit-learn", "joblib", "torch", "opacus", "dp-accounting")


@click.command(
    cls=Command,
    examples=("accountant doctor", "accountant doctor --json"),
)
@JSON
def doctor(as_json: bool) -> int:
    """Check the numerics of this installation, and print versions.

    Some hundred answers are compared with enclosures that another program computed in ball
    arithmetic. Takes a few seconds; exits with 1 if anything is wrong.
    """
    from accountant.selftest import checks

    found = list(checks())
    sound = not any(check.faults for check in found)
    versions = _versions()
    if as_json:
        rows = [
            {
                "name": check.name,
                "cases": check.cases,
                "faults": list(check.faults),
                "seconds": round(check.seconds, 4),
            }
            for check in found
        ]
        print_json({"sound": sound, "checks": rows, "versions": versions})
        return ANSWERED if sound else FAILED
    _show(found, versions)
    if sound:
        click.echo("All numerics agree with the stored enclosures.")
        return ANSWERED
    click.echo(
        "accountant: do not trust numbers of this installation; please report the lines above",
        err=True,
    )
    return FAILED


def _show(found: list[Check], versions: dict[str, Any]) -> None:
    rows = [
        (
            check.name,
            str(check.cases),
            "ok" if not check.faults else f"{len(check.faults)} FAULTS",
            f"{check.seconds:.2f} s",
        )
        for check in found
    ]
    print_table(("check", "cases", "result", "time"), rows, left=frozenset((0, 2)))
    for check in found:
        for fault in check.faults[:5]:
            click.echo(f"{check.name}: {fault}")
    print_table(
        ("", "version"),
        [(name, value or "not installed") for name, value in versions.items()],
        left=frozenset((0, 1)),
    )


def _versions() -> dict[str, str | None]:
    """Return the versions of everything that numbers depend on, and of what is optional."""
    from importlib import metadata

    found: dict[str, str | None] = {
        "accountant": accountant.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": platform.python_compiler(),
        "platform": f"{platform.system()} {platform.machine()}",
        "byte order": sys.byteorder,
    }
    for name in (*REQUIRED, *OPTIONAL):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


COMMANDS = (doctor,)
