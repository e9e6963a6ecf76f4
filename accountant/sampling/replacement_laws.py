"""Lattice laws of the loss of one step of replace-one, each above all triples of a band.

docs/theorems_sampling.md, Theorem S18. The outcomes are cut into rectangles, whose masses are
products of normal masses; the losses of a rectangle go to the two ends of an interval around them,
and these to the lattice, with the masses under both laws kept. The chords between the largest
values of the profiles of a band are those of one law (Theorem S17).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from accountant._rounding import U
from accountant.mechanisms.normal_masses import cells
from accountant.sampling.allocation_chords import chord_law
from accountant.sampling.allocation_table import Table
from accountant.sampling.replacement_corners import Corner, bands

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LatticeLaw", "Step", "laws_above"]

FloatArray: TypeAlias = "NDArray[np.float64]"

# Standard scores beyond which normal mass counts as infinite loss, and numbers of rectangles.
_REACH = 10.5
_GUIDE, _COMMON = 400, 3.5
# Growth of a mixture's logarithm in a rectangle, for every band, and the
# fewest rectangles per score along a and across.
_FINE = (0.06, 0.07, 0.08, 0.1, 0.15, 0.2, 0.3)
_FEWEST = (12.0, 6.0)
# Bands that share a mirror image: they matter only where ε is negative.
_MIRRORED = (0, 4, 6, 7)
# Relative error of the weight of an end, beside that of the masses.
_SLACK = 1e-12
_TINY = 1e-290
# Relative lengths of intervals below which all mass goes to the upper end.
_LEAST_GAP = 1e-10


class Step(NamedTuple):
    """One step: the record is in the batch with probability q.

    ``unit`` is the bound on one contribution, in standard deviations of the noise.
    """

    q: float
    unit: float


class LatticeLaw(NamedTuple):
    """Masses under P of the losses ``spacing``·k, k = -m … m, and what else there is.

    ``infinite`` is the mass of infinite loss and ``lost`` the one under Q of its negative,
    ``mass_error`` a relative error of all masses and ``loss_error`` an absolute one of the losses.
    """

    masses: FloatArray
    infinite: float
    lost: float
    mass_error: float
    loss_error: float


class _Options(NamedTuple):
    """Calls and puts on dP/dQ at the knots, and a relative error of the masses behind them."""

    calls: FloatArray
    puts: FloatArray
    error: float


@lru_cache(maxsize=8)
def laws_above(step: Step, spacing: float, size: int) -> tuple[LatticeLaw, ...]:
    """Return laws on -size … size of which one is, for every triple, above the step.

    First those of the bands with |a| >= |b|, then mirror images of the others.
    """
    options = [
        [_options(corner, step, spacing, size, fine) for corner in band]
        for band, fine in zip(bands(), _FINE, strict=True)
    ]
    found = [_above(band, spacing, size) for band in options]
    for first, last in pairwise(_MIRRORED):
        found.append(_mirrored(_above([*chain(*options[first:last])], spacing, size), spacing))
    return tuple(found)


def _above(options: list[_Options], spacing: float, size: int) -> LatticeLaw:
    """Return the law whose options are the chords between the largest of those given."""
    places = np.arange(-2 * size, 2 * size + 1)
    values = np.zeros(places.size)
    calls = np.max([each.calls for each in options], axis=0)
    puts = np.max([each.puts for each in options], axis=0)
    values[::2] = np.where(places[::2] < 0, puts, calls)
    law = chord_law(Table(spacing, places, values, values))
    some = law.values > 0.0
    index = size + np.rint(np.log(law.values[some]) / spacing).astype(np.int64)
    masses = np.zeros(2 * size + 1)
    masses[index] = (law.masses * law.values)[some]
    error = law.mass_error + max(each.error for each in options)
    return LatticeLaw(masses, law.escaped, float(law.masses[~some].sum()), error, law.value_error)


def _mirrored(law: LatticeLaw, spacing: float) -> LatticeLaw:
    """Return the law of the reversed pair."""
    size = (law.masses.size - 1) // 2
    masses = law.masses * np.exp(-spacing * np.arange(-size, size + 1))
    # An exponential errs by a few units of its argument.
    error = law.mass_error + 8.0 * U * (1.0 + size * spacing)
    return LatticeLaw(masses[::-1].copy(), law.lost, law.infinite, error, law.loss_error)


def _options(corner: Corner, step: Step, spacing: float, size: int, fine: float) -> _Options:
    """Return the options of a lattice law above the corner's pair."""
    losses, masses, error = _rectangles(corner, step, fine)
    p = np.zeros(2 * size + 1)
    for loss, mass in zip(losses, masses, strict=True):
        # On the safe side of the rounding of the loss.
        at = loss + 4.0 * U * (1.0 + np.abs(loss))
        below = np.clip(np.floor(at / spacing), -size, size - 1)
        share = -np.expm1(below * spacing - at) / -math.expm1(-spacing)
        share = np.clip(share + _SLACK, 0.0, 1.0)
        place = below.astype(np.int64) + size
        beyond = at > size * spacing
        mass = np.where(beyond, 0.0, mass)
        p += np.bincount(place, mass * (1.0 - share), 2 * size + 1)
        p += np.bincount(place + 1, mass * share, 2 * size + 1)
    error += 8.0 * losses[0].size * U
    knots = np.exp(spacing * np.arange(-size, size + 1))
    q = p / knots
    infinite = max(1.0 - float(p.sum()), 0.0) + _TINY
    zero = max(1.0 - float(q.sum()), 0.0) + _TINY
    widths = np.diff(knots)
    tail = np.cumsum(q[::-1])[::-1]
    call = infinite + np.append(np.cumsum((tail[1:] * widths)[::-1])[::-1], 0.0)
    put = zero * knots[0] + np.append(0.0, np.cumsum((zero + np.cumsum(q)[:-1]) * widths))
    return _Options(call, put, error)


