"""Mixtures of orders: what is accepted keeps (ε, δ), by a search over losses in high precision."""

import math
import random

import mpmath
import pytest

from accountant.analyses.moments import is_within, used


def worst(logs, below, epsilon):
    """Return sup over losses of (1 - e^(ε - x)) over the mixture Σ w_j·e^(b_j·x - k_j)."""
    with mpmath.workdps(40):
        epsilon = mpmath.mpf(epsilon)
        rows = [(mpmath.mpf(k), mpmath.mpf(b)) for k, b in zip(logs, below, strict=True)]

        def log_ratio(x):
            whole = sum(mpmath.exp(b * x - k) for k, b in rows) / len(rows)
            return mpmath.log(-mpmath.expm1(epsilon - x)) - mpmath.log(whole)

        # Concave less convex: one maximum.
        low, high = epsilon + mpmath.mpf(10) ** -15, epsilon + 60
        for _ in range(300):
            one, two = low + (high - low) / 3, high - (high - low) / 3
            low, high = (one, high) if log_ratio(one) < log_ratio(two) else (low, two)
        return mpmath.exp(log_ratio((low + high) / 2))


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("seed", range(40))
def test_what_is_accepted_keeps_the_budget_and_little_more_would(seed):
    coins = random.Random(seed)
    epsilon, delta = coins.choice([0.05, 0.5, 1.0, 4.0, 30.0]), 10 ** -coins.uniform(0.3, 12)
    orders = coins.choice([1, 2, 3, 7])
    below = [math.exp(coins.uniform(-1.0, 1.0)) * 8.0 / epsilon for _ in range(orders)]
    logs = [b * (b + 1.0) * coins.uniform(0.5, 2.0) for b in below]
    part = used(logs, below, epsilon, delta)
    if part == math.inf:
        return  # no order leaves anything to spend
    just = [k / part * (1.0 - 1e-9) for k in logs]
    assert is_within(just, below, epsilon, delta)
    assert worst(just, below, epsilon) <= delta
    more = [k / part * (1.0 + 1e-6) for k in logs]
    assert not is_within(more, below, epsilon, delta)
    assert worst(more, below, epsilon) > delta * (1.0 - 1e-3)


def test_one_order_is_the_usual_conversion():
    b, epsilon, delta = 9.0, 1.0, 1e-5
    order = b + 1.0
    most = b * (epsilon - math.log1p(-1.0 / order)) + math.log(delta * order)
    assert is_within([most * (1.0 - 1e-12)], [b], epsilon, delta)
    assert not is_within([most * (1.0 + 1e-12)], [b], epsilon, delta)


def test_several_orders_allow_more_than_equal_parts_of_delta():
    below, epsilon, delta = [14.0, 18.0, 22.0], 1.0, 1e-6
    logs = [b * (b + 1.0) for b in below]
    together = used(logs, below, epsilon, delta)
    apart = min(used([k], [b], epsilon, delta / 3) for k, b in zip(logs, below, strict=True))
    alone = min(used([k], [b], epsilon, delta) for k, b in zip(logs, below, strict=True))
    assert alone < together < 0.97 * apart


def test_degenerate_sums():
    assert is_within([0.0, 0.0], [1.0, 9.0], 1.0, 0.5)
    assert used([0.0], [9.0], 1.0, 1e-5) == 0.0
    assert not is_within([math.inf], [9.0], 1.0, 1e-5)
    assert used([math.inf], [9.0], 1.0, 1e-5) == math.inf
    assert is_within([math.inf, 1.0], [9.0, 20.0], 1.0, 1e-5)
    assert not is_within([1e300, 1e300], [9.0, 20.0], 1.0, 1e-5)
    for delta in (1e-300, 0.9):
        part = used([1.0, 2.0], [900.0, 1200.0], 1.0, delta)
        assert 0.0 < part < 1.0
