"""Odometers against an adversary who chooses every next mechanism, and when to stop."""

import functools
import math

import mpmath
import pytest

from accountant.analyses import renyi_conversion
from accountant.ledger import Accountant, Odometer
from support.toy_mechanisms import Coin, Noise

UNIT = 0.25


def test_no_adaptive_strategy_beats_an_odometer():
    """The probability that the loss ever exceeds the reading, maximised over strategies."""
    delta, orders, sizes, depth = 0.05, (2.0, 4.0, 8.0), (1, 2, 4), 12
    divergence = {k: [Coin(k * UNIT).pairs()[0].rdp(a) for a in orders] for k in sizes}
    offset = [renyi_conversion.mironov_upper(a, 0.0, delta / 3) for a in orders]

    def worst(scale):
        @functools.cache
        def value(loss, counts, left):
            spent = [
                sum(n * divergence[k][j] for n, k in zip(counts, sizes, strict=True))
                for j in range(3)
            ]
            reading = min(s + o for s, o in zip(spent, offset, strict=True))
            if sum(counts) and loss * UNIT > scale * reading:
                return 1.0
            best = 0.0
            if left:
                for i, k in enumerate(sizes):
                    after = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
                    p = 1.0 / (1.0 + math.exp(-k * UNIT))
                    best = max(
                        best,
                        p * value(loss + k, after, left - 1)
                        + (1 - p) * value(loss - k, after, left - 1),
                    )
            return best

        return value(0, (0,) * len(sizes), depth)

    assert worst(1.0) <= delta
    assert worst(0.5) > delta


def test_the_odometer_is_above_the_pointwise_bound_and_monotone():
    ledger = Accountant()
    for k in range(20):
        ledger.compose(Noise(5.0 + k), 3)
    readings = Odometer(1e-5).over_steps(ledger)
    assert readings.shape == (60,)
    assert (readings[1:] >= readings[:-1]).all()
    assert (readings >= ledger.epsilon_over_steps(1e-5)).all()
    assert Odometer(1e-5).epsilon(ledger) == pytest.approx(readings[-1], rel=1e-12)
    assert Odometer(1e-5).epsilon(Accountant()) == 0.0


def test_odometer_readings_against_mpmath():
    ledger = Accountant()
    ledger.compose(Noise(10.0), 7)
    ledger.compose(Coin(0.5), 2)
    odometer = Odometer(1e-5, orders=[2.0, 9.5])
    with mpmath.workdps(40):
        for n, reading in enumerate(odometer.over_steps(ledger), start=1):
            gaussians, coins = min(n, 7), max(0, n - 7)
            truths = []
            for a in (2.0, 9.5):
                e = mpmath.mpf(0.5)
                p = mpmath.exp(e) / (1 + mpmath.exp(e))
                coin = mpmath.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
                spent = gaussians * a / mpmath.mpf(200) + coins * coin
                truths.append(spent + mpmath.log(2 / mpmath.mpf(1e-5)) / (a - 1))
            assert min(truths) <= reading <= min(truths) * (1 + 1e-9)
