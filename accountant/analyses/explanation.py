"""The explanation of an answer: its analysis, the reason, and the share of each part."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accountant import checks
from accountant.analyses import renyi_conversion
from accountant.analyses.dispatch import cached_solver
from accountant.analyses.profile import joint_pair
from accountant.bounds import Bounds
from accountant.composition.problems import counted_alternatives, directions
from accountant.display import text_up
from accountant.environment import to_nearest
from accountant.pairs.base import has_rdp

if TYPE_CHECKING:
    from accountant.mechanisms.base import Counted, Mechanism
    from accountant.pairs.base import DominatingPair, Parts

__all__ = ["Contribution", "Explanation", "explain"]


@dataclass(frozen=True)
class Contribution:
    """What one part of a composition contributes.

    Attributes
    ----------
    mechanism : Mechanism
        The part.
    count : int
        How often it runs.
    epsilon : float
        An upper bound on its ε at the same δ if released alone; these do not add up.
    share : float or None
        Its share of the Rényi divergence at the order that serves the whole best; these add up to
        one. None when a part has no Rényi curve.
    """

    mechanism: Mechanism
    count: int
    epsilon: float
    share: float | None


@dataclass(frozen=True)
class Explanation:
    """Which analysis answered and why; ``print`` it.

    Attributes
    ----------
    analysis, reason : str
        The analysis of the worst direction and why it was chosen.
    direction : str
        ``"remove"``, ``"add"`` or ``"both"``: the worst direction.
    epsilon : Bounds
        The bracket of ε(delta).
    delta : float
        The δ of the question.
    relation : str
        The neighbouring relation.
    contributions : tuple of Contribution
        The parts of the worst alternative, the largest share first.
    """

    analysis: str
    reason: str
    direction: str
    epsilon: Bounds
    delta: float
    relation: str
    contributions: tuple[Contribution, ...]

    def __str__(self) -> str:
        """Write it as a short table, ε rounded up."""
        lines = [
            f"ε ≤ {text_up(float(self.epsilon.upper))} at δ = {self.delta:g}, {self.relation}",
            f"analysis: {self.analysis} ({self.reason}); worst direction: {self.direction}",
        ]
        for part in self.contributions:
            share = "" if part.share is None else f", {100.0 * part.share:.1f} % of the divergence"
            lines.append(
                f"  {part.count} × {part.mechanism!r}: alone ε ≤ {text_up(part.epsilon)}{share}"
            )
        return "\n".join(lines)


@to_nearest
def explain(mechanism: Mechanism, delta: object) -> Explanation:
    """Say which analysis answers ε(delta), why, and what each part contributes."""
    delta = checks.number(checks.DELTA, delta)
    whole = mechanism.epsilon_bounds(delta)
    rows = []
    for alternative in counted_alternatives(mechanism):
        ways = directions(alternative)
        for i, parts in enumerate(ways):
            spent = float(cached_solver(parts, joint_pair).epsilon_bounds(delta).upper)
            rows.append((spent, -i, alternative, parts, ways))
    _, index, alternative, parts, ways = max(rows, key=lambda row: row[:2])
    used = cached_solver(parts, joint_pair)
    names = ("both",) if len(ways) == 1 else ("remove", "add")
    shares = _shares(alternative, -index, parts, delta)
    found = [
        Contribution(m, n, float((n * m).epsilon(delta)) if n else 0.0, share)
        for (m, n), share in zip(alternative, shares, strict=True)
    ]
    found.sort(key=lambda row: -(row.share if row.share is not None else row.epsilon))
    return Explanation(
        used.name,
        used.reason,
        names[-index],
        whole,
        delta,
        mechanism.relation.words,
        tuple(found),
    )


def _shares(alternative: Counted, direction: int, parts: Parts, delta: float) -> list[float | None]:
    """Return each mechanism's share of the divergence at the best order."""
    if not parts or not all(has_rdp(pair) for pair, _ in parts):
        return [None] * len(alternative)
    order = renyi_conversion.best_order(parts, max(delta, 1e-12))
    if order == math.inf:
        return [None] * len(alternative)
    each = [n * _divergence(m.pairs(), direction, order) for m, n in alternative]
    whole = math.fsum(each)
    return [x / whole if 0.0 < whole < math.inf else None for x in each]


def _divergence(pairs: tuple[DominatingPair, ...], direction: int, order: float) -> float:
    pair = pairs[-1] if direction else pairs[0]
    return pair.finite_rdp(order) if pair.pure_epsilon > 0.0 else 0.0
