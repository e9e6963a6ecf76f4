"""Sums of few terms, over the numbers of their values: rational arithmetic as the oracle."""

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from accountant.derived import report_sum
from accountant.derived.report_sum import MOST_NUMBERS, MOST_TERMS, _numbers, are_few, excess_of_few


def exact(values, masses, count):
    """Return the mean excess by the law of the sum, one term after the other."""
    law = {Fraction(0): Fraction(1)}
    for _ in range(count):
        following = {}
        for (total, mass), (value, p) in product(
            law.items(), zip(values.tolist(), masses.tolist(), strict=True)
        ):
            key = total + Fraction(value)
            following[key] = following.get(key, 0) + mass * Fraction(p)
        law = following
    return sum(mass * max(total, 0) for total, mass in law.items())


def test_every_way_to_share_is_listed_once():
    for values, count in ((1, 5), (2, 7), (4, 6)):
        rows = _numbers(values, count)
        assert (rows >= 0).all()
        assert (rows.sum(axis=1) == count).all()
        assert len(set(map(tuple, rows.tolist()))) == len(rows)
        assert len(rows) == math.comb(count + values - 1, count)


@pytest.mark.parametrize("seed", range(12))
def test_brackets_contain_exact_sums(seed):
    draws = random.Random(seed)
    m, count = draws.randint(2, 4), draws.randint(2, 8)
    # Powers of two, so that the masses add up to one exactly.
    masses = np.array([2.0 ** -draws.randint(3, 40) for _ in range(m - 1)])
    masses = np.append(masses, 1.0 - masses.sum())
    values = np.array([draws.uniform(-3.0, 0.5) for _ in range(m - 1)] + [draws.uniform(0.1, 2.0)])
    low, high = excess_of_few(values, masses, count)
    truth = exact(values, masses, count)
    assert Fraction(low) <= truth <= Fraction(high)
    assert high <= low * (1.0 + 1e-10)


def test_probabilities_that_underflow_are_counted_from_above():
    values, masses = np.array([-1.0, 5.0]), np.array([1.0, 1e-250])
    low, high = excess_of_few(values, masses, 9)
    truth = exact(values, masses, 9)
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


def test_many_terms_or_values_are_not_listed():
    assert not are_few(2, MOST_TERMS + 1)
    assert not are_few(300, 8)
    # Two terms of many values have few multisets, but each has many numbers.
    assert math.comb(301, 2) < MOST_NUMBERS
    assert not are_few(300, 2)
    assert are_few(2, MOST_TERMS)
