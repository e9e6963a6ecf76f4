"""Bounds by Rényi divergences, and by adding up the largest losses, after every or some releases.

Infinite losses are kept apart, at the price of their probability in δ (Theorem L8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant.analyses import renyi_conversion
from accountant.analyses.over_steps.history import (
    MAX_DISTINCT,
    Counts,
    Part,
    Steps,
    check_length,
    divergences,
    gaussian_setting,
    weighted,
)
from accountant.composition.problems import symmetrised_pairs
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair

ORDERS = tuple(1.0 + 2.0 ** (k / 2.0) for k in range(-2, 15))
# The orders for some prefixes only, where no coarse pass tells which of them matter.
FIXED_ORDERS = (1.0 + np.geomspace(0.05, 2.0**12, 80)).tolist()

# Different Gaussian steps in the coarse pass.
_COARSE = 40

# Of a curve at an order, some twenty microseconds each.
EVALUATIONS = 7_200
FEW = 2_400


def pointwise(history: Steps, delta: float, evaluations: int = EVALUATIONS) -> FloatArray:
    """Bound ε(delta) of every prefix by Rényi divergences, and by adding up the largest losses.

    A coarse pass finds which orders matter to some prefix; the answer is from a fine grid of those.
    Infinite losses are kept apart, at the price of their probability in ``delta`` (Theorem L8).
    """
    check_length(history)
    masses = infinite_masses(history)
    left = None if masses is None else np.nextafter(delta - masses, -np.inf)

    def convert(order: float, spent: FloatArray) -> FloatArray:
        return _epsilon(order, spent, delta if left is None else left)

    coarse = _converted(history, ORDERS, convert, _COARSE, finite=True)
    if not coarse:
        return np.zeros(0)
    winners = np.unique(np.argmin([np.maximum(*rows) for rows in coarse], axis=0))
    low = ORDERS[max(int(winners[0]) - 1, 0)] - 1.0
    high = ORDERS[min(int(winners[-1]) + 1, len(ORDERS) - 1)] - 1.0
    distinct = min(len({item.mechanism for item in history}), MAX_DISTINCT)
    orders = 1.0 + np.geomspace(low, high, min(max(evaluations // distinct, 12), 96))
    curve = least_over_orders(history, orders.tolist(), convert, finite=True)
    added = largest_losses(history)
    if masses is not None:
        added[masses > delta] = math.inf
    return np.minimum(curve, added)


def at_prefixes(prefixes: Sequence[Counts], delta: float) -> FloatArray:
    """Bound ε(delta) of some prefixes by Rényi divergences at the best of a few orders."""
    mechanisms = list(dict.fromkeys(mechanism for counts in prefixes for mechanism, _ in counts))
    places = {mechanism: k for k, mechanism in enumerate(mechanisms)}
    table = divergences(mechanisms, FIXED_ORDERS, len(mechanisms), finite=True)
    result = []
    for counts in prefixes:
        spent = weighted(
            table[[places[mechanism] for mechanism, _ in counts]],
            np.array([float(count) for _, count in counts]),
        )
        masses = infinite_masses([Part(*item) for item in counts])
        left = delta if masses is None else math.nextafter(delta - float(masses[-1]), -math.inf)
        if not left > 0.0:
            result.append(math.inf)
            continue
        rows = [_epsilon(order, row, left) for order, row in zip(FIXED_ORDERS, spent, strict=True)]
        # The best order of each direction, and the worse direction.
        result.append(max(float(np.min(rows, axis=0).max()), 0.0))
    return np.array(result)


def _epsilon(order: float, spent: FloatArray, delta: float | FloatArray) -> FloatArray:
    """Convert divergences of one order at one δ, or at one for each."""
    if isinstance(delta, float):
        added: float | FloatArray = renyi_conversion.excess_upper(order, delta)
    else:
        added = renyi_conversion.excesses_upper(order, delta)
    # One more rounding, of the sum.
    return np.nextafter(spent + added, np.inf)


def infinite_masses(history: Steps) -> FloatArray | None:
    """Bound the probability of an infinite loss in each prefix; None where there is none."""
    each = _by_mechanism(history, lambda pairs: max(pair.infinite_mass for pair in pairs), 0.0)
    if not each.any():
        return None
    with np.errstate(divide="ignore"):
        rates = -np.log1p(-np.minimum(each, 1.0)) * (1.0 + 2.0**-48)
    spent = _running(rates, [item.count for item in history])
    return np.asarray(np.minimum(-np.expm1(-spent) * (1.0 + 2.0**-48), 1.0))


def largest_losses(history: Steps) -> FloatArray:
    """Bound the largest finite loss of each prefix, infinite for Gaussian noise."""
    each = _by_mechanism(
        history, lambda pairs: max(0.0, *(pair.support[1] for pair in pairs)), math.inf
    )
    return _running(each, [item.count for item in history])


def _by_mechanism(
    history: Steps, measure: Callable[[Sequence[DominatingPair]], float], gaussian: float
) -> FloatArray:
    """Return what ``measure`` says of each entry's pairs, and ``gaussian`` for Gaussian steps."""
    known: dict[Mechanism, float] = {}
    for item in history:
        if item.mechanism not in known:
            plain = gaussian_setting(item.mechanism) is not None
            known[item.mechanism] = (
                gaussian if plain else measure(symmetrised_pairs(item.mechanism))
            )
    return np.array([known[item.mechanism] for item in history])


def least_over_orders(
    history: Steps,
    orders: Sequence[float],
    convert: Callable[[float, FloatArray], FloatArray],
    finite: bool = False,
) -> FloatArray:
    """Return the least converted divergence over orders, the worse direction, after each release.

    ``convert(order, spent)`` turns divergences spent at an order into ε. ``finite`` ones are those
    of finite losses alone.
    """
    best: list[FloatArray] | None = None
    for rows in _converted(history, orders, convert, MAX_DISTINCT, finite):
        best = rows if best is None else [np.minimum(a, b) for a, b in zip(best, rows, strict=True)]
    return np.zeros(0) if best is None else np.maximum(np.maximum(*best), 0.0)


def _converted(
    history: Steps,
    orders: Sequence[float],
    convert: Callable[[float, FloatArray], FloatArray],
    distinct: int,
    finite: bool = False,
) -> list[list[FloatArray]]:
    """Return, for each order and direction, what ``convert`` makes of the running sums."""
    check_length(history)
    counts = [item.count for item in history]
    if not counts:
        return []
    table = divergences([item.mechanism for item in history], orders, distinct, finite)
    return [
        [convert(a, _running(table[:, j, d], counts)) for d in (0, 1)] for j, a in enumerate(orders)
    ]


def _running(each: FloatArray, counts: Sequence[int]) -> FloatArray:
    """Return running sums of ``each`` repeated ``counts`` times, rounded up."""
    steps = np.repeat(each, counts)
    # n additions of terms >= 0, each off by at most 2**-53 of the sum.
    with np.errstate(over="ignore"):
        return np.cumsum(steps) * (1.0 + (len(steps) + 2.0) * 2.0**-52)
