"""What a certificate states: the dominating pairs of a release, as laws that the checker knows."""

from __future__ import annotations

import numpy as np

from accountant._rounding import U
from accountant.certificates.finite import Law, law_of
from accountant.certificates.step import Step
from accountant.errors import UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair, Problems


def statement_of(release: Mechanism) -> tuple[list[Step | Law], Problems]:
    """Return the parts of a release, and its pairs in the direction of removal and of addition."""
    problems = release.profile().problems
    found = [
        [_part(pair, count, reverse=k > 0) for pair, count in parts]
        for k, parts in enumerate(problems)
    ]
    first = found[0] if found else []
    if any([one.listed() for one in other] != [one.listed() for one in first] for other in found):
        raise UnsupportedError(
            f"{release!r} has alternatives; a certificate is for one list of releases"
        )
    return first, (problems[0], problems[-1])


def _part(pair: DominatingPair, count: int, *, reverse: bool) -> Step | Law:
    part, mixture = pair.gaussian_part, pair.gaussian_mixture
    if part is not None:
        one = np.array([1.0])
        return Step(part.noise_multiplier, one, one * part.sampling_probability, count)
    if mixture is None:
        law = law_of(pair, count, reverse=reverse)
        if law is not None:
            return law
        raise UnsupportedError(
            "a certificate is for Gaussian noise and its mixtures, Laplace and discrete noise,"
            f" randomised response, stated guarantees and pairs of PMFs; got {pair!r}"
        )
    # Rounded up: more weight on farther shifts dominates (Theorem D8).
    wide = mixture.weight_error + 4.0 * U if mixture.weight_error else 0.0
    weights = np.array(mixture.weights) * (1.0 + wide)
    if not weights.sum() + mixture.remainder < 1.0 - 1e-9:
        raise UnsupportedError(f"{pair!r} has a weight of 0 below 1e-9")
    shifts = np.array(mixture.shifts) * (1.0 + mixture.shift_error)
    return Step(mixture.noise_multiplier, shifts, weights, count, mixture.remainder)
