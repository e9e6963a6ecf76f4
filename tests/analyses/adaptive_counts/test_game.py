"""The worst strategy within a capacity, against all strategies in exact rational numbers."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant.analyses import adaptive_counts
from accountant.analyses.adaptive_counts import (
    Lattice,
    Law,
    Packet,
    capacity,
    lifted,
    power,
    single,
    worst_deltas,
)

UNIT = 0.25
# e^UNIT from below and above: every hockey-stick below is exact for a unit within the two.
LOW, HIGH = Fraction(1284025416, 10**9), Fraction(1284025417, 10**9)


def coin(k, leak=0.0):
    return ac.ApproximateDP(k * UNIT, delta=leak) if leak else ac.RandomizedResponse(k * UNIT)


def exact_value(coins, epsilon, units, leak=Fraction(0)):
    """Return a lower bound on the best strategy's δ: exact for a unit slightly off.

    ``coins`` has (k, releases, cost): randomised responses of loss ±k units, so many to a packet,
    each of which gives everything away with probability ``leak``.
    """

    def heads(k):
        return LOW**k / (1 + LOW**k)

    def packet(k, releases):
        law = {0: Fraction(1)}
        for _ in range(releases):
            after = {}
            for loss, mass in law.items():
                for sign, chance in ((k, heads(k)), (-k, 1 - heads(k))):
                    after[loss + sign] = after.get(loss + sign, Fraction(0)) + mass * chance
            law = after
        return law

    @functools.cache
    def value(loss, left):
        best = max(Fraction(0), 1 - LOW ** (epsilon - loss))
        for k, releases, cost in coins:
            if cost <= left:
                keep = (1 - leak) ** releases
                seen = sum(m * value(loss + x, left - cost) for x, m in packet(k, releases).items())
                best = max(best, keep * seen + 1 - keep)
        return best

    return value(0, units)


GAMES = [
    ([(1, 1, 1), (2, 1, 4), (4, 1, 16)], 4, 18),
    ([(1, 2, 2), (2, 1, 3)], 4, 12),
    ([(1, 3, 1), (4, 1, 3)], 6, 8),
    ([(4, 2, 1)], 4, 3),
]


@pytest.mark.parametrize(("coins", "epsilon", "units"), GAMES, ids=repr)
@pytest.mark.parametrize("leak", [0.0, 2.0**-20])
def test_the_value_of_a_game_is_an_upper_bound_and_close(coins, epsilon, units, leak):
    truth = exact_value(coins, epsilon, units, Fraction(leak))
    for direction in (0, -1):
        packets = [Packet(coin(k, leak).pairs()[direction], r, u) for k, r, u in coins]
        lattice = Lattice(UNIT / 16, -160, 320)
        found = worst_deltas(packets, epsilon * UNIT, 2.0, lattice, units)
        assert len(found) == units + 1
        assert found == sorted(found)
        # The rational unit is within 1e-9 of the true one.
        assert Fraction(found[-1]) >= truth - Fraction(1, 10**8)
        assert found[-1] <= float(truth) * 1.01 + 1e-6


class Blurred:
    """A pair whose losses may be larger than said by ``loss_error`` each."""

    loss_error = UNIT

    def __init__(self, pair):
        self._pair = pair

    def __getattr__(self, name):
        return getattr(self._pair, name)


def test_the_errors_of_all_releases_of_mixed_packets_are_covered():
    # Three units hold a packet of three releases and one of one: four losses, each a unit too low.
    pair = Blurred(coin(1).pairs()[0])
    packets = [Packet(pair, 3, 2), Packet(pair, 1, 1)]
    found = worst_deltas(packets, 4 * UNIT, 2.0, Lattice(UNIT / 16, -160, 320), 3)
    p = LOW / (1 + LOW)
    truth = sum(
        math.comb(4, k) * p**k * (1 - p) ** (4 - k) * max(Fraction(0), 1 - LOW ** (4 - 2 * k))
        for k in range(5)
    )
    assert Fraction(found[-1]) >= truth - Fraction(1, 10**8)


def test_the_game_is_worth_more_than_every_fixed_composition():
    # What makes a filter necessary: choosing after each outcome reaches more than any fixed mix.
    coins, epsilon, units = GAMES[0]
    mixes = [
        [(1, n1, 1), (2, n2, 1), (4, n4, 1)]
        for n4 in range(2)
        for n2 in range(5 - 4 * n4)
        for n1 in [units - 16 * n4 - 4 * n2]
    ]
    fixed = []
    for mix in mixes:
        parts = tuple((coin(k), n) for k, n, _ in mix if n)
        fixed.append(ac.Composition(parts).delta(epsilon * UNIT))
    assert float(exact_value(coins, epsilon, units)) > 1.01 * max(fixed)


def hockey_stick(law, epsilon):
    x = law.spacing * (law.first + np.arange(len(law.masses)))
    return float((law.masses * np.maximum(-np.expm1(epsilon - x), 0.0)).sum()) + law.infinite


@pytest.mark.parametrize("count", [1, 2, 7, 64])
@pytest.mark.parametrize(
    "mechanism",
    [
        ac.PoissonSampled(ac.Gaussian(1.0), 0.01),
        ac.PoissonSampled(ac.Gaussian(0.8), 0.05),
        ac.Gaussian(30.0),
        ac.Laplace(20.0),
        ac.ApproximateDP(0.05, delta=1e-7),
        ac.RandomizedResponse(0.1, k=3),
    ],
    ids=repr,
)
def test_a_power_is_an_upper_law_and_close(mechanism, count):
    whole = ac.Composition(((mechanism, count),))
    for direction in (0, -1):
        pair = mechanism.pairs()[direction]
        law = power(pair, count, 0.01, 1e-9)
        assert (law.masses >= 0.0).all()
        for epsilon in (0.0, 0.1, 0.5, 1.5):
            bounds = whole.delta_bounds(epsilon)
            found = hockey_stick(law, epsilon)
            if len(mechanism.pairs()) == 1:
                assert found >= float(bounds.lower) * (1 - 1e-12)
            assert found <= float(bounds.upper) * 1.05 + 2e-4
    both = [hockey_stick(power(p, count, 0.01, 1e-9), 0.5) for p in mechanism.pairs()]
    assert max(both) >= float(whole.delta_bounds(0.5).lower) * (1 - 1e-12)


def test_a_lifted_law_is_an_upper_law_with_all_its_mass():
    law = power(ac.PoissonSampled(ac.Gaussian(0.8), 0.1).pairs()[-1], 7, 0.01, 1e-9)
    for share in (0.0, 1e-12, 1e-3, 0.5, 2.0):
        found = lifted(law, share)
        moved = found.first - law.first
        assert found.first + len(found.masses) == law.first + len(law.masses)
        assert (found.masses[1:] >= law.masses[moved + 1 :]).all()
        assert found.masses[0] >= math.fsum(law.masses[: moved + 1])
        assert math.fsum(law.masses[:moved]) <= share
        assert found.infinite == law.infinite
    assert len(lifted(law, 1e-3).masses) < len(law.masses)


def test_one_release_is_close_to_its_pair_and_above_it():
    pair = ac.PoissonSampled(ac.Gaussian(0.8), 0.1).pairs()[0]
    law = single(pair, 0.001, 1e-12)
    assert isinstance(law, Law)
    truth = ac.PoissonSampled(ac.Gaussian(0.8), 0.1)
    for epsilon in (0.05, 0.3, 1.0, 2.0):
        assert hockey_stick(law, epsilon) >= float(truth.delta_bounds(epsilon).lower) * (1 - 1e-12)


def test_a_capacity_is_the_last_that_fits():
    packets = [Packet(coin(1).pairs()[0], 1, 1)]
    lattice = Lattice(UNIT / 8, -100, 200)
    found = worst_deltas(packets, 1.0, 0.1, lattice, 60)
    most = capacity(packets, 1.0, 0.1, lattice, 60)
    assert found[most] <= 0.1 < found[most + 1]
    assert capacity(packets, 1.0, 0.1, lattice, 3) == 3
    assert capacity(packets, 1.0, 0.5, lattice, 5) == 5


def test_the_payoff_is_rounded_up():
    lattice = Lattice(0.1, -50, 50)
    payoff = adaptive_counts._payoff(lattice, 1.0)
    for k, value in zip(range(-50, 51), payoff, strict=True):
        assert value >= max(0.0, -math.expm1(1.0 - k * 0.1)) * (1 - 2**-53)
