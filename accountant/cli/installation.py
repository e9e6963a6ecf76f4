"""What is installed: doctor, audits of own releases, completion in a shell, the page."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import accountant
from accountant.cli.group import ANSWERED, FAILED, Command
from accountant.cli.options import JSON
from accountant.cli.output import as_json as print_json
from accountant.cli.output import print_table, say
from accountant.errors import DomainError
from accountant.selftest import Check, checks

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


if TYPE_CHECKING:  # loading the audits takes long
    from accountant.audit.report import AuditReport

# Those of accountant.audit.shipped, which is loaded only when it is asked.
NAMES = (
    "release",
    "discrete",
    "full",
    "poisson",
    "per-layer",
    "adaptive",
    "output",
    "response",
    "laplace",
    "maximum",
    "median",
    "objective",
    "votes",
)


@click.command(
    cls=Command,
    examples=("accountant audit", "accountant audit poisson --observations 10000 --plots audits"),
)
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.option("--observations", type=click.IntRange(100, 10**7), default=100_000, show_default=True)
@click.option("--delta", type=float, default=1e-5, show_default=True)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of all reports.")
@click.option("--seed", type=int, help="To repeat an audit.")
@click.option(
    "--plots",
    type=click.Path(file_okay=False, path_type=Path),
    help="Save the observed trade-offs beside the certified curves into this directory.",
)
@JSON
def audit(
    names: tuple[str, ...],
    observations: int,
    delta: float,
    confidence: float,
    seed: int | None,
    plots: Path | None,
    as_json: bool,
) -> None:
    """Bound ε from below by what this package's trainers release, beside the ε they claim.

    NAMES are audits to run, all of them when left out. Exits with 1 if a claim is refuted; an
    honest installation is with probability at most 1 - confidence.
    """
    if not (0.0 < delta < 1.0 and 0.5 <= confidence < 1.0):
        raise DomainError("delta must be in (0, 1) and confidence in [0.5, 1)")
    from accountant.audit.shipped import self_audit

    reports = self_audit(
        names, observations=observations, delta=delta, confidence=confidence, seed=seed
    )
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        for name, report in zip(names or NAMES, reports, strict=True):
            if report.observations is not None:
                report.plot(plots / f"{name}.png")
    if as_json:
        click.echo(json.dumps([_values(report) for report in reports], indent=2))
    else:
        for report in reports:
            click.echo(str(report))
    if any(report.flagged for report in reports):
        raise click.exceptions.Exit(FAILED)


def _values(report: AuditReport) -> dict[str, object]:
    names = ("name", "epsilon_lower", "epsilon_claimed", "delta", "confidence")
    told = {name: getattr(report, name) for name in (*names, "method", "direction")}
    return told | {"refuted": report.flagged}


REQUIRED = ("numpy", "scipy", "click", "rich", "jinja2")
OPTIONAL = ("matplotlib", "scikit-learn", "joblib", "torch", "opacus", "dp-accounting")


@click.command(cls=Command, examples=("accountant doctor", "accountant doctor --json"))
@JSON
def doctor(as_json: bool) -> int:
    """Check the numerics of this installation, and print versions.

    Some hundred answers are compared with enclosures that another program computed in ball
    arithmetic. Takes a few seconds; exits with 1 if anything is wrong.
    """
    found = list(checks())
    sound = not any(check.faults for check in found)
    versions = _versions()
    if as_json:
        rows = [vars(check) | {"seconds": round(check.seconds, 4)} for check in found]
        print_json({"sound": sound, "checks": rows, "versions": versions})
        return ANSWERED if sound else FAILED
    _show(found, versions)
    if sound:
        click.echo("All numerics agree with the stored enclosures.")
        return ANSWERED
    click.echo("accountant: do not trust this installation; report the lines above", err=True)
    return FAILED


def _show(found: list[Check], versions: dict[str, Any]) -> None:
    rows = []
    for check in found:
        result = f"{len(check.faults)} FAULTS" if check.faults else "ok"
        rows.append((check.name, str(check.cases), result, f"{check.seconds:.2f} s"))
    print_table(("check", "cases", "result", "time"), rows, left=frozenset((0, 2)))
    for check in found:
        for fault in check.faults[:5]:
            click.echo(f"{check.name}: {fault}")
    cells = [(name, value or "not installed") for name, value in versions.items()]
    print_table(("", "version"), cells, left=frozenset((0, 1)))


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
    say({"shell": name, "script": script}, script, as_json)


COMMANDS = (doctor, audit, completion, web)
