"""The mean excess of a sum, and of few terms over the numbers of their values, in fractions."""

import math
import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from accountant.derived import report_sum
from accountant.derived.report_sum import (
    Fineness,
    Terms,
    are_few,
    excess_of_few,
    mean_excess,
)

FINE = Fineness(0.001, 100, 1e-6)
ROUGH = Fineness(0.01, 100, 1e-6)
CASES = {
    "two values": ((2.0, -0.5), (0.125, 0.875)),
    "a lattice": ((1.0, 0.0, -1.0), (0.25, 0.5, 0.25)),
    "no lattice": ((math.pi, -1.0 / 3.0, 0.0, -math.e), (0.125, 0.5, 0.25, 0.125)),
    "rare and large": ((1000.0, -1.0), (2.0**-12, 1.0 - 2.0**-12)),
    "rarely positive": ((0.01, -1.0), (0.75, 0.25)),
    "far below": ((1.0, -3.0), (0.0625, 0.9375)),
}


def exact(values, masses, count):
    """E(Z₁ + … + Z_count)₊ / count of these doubles, by enumeration."""
    law = {Fraction(0): Fraction(1)}
    for _ in range(count):
        grown = defaultdict(Fraction)
        for total, mass in law.items():
            for value, chance in zip(values, masses, strict=True):
                grown[total + Fraction(value)] += mass * Fraction(chance)
        law = grown
    return sum((total * mass for total, mass in law.items() if total > 0), Fraction(0)) / count


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_brackets_hold_the_exact_value(name, count):
    values, masses = CASES[name]
    truth = exact(values, masses, count)
    for fineness in (FINE, ROUGH):
        terms = Terms(np.array(values), np.array(masses))
        low, high = mean_excess(terms, count, fineness)
        assert Fraction(low) <= truth <= Fraction(high)


def test_many_terms_of_a_walk():
    """Steps ±1 with chance 1/2: E(S)₊ is n·C(n - 1, n/2)/2ⁿ."""
    terms = Terms(np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    for n in (100, 1000):
        truth = Fraction(math.comb(n - 1, n // 2), 2**n)
        low, high = mean_excess(terms, n, FINE)
        assert Fraction(low) <= truth <= Fraction(high)
        assert high <= low * (1.0 + 2e-3)


def test_width_does_not_grow_with_the_number_of_terms():
    for n in (10**4, 10**6, 10**9):
        terms = Terms(np.array([1.0, -1.0 - 3.0 / math.sqrt(n)]), np.array([0.5, 0.5]))
        low, high = mean_excess(terms, n, FINE)
        assert 0.0 < low <= high <= low * (1.0 + 1e-3)


def test_a_bound_below_the_doubles_is_one(monkeypatch):
    """The transform may be e^-690 where the excess is larger; seen where its logarithm may fall."""
    for n in (2**26, 2**30):
        terms = Terms(np.array([1.0, -1.0 - 74.4 / math.sqrt(n)]), np.array([0.5, 0.5]))
        cut = mean_excess(terms, n, FINE)
        with monkeypatch.context() as context:
            context.setattr(report_sum, "LOG_LEAST", -707.0)
            low, high = mean_excess(terms, n, FINE)
        assert 0.0 < low <= high <= cut[1] < 1e-299


def test_signs_that_need_no_line():
    assert mean_excess(Terms(np.array([-1.0, 0.0]), np.array([0.5, 0.5])), 5, FINE) == (0.0, 0.0)
    low, high = mean_excess(Terms(np.array([1.0, 3.0]), np.array([0.5, 0.5])), 5, FINE)
    assert low <= 2.0 <= high <= low * (1.0 + 1e-14)


@pytest.mark.parametrize("name", CASES)
def test_powers_that_are_not_looked_at_are_in_the_bracket(name, monkeypatch):
    """As many as half of all nodes are taken for faint."""
    values, masses = CASES[name]
    terms = Terms(np.array(values), np.array(masses))
    truth = exact(values, masses, 12)
    widest = 0.0
    for faintest in (-2.0, -0.5, -0.1):
        monkeypatch.setattr(report_sum, "FAINTEST", faintest)
        low, high = mean_excess(terms, 12, ROUGH)
        assert Fraction(low) <= truth <= Fraction(high)
        widest = max(widest, high - low)
    monkeypatch.undo()
    low, high = mean_excess(terms, 12, ROUGH)
    assert widest >= high - low


@pytest.mark.parametrize("seed", range(12))
def test_brackets_contain_exact_sums(seed):
    draws = random.Random(seed)
    m, count = draws.randint(2, 4), draws.randint(2, 8)
    # Powers of two, so that the masses add up to one exactly.
    masses = np.array([2.0 ** -draws.randint(3, 40) for _ in range(m - 1)])
    masses = np.append(masses, 1.0 - masses.sum())
    values = np.array([draws.uniform(-3.0, 0.5) for _ in range(m - 1)] + [draws.uniform(0.1, 2.0)])
    low, high = excess_of_few(values, masses, count)
    truth = exact(values, masses, count) * count
    assert Fraction(low) <= truth <= Fraction(high)
    assert high <= low * (1.0 + 1e-10)


def test_probabilities_that_underflow_are_counted_from_above():
    values, masses = np.array([-1.0, 5.0]), np.array([1.0, 1e-250])
    low, high = excess_of_few(values, masses, 9)
    truth = exact(values, masses, 9) * 9
    assert Fraction(low) <= truth <= Fraction(high)


def test_few_terms_need_no_contour(monkeypatch):
    terms = report_sum.Terms(np.array([-1.0, 0.25, 1.5]), np.array([0.5, 0.25, 0.25]))
    fineness = report_sum.Fineness(0.001, 300, 1e-6)
    assert are_few(3, 30)
    low, high = report_sum.mean_excess(terms, 30, fineness)
    assert 0.0 < low <= high <= low * (1.0 + 1e-10)
    monkeypatch.setattr(report_sum, "are_few", lambda values, count: False)
    below, above = report_sum.mean_excess(terms, 30, fineness)
    assert below <= low
    assert high <= above
