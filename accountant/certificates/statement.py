"""What a certificate states: the dominating pairs of a release, as noise with random shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from accountant._rounding import U
from accountant.certificates.response import Response, lattice
from accountant.certificates.step import Step
from accountant.errors import UnsupportedError
from accountant.pairs.response import ResponsePair

if TYPE_CHECKING:
    from accountant.mechanisms.base import Mechanism
    from accountant.pairs.base import DominatingPair

__all__ = ["steps_of"]


def steps_of(release: Mechanism) -> list[Step] | list[Response]:
    """Return the steps of a release; both directions of it have the same ones."""
    problems = release.profile().problems
    found = [[_step(pair, count) for pair, count in parts] for parts in problems]
    first = found[0] if found else []
    responses = [step for step in first if isinstance(step, Response)]
    if any([one.listed() for one in other] != [one.listed() for one in first] for other in found):
        raise UnsupportedError(
            f"{release!r} has alternatives; a certificate is for one list of releases"
        )
    if responses:
        if not lattice(first):
            raise UnsupportedError(
                "a certificate with randomised response is for at most 10,000 answers of one ε,"
                f" and nothing else; got {release!r}"
            )
        return responses
    return [step for step in first if isinstance(step, Step)]


def _step(pair: DominatingPair, count: int) -> Step | Response:
    part, mixture = pair.gaussian_part, pair.gaussian_mixture
    if part is not None:
        one = np.array([1.0])
        return Step(part.noise_multiplier, one, one * part.sampling_probability, count)
    if isinstance(pair, ResponsePair) and not pair.infinite:
        return Response(pair.bound, pair.others + 2, count)
    if mixture is None:
        raise UnsupportedError(
            f"a certificate is for Gaussian noise, sampled or not, its mixtures, and"
            f" randomised response; got {pair!r}"
        )
    # Rounded up: more weight on farther shifts dominates (Theorem D8).
    wide = mixture.weight_error + 4.0 * U if mixture.weight_error else 0.0
    weights = np.array(mixture.weights) * (1.0 + wide)
    if not weights.sum() + mixture.remainder < 1.0 - 1e-9:
        raise UnsupportedError(f"{pair!r} has a weight of 0 below 1e-9")
    shifts = np.array(mixture.shifts) * (1.0 + mixture.shift_error)
    return Step(mixture.noise_multiplier, shifts, weights, count, mixture.remainder)
