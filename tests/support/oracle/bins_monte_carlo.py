"""δ of balls in bins with a banded strategy, simulated: no code shared with the package.

Importance sampling from mixtures that move one bin's mean further out than the record does.
"""

import math

import numpy as np

_STRETCHES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def means(column, bins, steps):
    """Return the mean vector of every bin, of shape (bins, steps), in units of a column's norm."""
    norm = math.sqrt(sum(c * c for c in column))
    found = np.zeros((bins, steps))
    for j in range(bins):
        for start in range(j, steps, bins):
            for i, c in enumerate(column[: steps - start]):
                found[j, start + i] += c / norm
    return found


def simulated_delta(column, bins, steps, noise, epsilon, samples, seed):
    """Return δ(epsilon) of removing a record, and its standard error."""
    rng = np.random.default_rng(seed)
    shifts = means(column, bins, steps) / noise
    squares = (shifts**2).sum(axis=1)
    largest = math.sqrt(squares.max())
    stretches = np.array(_STRETCHES) / max(largest, 1.0)
    if largest < 1.0:
        stretches = np.array(_STRETCHES) / largest
    values = []
    rows = max(1, 2_000_000 // steps)
    for start in range(0, samples, rows):
        count = min(rows, samples - start)
        drawn = rng.integers(bins, size=count)
        stretch = stretches[rng.integers(stretches.size, size=count)]
        x = rng.standard_normal((count, steps)) + (1.0 + stretch)[:, None] * shifts[drawn]
        inner = x @ shifts.T
        log_ratio = _log_mean(inner - 0.5 * squares)
        proposal = np.mean(
            [
                np.exp(_log_mean((1.0 + s) * inner - 0.5 * (1.0 + s) ** 2 * squares) - log_ratio)
                for s in stretches
            ],
            axis=0,
        )
        values.append(np.maximum(-np.expm1(epsilon - log_ratio), 0.0) / proposal)
    found = np.concatenate(values)
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(found.size))


def _log_mean(values):
    top = values.max(axis=1)
    return top + np.log(np.exp(values - top[:, None]).mean(axis=1))