def _rectangles(
    corner: Corner, step: Step, fine: float
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray], float]:
    """Return the lower and the upper ends of the rectangles' losses, and their masses under P."""
    a = math.sqrt(corner.first) * step.unit * (1.0 + 8.0 * U)
    along = corner.product * step.unit**2 / a
    across = math.sqrt(max(corner.second * step.unit**2 - along * along, 0.0)) * (1.0 + 1e-12)
    x = _edges(step.q, a, fine, _FEWEST[0])
    y = _edges(step.q, across, fine, _FEWEST[1])
    p, q, error = _rectangle_masses(x, y, (a, along, across), step.q)
    # ℓ_P grows along the first axis, ℓ_Q along both.
    far = np.append(x, math.inf), np.append(-math.inf, x)
    log_p = [_log_ratio(step.q, a, edges) for edges in far]
    raised, lowered = np.append(y, math.inf), np.append(-math.inf, y)
    log_q = [
        _log_mixture(step.q, edges, other, along, across)
        for edges, other in ((far[0], raised), (far[1], lowered))
    ]
    # Exponents are off by a few units of themselves.
    doubt = 32.0 * U * (4.0 + 4.0 * step.unit * (_REACH + 4.0 * step.unit) - math.log(step.q))
    high = log_p[0][:, None] - log_q[1] + doubt
    low = log_p[1][:, None] - log_q[0] - doubt
    p, q, high, low = p.ravel(), q.ravel(), high.ravel(), low.ravel()
    finite = np.isfinite(high) & (p > _TINY)
    p, q, high = p[finite], q[finite], high[finite]
    low = np.where(np.isfinite(low[finite]), low[finite], high)
    gap = -np.expm1(low - high)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(gap > _LEAST_GAP, (1.0 - q / p * np.exp(low)) / gap, 1.0)
        share += np.where(gap > _LEAST_GAP, 4.0 * (error + _SLACK) / gap, 0.0)
    share = np.clip(share, 0.0, 1.0)
    return (low, high), (p * (1.0 - share), p * share), error


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


def _rectangle_masses(
    x: FloatArray, y: FloatArray, shift: tuple[float, float, float], q: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return the masses of all rectangles under the two mixtures, and their relative error."""
    a, along, across = shift
    (x_still, e0), (x_moved, e1), (x_other, e2) = (cells(x, mean) for mean in (0.0, a, along))
    (y_still, e3), (y_moved, e4) = (cells(y, mean) for mean in (0.0, across))
    p = np.outer((1.0 - q) * x_still + q * x_moved, y_still)
    other = (1.0 - q) * np.outer(x_still, y_still) + q * np.outer(x_other, y_moved)
    return p, other, max(e0, e1, e2) + max(e3, e4) + 16.0 * U


def _log_ratio(q: float, shift: float, x: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(np.logaddexp(math.log1p(-q), math.log(q) + shift * (x - 0.5 * shift)))


def _log_mixture(q: float, x: FloatArray, y: FloatArray, along: float, across: float) -> FloatArray:
    one = along * (x - 0.5 * along) if along > 0.0 else np.zeros(x.size)
    two = across * (y - 0.5 * across) if across > 0.0 else np.zeros(y.size)
    return np.asarray(np.logaddexp(math.log1p(-q), math.log(q) + np.add.outer(one, two)))
