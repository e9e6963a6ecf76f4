"""What dominates a set of alternatives: the most keys that stay hidden, and the most old keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from accountant._basics.rounding import U, lift, ratio_down, up
from accountant.mechanisms.discrete import DiscreteLaplace
from accountant.mechanisms.gaussian import Gaussian, GaussianPair
from accountant.mechanisms.shown import NOTHING, Logs, hiding
from accountant.pairs.base import Parts
from accountant.relations import NeighbouringRelation

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE


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
    sums = [
        Logs(
            math.fsum(log.least for log in logs) * (1.0 - U),
            up(math.fsum(log.largest for log in logs)),
        )
        for logs in ([box.first for box in boxes], [box.second for box in boxes])
    ]
    return sums[0], sums[1]


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
        hidden = Logs((full.least + others.least) * (1.0 - U), up(full.largest + others.largest))
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
    least, most = (
        hiding(noise, tau, unit / math.sqrt(s_low) * (1.0 + side * 2.0**-51))
        for side in (-1.0, 1.0)
    )
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
