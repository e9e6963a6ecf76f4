"""The ε of looser analyses for the same releases, for comparison."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from accountant.analyses import classical
from accountant.composition import Composition
from accountant.conversions import rdp_to_epsilon, zcdp_to_epsilon
from accountant.errors import AccountantError


@dataclass(frozen=True)
class Comparison:
    """ε by one analysis.

    Attributes
    ----------
    name : str
        The analysis.
    epsilon : float or None
        In nats; None where it does not apply.
    note : str
        How it was used, or why it does not apply.
    theorem : str
        Its number in the documentation.
    """

    name: str
    epsilon: float | None
    note: str
    theorem: str


def comparisons(composition: Composition, delta: float) -> tuple[Comparison, ...]:
    """Return the ε of ``composition`` at ``delta`` by the usual analyses."""
    analyses: tuple[tuple[str, Callable[[Composition, float], float], str, str], ...] = (
        ("basic composition", _basic, "each release at an equal part of δ, added up", "C1"),
        ("advanced composition", _advanced, "Dwork, Rothblum, Vadhan 2010; half of δ each", "C2"),
        ("Rényi (moments) accountant", renyi, "best order, usual conversion", "C7, C10"),
        ("zCDP", _zcdp, "ρ added up, usual conversion", "C7, C10"),
    )
    found = []
    for name, analysis, note, theorem in analyses:
        try:
            value = analysis(composition, delta)
        except AccountantError as error:
            why = str(error).split(";")[0].split(":")[0]
            found.append(Comparison(name, None, f"does not apply: {why:.120}", theorem))
            continue
        found.append(Comparison(name, value, note, theorem))
    return tuple(found)


def renyi(composition: Composition, delta: float) -> float:
    """Convert the Rényi curve at its best order, in the usual way."""
    pairs = composition.pairs()
    return rdp_to_epsilon(lambda order: max(p.rdp(order) for p in pairs), delta, form="canonne")


def _basic(composition: Composition, delta: float) -> float:
    return classical.basic_epsilon(_parts(composition, delta), delta)


def _advanced(composition: Composition, delta: float) -> float:
    return classical.advanced_epsilon(_parts(composition, 0.5 * delta), delta, form="original")


def _zcdp(composition: Composition, delta: float) -> float:
    return zcdp_to_epsilon(composition.rho(), delta, form="canonne")


def _parts(composition: Composition, delta: float) -> list[tuple[float, float, int]]:
    """State every release as (ε, δ), with equal δ that add up to at most ``delta``."""
    releases = sum(count for _, count in composition.parts)
    each = math.nextafter(delta / max(releases, 1), 0.0)
    parts = []
    for mechanism, count in composition.parts:
        # A pure guarantee needs no δ.
        pure = float(mechanism.epsilon(0.0))
        spent = float(mechanism.epsilon(each))
        parts.append((pure, 0.0, count) if pure <= spent else (spent, each, count))
    return parts
