"""Everything in a statement that is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accountant.bounds import Bounds
from accountant.composition import composed
from accountant.errors import AccountantError
from accountant.ledger import Entry
from accountant.mechanisms import Mechanism
from accountant.report import attack_table, comparison, over_steps, spending
from accountant.report.gaussian_summary import SLACK, GaussianSummary, Point, gaussian_summary

STAGES = 6
# Points of the trade-off curve.
RATES = 50


@dataclass(frozen=True)
class Row:
    """A certified bracket of ε at one δ."""

    delta: float
    epsilon: float
    epsilon_lower: float


@dataclass(frozen=True)
class Step:
    """A certified bracket of ε after the first ``releases`` releases.

    Its ends agree where the composition was exact. Elsewhere the lower end shows how loose the
    upper end may be.
    """

    releases: int
    epsilon: float
    epsilon_lower: float


@dataclass(frozen=True)
class User:
    """ε at the statement's δ for a person with ``records`` records; None, and in ``note`` why."""

    records: int
    epsilon: float | None
    note: str


def numbers(
    history: tuple[Entry, ...],
    counts: tuple[tuple[Mechanism, int], ...],
    delta: float,
    user_records: int | None,
    advance: Callable[[], None],
) -> dict[str, Any]:
    """Return the fields of a statement that are computed, by their names."""
    if not counts:
        return _nothing(delta)
    once, often = (
        spending.Spending(counts, joined=True),
        spending.Spending(counts, spending.MOST_OFTEN),
    )
    headline = _row(once, delta)
    pure = _row(once, 0.0)
    advance()
    # ε at δ is at least that at a larger δ, and the headline's bracket may be sharper.
    table = tuple(_row(once if often.above is once.above else often, d) for d in often.deltas)
    advance()
    points = often.points(headline.epsilon)
    for row in (*table, headline):
        points += _points_of(row)
    profile = attack_table.SampledProfile([(p.epsilon, p.upper) for p in points])
    summary = _summary(once, points, delta)
    advance()
    compared = comparison.comparisons(often.above, delta) if delta else ()
    advance()
    user = _user(counts, delta, user_records)
    advance()
    ends = Bounds(headline.epsilon_lower, headline.epsilon)
    steps = over_steps.over_steps(history, counts, ends, delta)
    analysis, reason = once.analysis
    advance()
    return {
        "headline": headline,
        "pure": pure if pure.epsilon < math.inf else None,
        "gaussian": summary,
        "user": user,
        "analysis": analysis,
        "reason": reason,
        "rounded": often.rounded,
        "table": table,
        "steps": tuple(Step(length, high, low) for length, low, high in steps),
        **_attacker(profile),
        "comparisons": compared,
    }


def _nothing(delta: float) -> dict[str, Any]:
    """Return the numbers of an empty ledger."""
    profile = attack_table.SampledProfile([(0.0, 0.0)])
    return {
        "headline": Row(delta, 0.0, 0.0),
        "pure": Row(0.0, 0.0, 0.0),
        "gaussian": None,
        "user": None,
        "analysis": "nothing",
        "reason": "nothing was released",
        "rounded": False,
        "table": tuple(Row(d, 0.0, 0.0) for d in spending.DELTAS),
        "steps": (),
        **_attacker(profile),
        "comparisons": (),
    }


def _points_of(row: Row) -> list[Point]:
    """Return what a bracket of ε(δ) says of the profile."""
    found = []
    if row.epsilon < math.inf:
        found.append(Point(row.epsilon, 0.0, row.delta))
    if 0.0 < row.epsilon_lower < math.inf:
        found.append(Point(row.epsilon_lower, row.delta, 1.0))
    return found


def _summary(spent: spending.Spending, points: list[Point], delta: float) -> GaussianSummary | None:
    """Return μ: exact for Gaussian noise, else down to the δ of the statement."""
    if (mu := spent.gaussian_mu) is not None:
        return GaussianSummary(mu, 0.0, SLACK)
    return gaussian_summary(points, delta) if delta > 0.0 else None


def _user(
    counts: tuple[tuple[Mechanism, int], ...], delta: float, records: int | None
) -> User | None:
    """Bound ε for a person with several records, where theorems say how."""
    if records is None or records == 1:
        return None
    try:
        bounds = composed(counts).group(records).epsilon_bounds(delta)
    except AccountantError as error:
        return User(records, None, str(error).split(";")[0])
    return User(records, float(bounds.upper), "")


def _attacker(profile: attack_table.SampledProfile) -> dict[str, Any]:
    """Return what an attacker can achieve."""
    return {
        "attacks": attack_table.attacks(profile, attack_table.FPRS),
        "curve": attack_table.attacks(profile, [(k / RATES) ** 2 for k in range(RATES + 1)]),
        "guesses": attack_table.guesses(profile),
    }


def _row(spent: spending.Spending, delta: float) -> Row:
    bounds = spent.epsilon_bounds(delta)
    return Row(delta, float(bounds.upper), float(bounds.lower))
