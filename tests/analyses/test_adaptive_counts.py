"""The worst strategy within a capacity, and its expectations, against exact rational numbers."""

import functools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant.analyses import adaptive_counts
from accountant.analyses.adaptive_counts import (
    Lattice,
    Law,
    Offer,
    Packet,
    _sum,
    capacity,
    cut,
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


def exact(value, law, knot):
    """The expectation at a knot: below the lattice its end, above it 1."""
    found = Fraction(law.infinite)
    for k, mass in enumerate(law.masses):
        place = knot + law.first + k
        at = 1.0 if place >= len(value) else value[max(place, 0)]
        found += Fraction(float(mass)) * Fraction(float(at))
    return found


def law_of(coins, first, size, infinite):
    masses = np.array([coins.random() ** 8 * 10.0 ** coins.randrange(-12, 0) for _ in range(size)])
    return Law(0.1, first, masses, infinite)


@pytest.mark.parametrize("knots", [1, 5, 63, 64, 65, 200])
def test_never_below_the_exact_expectation_and_hardly_above(knots):
    coins = random.Random(knots)
    value = np.sort(np.array([coins.random() ** 20 for _ in range(knots)]))
    cases = [
        [(-3, 7, 1e-9)],
        [(0, 1, 0.0), (4, 3, 0.5)],
        [(-300, 20, 0.0)],  # wholly below
        [(500, 4, 1e-3)],  # wholly beyond
        [(-250, 700, 1e-12), (2, 9, 0.0), (-1, 1, 0.25)],
        [(150, 100, 0.0), (-150, 100, 0.0)],
    ]
    for case in cases:
        laws = [law_of(coins, *each) for each in case]
        found = Offer(laws, knots).best(value)
        assert found.shape == value.shape
        for knot in {0, knots // 2, knots - 1, *(coins.randrange(knots) for _ in range(3))}:
            best = max(exact(value, law, knot) for law in laws)
            assert Fraction(float(found[knot])) >= best
            assert found[knot] <= float(best) * (1.0 + 1e-12) + 1e-300


@pytest.mark.parametrize("tiny", [1e-12, 1e-6, 1e-2])
def test_what_hardly_rises_is_answered_from_above(tiny):
    coins = random.Random(1)
    value = np.sort(np.array([coins.random() ** 60 for _ in range(700)]))
    for laws in (
        [law_of(coins, -30, 60, 1e-9)],
        [law_of(coins, -3, 9, 0.0), law_of(coins, 1, 1, 0.0)],
    ):
        plain, found = Offer(laws, 700).best(value), Offer(laws, 700).best(value, tiny)
        # Fewer rows may be summed in another order.
        assert (found >= plain * (1.0 - 1e-12)).all()
        top = int(np.searchsorted(value, value[0] + tiny, "right"))
        assert found[0] <= (value[0] + tiny) * 1.01 * max(law.masses.sum() for law in laws) + 1e-9
        assert found[top:] == pytest.approx(plain[top:], rel=1e-12, abs=0.0)
        assert tiny < 1e-3 or found[0] > plain[0]  # some rows were left out
        for knot in (0, top // 2, top, 699):
            best = max(exact(value, law, knot) for law in laws)
            assert Fraction(float(found[knot])) >= best


def test_products_that_underflow_are_not_lost():
    value = np.array([1e-200, 1e-180, 1e-170])
    law = Law(0.1, 0, np.array([1e-200, 1e-150]), 0.0)
    found = Offer([law], 3).best(value)
    assert all(Fraction(float(x)) >= exact(value, law, k) for k, x in enumerate(found))


def spikes(coins, first, last, count):
    masses = np.zeros(last - first + 1)
    for _ in range(count):
        masses[coins.randrange(len(masses))] = coins.random() / count
    return Law(0.1, first, masses, 1e-9)


def test_laws_of_few_masses_are_summed_mass_by_mass():
    coins = random.Random(2)
    value = np.sort(np.array([coins.random() for _ in range(500)]))
    laws = [spikes(coins, -200, 250, 9), spikes(coins, -400, 20, 5)]
    offer = Offer(laws, 500)
    assert offer._laws.size == 0
    found = offer.best(value)
    for knot in range(0, 500, 37):
        best = max(exact(value, law, knot) for law in laws)
        assert best <= Fraction(float(found[knot])) <= best * (1 + Fraction(1, 10**10))


def test_sums_of_few_masses_need_no_product_of_all(monkeypatch):
    coins = random.Random(3)
    a, b = spikes(coins, -300, 200, 6), spikes(coins, -100, 400, 7)
    monkeypatch.setattr(np, "convolve", None)
    found = _sum(a, b)
    assert found.first == -400
    for k in np.flatnonzero(found.masses).tolist():
        truth = sum(
            Fraction(float(x)) * Fraction(float(b.masses[k - i]))
            for i, x in enumerate(a.masses)
            if 0 <= k - i < len(b.masses)
        )
        assert truth <= Fraction(float(found.masses[k])) <= truth * (1 + Fraction(1, 10**10))


def test_next_to_nothing_between_few_masses_is_infinite_loss():
    masses = np.full(1000, 1e-15)
    masses[[3, 500, 990]] = 0.2, 0.5, 0.3
    law = cut(Law(0.1, -500, masses, 0.0), 1e-9)
    assert np.count_nonzero(law.masses) == 3
    assert law.masses.sum() + law.infinite >= masses.sum()
    assert 5e-13 < law.infinite < 1e-9
