"""A lattice law of losses below that of a record that stands out against all others.

With the opposite contribution of everybody else, a record that is drawn k times moves the sum by
2k: dP/dQ = S(x) = Σ w_k e^{ks·x - (ks)²/2} under standard normal x, s two contributions over the
noise. Outcomes are merged into intervals whose masses under P and Q have a ratio e^{kD}: less than
the outcome itself reveals (docs/theorems_sampling.md, Theorem S22).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.mechanisms.normal_masses import cells, distribution
from accountant.sampling.lattice_envelope import LatticeLaw

# The table of outcomes: standard scores beyond which nothing matters, and its spacing.
_REACH, _STEP = 9.0, 1e-3
# Beyond this score the normal density leaves the doubles; what lies there is one outcome.
_FARTHEST = 37.5
# The next knot is at least so many spacings above the loss at which an interval begins.
_LEAST = 0.25
# Losses are lowered by this much: intervals end where a series puts the ends.
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


def lattice_spacing(weights: tuple[float, ...], shift: float, wanted: float) -> float:
    """Return a spacing, at most about ``wanted``, whose lattice suits the smallest losses.

    Most of the mass has a loss near log w_0: it is the first interval, and its loss a knot.
    """
    table = _table(weights, shift)
    losses = table.losses()
    least = math.log(weights[0])
    for _ in range(4):
        spacing = -least / math.ceil(-least / wanted)
        place = int(np.searchsorted(losses, least + 0.5 * spacing))
        least = math.log(float(table.p[0][place] / table.q[0][place]))
    return -least / math.ceil(-least / wanted)


def law_below(weights: tuple[float, ...], shift: float, spacing: float, size: int) -> LatticeLaw:
    """Return a law on -size … size whose profile is nowhere above the record's.

    Parameters
    ----------
    weights : tuple of float
        Probabilities of 0, 1, … draws; of those left out nothing is used.
    shift : float
        s > 0: how far one draw moves the sum, in standard deviations of the noise.
    spacing : float
        Distance of the losses.
    size : int
        The largest loss, in spacings.
    """
    ends = np.array(_ends(_table(weights, shift), spacing))
    p, q, error = np.zeros(ends.size + 1), np.zeros(ends.size + 1), 0.0
    for k, weight in enumerate(weights):
        mass, part = cells(ends, k * shift)
        p += weight * mass
        q = mass if k == 0 else q
        # A mean and a shift that are rounded.
        farthest = k * shift
        error = max(error, part + 8.0 * U * farthest * (64.0 + farthest))
    error += 8.0 * len(weights) * U
    kept = (p > 1e-290) & (q > 1e-290)
    p, q = p[kept], q[kept]
    index = np.floor((np.log(p / q) + _LOWERED) / spacing).astype(np.int64)
    place = np.clip(index, -size - 1, size) + size + 1
    masses = np.asarray(np.bincount(place, p, 2 * size + 2)[1:], dtype=np.float64)
    # P >= (1-e)P' and Q <= (1+e)Q' move the loss by 2e, too.
    return LatticeLaw(masses, 0.0, 0.0, error + 64.0 * U, _LOWERED + 2.0 * error + 64.0 * U)


def _ends(table: _Table, spacing: float) -> list[float]:
    """Return ends of intervals with ratios e^{kD} of their masses: a search, certified later."""
    losses = table.losses()
    ratios = np.log(table.p[0] / table.q[0])
    least = spacing * math.ceil(float(ratios[0]) / spacing - 1e-6)
    p, q = ([part.tolist() for part in side] for side in (table.p, table.q))
    count, start = table.x.size, 0
    found: list[float] = []
    begin_p = begin_q = 0.0
    knot = least
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
        knot = spacing * math.ceil(loss / spacing + _LEAST)
