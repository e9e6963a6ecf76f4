"""``accountant audit``: audits of the package's own releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accountant.cli.group import FAILED, Command
from accountant.errors import DomainError

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
@click.option("--observations", type=int, default=100_000, show_default=True)
@click.option("--delta", type=float, default=1e-5, show_default=True)
@click.option(
    "--confidence", type=float, default=0.95, show_default=True, help="Of all reports together."
)
@click.option("--seed", type=int, help="To repeat an audit.")
@click.option(
    "--plots",
    type=click.Path(file_okay=False, path_type=Path),
    help="Save the observed trade-offs beside the certified curves into this directory.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, unrounded.")
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
    if not (100 <= observations <= 10**7):
        raise DomainError(f"observations must be in [100, 10000000]; got {observations}")
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
    return {
        "name": report.name,
        "epsilon_lower": report.epsilon_lower,
        "epsilon_claimed": report.epsilon_claimed,
        "delta": report.delta,
        "confidence": report.confidence,
        "method": report.method,
        "direction": report.direction,
        "refuted": report.flagged,
    }
