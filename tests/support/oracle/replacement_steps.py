"""What data reach in one and in two steps on batches of a fixed size, under replace-one.

One step by its closed form, two by a plain sum over the first one's noise in doubles.
"""

import math

import numpy as np


def gaussian_profile(distance, epsilon):
    def below(x):
        return 0.5 * math.erfc(-x / math.sqrt(2.0))

    half = distance / 2
    return below(half - epsilon / distance) - math.exp(epsilon) * below(-half - epsilon / distance)


def last_step(q, distance, epsilon):
    """Return the largest profile of one step (Theorem S6)."""
    if epsilon < 0.0:
        return -math.expm1(epsilon) + math.exp(epsilon) * last_step(q, distance, -epsilon)
    return q * gaussian_profile(distance, math.log1p(math.expm1(epsilon) / q))


def two_steps(q, unit, epsilon, triple):
    """Return δ of the triple's step followed by the best last one, by a plain sum."""
    (a, along, across) = triple
    x = np.linspace(-9.0, 13.0, 500)
    y = np.linspace(-9.0, 11.0, 160) if across else np.zeros(1)
    dy = y[1] - y[0] if across else 1.0
    grid, other = np.meshgrid(x, y, indexing="ij")
    noise = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    if across:
        noise = noise * np.exp(-(other**2) / 2) / math.sqrt(2 * math.pi) * dy
    u = 1 - q + q * np.exp(a * unit * (grid - a * unit / 2))
    size = unit**2 * (along**2 + across**2)
    v = 1 - q + q * np.exp(unit * (along * grid + across * other) - size / 2)
    rest = [last_step(q, 2 * unit, e) for e in (epsilon - np.log(u / v)).ravel()]
    return float((noise * u).ravel() @ np.array(rest))
