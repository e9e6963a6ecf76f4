"""Laws on finitely many outcomes, written out in full: dicts of masses in high precision.

Shares no code with the package.
"""

import itertools
import math

from mpmath import mp, mpf

EPSILONS = [0.0, 1e-6, 0.01, 0.1, 0.3, 0.7, 1.1, 2.0, 3.5]


def hockey(p, q, epsilon):
    """Return Σ (p - e^ε q)₊ of two dicts of masses."""
    scale = mp.exp(mpf(epsilon))
    total = mp.fsum(max(p.get(k, 0) - scale * q.get(k, 0), 0) for k in {*p, *q})
    # Where the truth is zero, these digits' own rounding is not.
    return max(total - mpf(10) ** -36, mpf(0))


def geometric(rate, shift, reach=6):
    """Return the law of shift + noise ∝ e^{-rate·|x|}, cut at ±reach, tails in the last places.

    Beyond every shift likelihood ratios do not change: nothing is lost by cutting there.
    """
    # The mechanisms are given the scale, a rounded 1/rate.
    a = mp.exp(-1 / mpf(1.0 / rate))
    law = {x: (1 - a) / (1 + a) * a ** abs(x - shift) for x in range(-reach, reach + 1)}
    law[reach] = a ** (reach - shift) / (1 + a)
    law[-reach] = a ** (reach + shift) / (1 + a)
    return law


def product(*laws):
    """Return the joint law."""
    return {
        tuple(k for k, _ in row): math.prod(p for _, p in row)
        for row in itertools.product(*(law.items() for law in laws))
    }


def mix(*parts):
    """Return Σ weight · law."""
    total = {}
    for weight, law in parts:
        for key, p in law.items():
            total[key] = total.get(key, 0.0) + weight * p
    return total
