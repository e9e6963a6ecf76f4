"""Lattice laws of the loss of one step of replace-one, each above all triples of a band.

docs/theorems_sampling.md, Theorem S18. The outcomes are cut into rectangles, whose masses are
products of normal masses.
"""

from __future__ import annotations

import math
from enum import IntEnum
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.mechanisms.normal_masses import coarse_cells
from accountant.sampling.lattice_envelope import (
    Cells,
    LatticeLaw,
    Options,
    law_above,
    mirrored,
    options_of,
)
from accountant.sampling.replacement_corners import (
    EDGES,
    FEW_EDGES,
    MANY_EDGES,
    Corner,
    bands,
)

# Standard scores beyond which normal mass counts as infinite loss, and numbers of rectangles.
_REACH = 10.5
_GUIDE, _COMMON = 400, 3.5
# The fewest rectangles per score along a, and across, where fewer do if b is short of a.
_FEWEST = (12.0, 6.0)


class Bands(NamedTuple):
    """How triples are cut into bands of |a|² - |b|².

    ``ends`` are the differences between which bands lie, ``fine`` the growth of a mixture's
    logarithm in a rectangle, for every band. Bands between two places of ``mirrored`` share a
    mirror image: they matter only where ε is negative. ``edges`` are the ends of the boxes.
    """

    ends: tuple[float, ...]
    fine: tuple[float, ...]
    mirrored: tuple[int, ...]
    edges: tuple[float, ...] = EDGES


class Fineness(IntEnum):
    """How finely triples are cut: for two printed digits, for three, or where noise is large."""

    ROUGH = 0
    PLAIN = 1
    FINE = 2


# Of batches without repetition. The larger the noise, the more alike are all triples, and the more
# of their boxes come near the largest.
_ENDS = (4.0, 3.9, 3.75, 3.5, 3.1, 2.5, 1.5, 0.0)
_CUTS = (0.06, 0.07, 0.08, 0.1, 0.15, 0.2, 0.3)
_ONE_DRAW = {
    Fineness.ROUGH: Bands(
        (4.0, 3.7, 3.2, 2.5, 1.5, 0.0), (0.07, 0.1, 0.15, 0.2, 0.3), (0, 4, 5), FEW_EDGES
    ),
    Fineness.PLAIN: Bands(_ENDS, _CUTS, (0, 4, 6, 7)),
    Fineness.FINE: Bands(_ENDS, _CUTS, (0, 4, 6, 7), MANY_EDGES),
}


class Step(NamedTuple):
    """One step: the record is in the batch with probability q.

    ``unit`` is the bound on one contribution, in standard deviations of the noise.
    """

    q: float
    unit: float


@lru_cache(maxsize=8)
def laws_above(
    step: Step, spacing: float, size: int, fineness: Fineness = Fineness.PLAIN
) -> tuple[LatticeLaw, ...]:
    """Return laws on -size … size of which one is, for every triple, above the step.

    First those of the bands with |a| >= |b|, then mirror images of the others.
    """
    cut = _ONE_DRAW[fineness]
    options = [
        [options_of(rectangles(corner, step, fine), spacing, size) for corner in band]
        for band, fine in banded(cut)
    ]
    return with_mirrors(options, cut, spacing, size)


def banded(cut: Bands) -> list[tuple[tuple[Corner, ...], float]]:
    """Return the bands of corners, each with how finely its rectangles are cut."""
    return list(zip(bands(cut.ends, cut.edges), cut.fine, strict=True))


def with_mirrors(
    options: list[list[Options]], cut: Bands, spacing: float, size: int
) -> tuple[LatticeLaw, ...]:
    """Return a law above each band, and mirror images of laws above several."""
    found = [law_above(band, spacing, size) for band in options]
    for first, last in pairwise(cut.mirrored):
        found.append(mirrored(law_above([*chain(*options[first:last])], spacing, size), spacing))
    return tuple(found)


