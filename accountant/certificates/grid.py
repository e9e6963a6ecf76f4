"""Chooses knots on which the checker composes laws (Theorem K5), and the ε that they show.

A search in floating point: it repeats what the checker will do in integers, and proves nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from accountant._typing import FloatArray
from accountant.analyses.pld.spacings import common_spacing
from accountant.certificates.grid_law import Knots, composed, profile
from accountant.pairs.base import DominatingPair, Parts, has_pld

# The checker takes some seconds for so many knots times products.
MOST_KNOTS, MOST_WORK = 100_000, 1_200_000
FEWEST = 1000
# The logarithm of what is outside the knots, as a share of δ.
OUTSIDE = -28.0
# What rounding of each step may take of δ here, several times of what was seen.
ROUNDING = 2e-13
# A relative excess of ε that needs no finer grid, and the least ones that are tried for.
ENOUGH = 1e-6
# The largest tilt, in units of 1/spacing.
STEEPEST = 4.0
# Sizes of losses from which moments are computed, and their orders.
SIZES = np.logspace(-14.0, 3.0, 680)
ORDERS = np.logspace(-4.0, 12.0, 161)


class Found(NamedTuple):
    """The ε of the knots in one direction, and the evidence."""

    epsilon: float
    evidence: dict[str, Any]


def find_grid(parts: Parts, epsilon: float, delta: float) -> Found | None:
    """Return an ε slightly above ``epsilon`` that a grid shows, None if there is no such grid."""
    if not all(has_pld(pair) for pair, _ in parts):
        return None
    tilt, low, high = _window(parts, epsilon, math.log(delta))
    if not low <= 0.0 <= high or not math.isfinite(tilt):
        return None
    products = sum(2 * count.bit_length() for _, count in parts)
    most = min(MOST_KNOTS, MOST_WORK // products)
    unit, size, best = _lattice(parts), FEWEST, None
    for _ in range(4):
        spacing = (high - low) / size
        if unit is not None and unit / spacing > 0.5:
            spacing = unit / math.ceil(unit / spacing)
        knots = Knots(spacing, math.floor(low / spacing), math.ceil(high / spacing))
        if not 0 < knots.high - knots.low <= 1.5 * most:
            break
        # Next to the largest loss the best tilt is infinite: only losses rounded up would be left.
        least = _epsilon(parts, knots, min(tilt, STEEPEST / spacing), epsilon, delta)
        if least is not None and (best is None or least < best.epsilon):
            best = Found(least, knots.listed(math.log(delta), sum(n for _, n in parts)))
        excess = math.inf if least is None else (least - epsilon) / (epsilon or 1.0)
        if excess <= ENOUGH or size == most:
            break
        finer = min(1.3 * math.sqrt(excess / ENOUGH), 16.0)
        size = min(math.ceil(size * max(finer, 2.0)), most)
    return best


def _lattice(parts: Parts) -> float | None:
    """Return a spacing whose multiples are all losses, None if there is none."""
    spacings = []
    for pair, _ in parts:
        if pair.lattice is None:
            continue
        offset, spacing = pair.lattice
        spacings += [each for each in (abs(offset), spacing) if each > 0.0]
    return common_spacing(spacings) if spacings else None


def _window(parts: Parts, epsilon: float, log_delta: float) -> tuple[float, float, float]:
    """Return the tilt that is best at ε, and losses below and above which hardly any sum is."""
    up, down = np.zeros(ORDERS.size), np.zeros(ORDERS.size)
    bottom = sum(count * pair.support[0] for pair, count in parts)
    top = sum(count * pair.support[1] for pair, count in parts)
    # No other steps bring a loss above this back to ε, and the profile beyond it needs no knots.
    most = 1.001 * (epsilon - bottom)
    for pair, count in parts:
        loss, mass = _coarse(pair)
        loss, mass = loss[loss <= most], mass[loss <= most]
        up += count * _log_moments(loss, mass, ORDERS)
        down += count * np.maximum(_log_moments(loss, mass, -ORDERS), 0.0)
    with np.errstate(invalid="ignore"):
        k = int(np.nanargmin(np.where(np.isfinite(up), up - ORDERS * epsilon, np.inf)))
        tilt, size = float(ORDERS[k]), float(up[k] - ORDERS[k] * epsilon)
        high = float(
            np.nanmin(np.where(np.isfinite(up), (up - log_delta - OUTSIDE) / ORDERS, np.inf))
        )
        below = down + size - log_delta - OUTSIDE
        low = float(np.nanmax(np.where(np.isfinite(below), -below / (ORDERS + tilt), -np.inf)))
    high = max(min(high, top, most), 1.001 * epsilon)
    return tilt, min(max(low, bottom), 0.0), high


def _coarse(pair: DominatingPair) -> tuple[FloatArray, FloatArray]:
    """Return finite losses, or ones of all magnitudes, and their masses."""
    table = pair.loss_atoms
    if table is not None:
        return table.loss, table.p
    edges = np.concatenate([-SIZES[::-1], [0.0], SIZES])
    low, high = pair.support
    edges = edges[(edges > low) & (edges < high)]
    ends = [end for end in (low, high * (1.0 + 1e-12)) if math.isfinite(end)]
    edges = np.unique(np.append(edges, ends))
    middles = np.append(edges[0], 0.5 * (edges[1:] + edges[:-1]))
    return middles, pair.masses(edges).p[:-1]


def _log_moments(loss: FloatArray, mass: FloatArray, orders: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", over="ignore"):
        log_mass = np.log(mass)
        return np.asarray(np.logaddexp.reduce(log_mass + orders[:, None] * loss, axis=1))


def _epsilon(parts: Parts, knots: Knots, tilt: float, epsilon: float, delta: float) -> float | None:
    """Return the least ε of the composed law on the knots, rounded up; None if it is far off."""
    law = composed(parts, knots, tilt)
    target = delta * (1.0 - 1e-7 - min(ROUNDING * sum(n for _, n in parts), 0.1))
    low, high = epsilon, epsilon + max(0.01 * epsilon, 1e-3 if epsilon == 0.0 else 0.0)
    if not profile(law, knots, tilt, high) <= target:
        return None
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = profile(law, knots, tilt, middle) <= target
        low, high = (low, middle) if inside else (middle, high)
    return high
