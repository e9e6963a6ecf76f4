"""Whether sums of log-moments at several orders keep an (ε, δ), by one mixture of them.

Theorem L17: with equal weights w fixed in advance, and sums k_j of log-moments at b_j = α_j - 1,
any probabilities p with s = Σ p_j·b_j and

    Σ p_j·(k_j + log(p_j/w_j)) + log c_s <= s·ε + log δ,    c_s = s^s / (1 + s)^(1 + s),

certify (ε, δ). The best p is found by bisection; what it gives is evaluated once, with its
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from accountant._rounding import U

# The certificate is flat at its best: half the digits of x are enough.
_HALVINGS = 26
_DIGITS = 40


def is_within(logs: Sequence[float], below: Sequence[float], epsilon: float, delta: float) -> bool:
    """Tell whether log-moments at orders 1 + ``below`` are certified to keep (ε, δ).

    ``logs`` >= 0 are upper bounds, perhaps infinite; ``delta`` > 0.
    """
    rows = [(k, b) for k, b in zip(logs, below, strict=True) if k < math.inf]
    if not rows:
        return False
    low = epsilon + math.log1p(1.0 / max(b for _, b in rows))
    high = epsilon + math.log1p(1.0 / min(b for _, b in rows))
    for _ in range(_HALVINGS):
        x = 0.5 * (low + high)
        s = _mean(_weights(rows, x), rows)
        low, high = (low, x) if x > epsilon + math.log1p(1.0 / s) else (x, high)
    return _excess(_weights(rows, low), rows, len(logs), epsilon, delta) <= 0.0


def used(logs: Sequence[float], below: Sequence[float], epsilon: float, delta: float) -> float:
    """Return the least t, rounded up, such that ``logs`` / t keep (ε, δ); infinite above 2**40."""
    if not any(logs):
        return 0.0

    def fits(part: float) -> bool:
        return is_within([k / part * (1.0 + 2.0 * U) for k in logs], below, epsilon, delta)

    high = 1.0
    while not fits(high):
        high *= 2.0
        if high > 2.0**40:
            return math.inf
    low = 0.5 * high
    while high <= 1.0 and low > 2.0**-40 and fits(low):
        low, high = 0.5 * low, low
    for _ in range(_DIGITS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _weights(rows: Sequence[tuple[float, float]], x: float) -> list[float]:
    """Return the probabilities proportional to e^(b·x - k)."""
    exponents = [b * x - k for k, b in rows]
    most = max(exponents)
    found = [math.exp(each - most) for each in exponents]
    whole = math.fsum(found)
    return [each / whole for each in found]


def _mean(weights: Sequence[float], rows: Sequence[tuple[float, float]]) -> float:
    return math.fsum(p * b for p, (_, b) in zip(weights, rows, strict=True))


def _excess(
    weights: Sequence[float],
    rows: Sequence[tuple[float, float]],
    orders: int,
    epsilon: float,
    delta: float,
) -> float:
    """Return the left side of the condition less the right side, rounded up."""
    s = _mean(weights, rows)
    moments = math.fsum(p * k for p, (k, _) in zip(weights, rows, strict=True))
    apart = [p * math.log(p * orders) for p in weights if p > 0.0]
    tail = s * math.log1p(1.0 / s) + math.log1p(s)  # -log c_s
    terms = (moments, math.fsum(apart), -tail, -s * epsilon, -math.log(delta))
    sizes = moments + math.fsum(map(abs, apart)) + tail + s * epsilon + abs(math.log(delta)) + 1.0
    # The weights add up to one but for their rounding, which changes each sum by a like part.
    return math.fsum(terms) + (2.0 * len(rows) + 64.0) * U * sizes
