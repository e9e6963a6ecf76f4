"""The Rényi curve of Gaussian noise that a record shifts at random.

docs/theorems_mixtures.md, Theorem D20.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, up
from accountant.errors import DomainError
from accountant.pairs.base import GaussianMixture
from accountant.pairs.mixture_renyi import Mixture, divergence_upper

# The weight of no shift is what the others leave, if that is more.
LEAST_REST = 1e-9
# The least weight that is summed, and the largest relative error of weights.
LEAST_WEIGHT = 2e-280
MOST_ERROR = 9e-7


class _Law(NamedTuple):
    """Shifts and weights of which the law is at least as far from Q as the mixture."""

    shifts: FloatArray
    weights: FloatArray
    # Relative errors of the first weight and of the others.
    first_error: float
    weight_error: float
    # What the weight of shifts that are not listed adds to a divergence of the reversed pair.
    unlisted: float


@lru_cache(maxsize=1024)
def mixture_rdp(part: GaussianMixture, order: float) -> float:
    """Return an upper bound on D_order of the pair; infinite where none is known.

    Parameters
    ----------
    part : GaussianMixture
        The pair (P, Q), or its reverse. Without ``remainder``; what it stands for is infinite loss
        in P against Q, and left out.
    order : float
        > 1.

    Notes
    -----
    *Guarantee.* Theorems D8(a) and D20: weights and shifts are rounded up, the quadrature's error
    and all round-off are inside. About 1e-12 above the divergence where the sum is computed.
    """
    law = _law(part)
    if law is None:
        return math.inf
    known = Mixture(
        part.noise_multiplier, law.shifts, law.weights, law.first_error, law.weight_error
    )
    try:
        upper = divergence_upper(known, order, reverse=part.add)
    except DomainError:
        return math.inf
    return up(upper + law.unlisted, 2.0) if part.add and law.unlisted else upper


@lru_cache(maxsize=64)
def _law(part: GaussianMixture) -> _Law | None:
    wide = part.weight_error + 4.0 * U if part.weight_error or part.remainder else 0.0
    slip = part.shift_error + 2.0 * U if part.shift_error else 0.0
    shifts = [shift * (1.0 + slip) for shift in part.shifts]
    weights = [max(weight * (1.0 + wide), LEAST_WEIGHT) for weight in part.weights]
    rest = math.fsum([1.0, *(-weight for weight in weights)])
    if rest > LEAST_REST:
        # The rest is the weight of no shift, with what is not listed.
        shifts, weights = [0.0, *shifts], [rest, *weights]
        first_error, error, base = 2.0 * U, 0.0, rest
    elif part.no_shift > LEAST_WEIGHT:
        base = max(part.no_shift, *part.weights)
        error = first_error = wide + 4.0 * U + 1.01 * part.remainder / base
        shifts, weights = [0.0, *shifts], [part.no_shift, *part.weights]
    else:
        # No weight is left for no shift; what may be is moved to the least one (Theorem D8).
        weights, base = list(part.weights), part.weights[0]
        error = wide + 4.0 * U
        doubt = max(math.fsum([1.0, *(-weight * (1.0 - error) for weight in weights)]), 0.0)
        first_error = error + 1.01 * doubt / base
    if not (max(first_error, error) <= MOST_ERROR and part.remainder <= 1e-3 * base):
        return None
    unlisted = up(part.remainder / (base - part.remainder))
    return _Law(np.array(shifts), np.array(weights), first_error, error, unlisted)
