"""Bounds on the profile of a few steps of Gaussian noise with a random shift, by brute force.

The noise of one step is cut into small cells. All mass of a cell is given the loss at its upper
end, rounded up to a lattice, for an upper bound, and that at its lower end, rounded down, for a
lower bound: the loss increases with the noise. The masses are convolved by one Fourier transform,
whose error in double precision is far below the slack that is added. Removal only.
"""

import math

import numpy as np
from scipy.special import erfc

SLACK = 1e-11
CELLS = 400
MOST_POINTS = 1 << 21


def profile(sigma, shifts, weights, steps, epsilon, width=1e-3):
    """(lower, upper) of H(epsilon) where the record is removed; width is relative to epsilon.

    None where that takes too large a lattice.
    """
    shifts, weights = np.asarray(shifts), np.asarray(weights)
    rest = 1.0 - math.fsum(weights)
    if not rest > 1e-9:
        return None
    most = epsilon - steps * math.log(rest) + 40.0
    if steps * (most - math.log(rest)) > MOST_POINTS * width * epsilon / steps:
        return None
    x = np.linspace(
        -8.0 * sigma, shifts[-1] + 8.0 * sigma, int((shifts[-1] / sigma + 16.0) * CELLS)
    )
    below = np.zeros_like(x)
    loss = np.full_like(x, math.log(rest))
    for d, w in [(0.0, rest), *zip(shifts.tolist(), weights.tolist(), strict=True)]:
        below += w * erfc((x - d) / (sigma * math.sqrt(2.0))) / 2.0
        if d > 0.0:
            loss = np.logaddexp(loss, math.log(w) + d * (2.0 * x - d) / (2.0 * sigma**2))
    mass = np.maximum(below[:-1] - below[1:], 0.0)
    step = width * epsilon / steps
    base = math.floor(loss[0] / step) - 1
    ends = []
    for up in (False, True):
        at = np.ceil(loss[1:] / step + 1e-6) if up else np.floor(loss[:-1] / step - 1e-6)
        index = np.minimum(at, math.ceil(most / step)).astype(np.int64) - base
        law = np.bincount(index, weights=mass)
        size = 1 << math.ceil(math.log2(steps * len(law)))
        total = np.fft.irfft(np.fft.rfft(law, size) ** steps, size)[: steps * (len(law) - 1) + 1]
        losses = (np.arange(len(total)) + steps * base) * step
        gain = np.where(losses > epsilon, -np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
        # Above the last lattice point no loss is known but that it is large; below the first it
        # is counted as nothing, or as everything.
        ends.append(float(np.dot(total, gain)))
    outside = steps * float(below[-1] + max(1.0 - below[0], 0.0))
    return ends[0] - SLACK, ends[1] + outside + math.exp(-40.0) + SLACK
