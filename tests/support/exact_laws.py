"""Laws and roundings in as many digits as the caller has set (mpmath) or exactly (fractions)."""

import math
from collections import defaultdict
from fractions import Fraction

import mpmath


def pmf(n, p, j):
    """P{Bin(n, p) = j}."""
    p = mpmath.mpf(p)
    return mpmath.binomial(n, j) * p**j * (1 - p) ** (n - j)


def tail(n, p, v):
    """P{Bin(n, p) >= v}."""
    return sum(pmf(n, p, j) for j in range(v, n + 1))


def quantile(p):
    """The standard normal quantile."""
    return mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1)


def exactly_up(found, truth):
    """Assert that ``found`` is the least double that is not below a fraction."""
    nearest = float(truth)
    up = nearest if Fraction(nearest) >= truth else math.nextafter(nearest, math.inf)
    assert found == up


def hockey_stick(one, two, growth):
    """Σ (p - growth·q)₊ over the outcomes of two laws, dicts of fractions, exactly."""
    return sum((max(p - growth * two.get(x, 0), Fraction(0)) for x, p in one.items()), Fraction(0))


def multiset_law(laws):
    """The exact law of how often each report occurs, for independent reports of these laws."""
    law = {(0,) * len(laws[0]): Fraction(1)}
    for chances in laws:
        grown = defaultdict(Fraction)
        for counts, mass in law.items():
            for report, chance in enumerate(chances):
                if chance:
                    key = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                    grown[key] += mass * chance
        law = grown
    return law
