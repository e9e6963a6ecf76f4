"""Chooses the kind of evidence for one direction, the cheapest to check first."""

from __future__ import annotations

import math
from typing import Any

from accountant.certificates.line import NoLineError, Search
from accountant.certificates.rare import find_rare_line
from accountant.certificates.step import Step
from accountant.errors import UnsupportedError

# The part of δ that each of aliases, truncation and the path may take.
SHARE = 2e-11


def evidence_of(
    steps: list[Step], epsilon: float, delta: float, *, remove: bool, share: float = SHARE
) -> dict[str, Any]:
    """Return evidence that one direction's profile of Gaussian steps at ε is at most δ.

    ``share`` of δ is what each source of error may take.
    """
    if all(step.is_plain for step in steps):
        return {"kind": "plain"}
    stays = math.fsum(step.count * math.log1p(-step.moves) for step in steps if step.moves < 1.0)
    sometimes_stays = all(step.moves < 1.0 for step in steps)
    if sometimes_stays and (-math.expm1(stays) <= delta or (not remove and epsilon >= -stays)):
        return {"kind": "never_moved"}
    if len(steps) == 1 and steps[0].count == 1:
        return {"kind": "one_step", "threshold": _threshold(steps[0], epsilon, remove)}
    try:
        search = Search(steps, epsilon, delta, remove=remove, share=share)
        return search.chernoff() or search.line()
    except NoLineError:
        found = find_rare_line(steps, epsilon, delta, share) if remove else None
        if found is not None:
            return found
        raise UnsupportedError(
            f"no certificate of the largest size was found at ε = {epsilon!r}, δ = {delta!r}"
        ) from None


def _threshold(step: Step, epsilon: float, remove: bool) -> float:
    """Return a point where the loss of one step is just below ε, also where that is 0."""
    if remove:
        at = step.inverse_loss(epsilon * (1.0 - 1e-12))
        return at - 2.0 * math.ulp(at)
    at = step.inverse_loss(-epsilon * (1.0 - 1e-12))
    return at + 2.0 * math.ulp(at)
