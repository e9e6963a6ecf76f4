"""Where a sum of one function of every step is near a loss, and how large its tails are.

A plan proves nothing: any weight and any lattice give valid bounds (docs/theorems_sampling.md,
Theorem S28). What lies outside the lattice is bounded by the moments here.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY

# The logarithm of the tilted mass outside the lattice over δ, which is counted, too.
OUTSIDE = -18.0
# Standard scores of a plan.
SCORES = 240
# Exponents of the bounds on the mass outside.
RATES = np.geomspace(0.1, 1e3, 30)
# One step counts no more than this beyond the loss that is asked for.
ROOM = 1.0
# Exponents e^{tilt·R} by which the masses and the two moments are tilted: then all are of one size.
TILTS = (2.0, 1.0, 0.0)


class Plan(NamedTuple):
    """The weight w in R = Σ min(log(1 - w + wY), top), and the ends of the lattice."""

    weight: float
    top: float
    low: float
    high: float


def log_ratio(weight: float, exponent: float | FloatArray) -> FloatArray:
    """Return log(1 - w + wY) at Y = e^exponent."""
    return np.asarray(np.log1p(weight * np.expm1(exponent)))


@functools.lru_cache(maxsize=16)
def shared(steps: int, picks: int) -> FloatArray:
    """Return the probabilities that two independent picks of k steps share j of them.

    One below the doubles is raised to the least normal one: it weighs a large moment.
    """
    all_ = math.comb(steps, picks)
    ways = (math.comb(picks, j) * math.comb(steps - picks, picks - j) for j in range(picks + 1))
    return np.array([max(float(Fraction(each, all_)), TINY) for each in ways])


def log_moments(
    masses: list[FloatArray],
    ends: tuple[FloatArray, FloatArray],
    counts: FloatArray,
    steps: int,
    picks: int,
    rate: float,
) -> FloatArray:
    """Bound the logarithms of E e^{(tilt + rate)R} under Q, of LR and of LR² times that.

    The values of a mass lie between its two ``ends``.
    """
    found = []
    for order, tilt in enumerate(TILTS):
        x = np.maximum((tilt + rate) * ends[0], (tilt + rate) * ends[1])
        top = float(x.max())
        grown = np.exp(x - top)
        logs = [top + math.log(float(mass @ grown) + 1e-300) for mass in masses[: order + 1]]
        if order == 2:
            j = np.flatnonzero(counts)
            terms = np.log(counts[j]) + j * logs[2] + 2.0 * (picks - j) * logs[1]
            found.append(float(np.logaddexp.reduce(terms + (steps - 2.0 * picks + j) * logs[0])))
        else:
            found.append((steps - order * picks) * logs[0] + order * picks * logs[-1])
    return np.array(found)


def plan_of(mu: float, steps: int, picks: int, near: float, delta: float, more: float) -> Plan:
    """Choose the sum: what two steps change in it has about the ratio that it has in the loss.

    The chances of the others' k - 1 picks add up to k - 1 where the loss is ``near``.
    """
    t = np.linspace(-9.0, 9.5 + 2.0 * mu, SCORES)
    exponent = mu * t - 0.5 * mu * mu
    chances = np.exp(-0.5 * t * t) * ((t[1] - t[0]) / math.sqrt(2.0 * math.pi))

    def posterior(weight: float) -> float:
        values = log_ratio(weight, exponent)
        low, high = 0.0, 60.0
        for _ in range(40):
            tilt = 0.5 * (low + high)
            x = tilt * values
            tilted = chances * np.exp(x - x.max())
            mean = steps * float(tilted @ values) / float(tilted.sum())
            low, high = (tilt, high) if mean < near else (low, tilt)
        own = weight * np.exp(exponent - values)
        return steps * float(tilted @ own) / float(tilted.sum())

    low, high = 0.0, picks / steps
    for _ in range(30):
        weight = 0.5 * (low + high)
        low, high = (weight, high) if posterior(weight) < picks - 1.0 else (low, weight)
    weight = more * high
    top = min(near + ROOM, float(log_ratio(weight, float(exponent[-1]))))
    values = np.minimum(log_ratio(weight, exponent), top)
    masses = [chances * np.exp(order * exponent) for order in range(3)]
    at = masses, (values, values), shared(steps, picks), steps, picks
    own, outside = log_moments(*at, 0.0), math.log(delta) + OUTSIDE
    ends = [
        sign
        * float(
            np.max(
                np.min(
                    [(log_moments(*at, sign * rate) - own - outside) / rate for rate in RATES],
                    axis=0,
                )
            )
        )
        for sign in (-1.0, 1.0)
    ]
    return Plan(weight, top, max(ends[0], steps * math.log1p(-weight) - 1e-6), ends[1])
