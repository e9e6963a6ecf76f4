"""Lattice laws of the loss of one step with replacement under replace-one (Theorem S20).

A record that is drawn k times moves the sum by k contributions. The first of its draws has the
triple of Theorem S18; the others are allowed to move the sum as far as any.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.mechanisms.normal_masses import coarse_cells
from accountant.sampling.lattice_envelope import (
    Cells,
    LatticeLaw,
    Options,
    options_of,
    smaller,
)
from accountant.sampling.replacement_corners import MANY_EDGES, Corner
from accountant.sampling.replacement_laws import (
    Bands,
    Fineness,
    Step,
    banded,
    rectangles,
    with_mirrors,
)

_REACH, _CELLS = 10.5, 600
# Steps of |x - x'|, the distance when draws are told.
_STEP = 0.1
# Shares of w_0 among which repeated draws hide, if w_2 is less than _RARE times w_0; else _SHARE.
_SHARES = {
    Fineness.ROUGH: (0.01,),
    Fineness.PLAIN: (0.01, 0.04),
    Fineness.FINE: (0.01, 0.04, 0.12),
}
_SHARE, _RARE = 0.04, 0.003
_ENDS = (4.0, 3.9, 3.75, 3.5, 3.1, 2.5, 1.9, 1.4, 0.9, 0.4, 0.0)
_CUTS = (0.06, 0.07, 0.08, 0.1, 0.15, 0.2, 0.2, 0.3, 0.3, 0.3)
_DRAWS = {
    Fineness.ROUGH: Bands(
        (4.0, 3.8, 3.5, 3.1, 2.5, 1.7, 0.9, 0.0),
        (0.07, 0.08, 0.1, 0.15, 0.2, 0.3, 0.3),
        (0, 4, 6, 7),
    ),
    Fineness.PLAIN: Bands(_ENDS, _CUTS, (0, 3, 6, 8, 10)),
    Fineness.FINE: Bands(_ENDS, tuple(0.5 * cut for cut in _CUTS), (0, 3, 6, 8, 10), MANY_EDGES),
}


class Draws(NamedTuple):
    """How often a record is drawn: probabilities of 0 … K times, their error, and the rest.

    ``unit`` is the bound on one contribution, in standard deviations of the noise.
    """

    weights: tuple[float, ...]
    unit: float
    error: float
    remainder: float


@lru_cache(maxsize=8)
def repeated_laws(
    draws: Draws, spacing: float, size: int, fineness: Fineness = Fineness.PLAIN
) -> tuple[LatticeLaw, ...]:
    """Return laws on -size … size of which one is above the step, whatever the contributions."""
    cut = _DRAWS[fineness]
    gaussians: dict[float, Options] = {}
    nothing = options_of(_nothing(), spacing, size)

    def told(corner: Corner) -> list[Options]:
        squared = corner.first + corner.second - 2.0 * corner.product
        apart = min(_STEP * math.ceil(math.sqrt(squared) / _STEP + 1e-9), 2.0)
        distances = [k * apart * draws.unit for k in range(1, len(draws.weights))]
        for distance in set(distances) - set(gaussians):
            gaussians[distance] = options_of(_told(distance), spacing, size)
        return [gaussians[distance] for distance in distances]

    def above(corner: Corner, fine: float) -> Options:
        found = options_of(_line(draws, corner), spacing, size)
        if not apart:
            parts = told(corner)
            found = smaller(found, _sum([nothing, *parts], draws.weights))
            once = options_of(rectangles(corner, plain, fine), spacing, size)
            rare = sum(draws.weights[:2]) * (1.0 + 2.0**-40)
            found = smaller(found, _sum([once, *parts[1:]], (rare, *draws.weights[2:])))
        for share, others, weight in hidden:
            outcomes = rectangles(corner, _once(draws, share), fine, plain.q)
            once = options_of(outcomes, spacing, size)
            several = options_of(_line(others, corner, 2.0), spacing, size)
            rare = (draws.weights[0] * (1.0 - share) + draws.weights[1]) * (1.0 + 2.0**-40)
            found = smaller(found, _sum([once, several], (rare, weight)))
        return found

    # Repetitions that are rare hide among steps without a draw; others are told.
    repeated = len(draws.weights) > 2
    apart = repeated and draws.weights[2] < _RARE * draws.weights[0]
    shares = _SHARES[fineness] if apart else (_SHARE,) if repeated else ()
    plain = _once(draws, 0.0)
    hidden = [(share, *_hidden(draws, share)) for share in shares]
    options = [[above(corner, fine) for corner in band] for band, fine in banded(cut)]
    rest = draws.remainder * (1.0 + 1e-9)
    return tuple(
        law._replace(
            infinite=law.infinite + rest,
            mass_error=law.mass_error + draws.error,
            loss_error=law.loss_error + 2.0 * draws.error,
        )
        for law in with_mirrors(options, cut, spacing, size)
    )


def _once(draws: Draws, share: float) -> Step:
    """Return the step in which the record is drawn at most once; a share of w_0 is left out."""
    never = draws.weights[0] * (1.0 - share)
    return Step(draws.weights[1] / (never + draws.weights[1]) * (1.0 + 2.0**-48), draws.unit)


def _hidden(draws: Draws, share: float) -> tuple[Draws, float]:
    """Return the law of two draws or more among a share of w_0, and its weight."""
    weights = share * draws.weights[0], *draws.weights[2:]
    total = math.fsum(weights)
    some = Draws(tuple(w / total for w in weights), draws.unit, 0.0, 0.0)
    return some, total * (1.0 + 2.0**-40)


def _sum(parts: list[Options], weights: tuple[float, ...]) -> Options:
    """Return the options when it is told which part it is."""
    shares = np.array(weights)
    return Options(
        shares @ np.stack([part.calls for part in parts]),
        shares @ np.stack([part.puts for part in parts]),
        max(part.error for part in parts) + 16.0 * U,
    )


class _Side(NamedTuple):
    """Σ w_k N(c + 2(k-1)) on symmetric edges: masses, the logarithm of its ratio, errors."""

    masses: FloatArray
    logarithm: FloatArray
    error: float
    doubt: float


@lru_cache(maxsize=256)
def _side(draws: Draws, first: float, before: float) -> _Side:
    unit = draws.unit * (1.0 + 8.0 * U)
    most = len(draws.weights) - 1
    means = [0.0, *((first + 2.0 * k) * unit for k in range(most))]
    # The same edges whatever the first shift, and their own mirror image.
    farthest = (2.0 * most + before) * unit
    half = np.linspace(0.0, _REACH + farthest, _CELLS // 2)
    x = np.concatenate([-half[:0:-1], half])
    masses, error = np.zeros(x.size + 1), 0.0
    logarithm = np.full(x.size, -math.inf)
    for weight, mean in zip(draws.weights, means, strict=True):
        part, part_error = coarse_cells(x, mean)
        masses += weight * part
        error = max(error, part_error)
        logarithm = np.logaddexp(logarithm, math.log(weight) + mean * (x - 0.5 * mean))
    doubt = 32.0 * U * (64.0 + float(half[-1]) * means[-1] + means[-1] ** 2)
    return _Side(masses, logarithm, error + 4.0 * len(means) * U, doubt)


def _line(draws: Draws, corner: Corner, before: float = 0.0) -> Cells:
    """Return P = Σ w_k N(a + 2(k-1)) against Q = Σ w_k N(-b - 2(k-1)), in contributions.

    Both are ``before`` further out if there were draws before the first.
    """
    a, b = (math.sqrt(side) + before for side in (corner.first, corner.second))
    return _against(_side(draws, a, before), _side(draws, b, before))


def _against(right: _Side, left: _Side) -> Cells:
    """Return one side against the mirror image of the other."""
    loss = right.logarithm - left.logarithm[::-1]
    doubt = right.doubt + left.doubt
    low, high = np.append(-math.inf, loss) - doubt, np.append(loss, math.inf) + doubt
    return Cells(right.masses, left.masses[::-1], low, high, max(right.error, left.error))


def _told(distance: float) -> Cells:
    """Return the plain pair of two normal laws at a distance."""
    distance *= 1.0 + 8.0 * U
    x = np.linspace(-_REACH, _REACH + distance, _CELLS)
    (p, first), (q, second) = coarse_cells(x, distance), coarse_cells(x, 0.0)
    loss = distance * (x - 0.5 * distance)
    doubt = 16.0 * U * (1.0 + distance * (_REACH + distance))
    low, high = np.append(-math.inf, loss) - doubt, np.append(loss, math.inf) + doubt
    return Cells(p, q, low, high, max(first, second))


def _nothing() -> Cells:
    one, zero = np.ones(1), np.zeros(1)
    return Cells(one, one, zero, zero, 0.0)
