"""The losses of two data sets of few users, against exact laws of the multiset of reports."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product

import pytest

import accountant as ac
from accountant.analyses import dispatch
from accountant.derived import binary_reports
from accountant.derived.shuffle_model import DataPair
from accountant.pairs import atoms
from support.exact_laws import multiset_law


def reports(k, users, value, others):
    """Return the exact law of how often each report occurs, of 3/(k + 2) for the true one."""
    owns = [value, *([others] * (users - 1))]
    return multiset_law([[Fraction(3 if x == own else 1, k + 2) for x in range(k)] for own in owns])


def exact_losses(k, users):
    """Return (p, q) of every multiset, where all others have one value, in either order."""
    one, two = (reports(k, users, value, 2 if k > 2 else 1) for value in (0, 1))
    return [(one[x], two[x]) for x in one], [(two[x], one[x]) for x in one]


def profile(rows, times, growth):
    """Return the exact profile of so many releases."""
    law = {(Fraction(1), Fraction(1)): 1}
    for _ in range(times):
        grown = defaultdict(int)
        for ((p, q), n), (a, b) in product(law.items(), rows):
            grown[p * a, q * b] += n
        law = grown
    return sum(n * max(p - growth * q, 0) for (p, q), n in law.items())


@pytest.mark.parametrize(("k", "users"), [(2, 2), (2, 6), (3, 4), (5, 3)])
def test_atoms_are_those_of_the_multisets(k, users):
    pair = DataPair(ac.RandomizedResponse(math.log(3.0), k=k), users)
    table = pair.atoms()
    known = [{Fraction(p, q): None for p, q in rows} for rows in exact_losses(k, users)]
    assert table.p.sum() == pytest.approx(1.0, abs=1e-12)
    assert table.q.sum() == pytest.approx(1.0, abs=1e-12)
    ratios = sorted(map(float, known[0])), sorted(map(float, known[1]))
    found = [math.exp(loss) for loss in table.loss.tolist()]
    assert any(all(min(abs(x / y - 1.0) for y in some) < 1e-12 for x in found) for some in ratios)
    for growth in (Fraction(1), Fraction(5, 4), Fraction(2)):
        truth = [profile(rows, 1, growth) for rows in exact_losses(k, users)]
        epsilon = math.log(growth)
        here = float(super(DataPair, pair).profile(epsilon).upper)
        assert min(abs(here - float(each)) for each in truth) < 1e-12


@pytest.mark.parametrize(("k", "users", "times"), [(2, 3, 3), (2, 7, 2), (3, 3, 2)])
def test_lower_ends_of_compositions_are_reached(k, users, times):
    model = ac.ShuffleModel(ac.RandomizedResponse(math.log(3.0), k=k), dataset_size=users)
    for growth in (Fraction(1), Fraction(3, 2), Fraction(3)):
        truth = max(profile(rows, times, growth) for rows in exact_losses(k, users))
        found = (times * model).delta_bounds(math.log(growth))
        # The logarithm is rounded, by which the profile moves 1e-15 of itself.
        assert found.lower <= float(truth) * (1 + 1e-14)
        assert found.lower >= float(truth) * (1 - 5e-3)
        assert found.upper >= float(truth) * (1 - 1e-14)


def test_many_multisets_are_put_together_and_lose_little(monkeypatch):
    model = ac.ShuffleModel(ac.RandomizedResponse(math.log(3.0), k=4), dataset_size=12)
    pair = DataPair(model.randomizer, 12)
    every = pair.atoms()
    known = [float((3 * model).delta_bounds(epsilon).lower) for epsilon in (0.1, 1.0, 2.0)]
    monkeypatch.setattr(binary_reports, "MOST_LOSSES", 200)
    some = pair.atoms()
    assert some.loss.size <= 200 < every.loss.size
    assert some.p.sum() == pytest.approx(1.0, abs=1e-12)
    assert some.q.sum() == pytest.approx(1.0, abs=1e-12)
    atoms._tables.clear()
    dispatch._remembered.cache_clear()
    for epsilon, lower in zip((0.1, 1.0, 2.0), known, strict=True):
        found = float((3 * model).delta_bounds(epsilon).lower)
        # Either is a lower end on a grid, half a percent below its law at most.
        assert 0.99 * lower <= found <= lower * (1.0 + 5e-3)
