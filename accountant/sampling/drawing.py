"""Exact draws of record indices, in time proportional to the batch."""

from __future__ import annotations

import secrets
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.errors import ArgumentTypeError

Indices: TypeAlias = "NDArray[np.int64]"
Seed: TypeAlias = "int | np.random.Generator | None"

# A batch below one half of the records is drawn by rejection of repeats, else its complement is.
_HALF = 2


def generator(seed: object) -> np.random.Generator:
    """Return a generator: 256 bits of the operating system's entropy unless a seed is given.

    A seed makes the batches reproducible, hence predictable: for tests only. Amplification by
    sampling assumes that nobody else knows which records were used.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is None:
        return np.random.Generator(np.random.PCG64DXSM(secrets.randbits(256)))
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return np.random.Generator(np.random.PCG64DXSM(int(seed)))
    raise ArgumentTypeError(
        f"seed must be None, an integer >= 0 or a numpy Generator; got {seed!r}."
        " Leave it out for real training: the default is the operating system's entropy"
    )


def distinct(rng: np.random.Generator, population: int, size: int) -> Indices:
    """Draw a uniform subset of ``size`` of ``range(population)``, sorted, in O(size log size).

    The first ``size`` distinct values of an independent uniform sequence form a uniform subset:
    relabelling the records maps sequences to sequences of equal probability.
    """
    if population == 0:
        return np.empty(0, dtype=np.int64)  # no record may take part
    if _HALF * size > population:
        left_out = distinct(rng, population, population - size)
        chosen = np.ones(population, dtype=bool)
        chosen[left_out] = False
        return np.flatnonzero(chosen).astype(np.int64, copy=False)
    drawn = np.empty(0, dtype=np.int64)
    while True:
        # Half as many again covers most repeats (at most every second draw repeats one).
        more = rng.integers(population, size=size + size // 2 + 8, dtype=np.int64)
        drawn = np.concatenate([drawn, more])
        values, first = np.unique(drawn, return_index=True)
        if values.size >= size:
            # Only the earliest distinct values: keeping the smallest ones would favour them.
            return np.sort(values[np.argsort(first)[:size]])


def poisson_size(rng: np.random.Generator, population: int, probability: float) -> int:
    """Draw how many of ``population`` independent coins show heads."""
    return int(rng.binomial(population, probability))


def shuffled(rng: np.random.Generator, population: int) -> Indices:
    """Draw a uniform permutation of ``range(population)``."""
    return rng.permutation(population).astype(np.int64, copy=False)
