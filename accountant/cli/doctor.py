"""The installation: ``accountant doctor``, and ``accountant completion`` for the shell."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import click

import accountant
from accountant.cli.group import ANSWERED, FAILED, Command
from accountant.cli.options import JSON
from accountant.cli.output import as_json as print_json
from accountant.cli.output import print_table
from accountant.errors import DomainError
from accountant.selftest import Check

REQUIRED = ("numpy", "scipy", "click", "rich", "jinja2")
OPTIONAL = ("matplotlib", "scikit-learn", "joblib", "torch", "opacus", "dp-accounting")


@click.command(cls=Command, examples=("accountant doctor", "accountant doctor --json"))
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


SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    examples=(
        "accountant completion bash >> ~/.bashrc",
        "accountant completion zsh >> ~/.zshrc",
        "accountant completion fish > ~/.config/fish/completions/accountant.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@JSON
@click.pass_context
def completion(ctx: click.Context, shell: str | None, as_json: bool) -> None:
    """Print the script that completes commands and options in SHELL.

    Without SHELL, for the one that $SHELL names.
    """
    from click.shell_completion import get_completion_class

    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in SHELLS else None
    if kind is None:
        raise DomainError(f"say for which shell: {', '.join(SHELLS)}; $SHELL is {name!r}")
    root = ctx.find_root()
    made = kind(root.command, {}, "accountant", "_ACCOUNTANT_COMPLETE")
    # click's own source() of bash starts bash to ask for its version; the template is the same.
    script = made.source_template % made.source_vars()
    if as_json:
        print_json({"shell": name, "script": script})
        return
    click.echo(script)


COMMANDS = (doctor, completion)
