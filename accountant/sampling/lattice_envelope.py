"""Laws on a lattice of losses, above one or several pairs or below one.

*Above:* the losses of a cell of outcomes go to the two ends of an interval around them, and these
to the lattice, with the masses under both laws kept. The chords between the largest values of
several profiles are those of one law (docs/theorems_sampling.md, Theorems S17 and S18).

*Below* a record that stands out against all others: with the opposite contribution of everybody
else, a record that is drawn k times moves the sum by 2k: dP/dQ = S(x) = Σ w_k e^{ks·x - (ks)²/2}
under standard normal x, s two contributions over the noise. Outcomes are merged into intervals
whose masses under P and Q have a ratio e^{kD}: less than the outcome itself reveals (Theorem S22).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.pairs.excess import cells, distribution
from accountant.sampling.allocation_table import Table, chord_law

# The relative error of the weight of a knot, many times what rounding leaves.
_SLACK = 1e-12
# A smaller mass counts as infinite loss.
_TINY = 1e-290
# All mass of a relatively shorter interval goes to its upper end.
_LEAST_GAP = 1e-10


class Cells(NamedTuple):
    """Masses of cells of outcomes under P and Q, and bounds on the losses inside each cell."""

    p: FloatArray
    q: FloatArray
    low: FloatArray
    high: FloatArray
    error: float


class Lattice(NamedTuple):
    """Losses ±2^i·``spacing`` below a stride, and multiples of the stride up to ``reach`` of them.

    Where a record is not drawn losses are small, and need a fine lattice; all others do not.
    """

    spacing: float
    stride: int
    reach: int

    def places(self) -> NDArray[np.int64]:
        """Return the losses in spacings."""
        fine = 2 ** np.arange(self.stride.bit_length() - 1)
        half = np.concatenate([fine, self.stride * np.arange(1, self.reach + 1)])
        return np.concatenate([-half[::-1], [0], half])

    def losses(self) -> FloatArray:
        """Return the losses."""
        return np.asarray(self.spacing * self.places(), dtype=np.float64)


class LatticeLaw(NamedTuple):
    """Masses under P of the losses of a lattice, and what else there is.

    ``infinite`` is the mass of infinite loss and ``lost`` the one under Q of its negative,
    ``mass_error`` a relative error of all masses and ``loss_error`` an absolute one of the losses.
    """

    masses: FloatArray
    infinite: float
    lost: float
    mass_error: float
    loss_error: float


class Options(NamedTuple):
    """Options on dP/dQ at the knots: calls from loss 0 on, E(dP/dQ - K)⁺, and puts below.

    ``error`` is a relative error of the masses behind them.
    """

    values: FloatArray
    error: float


def smaller(one: Options, other: Options) -> Options:
    """Return the smaller options, which bound a profile that is below both."""
    return Options(np.minimum(one.values, other.values), max(one.error, other.error))


def larger(options: Sequence[Options]) -> Options:
    """Return the larger options, which bound every profile that is below one of them."""
    values = np.max([each.values for each in options], axis=0)
    return Options(values, max(each.error for each in options))


def law_above(options: Options, lattice: Lattice) -> LatticeLaw:
    """Return the law whose options are the chords between those given."""
    places = lattice.places()
    # Places between knots are of no interest.
    values = np.repeat(options.values, 2)[:-1]
    law = chord_law(Table(lattice.spacing, np.repeat(2 * places, 2)[:-1], values, values))
    some = law.values > 0.0
    knots = np.exp(lattice.losses())
    masses = np.zeros(places.size)
    masses[np.searchsorted(knots, law.values[some] * (1.0 - 1e-12))] = (law.masses * law.values)[
        some
    ]
    lost = float(law.masses[~some].sum())
    # P <= (1+e)P' and Q >= (1-e)Q' move the loss by 2e, too.
    errors = law.mass_error + options.error, law.value_error + 2.0 * options.error
    return LatticeLaw(masses, law.escaped, lost, *errors)


def mirrored(law: LatticeLaw, lattice: Lattice) -> LatticeLaw:
    """Return the law of the reversed pair."""
    losses = lattice.losses()
    # An exponential errs by a few units of its argument.
    error = law.mass_error + 8.0 * U * (1.0 + float(losses[-1]))
    masses = law.masses * np.exp(-losses)
    return LatticeLaw(masses[::-1].copy(), law.lost, law.infinite, error, law.loss_error)


@lru_cache(maxsize=8)
def _cells_of(lattice: Lattice) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.int64]]:
    """Return losses, likelihood ratios, 1 - e^{-width}, and the last knot at or below a place."""
    places, losses = lattice.places(), lattice.losses()
    last = np.searchsorted(places, np.arange(places[0], places[-1]), side="right") - 1
    return losses, np.exp(losses), -np.expm1(-np.diff(losses)), last


def options_of(cells: Cells, lattice: Lattice) -> Options:
    """Return the options of a lattice law above that of the cells."""
    losses, knots, widths, last = _cells_of(lattice)
    loss, mass = _ends(cells)
    # On the safe side of the rounding of the loss.
    at = loss + 4.0 * U * (1.0 + np.abs(loss))
    fine = np.floor(np.clip(at / lattice.spacing, -0.5 * last.size, 0.5 * last.size - 1.0))
    place = last[(fine + 0.5 * last.size).astype(np.int64)]
    share = np.minimum(_SLACK - np.expm1(np.minimum(losses[place] - at, 0.0)) / widths[place], 1.0)
    mass[at > losses[-1]] = 0.0
    p = np.bincount(place, mass * (1.0 - share), losses.size)
    p[1:] += np.bincount(place, mass * share, losses.size - 1)
    q = p / knots
    infinite = max(1.0 - float(p.sum()), 0.0) + _TINY
    zero = max(1.0 - float(q.sum()), 0.0) + _TINY
    rises, middle = knots[1:] * widths, losses.size // 2
    tail = np.cumsum(q[:middle:-1]) * rises[: middle - 1 : -1]
    call = infinite + np.append(np.cumsum(tail)[::-1], 0.0)
    head = (zero + np.cumsum(q[: middle - 1])) * rises[: middle - 1]
    put = zero * knots[0] + np.append(0.0, np.cumsum(head))
    return Options(np.append(put, call), cells.error + 8.0 * cells.p.size * U)


def _ends(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Return losses and masses under P of the lower and then of the upper ends of the cells."""
    # A cell without a finite upper end has infinite loss; a mass that vanished is left out, too.
    kept = np.isfinite(cells.high) & (cells.p > _TINY)
    p, q, high = cells.p[kept], cells.q[kept], cells.high[kept]
    low = np.where(np.isfinite(cells.low[kept]), cells.low[kept], high)
    gap = -np.expm1(low - high)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The masses are taken as they are: their errors are those of the law (Theorem M2).
        share = (1.0 - q / p * np.exp(low)) / gap + 64.0 * U * (1.0 + np.abs(low)) / gap
    share = np.clip(np.where(gap > _LEAST_GAP, share, 1.0), 0.0, 1.0)
    return np.concatenate([low, high]), np.concatenate([p * (1.0 - share), p * share])