def rectangles(corner: Corner, step: Step, fine: float, guide: float = 0.0) -> Cells:
    """Return the rectangles of outcomes, cut for the probability ``guide`` (0: the step's own)."""
    a = math.sqrt(corner.first) * step.unit * (1.0 + 8.0 * U)
    along = corner.product * step.unit**2 / a
    across = math.sqrt(max(corner.second * step.unit**2 - along * along, 0.0)) * (1.0 + 1e-12)
    cut = _cut((a, along, across), guide or step.q, fine)
    p, q, error = _rectangle_masses(cut, step.q)
    # ℓ_P grows along the first axis, ℓ_Q along both: a cell is between two opposite corners.
    x, y = (np.concatenate([[-math.inf], edges, [math.inf]]) for edges in (cut.x, cut.y))
    log_p = _log_ratio(step.q, a, x)[:, None]
    log_q = _log_mixture(step.q, x, y, along, across)
    # Exponents are off by a few units of themselves.
    doubt = 32.0 * U * (4.0 + 4.0 * step.unit * (_REACH + 4.0 * step.unit) - math.log(step.q))
    high = log_p[1:] - log_q[:-1, :-1] + doubt
    low = log_p[:-1] - log_q[1:, 1:] - doubt
    return Cells(p.ravel(), q.ravel(), low.ravel(), high.ravel(), error)


def _edges(q: float, shift: float, fine: float, fewest: float) -> FloatArray:
    """Return edges between which the logarithm of the mixture grows by about ``fine``."""
    x = np.linspace(-_REACH, _REACH + shift, _GUIDE)
    slope = shift / (1.0 + np.exp(_log_odds(q) - shift * (x - 0.5 * shift)))
    # What is far out is rare under both laws.
    density = slope / fine + fewest
    density /= 1.0 + np.maximum(np.abs(x - 0.5 * shift) - 0.5 * shift - _COMMON, 0.0)
    count = np.cumsum(np.append(0.0, density[1:] * np.diff(x)))
    return np.asarray(np.interp(np.linspace(0.0, count[-1], math.ceil(count[-1]) + 1), count, x))


def _log_odds(q: float) -> float:
    return math.log1p(-q) - math.log(q)


class _Cut(NamedTuple):
    """Edges along both axes, masses of their cells under normal laws, and a relative error."""

    x: FloatArray
    y: FloatArray
    along: tuple[FloatArray, FloatArray, FloatArray]
    across: tuple[FloatArray, FloatArray]
    error: float


# The last one only: it serves several probabilities in turn.
@lru_cache(maxsize=1)
def _cut(shift: tuple[float, float, float], guide: float, fine: float) -> _Cut:
    a, along, across = shift
    first = _first_axis(a, guide, fine)
    y = _edges(guide, across, fine, max(_FEWEST[1] * min(across / a, 1.0), 1.0))
    x_other, e0 = coarse_cells(first.edges, along)
    (y_still, e1), (y_moved, e2) = (coarse_cells(y, mean) for mean in (0.0, across))
    error = max(first.error, e0) + max(e1, e2)
    along_it = first.still, first.moved, x_other
    return _Cut(first.edges, y, along_it, (y_still, y_moved), error)


class _FirstAxis(NamedTuple):
    """Edges, masses of their cells under two normal laws, and a relative error."""

    edges: FloatArray
    still: FloatArray
    moved: FloatArray
    error: float


# Boxes of one |a|² follow each other.
@lru_cache(maxsize=32)
def _first_axis(a: float, guide: float, fine: float) -> _FirstAxis:
    x = _edges(guide, a, fine, _FEWEST[0])
    (still, e0), (moved, e1) = (coarse_cells(x, mean) for mean in (0.0, a))
    return _FirstAxis(x, still, moved, max(e0, e1))


def _rectangle_masses(cut: _Cut, q: float) -> tuple[FloatArray, FloatArray, float]:
    """Return the masses of all rectangles under the two mixtures, and their relative error."""
    (x_still, x_moved, x_other), (y_still, y_moved) = cut.along, cut.across
    p = np.outer((1.0 - q) * x_still + q * x_moved, y_still)
    other = (1.0 - q) * np.outer(x_still, y_still) + q * np.outer(x_other, y_moved)
    return p, other, cut.error + 16.0 * U


def _log_ratio(q: float, shift: float, x: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(np.logaddexp(math.log1p(-q), math.log(q) + shift * (x - 0.5 * shift)))


def _log_mixture(q: float, x: FloatArray, y: FloatArray, along: float, across: float) -> FloatArray:
    one = along * (x - 0.5 * along) if along > 0.0 else np.zeros(x.size)
    two = across * (y - 0.5 * across) if across > 0.0 else np.zeros(y.size)
    # Two corners are infinite in opposite directions: no cell asks for them.
    with np.errstate(invalid="ignore"):
        exponents = math.log(q) + np.add.outer(one, two)
        return np.asarray(np.logaddexp(math.log1p(-q), exponents))
