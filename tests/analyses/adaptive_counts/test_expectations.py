"""Expectations by matrices against sums of exact fractions."""

import random
from fractions import Fraction

import numpy as np
import pytest

from accountant.analyses.adaptive_counts import Law, Offer, _sum, cut


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
