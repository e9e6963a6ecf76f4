"""Everything in a statement that is computed."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from accountant.analyses import classical, tradeoff
from accountant.bounds import Bounds
from accountant.composition import Composition, composed
from accountant.conversions import rdp_to_epsilon, zcdp_to_epsilon
from accountant.errors import AccountantError
from accountant.ledger import Entry
from accountant.mechanisms import Gaussian, Mechanism
from accountant.report import spending
from accountant.report.gaussian_summary import SLACK, GaussianSummary, Point, gaussian_summary

# False-positive rates and priors of the plain-language part.
FPRS = (0.001, 0.01, 0.05)
PRIORS = (0.01, 0.1, 0.5)
# The share of releases of which the posterior may be higher.
FAILURE = 0.05


@dataclass(frozen=True)
class Attack:
    """An upper bound on the true-positive rate at one false-positive rate."""

    false_positive_rate: float
    true_positive_rate: float


@dataclass(frozen=True)
class Guess:
    """Bounds on what an attacker learns who has a prior probability.

    Attributes
    ----------
    prior : float
        Probability that the record was used, before the release.
    accuracy : float
        Bound on the probability of guessing right with the release; max(prior, 1 - prior) without.
    posterior : float
        Bound on the posterior, that a release exceeds with probability at most ``failure``.
    failure : float
        See above.
    """

    prior: float
    accuracy: float
    posterior: float
    failure: float


class SampledProfile:
    """An upper bound on a privacy profile, from upper bounds at some points.

    The profile is convex in e^ε, so a chord between two upper bounds is one; beyond the last point
    the profile only falls (Theorem R1 of docs/theorems_report.md).

    Parameters
    ----------
    points : iterable of (float, float)
        ε >= 0 and an upper bound on δ(ε); points at an infinite ε are left out.
    """

    def __init__(self, points: Iterable[tuple[float, float]]) -> None:
        least: dict[float, float] = {0.0: 1.0}
        for epsilon, delta in points:
            if epsilon < math.inf:
                least[epsilon] = min(delta, least.get(epsilon, 1.0))
        self._epsilons = sorted(least)
        # The profile does not increase: an earlier bound holds for all that follow.
        self._deltas = [*accumulate((least[epsilon] for epsilon in self._epsilons), min)]

    def __call__(self, epsilon: float) -> float:
        """Return an upper bound on δ(epsilon), epsilon >= 0."""
        right = bisect.bisect_left(self._epsilons, epsilon)
        if right == len(self._epsilons):
            return self._deltas[-1]
        if self._epsilons[right] == epsilon:
            return self._deltas[right]
        a, b = self._epsilons[right - 1], self._epsilons[right]
        # (e^ε - e^a) / (e^b - e^a), rounded down: a smaller weight of the smaller end is safe.
        weight = math.expm1(epsilon - a) / math.expm1(b - a) if b - a < 700.0 else 0.0
        weight = max(weight * (1.0 - 1e-12), 0.0)
        high, low = self._deltas[right - 1], self._deltas[right]
        return min((high - weight * (high - low)) * (1.0 + 1e-15), high)


def attacks(profile: SampledProfile, rates: Sequence[float]) -> tuple[Attack, ...]:
    """Bound the true-positive rate at each false-positive rate."""
    return tuple(Attack(fpr, tradeoff.attack_tpr(fpr, profile)) for fpr in rates)


def guesses(profile: SampledProfile) -> tuple[Guess, ...]:
    """Bound the accuracy and the posterior for each prior of PRIORS."""
    return tuple(
        Guess(
            prior,
            tradeoff.bayes_accuracy(prior, profile),
            tradeoff.posterior_bound(prior, FAILURE, profile),
            FAILURE,
        )
        for prior in PRIORS
    )


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
    counts = counts or ((Gaussian(1.0), 0),)
    once = spending.Spending(counts, kept=True)
    often = spending.Spending(counts, spending.MOST_OFTEN)
    headline = _row(once, delta)
    pure = _row(once, 0.0)
    advance()
    # ε at δ is at least that at a larger δ, and the headline's bracket may be sharper.
    table = tuple(_row(once if often.above is once.above else often, d) for d in often.deltas)
    advance()
    points = often.points(headline.epsilon)
    for row in (*table, headline):
        points += _points_of(row)
    profile = SampledProfile([(p.epsilon, p.upper) for p in points])
    summary = _summary(once, points, delta)
    advance()
    compared = comparisons(often.above, delta) if delta else ()
    advance()
    user = _user(counts, delta, user_records)
    advance()
    ends = Bounds(headline.epsilon_lower, headline.epsilon)
    steps = spending.over_steps(history, counts, ends, delta) if history else []
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


def _attacker(profile: SampledProfile) -> dict[str, Any]:
    """Return what an attacker can achieve."""
    return {
        "attacks": attacks(profile, FPRS),
        "curve": attacks(profile, [(k / RATES) ** 2 for k in range(RATES + 1)]),
        "guesses": guesses(profile),
    }


def _row(spent: spending.Spending, delta: float) -> Row:
    bounds = spent.epsilon_bounds(delta)
    return Row(delta, float(bounds.upper), float(bounds.lower))
