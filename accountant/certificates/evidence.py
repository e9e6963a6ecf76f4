"""Chooses the kind of evidence for one direction, the cheapest to check first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from accountant.certificates.line import NoLineError, Search
from accountant.errors import UnsupportedError

if TYPE_CHECKING:
    from accountant.certificates.step import Step

__all__ = ["evidence_of"]


def evidence_of(steps: list[Step], epsilon: float, delta: float, *, remove: bool) -> dict[str, Any]:
    """Return evidence that one direction's profile at ε is at most δ."""
    if all(step.is_plain for step in steps):
        return {"kind": "plain"}
    stays = math.fsum(step.count * math.log1p(-step.moves) for step in steps if step.moves < 1.0)
    sometimes_stays = all(step.moves < 1.0 for step in steps)
    if sometimes_stays and (-math.expm1(stays) <= delta or (not remove and epsilon >= -stays)):
        return {"kind": "never_moved"}
    if len(steps) == 1 and steps[0].count == 1:
        return {"kind": "one_step", "threshold": _threshold(steps[0], epsilon, remove)}
    try:
        search = Search(steps, epsilon, delta, remove=remove)
        return search.chernoff() or search.line()
    except NoLineError:
        raise UnsupportedError(
            f"no certificate of the largest size was found at ε = {epsilon!r}, δ = {delta!r}"
        ) from None


def _threshold(step: Step, epsilon: float, remove: bool) -> float:
    """Return a point where the loss of one step is just below ε."""
    target = epsilon * (1.0 - 1e-12) if remove else -epsilon * (1.0 - 1e-12)
    reach = 60.0 * step.sigma + 2.0 * step.furthest + abs(epsilon) * step.sigma**2
    low, high = -reach / float(step.shifts.min()), reach / float(step.shifts.min())
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(step.loss(middle)) <= target else (low, middle)
    return low if remove else high
