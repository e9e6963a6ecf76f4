"""The command that writes a certificate: an ε with what another program needs to check it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from accountant._basics.display import text_up
from accountant.cli.group import Command
from accountant.cli.ledgers import load
from accountant.cli.options import SAMPLING, Sampling, attach, existing, written
from accountant.cli.output import as_json as print_json
from accountant.cli.output import progress
from accountant.errors import DomainError


@click.command(
    cls=Command,
    examples=(
        "accountant certify --q 0.01 --steps 1000 --sigma 1.1 --delta 1e-5 -o run.json",
        "accountant certify --ledger ledger.json --delta 1e-5 -o ledger-certificate.json",
        "accountant certify --q 0.01 --steps 1000 --sigma 1.1 --delta 1e-5 > run.json",
    ),
)
@click.option("--ledger", type=existing(stdin=True), help="A ledger, in place of one run.")
@click.option("--sigma", type=float, help="Noise multiplier: noise over clipping norm.")
@click.option("--output", "-o", type=written(), help="Where it goes; else it is printed.")
@attach(*SAMPLING, "user", "delta")
def certify(
    ledger: Path | None,
    sigma: float | None,
    output: Path | None,
    delta: float,
    user_records: int,
    as_json: bool,
    **sampling: Any,
) -> None:
    """Write a certificate: a claimed ε that "dp-verify" checks without this program.

    It is for a run of DP-SGD, or with --ledger for everything in a ledger. The certificate itself
    is JSON; --json says what was written.
    """
    from accountant.certificates import certificate

    if (ledger is None) == (sigma is None):
        raise DomainError("say what to certify: --ledger, or --sigma and how records are sampled")
    if ledger is not None:
        if user_records != 1 or any(value is not None for value in sampling.values()):
            raise DomainError("--ledger comes with --delta and --output alone")
        release: Any = load(ledger)[0]
    else:
        assert sigma is not None
        release = _run(sigma, user_records, Sampling.read(**sampling))
    with progress("certifying", 2) as advance:
        advance()
        made = certificate(release, delta)
    if output is None:
        click.echo(made.text, nl=False)
        return
    output.write_text(made.text, encoding="utf-8")
    if as_json:
        print_json({"epsilon": made.epsilon, "delta": made.delta, "certificate": str(output)})
        return
    click.echo(
        f"ε ≤ {text_up(made.epsilon)} at δ = {made.delta:g}, {made.relation}; saved {output};"
        f" check it: dp-verify {output}"
    )


def _run(sigma: float, user_records: int, plan: Sampling) -> Any:
    """Return a run of DP-SGD as a mechanism."""
    from accountant.mechanisms import Gaussian
    from accountant.sampling import PoissonSampled

    step = PoissonSampled(Gaussian(sigma), plan.probability())
    return plan.number_of_steps() * step.group(user_records)
