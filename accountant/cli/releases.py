"""The options that describe a release, and the budget of a ledger or of a block."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from accountant.cli.options import existing
from accountant.errors import DomainError
from accountant.ledger import Budget
from accountant.mechanisms.base import Mechanism

Attached = TypeVar("Attached", bound=Callable[..., Any])

COUNT = click.option("--count", type=int, default=1, show_default=True, help="How many releases.")
LABEL = click.option("--label", help="Words for the history.")
AS_MANY = click.option("--count", type=int, help="How many releases; as many as fit, if left out.")
_OPTIONS = (
    click.option("--mechanism", "name", required=True, help="As Gaussian; accountant.mechanisms."),
    click.option("--parameter", "-p", "parameters", multiple=True, help="NAME=VALUE of it."),
    click.option("--q", type=float, help="Sampling probability of a Poisson sample."),
)


def release_options(command: Attached) -> Attached:
    """Attach what describes a release; :func:`mechanism_from` takes it."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def mechanism_from(name: str, parameters: tuple[str, ...], q: float | None) -> Mechanism:
    """Build a mechanism as a pipeline does."""
    from accountant.ledger import pipeline

    values = {}
    for each in parameters:
        key, mark, text = each.partition("=")
        if not mark or key in values:
            raise DomainError(f"--parameter must be NAME=VALUE, each name once; got {each!r:.80}")
        values[key] = _value(text)
    release: dict[str, Any] = {"mechanism": name, "parameters": values}
    if q is not None:
        release["sampling_probability"] = q
    read = pipeline.parse(json.dumps({"delta": 1e-5, "release": [release]}), "--mechanism")
    return read.ledger.counts[0][0]


def _value(text: str) -> Any:
    """Return a number as people write it, as .3 or inf, else what JSON means, or words."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text.strip()):
        return float(text)
    return {"number": "inf"} if text.strip() in ("inf", "∞") else text


_BUDGET = (
    click.option("--epsilon", type=float, help="ε of the budget, in nats."),
    click.option("--delta", type=float, help="δ of the budget; 0, if left out: pure releases."),
    click.option("--filter", "rule", help="As of a Budget; moments, or pure, if left out."),
    click.option("--share", type=float, help="The part of δ for releases with a δ of their own."),
    click.option(
        "--kinds",
        type=existing(),
        help="For --filter kinds: a pipeline, as for accountant compose, that lists them.",
    ),
    click.option(
        "--noise",
        type=(float, float),
        metavar="LOW HIGH",
        help="For --filter kinds: DP-SGD with noise multipliers between them, at --q.",
    ),
    click.option("--q", type=float, help="Sampling probability of --noise."),
    click.option("--rho", type=float, help="ρ of a budget in zero-concentrated privacy, alone."),
    click.option("--mu", type=float, help="μ of a budget in Gaussian privacy, alone."),
)


def budget_options(command: Attached) -> Attached:
    """Attach the options that :func:`budget_from` takes."""
    for option in reversed(_BUDGET):
        command = option(command)
    return command


def budget_from(
    epsilon: float | None,
    delta: float | None,
    rule: str | None,
    share: float | None,
    kinds: Path | None,
    noise: tuple[float, float] | None,
    q: float | None,
    rho: float | None,
    mu: float | None,
) -> Budget:
    """Return the budget that the options describe."""
    from accountant.ledger import Budget

    if rho is not None or mu is not None:
        others = (epsilon, delta, rule, share, kinds, noise, q)
        if (rho is not None and mu is not None) or any(each is not None for each in others):
            raise DomainError("--rho, or --mu, describes a budget alone; leave the others out")
        return Budget.mu(mu) if rho is None and mu is not None else Budget.rho(rho or 0.0)
    if epsilon is None:
        raise DomainError(
            "a budget needs --epsilon; with --delta, or without one for pure releases. Or --rho, or"
            " --mu"
        )
    delta = delta or 0.0
    by_kinds = rule == "kinds" or (rule is None and (kinds is not None or noise is not None))
    if not by_kinds:
        if kinds is not None or noise is not None or q is not None:
            raise DomainError("--kinds, --noise and --q belong to --filter kinds; leave them out")
        return Budget(epsilon, delta, rule or "", share=share)
    if (kinds is None) == (noise is None) or (noise is None) != (q is None):
        raise DomainError("--filter kinds needs --kinds FILE, or --noise LOW HIGH and --q")
    if noise is not None and q is not None:
        return Budget.for_noise(epsilon, delta, sampling_probability=q, noise_multipliers=noise)
    return Budget(epsilon, delta, "kinds", share=share, kinds=_listed(kinds))


def _listed(path: Path | None) -> list[Mechanism]:
    """Return the mechanisms of the releases of a pipeline."""
    from accountant.ledger import pipeline

    assert path is not None
    return [mechanism for mechanism, _ in pipeline.read(path).ledger.counts]
