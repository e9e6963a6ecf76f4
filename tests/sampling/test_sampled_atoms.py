"""Poisson samples: losses and masses of discrete pairs, and of what is known by its Rényi curve."""

import math
from fractions import Fraction

import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant.sampling.sampled_atoms import add_from_curve, remove_from_curve

# Of a few outcomes, which are taken one by one, and of many, which are taken by arrays.
FEW = ((0.5, 0.25, 0.125, 0.125), (0.125, 0.25, 0.5, 0.125))
MANY = tuple(tuple(mass / 4.0 for mass in masses for _ in range(4)) for masses in FEW)
ONE_SIDED = ((0.5, 0.375, 0.125, 0.0), (0.0, 0.125, 0.375, 0.5))
MANY_ONE_SIDED = tuple(tuple(m / 4.0 for m in masses for _ in range(4)) for masses in ONE_SIDED)


def truth(p, q, rate, add):
    """Return the finite losses in order and the masses of each, and what is infinite."""
    rate, rows, infinite = Fraction(rate), [], [Fraction(0), Fraction(0)]
    for a, b in zip(map(Fraction, p), map(Fraction, q), strict=True):
        mixed = rate * (b if add else a) + (1 - rate) * (a if add else b)
        first, second = (a, mixed) if add else (mixed, b)
        if first and second:
            ratio = first / second
            rows.append((mp.log(mpf(ratio.numerator) / ratio.denominator), first, second))
        else:
            infinite[0] += first
            infinite[1] += second
    return sorted(rows), infinite


@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.75])
@pytest.mark.parametrize("masses", [FEW, MANY, ONE_SIDED, MANY_ONE_SIDED], ids=len)
def test_losses_and_masses_lie_within_their_errors(masses, rate):
    given = ac.DominatingPMFs(*masses, infinite_loss=True)
    pairs = ac.PoissonSampled(given, rate).pairs()
    with mp.workdps(60):
        for pair, add in zip(pairs, (False, True), strict=True):
            # The pair of the addition is that of the given one, exchanged.
            rows, infinite = truth(*(reversed(masses) if add else masses), rate, add)
            low, high = pair.support
            assert low <= rows[0][0] <= low + 2 * pair.loss_error + 1e-18
            assert rows[-1][0] <= high <= rows[-1][0] + 2 * pair.loss_error + 1e-18
            assert pair.has_negative_infinite_loss == (infinite[1] > 0)
            assert math.isinf(pair.pure_epsilon) == (sum(infinite) > 0)
            table = pair.loss_atoms
            merged, listed = {}, zip(table.loss, table.p, table.q, strict=True)
            for loss, first, second in listed:
                near = min(rows, key=lambda row, at=loss: abs(row[0] - mpf(float(at))))[0]
                assert abs(near - mpf(float(loss))) <= table.loss_error
                sums = merged.setdefault(near, [Fraction(0), Fraction(0)])
                sums[0] += Fraction(float(first))
                sums[1] += Fraction(float(second))
            for loss, found in merged.items():
                for place in (0, 1):
                    exact = sum(row[1 + place] for row in rows if row[0] == loss)
                    assert abs(found[place] - exact) <= 2 * Fraction(table.relative_error) * exact
            assert infinite[0] <= Fraction(table.infinite_p) * (1 + Fraction(table.relative_error))
            assert infinite[1] <= Fraction(table.infinite_q) * (1 + Fraction(table.relative_error))


def curve_truth(curve, q, n, factor):
    """Return Theorem M16's bound at an integer order, with 40 digits."""
    q, total = mpf(q), mpf(0)
    for j in range(2, n + 1):
        each = mp.exp((j - 1) * mpf(curve(float(j)))) * (factor if j > 2 else 1) - 1
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
                found, exact = bound(curve, q, float(n)), curve_truth(curve, q, n, factor)
                assert found >= exact
                assert found <= exact * (1 + mpf("1e-9")) + 1e-300


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
