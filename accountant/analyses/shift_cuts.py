"""Random shifts as the native core takes them: rounded both ways, and no more than matter.

docs/theorems_mixtures.md, Theorem D8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.errors import UnsupportedError
from accountant.pairs.base import DominatingPair, GaussianMixture

# Shifts and weights that the native core takes.
MOST_SHIFTS = 256
LEAST_NO_SHIFT = 1e-8
LEAST_WEIGHT = 1e-240
MOST_ERROR = 9e-14
# The least δ for which shifts are cut off, and how small their part of it is.
LEAST_DELTA = 1e-290
SHARE = 1e-10


@dataclass(frozen=True)
class ShiftCut:
    """Shifts and weights up to a last one, rounded both ways, and what the others add to δ."""

    more_shifts: FloatArray
    more_weights: FloatArray
    less_shifts: FloatArray
    less_weights: FloatArray
    missing: float
    # The weight of no shift and the relative error of all weights; 0 where it is what is left.
    no_shift: float = 0.0
    weight_error: float = 0.0


def covers(part: GaussianMixture) -> bool:
    """Tell whether the contour takes such a release."""
    if not (part.shifts and 1e-90 < part.noise_multiplier < 1e90):
        return False
    return (
        (_rest(part) > LEAST_NO_SHIFT or _is_known(part))
        and part.shifts[0] > 1e-60 * part.noise_multiplier
        and part.shifts[-1] < 1e60 * part.noise_multiplier
        and part.weights[0] > LEAST_WEIGHT
    )


def shifts_of(pair: DominatingPair) -> GaussianMixture:
    """Return the shifts of a pair that has them."""
    part = pair.gaussian_mixture
    if part is None:  # pragma: no cover (chosen by the caller)
        raise UnsupportedError(f"{pair!r} is no mixture of Gaussians")
    return part


def _rest(part: GaussianMixture) -> float:
    """Return what the weights leave of one at least, when rounded up as they will be."""
    total = math.fsum(part.weights) * (1.0 + part.weight_error + 4.0 * U) + part.remainder
    return 1.0 - total - 8.0 * U


def _is_known(part: GaussianMixture) -> bool:
    """Tell whether all weights, that of no shift included, are known well enough as they are.

    The core takes a weight of no shift of 0 beside a positive error as that there is none.
    """
    known = part.no_shift > LEAST_WEIGHT or (part.always_shifted and part.remainder == 0.0)
    return known and part.weight_error <= MOST_ERROR


def cut_shifts(part: GaussianMixture, count: int, delta: float) -> ShiftCut:
    """Leave out the largest shifts, of a total weight that is negligible beside delta."""
    wide = part.weight_error + 4.0 * U
    weights, rest = part.weights, _rest(part)
    is_rest = rest > LEAST_NO_SHIFT
    # Its weight is moved to no shift, or to the likeliest one.
    base = rest if is_rest else max(weights)
    most = SHARE * delta * base / count
    kept, left_out = len(weights), part.remainder
    while kept > 1:
        more = left_out + weights[kept - 1] * (1.0 + wide)
        if (more > most and weights[kept - 1] > LEAST_WEIGHT) and kept <= MOST_SHIFTS:
            break
        kept, left_out = kept - 1, more
    missing = count * left_out / base * (1.0 + 2.0 * wide + 64.0 * U)
    shifts = np.array(part.shifts[:kept], dtype=np.float64)
    chances = np.array(weights[:kept], dtype=np.float64)
    slip = part.shift_error
    if not is_rest:
        up, down = shifts * (1.0 + slip), shifts * (1.0 - slip)
        error = wide + left_out / base * (1.0 + 1e-9)
        return ShiftCut(up, chances, down, chances, missing, part.no_shift, error)
    return ShiftCut(
        shifts * (1.0 + slip) if slip else shifts,
        chances * (1.0 + wide) if part.weight_error else chances,
        shifts * (1.0 - slip) if slip else shifts,
        chances * (1.0 - wide) if part.weight_error else chances,
        missing,
    )
