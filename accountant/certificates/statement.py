"""What a certificate states: the dominating pairs of a release, as noise with random shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from accountant._rounding import U
from accountant.certificates.step import Step
from accountant.errors import UnsupportedError

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism
    from accountant.pairs.base import DominatingPair

__all__ = ["listed", "steps_of"]


def steps_of(release: Mechanism) -> list[Step]:
    """Return the steps of a release; both directions of it have the same ones."""
    problems = release.profile().problems
    found = [[_step(pair, count) for pair, count in parts] for parts in problems]
    first = found[0] if found else []
    if any([listed(one) for one in other] != [listed(one) for one in first] for other in found):
        raise UnsupportedError(
            f"{release!r} has alternatives; a certificate is for one list of releases"
        )
    return first


def listed(step: Step) -> dict[str, Any]:
    """Return a step as the document has it."""
    given: dict[str, Any] = {
        "sigma": step.sigma,
        "shifts": step.shifts.tolist(),
        "weights": step.weights.tolist(),
        "count": step.count,
    }
    if step.lost:
        given["lost"] = step.lost
    return given


def _step(pair: DominatingPair, count: int) -> Step:
    part, mixture = pair.gaussian_part, pair.gaussian_mixture
    if part is not None:
        one = np.array([1.0])
        return Step(part.noise_multiplier, one, one * part.sampling_probability, count)
    if mixture is None:
        raise UnsupportedError(
            f"a certificate is for Gaussian noise, sampled or not, and its mixtures; got {pair!r}"
        )
    # Rounded up: more weight on farther shifts dominates (Theorem D8).
    wide = mixture.weight_error + 4.0 * U if mixture.weight_error else 0.0
    weights = np.array(mixture.weights) * (1.0 + wide)
    if not weights.sum() + mixture.remainder < 1.0 - 1e-9:
        raise UnsupportedError(f"{pair!r} has a weight of 0 below 1e-9")
    shifts = np.array(mixture.shifts) * (1.0 + mixture.shift_error)
    return Step(mixture.noise_multiplier, shifts, weights, count, mixture.remainder)
