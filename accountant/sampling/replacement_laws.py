"""Lattice laws of the loss of one step of replace-one, each above all triples of a band.

A step is decided by three points of a unit ball: what the record contributes, what its replacement
does, and what another record would contribute in its place. With a and b the ways from the third
point to the first two, the step's divergences grow with |a|² and |b|² and fall with ⟨a, b⟩. Boxes
cover all triples, and a box is bounded by its corner.

A record is drawn k times with probability w_k; on a batch of fixed size w is (1 - q, q). The
outcomes of the first draw are cut into rectangles, whose masses are products of normal masses
(docs/theorems_sampling.md, Theorem S18); further draws are allowed to move the sum as far as any
(Theorem S20).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.pairs.excess import cells
from accountant.sampling.lattice_envelope import (
    Cells,
    Lattice,
    LatticeLaw,
    Options,
    larger,
    law_above,
    mirrored,
    options_of,
    smaller,
)
from accountant.sampling.replacement_pair import Draws, ReplacementPair


class Corner(NamedTuple):
    """|a|², |b|² and ⟨a, b⟩, for radius one, of a pair that is above all of a box."""

    first: float
    second: float
    product: float


# Ends of the boxes for |a|² and |b|², denser where one of them is small or nearly its largest. Any
# are valid; evenly bent ones of the same number make some upper ends 2e-4 larger.
_LEAST = (0.0, 0.003, 0.01, 0.02, 0.03, 0.045, 0.07, 0.1, 0.14, 0.19, 0.25, 0.32, 0.4, 0.5)
_MIDDLE = (0.6, 0.72, 0.85, 1.0, 1.15, 1.32, 1.5, 1.9, 2.3, 2.7, 3.05, 3.35, 3.6, 3.77)
EDGES = (*_LEAST, *_MIDDLE, 3.88, 3.94, 3.975, 3.993, 4.0)
# The same where noise is large: all triples are more alike.
_MANY_MIDDLE = (0.6, 0.72, 0.85, 1.0, 1.15, 1.32, 1.5, 1.7, 1.9, 2.1, 2.3, 2.5, 2.7, 2.9, 3.05)
_MANY_LARGE = (3.2, 3.35, 3.5, 3.6, 3.7, 3.77, 3.83, 3.88, 3.92, 3.94, 3.96, 3.975, 3.985, 3.993)
MANY_EDGES = (*_LEAST, *_MANY_MIDDLE, *_MANY_LARGE, 3.998, 4.0)
# Parts of a box along each axis, in which the product of its corner is looked for.
_PARTS = 32


@lru_cache(maxsize=8)
def bands(
    ends: tuple[float, ...], edges: tuple[float, ...] = EDGES
) -> tuple[tuple[Corner, ...], ...]:
    """Return corners of boxes that cover all triples with |a| >= |b|, in bands.

    ``ends`` are the differences |a|² - |b|² between which bands lie, from 4 down to 0. The
    triples with |a| < |b| have the same corners with ``first`` and ``second`` exchanged.
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


# Standard scores beyond which normal mass counts as infinite loss.
_REACH = 10.5
# Places at which the growth of a mixture's logarithm is looked at, to choose edges between them.
_GUIDE = 400
# Standard scores beyond the means within which edges are as dense as the growth asks for.
_COMMON = 3.5
# The fewest rectangles per score along a, and across, where fewer do if b is short of a.
_FEWEST = (12.0, 6.0)
# Cells of the line on which all draws move the sum as far as they may.
_CELLS = 600
# Distances of the Gaussian pairs of told draws are multiples of this share of a contribution.
_STEP = 0.1
# Repeated draws hide among steps without a draw if they are rarer than this, in units of w_0.
_RARE = 0.003
# Shares of w_0 among which they may hide; the last one if they are not rare.
_SHARES = (0.01, 0.04)
# Relative slack of weights that are sums or rests of others.
_SLACK = 2.0**-40


class Bands(NamedTuple):
    """How triples are cut into bands of |a|² - |b|².

    ``ends`` are the differences between which bands lie, ``fine`` the growth of a mixture's
    logarithm in a rectangle, for every band. Bands between two places of ``mirrored`` share a
    mirror image: they matter only where ε is next to 0. ``edges`` are the ends of the boxes, and
    ``shares`` the shares of w_0 among which rare repeated draws may hide.
    """

    ends: tuple[float, ...]
    fine: tuple[float, ...]
    mirrored: tuple[int, ...]
    edges: tuple[float, ...] = EDGES
    shares: tuple[float, ...] = _SHARES


