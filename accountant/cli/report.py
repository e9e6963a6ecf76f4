"""What others are given: the statement for a reviewer, and a certificate for ``dp-verify``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accountant._basics import files
from accountant._basics.display import text_up
from accountant.cli.group import Command
from accountant.cli.ledgers import LEDGER, load
from accountant.cli.options import (
    SAMPLING,
    STDIN,
    Sampling,
    attach,
    existing,
    require_different,
    written,
)
from accountant.cli.output import progress, say
from accountant.errors import DomainError
from accountant.mechanisms import Gaussian
from accountant.sampling import PoissonSampled

if TYPE_CHECKING:
    from accountant.report import Deployment

FORMATS = ("html", "md", "json", "registry")
_ENDINGS = {"htm": "html", "markdown": "md", "yaml": "registry", "yml": "registry"}
MODELS = ("central", "local", "shuffle", "federated")


@click.command(
    cls=Command,
    examples=(
        "accountant report ledger.json -o report.html",
        "accountant report ledger.json -o report.md --delta 1e-6 --unit 'one patient'",
        "accountant report ledger.json -o report.html --about deployment.toml",
        "accountant report - --format json < ledger.json",
    ),
)
@LEDGER
@click.option(
    "--output",
    "-o",
    type=written(),
    help="Where it goes (.html, .md, .json, .yaml); else it is printed.",
)
@click.option("--format", "kind", type=click.Choice(FORMATS), help="If OUTPUT's name does not say.")
@click.option(
    "--delta",
    type=float,
    help="δ of the headline; LEDGER's own, or 1e-5, if left out. 0 states pure privacy.",
)
@click.option("--about", type=existing(), help="A TOML file with what no ledger knows.")
@click.option("--title", help="What the statement is about.  [default: Privacy statement]")
@click.option("--unit", help="What one record is, in words.  [default: one record of the data set]")
@click.option("--records", type=int, help="Number of records, where it is public.")
@click.option("--user-records", type=int, help="Largest number of records of one person.")
@click.option("--model", type=click.Choice(MODELS), help="Who is trusted.  [default: central]")
@click.option("--tuning", help="What was chosen on private data, and how it was paid for.")
@click.option("--outside", help="What else was published about these records.")
@click.option("--documentation", help="Address of the theorem pages, for links to them.")
@click.option("--no-certificate", is_flag=True, help="Enclose no certificate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, unrounded; as --format json.")
def report(
    ledger: Path | str,
    output: Path | None,
    kind: str | None,
    as_json: bool,
    delta: float | None,
    about: Path | None,
    no_certificate: bool,
    **words: Any,
) -> None:
    """Write the privacy statement of LEDGER for a reviewer.

    One self-contained page (or Markdown, or JSON): what was released, certified ε at several δ,
    what an attacker can achieve, looser analyses, a certificate for "dp-verify", and what a
    reviewer must check. LEDGER is a file, or URL#BLOCK for a block of a store; "-" is standard
    input. "--format registry" writes a draft for the deployments registry of OpenDP and NIST.
    """
    kind = _kind(output, kind, as_json)
    named = ledger if isinstance(ledger, Path) and ledger != STDIN else None
    require_different(LEDGER=named, OUTPUT=output, ABOUT=about)
    from accountant.report import STAGES, statement

    told = _deployment(about, words)
    book, digest = load(ledger)
    with progress("composing", STAGES) as advance:
        made = statement(
            book,
            delta,
            deployment=told,
            checksum=digest,
            certificate=not no_certificate and kind != "registry",
            advance=advance,
        )
    forms = {"html": made.html, "md": made.markdown, "json": made.json, "registry": made.registry}
    text = forms[kind]()
    if output is None:
        click.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8")
    epsilon, at = text_up(made.headline.epsilon), made.headline.delta
    values = {"epsilon": made.headline.epsilon, "delta": at, "report": str(output)}
    say(values, f"ε ≤ {epsilon} at δ = {at:g}, {made.relation}; saved {output}", as_json)


def _deployment(about: Path | None, words: dict[str, Any]) -> Deployment:
    """Join what a file says and what options say, which wins."""
    from accountant.report import Deployment

    values: dict[str, Any] = {}
    if about is not None:
        try:
            values = tomllib.loads(files.content(about).decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DomainError(f"--about must be a TOML file; {about}: {error}") from None
    values |= {name: value for name, value in words.items() if value is not None}
    return Deployment.of(values)


def _kind(output: Path | None, kind: str | None, as_json: bool) -> str:
    """Return the format that the options and the name of the output agree on."""
    suffix = "" if output is None else output.suffix.lower().lstrip(".")
    suffix = _ENDINGS.get(suffix, suffix)
    if kind is None and output is None and as_json:
        return "json"
    found = kind or suffix or "html"
    if found not in FORMATS:
        raise DomainError(f"--output must end in .html, .md, .json or .yaml; got {output}")
    return found


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
    told = f"ε ≤ {text_up(made.epsilon)} at δ = {made.delta:g}, {made.relation}; saved {output};"
    values = {"epsilon": made.epsilon, "delta": made.delta, "certificate": str(output)}
    say(values, f"{told} check it: dp-verify {output}", as_json)


def _run(sigma: float, user_records: int, plan: Sampling) -> Any:
    """Return a run of DP-SGD as a mechanism."""
    step = PoissonSampled(Gaussian(sigma), plan.probability())
    return plan.number_of_steps() * step.group(user_records)


COMMANDS = (report, certify)