# The table of outcomes ends at this standard score: what is beyond is one outcome.
_REACH = 9.0
# The spacing of its scores.
_STEP = 1e-3
# Beyond this score the normal density leaves the doubles.
_FARTHEST = 37.5
# The next knot is at least this share of a spacing above the loss at which an interval begins.
_LEAST = 0.25
# Losses are lowered by this much, as intervals end where a series puts the ends.
_LOWERED = 1e-9


class _Table(NamedTuple):
    """Masses under P and Q below the scores x, and derivatives of the densities."""

    x: FloatArray
    p: tuple[FloatArray, FloatArray, FloatArray, FloatArray]
    q: tuple[FloatArray, FloatArray, FloatArray, FloatArray]

    def losses(self) -> FloatArray:
        """Return log S at the scores."""
        return np.log(self.p[1] / self.q[1])


def _table(weights: tuple[float, ...], shift: float) -> _Table:
    x = np.arange(-_REACH, min(_REACH + len(weights) * shift, _FARTHEST), _STEP)
    sums = [np.zeros(x.size) for _ in range(4)]
    plain = sums
    for k, weight in enumerate(weights):
        z = x - k * shift
        density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        parts = [distribution(z), density, -z * density, (z * z - 1.0) * density]
        plain = parts if k == 0 else plain
        sums = [total + weight * part for total, part in zip(sums, parts, strict=True)]
    return _Table(x, tuple(sums), tuple(plain))  # type: ignore[arg-type]


