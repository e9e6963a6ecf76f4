"""The loss of k runs of randomised response: binomial masses on a lattice, errors stated."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from accountant import intervals as iv
from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.optimal.loss_table import LossTable
from accountant.errors import PrecisionError
from accountant.intervals import Interval

Ratio: TypeAlias = "Callable[[FloatArray], FloatArray]"

# Masses below this are dropped and counted as missing.
NEGLIGIBLE = 1e-290
# Beyond this ε a single flip is so rare that all of them together are counted as missing.
ALMOST_CERTAIN = 600.0
MOST_ATOMS = 2**22

PI = Interval(
    Decimal("3.141592653589793238462643383279502884197"),
    Decimal("3.141592653589793238462643383279502884198"),
)
# Bernoulli numbers B_2j, as fractions.
BERNOULLI = (
    (1, 6),
    (-1, 30),
    (1, 42),
    (-1, 30),
    (5, 66),
    (-691, 2730),
    (7, 6),
    (-3617, 510),
    (43867, 798),
    (-174611, 330),
)


def randomised_response(epsilon: float, count: int, negligible: float = NEGLIGIBLE) -> LossTable:
    """Return the loss of ``count`` runs: (count - 2l) ε with l binomial (Theorem C4).

    Masses below ``negligible`` are counted as missing.
    """
    if epsilon > ALMOST_CERTAIN:
        # No flip at all; P{a flip} <= k e^-ε.
        mass = iv.exp(-(iv.of(float(count)) * iv.log1p(iv.exp(-epsilon))))
        rare = (iv.exp(-epsilon) * float(count)).up()
        flips, masses, relative = np.zeros(1), np.array([mass.down()]), 4.0 * U
        rare += 4.0 * U
    else:
        flips, masses, relative = _binomial(epsilon, count, negligible)
        rare = 2.0 * (count + 1.0) * negligible if flips.size <= count else 0.0
    losses = (count - 2.0 * flips) * epsilon
    return LossTable(
        losses=losses[::-1].copy(),
        masses=masses[::-1].copy(),
        relative_error=relative,
        shift=2.0 * U * float(np.abs(losses).max()),
        missing=rare,
        infinite=iv.of(0.0),
    )


def _binomial(
    epsilon: float, count: int, negligible: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return numbers of flips, their probabilities and the relative error of each."""
    decay = iv.exp(-epsilon)
    mode = min(int((count + 1.0) * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))), count)
    peak = _peak(count, mode, epsilon, decay)
    growth = float(iv.exp(epsilon).lower)
    up = _walk(peak, count - mode, negligible, _upwards(count, mode, float(decay.lower)))
    down = _walk(peak, mode, negligible, _downwards(count, mode, growth))
    masses = np.concatenate([down[::-1], [peak], up])
    flips = np.arange(mode - down.size, mode + up.size + 1.0)
    # Each step multiplies by a quotient (one rounding), by e^±ε (its own, and one), and once more.
    return flips, masses, (5.0 * max(up.size, down.size) + 8.0) * U


def _upwards(count: int, mode: int, decay: float) -> Ratio:
    return lambda i: (count - mode - i) / (mode + i + 1.0) * decay


def _downwards(count: int, mode: int, growth: float) -> Ratio:
    return lambda i: (mode - i) / (count - mode + i + 1.0) * growth


def _walk(peak: float, length: int, negligible: float, ratio: Ratio) -> FloatArray:
    """Return the masses beside the peak, until they are negligible."""
    pieces: list[FloatArray] = []
    done, last = 0, peak
    while done < length and last >= negligible:
        size = min(length - done, max(64, done))
        if done + size > MOST_ATOMS:
            raise PrecisionError(
                f"the loss of so many runs has more than {MOST_ATOMS} atoms that matter;"
                " bound it by zCDP or GDP composition instead"
            )
        steps = np.arange(done, done + size, dtype=np.float64)
        piece = np.multiply(last, np.cumprod(ratio(steps)), dtype=np.float64)
        pieces.append(piece)
        done, last = done + size, float(piece[-1])
    walked = np.concatenate(pieces) if pieces else np.empty(0)
    # The masses fall, so the first that is negligible ends the table.
    return walked[: int(np.searchsorted(-walked, -negligible, side="right"))]


def _peak(count: int, mode: int, epsilon: float, decay: Interval) -> float:
    """Return C(k, l) e^(-lε) / (1 + e^-ε)^k to within one rounding."""
    log_ways = _log_factorial(count) - _log_factorial(mode) - _log_factorial(count - mode)
    log_peak = log_ways - iv.of(epsilon) * float(mode) - iv.log1p(decay) * float(count)
    return iv.exp(log_peak).down()


def _log_factorial(n: int) -> Interval:
    """Enclose log n!, by Stirling's series; its error is at most the first term left out."""
    if n <= 500:
        return iv.log(iv.of(Decimal(math.factorial(n))))
    x = iv.of(float(n))
    total = x * iv.log(x) - x + iv.log(PI * 2.0 * x) * 0.5
    power = x
    for j, (numerator, denominator) in enumerate(BERNOULLI[:-1], start=1):
        total = total + iv.of(float(numerator)) / (power * float(2 * j * (2 * j - 1) * denominator))
        power = power * x * x
    numerator, denominator = BERNOULLI[-1]
    j = len(BERNOULLI)
    rest = (iv.of(float(-numerator)) / (power * float(2 * j * (2 * j - 1) * denominator))).upper
    return total + Interval(rest.copy_negate(), rest)
