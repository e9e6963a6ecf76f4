"""The law of a mean of likelihood ratios that share normal scores with their neighbours.

Each score is one of a few cells; the transform of the mean is a product of matrices, and its mean
excess an integral on a line. docs/theorems_matrix.md, Theorem X8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import U
from accountant._typing import FloatArray

ComplexArray: TypeAlias = "NDArray[np.complex128]"
IntArray: TypeAlias = "NDArray[np.int64]"

_BATCH, _VALUES = 16, 2**20  # points of the line at a time, and entries of their matrices
_CUT = 6.0  # smoothed transforms are cut where they have fallen to e^{-CUT²/2}
# The line's place times the mean's deviation, and the smoothing noise over that deviation.
_TILT, _SMOOTHING = 0.75, 0.1
_LARGEST = 300.0  # of exponents at a strike
_FARTHER = (2.0, 3.0, 4.0)  # tilts that bound aliases, over that of the line


class Part(NamedTuple):
    """Rows of one kind that follow one another.

    Attributes
    ----------
    tables : tuple of float64 arrays
        For each bin of a row what its ratio is more than 1, by the cells of the scores it
        depends on: the oldest first, the row's own last.
    rows : int
        Number of rows.
    """

    tables: tuple[FloatArray, ...]
    rows: int


class Run(NamedTuple):
    """Parts whose scores go on from one to the next; ``times`` such runs are independent."""

    parts: tuple[Part, ...]
    times: int


@dataclass(frozen=True)
class Chain:
    """Parts, with the scores that they are made of.

    Parameters
    ----------
    masses : float64 array
        Of the cells of a fresh score; sum 1.
    merges : tuple of int64 arrays
        First cells, among those of one age, of the cells of the next.
    runs : tuple of Run
        Independent of one another.
    bins : int
        The mean is the sum over this number.
    most : float
        Means beyond it are put there: they have no put at strikes up to it.
    """

    masses: FloatArray
    merges: tuple[IntArray, ...]
    runs: tuple[Run, ...]
    bins: int
    most: float

    @property
    def draws(self) -> int:
        """The number of scores."""
        return sum(
            run.times * (sum(part.rows for part in run.parts) + len(self.merges))
            for run in self.runs
        )

    def transform(self, points: ComplexArray) -> tuple[ComplexArray, FloatArray]:
        """Return E e^{-z (W - 1)}, W the mean, at ``points``, and errors.

        Errors are relative to the values at the points' real parts.
        """
        found = np.ones(points.size, dtype=np.complex128)
        for run in self.runs:
            size = max(table.size for part in run.parts for table in part.tables)
            batch = max(1, min(_BATCH, _VALUES // size))
            for start in range(0, points.size, batch):
                here = slice(start, start + batch)
                found[here] *= self._run(run.parts, points[here] / self.bins) ** run.times
        tables = [part.tables for run in self.runs for part in run.parts]
        cap = self.most * self.bins
        largest = max(sum(min(float(t.max()), cap) + 2.0 for t in several) for several in tables)
        sums = sum(merge.size for merge in self.merges) + 2 * self.masses.size
        share = 8.0 * np.abs(points) / self.bins * largest + 4.0 * sums + 64.0
        share *= U * self.draws
        return found, share * np.exp(share)

    def _run(self, parts: tuple[Part, ...], small: ComplexArray) -> ComplexArray:
        """Return the transform of one run at points that are divided by the number of bins."""
        law: FloatArray = np.ones(1)
        masses = self.masses
        for merge in self.merges:
            masses = np.add.reduceat(masses, merge)
            law = np.multiply.outer(masses, law)
        # The oldest age first, the points last.
        state: ComplexArray = np.multiply.outer(
            law.reshape(law.shape[:-1]), np.ones(small.size, dtype=np.complex128)
        )
        for part in parts:
            cap = self.most * self.bins
            more = np.sum([np.minimum(table, cap) for table in part.tables], axis=0)
            kernel = np.exp(-more[..., None] * small) * self.masses[:, None]
            for _ in range(part.rows):
                state = self._step(kernel, state)
        return np.asarray(state.reshape(-1, small.size).sum(axis=0))

    def _step(self, kernel: ComplexArray, state: ComplexArray) -> ComplexArray:
        """Draw a score, add a row, forget the oldest score and merge the cells of the others."""
        if not self.merges:
            return np.asarray(state * kernel.sum(axis=0))
        ages = len(self.merges)
        found = kernel[0] * state[0][..., None, :]
        for oldest in range(1, kernel.shape[0]):
            found += kernel[oldest] * state[oldest][..., None, :]
        for axis in range(ages):
            merge = self.merges[ages - 1 - axis]
            if merge.size < found.shape[axis]:
                found = np.add.reduceat(found, merge, axis=axis)
        return np.asarray(found)


class Line(NamedTuple):
    """Transforms along Re z = tilt, from which E(K - W)₊ follows for every K.

    Attributes
    ----------
    most : float
        The largest strike.
    tilt, period, smoothing : float
        The line's place, 2π over the distance of its points, the deviation of the noise added.
    points, values : complex128 arrays
        On the upper half of the line, with the transforms E e^{-z (W - 1)}.
    errors : float64 array
        Relative to the first value.
    farther : tuple of float
        Bounds of the transform at the multiples ``_FARTHER`` of the tilt.
    """

    most: float
    tilt: float
    period: float
    smoothing: float
    points: ComplexArray
    values: ComplexArray
    errors: FloatArray
    farther: tuple[float, ...]

    @classmethod
    def of(cls, chain: Chain, deviation: float, delta: float) -> Line:
        """Return a line that is fine enough for a mean of about this deviation, at ``delta``."""
        tau = _SMOOTHING * deviation
        c = _TILT / deviation
        period = (math.log(1.0 / delta) + 7.0) / c
        step = 2.0 * math.pi / period
        y = step * np.arange(math.ceil(_CUT / (tau * step)) + 1)
        points = np.concatenate([c + 1j * y, c * np.array(_FARTHER)])
        values, errors = chain.transform(points)
        farther = np.abs(values[y.size :]) * (1.0 + errors[y.size :])
        return cls(
            chain.most,
            c,
            period,
            tau,
            points[: y.size],
            values[: y.size],
            errors[: y.size],
            tuple(farther.tolist()),
        )

    def puts(self, strike: float) -> tuple[float, float]:
        """Bracket E(strike - W)₊ (Theorem H3), for strikes up to ``most``."""
        if strike > self.most or self.tilt * abs(strike - 1.0) > _LARGEST:
            return 0.0, math.inf
        z, tau, c = self.points, self.smoothing, self.tilt
        weights = np.full(z.size, 2.0 / self.period)
        weights[0] *= 0.5
        shift = strike - 1.0
        damped = np.exp(z * shift + 0.5 * (tau * z) ** 2) * weights
        terms = damped * self.values
        # The errors of the transform, of the exponentials and of the sum.
        scale = abs(self.values[0]) / (1.0 - self.errors[0])
        slack = self.errors + U * (8.0 * np.abs(z) * abs(shift) + 8.0 * (tau * np.abs(z)) ** 2)
        wrong = np.abs(damped) * scale * (slack + U * (z.size + 64.0))
        squares = np.abs(z) ** 2
        end = float(z[-1].imag)
        left = scale * math.exp(c * shift + 0.5 * tau * tau * (c * c - end * end))
        left /= math.pi * tau * tau * end
        value = float((terms / (z * z)).real.sum())
        value_error = float((wrong / squares).sum()) + left / end**2
        density = float(terms.real.sum()) + float(wrong.sum()) + left
        low = value - value_error - tau * tau * density - self._aliases(strike)
        return max(low, 0.0), min((value + value_error) * (1.0 + 16.0 * U), strike)

    def _aliases(self, strike: float) -> float:
        """Bound what the other periods add to the sum."""
        x = math.exp(-self.tilt * self.period)
        # The mean excess at the strike is at most the strike, with the noise.
        here = strike + self.smoothing
        above = self.period * x / (1.0 - x) ** 2 + here * x / (1.0 - x)
        below = math.inf
        for times, value in zip(_FARTHER, self.farther, strict=True):
            b = self.tilt * times
            exponent = b * (strike - 1.0) + 0.5 * (self.smoothing * b) ** 2
            ratio = math.exp(-(b - self.tilt) * self.period)
            size = value * math.exp(min(exponent, 700.0)) / (math.e * b)
            below = min(below, size * ratio / (1.0 - ratio))
        return (above + below) * (1.0 + 1e-9)