# All cuts are valid, and only the width of a bracket depends on them. Of batches without
# repetition: the larger the noise, the more alike are all triples, and the more of their boxes come
# near the largest.
_ONCE = Bands(
    (4.0, 3.9, 3.75, 3.5, 3.1, 2.5, 1.5, 0.0), (0.06, 0.07, 0.08, 0.1, 0.2, 0.3, 0.4), (0, 6, 7)
)
_OFTEN = Bands(
    (4.0, 3.9, 3.75, 3.5, 3.1, 2.5, 1.9, 1.4, 0.9, 0.4, 0.0),
    (0.08, 0.1, 0.12, 0.16, 0.2, 0.3, 0.3, 0.4, 0.4, 0.4),
    (0, 3, 6, 8, 10),
)
_ONCE_FINE = _ONCE._replace(
    fine=(0.06, 0.07, 0.08, 0.1, 0.15, 0.2, 0.3), mirrored=(0, 4, 6, 7), edges=MANY_EDGES
)
_OFTEN_FINE = _OFTEN._replace(
    fine=(0.03, 0.035, 0.04, 0.05, 0.075, 0.1, 0.1, 0.15, 0.15, 0.15),
    edges=MANY_EDGES,
    shares=(0.01, 0.04, 0.12),
)


@lru_cache(maxsize=8)
def laws_above(draws: Draws, lattice: Lattice, *, fine: bool = False) -> tuple[LatticeLaw, ...]:
    """Return laws of which one is, for every triple, above the step.

    First those of the bands with |a| >= |b|, then mirror images of the others.
    """
    often = len(draws.weights) > 2
    cut = (_OFTEN_FINE if fine else _OFTEN) if often else (_ONCE_FINE if fine else _ONCE)
    above = _Repeated(draws, cut.shares, lattice) if often else None

    largest = _largest(draws, lattice)

    def options(corner: Corner, growth: float) -> Options:
        if above is not None:
            return smaller(largest, above.options(corner, growth))
        outcomes = rectangles(corner, draws.once(), draws.unit, growth)
        return smaller(largest, options_of(outcomes, lattice))

    corners = zip(bands(cut.ends, cut.edges), cut.fine, strict=True)
    known = [larger([options(corner, growth) for corner in band]) for band, growth in corners]
    found = [law_above(each, lattice) for each in known]
    for first, last in pairwise(cut.mirrored):
        found.append(mirrored(law_above(larger(known[first:last]), lattice), lattice))
    return tuple(
        law._replace(
            infinite=law.infinite + draws.remainder * (1.0 + 1e-9),
            mass_error=law.mass_error + draws.error,
            loss_error=law.loss_error + 2.0 * draws.error,
        )
        for law in found
    )


def _largest(draws: Draws, lattice: Lattice) -> Options:
    """Return the options of the pair of Theorem S6 or S7, which no step exceeds."""
    drawn = draws.weights[1:]
    q = math.fsum(drawn) * (1.0 + 4.0 * U)
    distances = (2.0 * k * draws.unit * (1.0 + 8.0 * U) for k in range(1, len(drawn) + 1))
    pair = ReplacementPair(q, tuple(weight / q for weight in drawn), tuple(distances))
    losses = lattice.losses()
    masses = pair.masses(losses)
    low, high = np.append(-math.inf, losses), np.append(losses, math.inf)
    return options_of(Cells(masses.p, masses.q, low, high, masses.relative_error), lattice)


