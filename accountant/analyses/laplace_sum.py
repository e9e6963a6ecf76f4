"""The sum of equal Laplace losses, whose profile is a finite sum of exponential series."""

from __future__ import annotations

import math
from functools import lru_cache

from accountant._basics.rounding import U, up
from accountant.analyses.solver import Solver, bracket_crossing
from accountant.bounds import Bounds
from accountant.mechanisms.laplace import LaplacePair
from accountant.pairs.base import Parts

# The largest count, and the largest sum of the losses: beyond them a grid is faster.
MOST_RELEASES = 64
LARGEST_SUM = 64.0
# The profile is near 0 where losses are smaller, and the absolute error would be felt.
LEAST_REACH = 1e-9
# Binary digits of the numbers, beyond those that the sums may lose.
DIGITS = 200
# At least the absolute error of a profile that is left: 2^-DIGITS, with room.
LEFT = 1e-50


class LaplaceSum(Solver):
    """Equal releases of Laplace noise (Theorem N15), in integers of some 400 binary digits."""

    name = "laplace"
    reason = "all parts are equal Laplace noise, whose sum has a profile in closed form"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        ((pair, self._count),) = parts
        assert isinstance(pair, LaplacePair)
        # The reach was rounded up by one unit at most.
        self._reach = math.nextafter(pair.reach * (1.0 - 2.0 * U), 0.0), pair.reach

    @staticmethod
    def covers(parts: Parts) -> bool:
        """Tell whether the parts are equal Laplace noise of moderate losses."""
        if len(parts) != 1 or type(parts[0][0]) is not LaplacePair:
            return False
        reach, n = parts[0][0].reach, parts[0][1]
        return n <= MOST_RELEASES and reach > LEAST_REACH and n * reach <= LARGEST_SUM

    def _least(self) -> float:
        return self._count * self._reach[0] * (1.0 - 4.0 * U)

    def _delta(self, epsilon: float) -> Bounds:
        low, high = (self._profile(epsilon, side) for side in (0, 1))
        return Bounds(min(low, high), high)

    def _epsilon(self, delta: float) -> Bounds:
        if self._profile(0.0, 1) <= delta:
            return Bounds(0.0, 0.0)
        most = self._count * self._reach[1] * (1.0 + 8.0 * U)
        found = bracket_crossing(self._profile, delta, 0.5 * most, most)
        return Bounds(0.0, most) if found is None else found

    def _profile(self, epsilon: float, side: int) -> float:
        """Bound the profile at ε >= 0 from below or above."""
        k, reach = self._count, self._reach[side]
        most = k * reach
        if epsilon >= most * (1.0 + 4.0 * U):
            return 0.0
        bits = DIGITS + 4 * k + math.ceil(3.0 * most)
        step, start = _fixed(reach, bits), _fixed(epsilon, bits)
        # Coefficients have the weights 2^{-k-m}.
        sums = [0] * (k + 1)
        for index in range(k + 1):
            place = k - 2 * index
            w = place * step - start
            if w <= 0:
                break
            for m, value in enumerate(_series(w, bits, k)):
                sums[m] += _weights(k)[m][index] * value
        whole = sum(value << (k - m) for m, value in enumerate(sums))
        scale = math.exp(0.5 * (epsilon - most))
        shift = max(whole.bit_length() - 64, 0) if whole > 0 else 0
        found = math.ldexp(float(max(whole, 0) >> shift), shift - bits - 2 * k) * scale
        error = (32.0 + 4.0 * most) * U
        if side == 0:
            return max(found * (1.0 - error) - LEFT, 0.0)
        return min(up(found * (1.0 + error) + LEFT), 1.0)


def _fixed(value: float, bits: int) -> int:
    """Return value * 2^bits, rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << bits) // denominator


@lru_cache(maxsize=MOST_RELEASES)
def _weights(k: int) -> tuple[tuple[int, ...], ...]:
    """Return for each m the coefficients of C(k, m)·(X + 1/X)^{k-m}·(X - 1/X)^m, from X^k down."""
    rows = []
    for m in range(k + 1):
        row = [math.comb(k, m)]
        for sign in [1] * (k - m) + [-1] * m:
            row = [a + sign * b for a, b in zip([*row, 0], [0, *row], strict=True)]
        rows.append(tuple(row))
    return tuple(rows)


def _series(w: int, bits: int, most: int) -> list[int]:
    """Return K_m(w) = Σ over odd n of 2^{1-n} w^{n+m} / (n+m)!, for m up to ``most``."""
    powers, term, j = [1 << bits], 1 << bits, 0
    while term or j < most + 3:
        j += 1
        term = (term * w >> bits) // j
        powers.append(term)
    powers += [0, 0]
    values = [0] * (len(powers) + 2)
    for m in range(len(powers) - 2, -1, -1):
        values[m] = powers[m + 1] + (values[m + 2] >> 2)
    return values[: most + 1]
