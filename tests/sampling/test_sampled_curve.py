"""The Rényi curve of a Poisson sample, known by the curve of what is sampled."""

import math
from functools import cache

import mpmath as mp
import pytest

from accountant.sampling.sampled_atoms import add_from_curve, remove_from_curve


def truth(curve, q, n, factor):
    """Return Theorem M16's bound at an integer order, with 40 digits."""
    q, total = mp.mpf(q), mp.mpf(0)
    for j in range(2, n + 1):
        each = mp.exp((j - 1) * mp.mpf(curve(float(j)))) * (factor if j > 2 else 1) - 1
        total += mp.binomial(n, j) * q**j * (1 - q) ** (n - j) * each
    return mp.log1p(total) / (n - 1)


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("q", [5e-324, 1e-20, 0.003, 0.5, 1.0 - 2.0**-53])
@pytest.mark.parametrize("rho", [1e-18, 0.01, 3.0])
def test_integer_orders(q, rho):
    def curve(order):
        return rho * order

    with mp.workdps(40):
        for n in (2, 3, 17, 120):
            for bound, factor in ((remove_from_curve, 1), (add_from_curve, 3)):
                found, exact = bound(curve, q, float(n)), truth(curve, q, n, factor)
                assert found >= exact
                assert found <= exact * (1 + mp.mpf("1e-9")) + 1e-300


def test_orders_between_are_on_the_chord_and_below_the_next():
    def curve(order):
        return 0.3 * order

    ends = remove_from_curve(curve, 0.1, 7.0), remove_from_curve(curve, 0.1, 8.0)
    found = remove_from_curve(curve, 0.1, 7.25)
    chord = (0.75 * 6.0 * ends[0] + 0.25 * 7.0 * ends[1]) / 6.25
    assert found == pytest.approx(min(chord, ends[1]), rel=1e-13)
    assert ends[0] <= found <= ends[1]


def test_a_curve_that_ends():
    def curve(order):
        return 0.1 * order if order < 6.0 else math.inf

    assert remove_from_curve(curve, 0.1, 5.0) < math.inf
    # the chord needs the next integer
    assert remove_from_curve(curve, 0.1, 5.5) == math.inf
    assert add_from_curve(curve, 0.1, 9.0) == math.inf


def test_divergences_are_asked_for_once():
    asked = []

    @cache
    def curve(order):
        asked.append(order)
        return 0.2 * order

    first = [remove_from_curve(curve, 0.01, order) for order in (30.0, 12.5, 29.0)]
    assert sorted(asked) == [float(j) for j in range(2, 31)]
    assert [remove_from_curve(curve, 0.01, order) for order in (30.0, 12.5, 29.0)] == first
