"""Chains of cells: mean excesses by the enumeration of all cells of all scores, in fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from accountant.sampling.score_chain import Chain, Line, Part, Run

MASSES = np.array([0.25, 0.5, 0.125, 0.125])
MERGES = (np.array([0, 1, 2]), np.array([0, 2]))


def tables(seed, several=1):
    """Random values of terms of three scores: by the cells of the oldest, the next, the own."""
    rng = np.random.default_rng(seed)
    return tuple(np.round(rng.uniform(-0.9, 2.5, size=(2, 3, 4)), 3) for _ in range(several))


def aged(cell, age):
    for merge in MERGES[:age]:
        cell = int(np.searchsorted(merge, cell, side="right")) - 1
    return cell


def law(parts):
    """Return the law of the sum of all terms of one run, each less 1."""
    rows = [part.tables for part in parts for _ in range(part.rows)]
    found = {}
    for cells in product(range(4), repeat=len(rows) + 2):
        chance = Fraction(1)
        for cell in cells:
            chance *= Fraction(float(MASSES[cell]))
        total = Fraction(0)
        for t, several in enumerate(rows):
            index = (aged(cells[t], 2), aged(cells[t + 1], 1), cells[t + 2])
            total += sum(Fraction(float(table[index])) for table in several)
        found[total] = found.get(total, 0) + chance
    return found


def put(laws, bins, strike):
    """Return E(strike - W)₊ for the mean W over independent runs of these laws."""
    total = Fraction(0)
    for values in product(*(each.items() for each in laws)):
        chance = Fraction(1)
        for _, p in values:
            chance *= p
        total += chance * max(Fraction(strike) - 1 - sum(v for v, _ in values) / bins, 0)
    return total


@pytest.mark.parametrize("bins", [3, 8])
def test_one_run_of_two_kinds_of_rows(bins):
    parts = (Part(tables(1), 1), Part(tables(2, 2), 2))
    chain = Chain(MASSES, MERGES, (Run(parts, 1),), bins, 12.0)
    assert chain.draws == 5
    line = Line.of(chain, 4.0 / bins, 1e-6)
    exact = law(parts)
    for strike in (0.2, 0.7, 1.0, 1.6, 3.0, 11.0):
        low, high = line.puts(strike)
        truth = put([exact], bins, strike)
        assert low <= truth <= high
        if strike < 2.0:
            assert high - low < 0.2 / bins
    assert line.puts(12.5) == (0.0, np.inf)


def test_independent_runs():
    parts = (Part(tables(3), 1),)
    chain = Chain(MASSES, MERGES, (Run(parts, 2),), 4, 12.0)
    assert chain.draws == 6
    line = Line.of(chain, 0.3, 1e-8)
    exact = law(parts)
    for strike in (0.5, 1.0, 1.4):
        low, high = line.puts(strike)
        assert low <= put([exact, exact], 4, strike) <= high


def test_what_is_beyond_every_strike_is_cut():
    """Values of 1e6 and of 1e3 have the same puts, and the same error."""
    lines = []
    for large in (1e3, 1e6):
        table = tables(5)[0]
        table[:, :, 3] = large
        lines.append(
            Line.of(Chain(MASSES, MERGES, (Run((Part((table,), 3),), 1),), 3, 9.0), 1, 1e-6)
        )
    assert lines[0].errors[0] == lines[1].errors[0]
    assert lines[0].puts(2.0) == lines[1].puts(2.0)


def test_the_transform_is_within_its_error():
    parts = (Part(tables(7), 2),)
    chain = Chain(MASSES, MERGES, (Run(parts, 1),), 2, 50.0)
    points = np.array([0.5, 0.5 + 3.0j, 0.5 + 40.0j])
    values, errors = chain.transform(points)
    size = sum(float(p) * np.exp(-0.5 * float(v) / 2) for v, p in law(parts).items())
    for z, value, error in zip(points, values, errors, strict=True):
        exact = sum(float(p) * np.exp(-z * float(v) / 2) for v, p in law(parts).items())
        assert abs(value - exact) <= (error + 1e-13) * size
        assert error < 1e-10
