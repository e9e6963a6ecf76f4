"""One function of every step, added up: its transforms under several of T steps, with their errors.

A record takes part in k of T Gaussian steps. The likelihood ratio is the k-th elementary symmetric
polynomial of the steps' ratios Y over its number of terms. E[e^{zR}], and the same with the ratio
and with its square, are products of E[Y^n e^{zg}] of one step, R the sum of its part g over all.
docs/theorems_sampling.md, Theorem S28.
"""

from __future__ import annotations

import functools
import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U
from accountant._core import tools as core

ComplexArray: TypeAlias = "NDArray[np.complex128]"

# Exponents e^{tilt·R} by which the masses and the two moments are tilted: then all are of one size.
TILTS = np.array([2.0, 1.0, 0.0])
# Scores of the noise beyond it, of a mass below 1e-37, are left out of the sums and counted.
REACH = 13.0
# Angles of the paths that bound a transform, over the largest that may be.
ANGLES = np.geomspace(0.003, 0.97, 16)


class Sum:
    """One step's part g = log(1 - w + wY) of R, at even scores of the noise: the trapezoid rule.

    Parameters
    ----------
    mu, weight : float
        1/σ and w.
    spacing : float
        Of the scores.
    right : float
        The last score.
    """

    def __init__(self, mu: float, weight: float, spacing: float, right: float) -> None:
        self.mu, self.weight, self.spacing, self.right = mu, weight, spacing, right
        left = math.ceil(REACH / spacing)
        self.block = math.ceil((left + right / spacing + 1.0) ** (1.0 / 3.0))
        score = spacing * (np.arange(self.block**3) - left)
        kept = score <= right + spacing
        score = np.where(kept, score, right)
        exponent = mu * score - 0.5 * mu * mu
        self.part = weight * np.exp(exponent)
        self.values = np.log1p(weight * np.expm1(exponent))
        density = np.exp(-0.5 * score * score) * (spacing / math.sqrt(2.0 * math.pi))
        self.masses = density * np.exp(np.multiply.outer(np.arange(3.0), exponent)) * kept
        # Round-off of masses, relative to themselves, and of values.
        size = 4.0 * (np.abs(mu * score) + mu * mu)
        self.relative = U * (score * score + 2.0 * size + 3.0 * self.block + 32.0)
        self.moved = U * (self.part / (1.0 - weight + self.part) * (size + 12.0))
        self.moved += 8.0 * U * np.abs(self.values)

    def tilted(self) -> FloatArray:
        """Return the masses under Q, with Y and with Y², times e^{tilt·g}: [n, tilt, score]."""
        grown = np.exp(np.multiply.outer(TILTS, self.values))
        return np.asarray(self.masses[:, None] * grown)

    def strip(self, frequency: float, power: float) -> float:
        """Bound the error of the rule for e^{(s + i·frequency)g} over its size, s >= -power."""
        away = math.pi / self.mu * ANGLES[:, None] * np.array([1.0, 1e-2])
        exponent = frequency * self.mu * away - power * np.log(np.cos(0.5 * self.mu * away))
        return math.exp(min(float((exponent + self._log_error(away)).min()), 700.0))

    def _log_error(self, away: FloatArray) -> FloatArray:
        """Return the logarithm of the rule's error for what is 1 at a distance from the axis."""
        turns = 2.0 * math.pi / self.spacing * away
        return np.asarray(0.5 * away * away - turns - np.log(-0.5 * np.expm1(-turns)))

    def logs(self, rates: FloatArray) -> FloatArray:
        """Bound log E[Y^n e^{(tilt + rate)g}] of rates of one sign: [rate, n, tilt]."""
        powers = np.add.outer(rates, TILTS)
        grown = np.exp(np.multiply.outer(powers, self.values))
        found = np.einsum("rts,ns->rnt", grown, self.masses)
        for place, (low, high) in enumerate(zip(powers[:, 2], powers[:, 0], strict=True)):
            error = self.strip(0.0, max(-low, 0.0))
            # Scores left of the sum have g >= log(1 - w); right of it integrands fall.
            far = min(low, 0.0) * math.log1p(-self.weight)
            if error < 0.5 and far < 600.0 and self.right - (2.0 + high) * self.mu > 8.5:
                found[place] = (found[place] + math.exp(far - 85.0)) / (1.0 - error)
            else:
                found[place] = math.inf
        return np.asarray(np.log(found * (1.0 + 1e-9)))

    def falls(self, frequencies: FloatArray) -> FloatArray:
        """Bound log |E[Y^n e^{(tilt + it)g}]| for all t from each on: [frequency, angle, n, tilt].

        On a path that turns Y by an angle < π the modulus is at most e^{-t·arg}.
        """
        angles = math.pi * ANGLES
        turned = np.angle(1.0 - self.weight + np.multiply.outer(np.exp(1j * angles), self.part))
        beside = np.minimum(angles, math.pi - angles) / self.mu
        rest = np.exp(np.minimum(self._log_error(beside), 700.0)) + 1e-16
        tilted = self.tilted().reshape(9, -1)
        missed = np.multiply.outer(rest, tilted.sum(axis=1))
        found = [np.exp(-top * turned) @ tilted.T + missed for top in frequencies]
        logs = np.log(np.array(found) * (1.0 + 1e-9)).reshape(-1, angles.size, 3, 3)
        return np.asarray(logs + (0.5 * (angles / self.mu) ** 2)[:, None, None])


