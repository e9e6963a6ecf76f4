"""What dominates alternatives: the chances that keys stay hidden, and the most old keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from accountant._basics.rounding import TINY, U, lift, ratio_down, times_up, up
from accountant.environment import to_nearest
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from accountant.mechanisms.gaussian import Gaussian, GaussianPair
from accountant.mechanisms.integer_laws import REACH
from accountant.mechanisms.laplace import Laplace
from accountant.pairs.base import Parts
from accountant.relations import ADD_OR_REMOVE

# Discrete Gaussian noise up to this parameter is summed term by term.
LARGEST_SUMMED = 1e5


class Logs(NamedTuple):
    """Minus the logarithm of a probability that keys stay hidden: at least, and at most."""

    least: float
    largest: float

    def times(self, count: int) -> Logs:
        """Return those of ``count`` keys, rounded outwards."""
        if not count:
            return NOTHING
        return Logs(self.least * count * (1.0 - U), times_up(self.largest, count))


NOTHING = Logs(0.0, 0.0)


@lru_cache(maxsize=1024)
@to_nearest
def hiding(noise: Mechanism, threshold: float, count: float) -> Logs:
    """Bracket ``-log p`` with p = Pr[count + noise < threshold].

    Parameters
    ----------
    noise : Gaussian, Laplace, DiscreteGaussian or DiscreteLaplace
        Its scale is used, not its sensitivity.
    threshold, count : float
        Integers where the noise is one.

    Returns
    -------
    Logs
        In [0, inf].
    """
    if isinstance(noise, Gaussian):
        shown = _gaussian(noise.noise_multiplier, threshold, count)
    elif isinstance(noise, Laplace):
        shown = _laplace(noise.scale, threshold, count)
    elif isinstance(noise, DiscreteLaplace):
        shown = _geometric(noise.scale, round(threshold - count))
    else:
        assert isinstance(noise, DiscreteGaussian)
        shown = _discrete_gaussian(noise.noise_multiplier, round(threshold - count))
    q, hidden, error = shown
    # From the smaller of the two probabilities, which has its digits.
    if q <= 0.5:
        least, most = (-math.log1p(-min(q * (1.0 + e), 1.0 - U)) for e in (-error, error))
    else:
        least, most = (
            -math.log(hidden * (1.0 - e)) if hidden * (1.0 - e) > TINY else math.inf
            for e in (-error, error)
        )
        least = min(least, 690.0)
    return Logs(max(least * (1.0 - 16.0 * U), 0.0), most * (1.0 + 16.0 * U) + TINY)


def _gaussian(sigma: float, threshold: float, count: float) -> tuple[float, float, float]:
    """Return Pr[noise >= threshold - count], its complement, and a relative error of the lesser."""
    if sigma == math.inf:
        return 0.5, 0.5, 4.0 * U
    z = (threshold - count) / sigma * math.sqrt(0.5)
    # The difference is off by a unit of itself and of the count, a product; z by a few more.
    error = (32.0 + 16.0 * z * z + 8.0 * (1.0 + abs(z)) * abs(count / sigma)) * U
    return 0.5 * math.erfc(z), 0.5 * math.erfc(-z), min(error, 0.5)


def _laplace(scale: float, threshold: float, count: float) -> tuple[float, float, float]:
    if scale == math.inf:
        return 0.5, 0.5, 4.0 * U
    x = (threshold - count) / scale
    least = 0.5 * math.exp(-abs(x))
    error = min((16.0 + 4.0 * abs(x) + 4.0 * abs(count / scale)) * U, 0.5)
    return _sides(least, error, x >= 0.0)


def _sides(least: float, error: float, beyond: bool) -> tuple[float, float, float]:
    """Return the lesser probability and its complement, exchanged where the other is asked."""
    return (least, 1.0 - least, error) if beyond else (1.0 - least, least, error)


def _geometric(scale: float, k: int) -> tuple[float, float, float]:
    if scale == math.inf:
        return 0.5, 0.5, 1e-9  # of the limit, in which every integer has no mass
    n = k if k >= 1 else 1 - k
    least = math.exp(-n / scale) / (1.0 + math.exp(-1.0 / scale))
    return _sides(least, min((32.0 + 8.0 * n / scale) * U, 0.5), k >= 1)


def _discrete_gaussian(sigma: float, k: int) -> tuple[float, float, float]:
    if sigma > LARGEST_SUMMED:
        # Pr[Z >= k] is at most that of the normal law at k - 1, and at least that at k less e^{..}
        # of one integer (Canonne, Kamath, Steinke 2020, Proposition 25): a few units of 1/σ.
        if sigma == math.inf:
            return 0.5, 0.5, 1e-9
        q, hidden, error = _gaussian(sigma, float(k), 0.0)
        return q, hidden, min(error + 4.0 / sigma * (2.0 + abs(k) / sigma), 0.5)
    n = k if k >= 1 else 1 - k
    if sigma < 1e-9 or n > REACH * sigma + 1.0:
        least = 0.0
    else:
        x = np.arange(n, n + math.ceil(REACH * sigma) + 2, dtype=np.float64)
        all_x = np.arange(1, math.ceil(REACH * sigma) + 2, dtype=np.float64)
        above = math.fsum(np.exp(-0.5 * (x / sigma) ** 2).tolist())
        positive = math.fsum(np.exp(-0.5 * (all_x / sigma) ** 2).tolist())
        least = above / (1.0 + 2.0 * positive)
    return _sides(least, 2500.0 * U, k >= 1)


class Box(NamedTuple):
    """What dominates some alternatives.

    Attributes
    ----------
    first, second : Logs
        Of the keys that the first data set alone has, and of those that the second alone has.
    old : tuple of (DominatingPair, int)
        The pairs of all other keys of the user.
    """

    first: Logs
    second: Logs
    old: Parts


def turned(box: Box | None, direction: int) -> Box | None:
    """Return the box of the given direction, from that of removal."""
    return box if box is None or direction == 0 else Box(box.second, box.first, box.old)


def sums_of(boxes: Sequence[Box]) -> tuple[Logs, Logs]:
    """Return the sums of the logarithms of several boxes, rounded outwards."""
    return _sum([box.first for box in boxes]), _sum([box.second for box in boxes])


def _sum(logs: Sequence[Logs]) -> Logs:
    least, largest = (math.fsum(ends) for ends in zip(NOTHING, *logs, strict=True))
    return Logs(least * (1.0 - U), up(largest))


def joined(boxes: Sequence[Box | None]) -> Box | None:
    """Return the product of boxes."""
    found = [box for box in boxes if box is not None]
    if len(found) < len(boxes):
        return None
    return Box(*sums_of(found), tuple(part for box in found for part in box.old))


def rows_box(
    noise: DiscreteLaplace, tau: float, max_rows: int, ends: Sequence[tuple[int, int]]
) -> Box | None:
    """Return what dominates m rows in j new keys (Theorem N7), between the ends of j and m."""
    (j_low, j_high), (m_low, m_high) = ends
    j_low, j_high, m_low = max(j_low, min(m_low, 1)), min(j_high, m_high), max(m_low, j_low)
    if j_low > j_high or m_low > m_high:
        return None
    hidden = NOTHING
    if j_high:
        full = hiding(noise, tau, float(m_high - max(j_low, 1) + 1))
        others = hiding(noise, tau, 1.0).times(j_high - 1)
        hidden = _sum([full, others])
    rows = max_rows - m_low
    old = replace(noise, sensitivity=rows, relation=ADD_OR_REMOVE)
    return Box(hidden, NOTHING, ((old.pairs()[0], 1),) if rows else ())


def weighted_box(noise: Gaussian, tau: float, ends: Sequence[tuple[int, int]]) -> Box | None:
    """Return what dominates j new ones of s keys (Theorem N9), between the ends of s and j."""
    (s_low, s_high), (j_low, j_high) = ends
    j_high, s_low = min(j_high, s_high), max(s_low, j_low)
    if j_low > j_high or s_low > s_high:
        return None
    unit = noise.sensitivity
    count = unit / math.sqrt(s_low)
    least, most = (hiding(noise, tau, count * (1.0 + side)) for side in (-(2.0**-51), 2.0**-51))
    hidden = Logs(least.least, most.largest).times(j_high)
    share = (s_high - j_low) / s_high
    if not share or not unit:
        return Box(hidden, NOTHING, ())
    if j_low == 0:
        return Box(hidden, NOTHING, ((noise.under(ADD_OR_REMOVE).pairs()[0], 1),))
    # The quotient, the root and the product lose less than three units.
    moved = up(lift(unit * math.sqrt(share)), 3.0)
    sigma = ratio_down(noise.noise_multiplier, moved)
    return Box(hidden, NOTHING, ((GaussianPair(sigma, exact=False), 1),))
