"""What replacing a record can do to the sum of a batch: a few corners that bound it.

A step of replace-one is decided by three points of a unit ball: what the record contributes, what
its replacement does, and what another record would contribute in its place. With a and b the ways
from the third point to the first two, the step's divergences grow with |a|² and |b|² and fall with
⟨a, b⟩. The boxes here cover all triples, and a box is bounded by its corner.
docs/theorems_sampling.md, Theorem S18.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from accountant._typing import FloatArray


class Corner(NamedTuple):
    """|a|², |b|² and ⟨a, b⟩, for radius one, of a pair that is above all of a box."""

    first: float
    second: float
    product: float


# Ends of the boxes for |a|² and |b|²: denser where one of them is small or nearly its largest.
_FEW_SMALL = (0.0, 0.03, 0.1, 0.25, 0.5, 0.85, 1.3, 1.8)
FEW_EDGES = (*_FEW_SMALL, 2.3, 2.8, 3.2, 3.5, 3.75, 3.9, 3.96, 3.99, 4.0)
_SMALL = (0.0, 0.01, 0.03, 0.07, 0.14, 0.25, 0.4, 0.6, 0.85, 1.15, 1.5, 1.9)
EDGES = (*_SMALL, 2.3, 2.7, 3.05, 3.35, 3.6, 3.77, 3.88, 3.94, 3.975, 3.993, 4.0)
_MANY_SMALL = (
    0.0,
    0.003,
    0.01,
    0.02,
    0.03,
    0.045,
    0.07,
    0.1,
    0.14,
    0.19,
    0.25,
    0.32,
    0.4,
    0.5,
    0.6,
)
_MANY_MIDDLE = (0.72, 0.85, 1.0, 1.15, 1.32, 1.5, 1.7, 1.9, 2.1, 2.3, 2.5, 2.7, 2.9, 3.05, 3.2)
_MANY_LARGE = (3.35, 3.5, 3.6, 3.7, 3.77, 3.83, 3.88, 3.92, 3.94, 3.96, 3.975, 3.985, 3.993)
MANY_EDGES = (*_MANY_SMALL, *_MANY_MIDDLE, *_MANY_LARGE, 3.998, 4.0)


# A box is cut into so many parts, squared, to find the product of its corner.
_PARTS = 32


@lru_cache(maxsize=8)
def bands(
    ends: tuple[float, ...], edges: tuple[float, ...] = EDGES
) -> tuple[tuple[Corner, ...], ...]:
    """Return corners of boxes that cover all triples with |a| >= |b|, in bands.

    ``ends`` are the differences |a|² - |b|² between which bands lie, from 4 down to 0, ``edges``
    the ends of the boxes from 0 to 4. The triples with |a| < |b| have the same corners with
    ``first`` and ``second`` exchanged.
    """
    found: list[list[Corner]] = [[] for _ in pairwise(ends)]
    for low, high in pairwise(edges):
        for least, most in pairwise(edges):
            # Every triple is bounded by one with |a|² + |b|² >= 4; and one half is enough.
            if high + most < 4.0 or high < most:
                continue
            corner = Corner(high, most, _product((low, high), (least, most)))
            middle = 0.5 * (low + high - least - most)
            place = sum(middle < end for end in ends[1:-1])
            found[place].append(corner)
    return tuple(tuple(row) for row in found)


def _product(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return the largest ⟨a, b⟩ at the far end of a box that leaves all its triples below.

    From a triple to the far end |a|² grows by s and |b|² by t: then ⟨a, b⟩ may grow by √(st).
    """
    x, y = (np.linspace(*box, _PARTS + 1) for box in (first, second))
    grown = np.sqrt(np.outer(first[1] - x[1:], second[1] - y[1:])) * (1.0 - 1e-12)
    needed = np.add.outer(x[1:], y[1:]) >= 4.0 - 1e-9
    return float((_least_products(x[:-1], y[:-1]) + grown)[needed].min())


def _least_products(first: FloatArray, second: FloatArray) -> FloatArray:
    """Bound ⟨a, b⟩ from below for |a|² >= first, |b|² >= second: a triangle in the unit circle."""
    both = np.outer(first, second)
    root = np.sqrt(both * np.outer(4.0 - first, 4.0 - second))
    return np.asarray(np.maximum(0.25 * (both - root) - 1e-12, 0.0))