@functools.lru_cache(maxsize=16)
def shared(steps: int, picks: int) -> FloatArray:
    """Return the probabilities that two independent picks of k steps share j of them, j <= k.

    None is too small, and the least is a double: it weighs a large moment.
    """
    j = np.arange(picks, dtype=float)
    ratios = (picks - j) ** 2 / ((j + 1.0) * (steps - 2.0 * picks + j + 1.0))
    # From the likeliest on: all products fall.
    place = int(np.count_nonzero(ratios > 1.0))
    below = np.cumprod(1.0 / ratios[:place][::-1])[::-1]
    found = np.concatenate([below, [1.0], np.cumprod(ratios[place:])])
    raised = found * ((1.0 + (16.0 * picks + 64.0) * U) / found.sum())
    return np.asarray(np.maximum(raised, TINY))


def mixture(values: list[ComplexArray], counts: FloatArray, steps: int, picks: int) -> ComplexArray:
    """Return the transform of R under Q, with the ratio or its square, from those of one step."""
    base = np.ones(values[0].size, np.complex128)
    order = len(values) - 1
    core.multiply_power(values[0], steps - order * picks, base)
    if order == 1:
        core.multiply_power(values[1], picks, base)
    if order < 2:
        return base
    twice, both = values[1] * values[1], values[0] * values[2]
    total, apart = np.full(base.size, counts[-1], np.complex128), np.ones_like(base)
    for share in counts[-2::-1]:
        apart = apart * twice
        total = total * both + share * apart
    return base * total


def log_mixture(logs: FloatArray, steps: int, picks: int) -> FloatArray:
    """Return the same for logarithms of numbers, [..., n, tilt], of all three: [..., tilt]."""
    j = np.arange(picks + 1.0)
    square = np.log(shared(steps, picks)) + j * logs[..., 2, 2, None]
    square += 2.0 * (picks - j) * logs[..., 1, 2, None]
    square += (steps - 2.0 * picks + j) * logs[..., 0, 2, None]
    found = [
        steps * logs[..., 0, 0],
        (steps - picks) * logs[..., 0, 1] + picks * logs[..., 1, 1],
        np.logaddexp.reduce(square, axis=-1),
    ]
    return np.stack(found, axis=-1)


def turns_of(frequencies: FloatArray, fine: Sum) -> ComplexArray:
    """Return e^{itg} at multiples of a frequency and all scores, in blocks of them."""
    block = math.isqrt(frequencies.size - 1) + 1
    inner = np.exp(1j * np.multiply.outer(frequencies[:block], fine.values))
    outer = np.exp(1j * np.multiply.outer(frequencies[1] * block * np.arange(block), fine.values))
    found = (outer[:, None] * inner).reshape(block * block, -1)[: frequencies.size]
    return np.asarray(found.reshape(-1, fine.block, fine.block, fine.block))


def mixed(
    values: list[ComplexArray], errors: list[FloatArray], steps: int, picks: int
) -> tuple[ComplexArray, FloatArray]:
    """Return :func:`mixture` and a bound on its errors, from those of one step."""
    counts = shared(steps, picks)
    sizes = [np.abs(value).astype(np.complex128) for value in values]
    plain = mixture(sizes, counts, steps, picks).real
    grown = [size + 1.01 * error for size, error in zip(sizes, errors, strict=True)]
    most = mixture(grown, counts, steps, picks).real
    error = np.maximum(most - plain, 0.0) + 8.0 * U * (steps + 4.0 * picks + 16.0) * most + TINY
    return mixture(values, counts, steps, picks), error
