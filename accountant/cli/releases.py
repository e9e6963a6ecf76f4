"""The options that describe a release."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from accountant.errors import DomainError
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