def rare_loss(weights: tuple[float, ...], shift: float, chance: float) -> float:
    """Return about the loss that is exceeded with a chance, as far as the table goes."""
    table = _table(weights, shift)
    tail = sum(w * distribution(k * shift - table.x) for k, w in enumerate(weights))
    place = min(int(np.count_nonzero(tail > chance)), table.x.size - 1)
    return float(table.losses()[place])


def law_below(
    weights: tuple[float, ...], shift: float, weight_error: float, spacing: float, size: int
) -> tuple[LatticeLaw, float]:
    """Return a law of losses offset + k·spacing, k = 0 … size, that is below the record's.

    Its profile is nowhere above. Most of the mass has a loss near log w_0: it is the first
    interval, whose loss is the offset, returned beside the law.

    Parameters
    ----------
    weights : tuple of float
        Probabilities of 0, 1, … draws; of those left out nothing is used.
    shift : float
        s > 0: how far one draw moves the sum, in standard deviations of the noise.
    weight_error : float
        Relative error of the weights.
    spacing : float
        Distance of the losses.
    size : int
        The largest loss, in spacings.
    """
    table = _table(weights, shift)
    place = max(int(np.searchsorted(table.losses(), math.log(weights[0]) + 0.5 * spacing)), 1)
    offset = math.log(table.p[0][place] / table.q[0][place])
    ends = np.array(_intervals(table, spacing, offset))
    p, q, error = np.zeros(ends.size + 1), np.zeros(ends.size + 1), 0.0
    for k, weight in enumerate(weights):
        mass, part = cells(ends, k * shift)
        p += weight * mass
        q = mass if k == 0 else q
        # A mean and a shift that are rounded.
        farthest = k * shift
        error = max(error, part + 8.0 * U * farthest * (64.0 + farthest))
    error += 8.0 * len(weights) * U + weight_error
    kept = (p > 1e-290) & (q > 1e-290)
    p, q = p[kept], q[kept]
    index = np.floor((np.log(p / q) + _LOWERED - offset) / spacing).astype(np.int64)
    kept = index >= 0
    masses = np.bincount(np.minimum(index[kept], size), p[kept], size + 1)
    # P >= (1-e)P' and Q <= (1+e)Q' move the loss by 2e, too.
    errors = error + 64.0 * U, _LOWERED + 2.0 * error + 64.0 * U * (1.0 - offset)
    return LatticeLaw(np.asarray(masses, dtype=np.float64), 0.0, 0.0, *errors), offset


def _intervals(table: _Table, spacing: float, offset: float) -> list[float]:
    """Return ends of intervals with ratios e^{offset + kD}: a search, certified later."""
    losses = table.losses()
    p, q = ([part.tolist() for part in side] for side in (table.p, table.q))
    count, start = table.x.size, 0
    found: list[float] = []
    begin_p = begin_q = 0.0
    knot = offset
    while True:
        strike = math.exp(knot)
        want = begin_p - strike * begin_q
        # P - K·Q falls until S = K, and then grows.
        low, high = max(int(np.searchsorted(losses, knot)), start), count - 1
        if p[0][high] - strike * q[0][high] <= want:
            return found
        while high - low > 1:
            middle = (low + high) // 2
            if p[0][middle] - strike * q[0][middle] <= want:
                low = middle
            else:
                high = middle
        d = [a[low] - strike * b[low] for a, b in zip(p, q, strict=True)]
        u = 0.5 * _STEP
        for _ in range(4):
            value = d[0] - want + u * (d[1] + u * (d[2] / 2.0 + u * d[3] / 6.0))
            u = min(max(u - value / (d[1] + u * (d[2] + u * d[3] / 2.0)), 0.0), _STEP)
        found.append(float(table.x[low]) + u)
        begin_p, begin_q = (
            side[0][low] + u * (side[1][low] + u * (side[2][low] / 2.0 + u * side[3][low] / 6.0))
            for side in (p, q)
        )
        start = low
        loss = float(losses[low]) + (float(losses[low + 1]) - float(losses[low])) * u / _STEP
        knot = offset + spacing * math.ceil((loss - offset) / spacing + _LEAST)