class _Repeated:
    """Options above a step of several draws, the least of what Theorem S20 has."""

    def __init__(self, draws: Draws, shares: tuple[float, ...], lattice: Lattice) -> None:
        self._draws, self._lattice = draws, lattice
        # Repetitions that are rare hide among steps without a draw; others are told.
        self._apart = draws.weights[2] < _RARE * draws.weights[0]
        self._hidden = [(s, *draws.hidden(s)) for s in (shares if self._apart else _SHARES[-1:])]
        self._gaussians: dict[float, Options] = {}

    def options(self, corner: Corner, fine: float) -> Options:
        """Return options that are above all of a corner's box."""
        draws, lattice = self._draws, self._lattice
        found = options_of(_line(draws, corner), lattice)
        if not self._apart:
            nothing, *parts = self._told(corner)
            once = options_of(rectangles(corner, draws.once(), draws.unit, fine), lattice)
            rare = sum(draws.weights[:2]) * (1.0 + _SLACK)
            found = smaller(found, _sum([nothing, *parts], draws.weights))
            found = smaller(found, _sum([once, *parts[1:]], (rare, *draws.weights[2:])))
        for share, others, weight in self._hidden:
            outcomes = rectangles(corner, draws.once(share), draws.unit, fine, draws.once())
            once = options_of(outcomes, lattice)
            several = options_of(_line(others, corner, 2.0), lattice)
            rare = (draws.weights[0] * (1.0 - share) + draws.weights[1]) * (1.0 + _SLACK)
            found = smaller(found, _sum([once, several], (rare, weight)))
        return found

    def _told(self, corner: Corner) -> list[Options]:
        """Return the options of every number of draws, where it is told."""
        squared = corner.first + corner.second - 2.0 * corner.product
        apart = min(_STEP * math.ceil(math.sqrt(squared) / _STEP + 1e-9), 2.0)
        distances = [k * apart * self._draws.unit for k in range(len(self._draws.weights))]
        for distance in set(distances) - set(self._gaussians):
            self._gaussians[distance] = options_of(_gaussian(distance), self._lattice)
        return [self._gaussians[distance] for distance in distances]


def rectangles(corner: Corner, q: float, unit: float, fine: float, guide: float = 0.0) -> Cells:
    """Return the rectangles of outcomes, cut for the probability ``guide`` (0: q itself)."""
    a = math.sqrt(corner.first) * unit * (1.0 + 8.0 * U)
    along = corner.product * unit**2 / a
    across = math.sqrt(max(corner.second * unit**2 - along * along, 0.0)) * (1.0 + 1e-12)
    cut = _cut((a, along, across), guide or q, fine)
    p, other, error = _rectangle_masses(cut, q)
    # ℓ_P grows along the first axis, ℓ_Q along both: a cell is between two opposite corners.
    x, y = (np.concatenate([[-math.inf], edges, [math.inf]]) for edges in (cut.x, cut.y))
    log_p = _log_ratio(q, a, x)[:, None]
    log_q = _log_mixture(q, x, y, along, across)
    # Exponents are off by a few units of themselves.
    doubt = 32.0 * U * (4.0 + 4.0 * unit * (_REACH + 4.0 * unit) - math.log(q))
    high = log_p[1:] - log_q[:-1, :-1] + doubt
    low = log_p[:-1] - log_q[1:, 1:] - doubt
    return Cells(p.ravel(), other.ravel(), low.ravel(), high.ravel(), error)


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
    x_other, e0 = cells(first.edges, along)
    (y_still, e1), (y_moved, e2) = (cells(y, mean) for mean in (0.0, across))
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
    (still, e0), (moved, e1) = (cells(x, mean) for mean in (0.0, a))
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


def _sum(parts: list[Options], weights: tuple[float, ...]) -> Options:
    """Return the options when it is told which part it is."""
    shares = np.array(weights)
    values = shares @ np.stack([part.values for part in parts])
    return Options(values, max(part.error for part in parts) + 16.0 * U)


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
        part, part_error = cells(x, mean)
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


def _gaussian(distance: float) -> Cells:
    """Return the cells of N(distance, 1) against N(0, 1)."""
    if distance == 0.0:
        one, zero = np.ones(1), np.zeros(1)
        return Cells(one, one, zero, zero, 0.0)
    distance *= 1.0 + 8.0 * U
    x = np.linspace(-_REACH, _REACH + distance, _CELLS)
    (p, first), (q, second) = cells(x, distance), cells(x, 0.0)
    loss = distance * (x - 0.5 * distance)
    doubt = 16.0 * U * (1.0 + distance * (_REACH + distance))
    low, high = np.append(-math.inf, loss) - doubt, np.append(loss, math.inf) + doubt
    return Cells(p, q, low, high, max(first, second))
