"""The Rényi curve of random shifts: stored divergences, closed forms, extremes.

The stored divergences were computed by Arb's integrator (shift_mixture_renyi.py); they are judged
in decimal arithmetic with zero tolerance on the unsafe side.
"""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import accountant as ac
from accountant._core import answers
from accountant.mechanisms.mixture import repeated_draws
from accountant.pairs.base import GaussianMixture
from accountant.pairs.mixture_renyi import Mixture, divergence_upper, mixture_rdp
from support.oracle.shift_mixture_renyi import divergence
from support.oracle_checks import stored

STORED = stored("shift_mixture_renyi.jsonl")
# The first weight is the nearest double of what the others leave of one.
ROUNDED = 2.0**-52


# Beyond it, and where every shift is next to impossible, closed forms answer.
FAR_ORDER = 1e6


def renyi_upper(sigma, shifts, weights, order, add, first_error=ROUNDED, weight_error=0.0):
    law = Mixture(sigma, np.array(shifts, float), np.array(weights), first_error, weight_error)
    return divergence_upper(law, order, reverse=add)


def asked(row):
    return renyi_upper(
        row["sigma"], row["shifts"], row["weights"], row["order"], row["direction"] == "add"
    )


def test_stored_divergences_are_bounded():
    wrong, wide = [], []
    for row in STORED:
        high = asked(row)
        if not Decimal(high) >= Decimal(row["lower"]):
            wrong.append(row["id"])
        if row["order"] < FAR_ORDER and not high <= float(row["upper"]) * (1.0 + 1e-9):
            wide.append((row["id"], row["family"], high))
    assert not wrong
    assert not wide


@pytest.mark.parametrize("add", [False, True])
def test_the_oracle_agrees_with_what_was_stored(add):
    """A problem computed anew: the stored file is the oracle's."""
    row = next(row for row in STORED if (row["direction"] == "add") == add and row["order"] < 10.0)
    found = divergence(row["sigma"], row["shifts"], row["weights"], row["order"], add)
    assert found <= arb(asked(row))


def power_sum(sigma, shifts, weights, order):
    """D_n by the multinomial theorem, for shifts 0, 1, …: E_Q e^{ku - k²/2σ²} = e^{k(k-1)/2σ²}."""
    half = 1 / (2 * arb(sigma) ** 2)
    one = [arb(w) * (-half * d * d).exp() for d, w in zip(shifts, weights, strict=True)]
    one[0] = 1 - sum((arb(w) for w in weights[1:]), arb(0))
    power = [arb(1)]
    for _ in range(order):
        longer = [arb(0)] * (len(power) + len(one) - 1)
        for i, a in enumerate(power):
            for j, b in enumerate(one):
                longer[i + j] += a * b
        power = longer
    total = sum((p * (half * k * k).exp() for k, p in enumerate(power)), arb(0))
    return total.log() / (order - 1)


@pytest.mark.parametrize("sigma", [0.01, 0.3, 1.0, 7.0, 1e4])
@pytest.mark.parametrize("order", [2, 3, 7, 40])
def test_integer_orders_are_finite_sums(sigma, order):
    ctx.prec = 400
    shifts, weights = [0, 1, 2, 3], [0.9, 0.07, 0.02, 0.01]
    weights[0] = float(1 - sum(map(Fraction, weights[1:])))
    truth = power_sum(sigma, shifts, weights, order)
    high = renyi_upper(sigma, shifts, weights, order, False)
    assert truth <= arb(high) <= truth * (1 + arb(1e-10))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("q", [1e-270, 1e-200, 1e-30, 1e-9, 1e-3, 0.5, 1.0 - 2.0**-40])
@pytest.mark.parametrize("sigma", [1e-3, 0.05, 1.0, 1e4])
def test_one_shift_agrees_with_its_own_curve(q, sigma, add):
    """Two quadratures of different kinds: the bound is above the other's lower end."""
    direction = answers.ADD if add else answers.REMOVE
    for order in (1.0 + 1e-12, 1.01, 2.0, 9.5, 1e3, 1e6, 1e9):
        high = renyi_upper(sigma, [0.0, 1.0], [1.0 - q, q], order, add)
        least, most = answers.renyi_bounds(q, sigma, order, direction)
        assert least <= high, order
        if order < FAR_ORDER and q > 1e-100 and (sigma > 0.5 or (sigma > 1e-2 and q < 0.9)):
            assert high <= most * (1.0 + 1e-9) + 1e-200, order


@pytest.mark.parametrize("add", [False, True])
def test_a_single_shift_is_a_gaussian(add):
    for order in (1.0 + 1e-12, 2.5, 1e9):
        high = renyi_upper(3.0, [2.0], [1.0], order, add, 0.0)
        truth = Fraction(order) * 2 / 9
        assert truth <= Fraction(high) <= truth * (1 + Fraction(1, 10**12))


def test_no_shift_is_nothing():
    assert renyi_upper(1.0, [0.0], [1.0], 2.0, False, 0.0) == 0.0


@pytest.mark.parametrize("add", [False, True])
def test_errors_of_weights_raise_the_bound_enough(add):
    """Weights at either end of their errors have a divergence below it."""
    error, shifts = 1e-7, [0.0, 1.0, 2.5]
    given = [0.9, 0.08, 0.02]
    high = renyi_upper(1.0, shifts, given, 3.5, add, error, error)
    for up in (1.0 - error, 1.0 + error):
        weights = [0.0, 0.08 * up, 0.02 * up]
        truth = divergence(1.0, shifts, weights, 3.5, add)
        assert truth <= arb(high) <= truth * (1 + arb(1e-5))


@pytest.mark.long
@pytest.mark.parametrize("add", [False, True])
def test_extreme_arguments_have_a_finite_upper_end(add):
    for sigma in (1e-90, 1e-3, 1.0, 1e90):
        for order in (1.0 + 2.0**-52, 1.5, 1e130):
            for last in (sigma * 1e-50, sigma, sigma * 1e6):
                shifts = [0.0, last, last * 2.0]
                high = renyi_upper(sigma, shifts, [0.5, 0.25, 0.25], order, add, 0.0)
                plain = order * (last * 2.0 / sigma) ** 2 / 2.0
                assert high >= 0.0
                assert high <= plain * (1.0 + 1e-9) + 1e-100 or math.isinf(plain)


@pytest.mark.parametrize(
    "change",
    [
        {"sigma": 0.0},
        {"sigma": math.nan},
        {"order": 1.0},
        {"order": math.inf},
        {"order": math.nan},
        {"shifts": [0.0, 0.0]},
        {"shifts": [1.0, 0.5]},
        {"shifts": [-1.0, 0.5]},
        {"shifts": [0.0, math.nan]},
        {"weights": [0.9, 0.2]},
        {"weights": [1.0]},
        {"weights": [1.0, 0.0]},
        {"weights": [0.9, math.nan]},
        {"first_error": -1.0},
        {"weight_error": 1e-3},
        {"weight_error": math.nan},
    ],
)
def test_the_domain_is_checked(change):
    arguments = {
        "sigma": 1.0, "shifts": [0.0, 1.0], "weights": [0.9, 0.1], "order": 2.0, "add": False,
        "first_error": ROUNDED, "weight_error": ROUNDED,
    } | change  # fmt: skip
    assert renyi_upper(**arguments) == math.inf


ORDERS = [1.0 + 1e-9, 1.5, 4.0, 30.5]


# Shifts and weights, their errors, and the law that costs most within these; how close.
MOST = 1.0 + 1e-9
PARTS = {
    "no shift is what the others leave": ((1.0, 2.5), (0.01, 0.002), (), (1.0, 1.0), 1e-11),
    "errors are rounded up": ((1.0, 2.5), (0.01, 0.002), (0.0, 1e-9, 1e-9), (MOST, MOST), 1e-6),
}


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", PARTS)
def test_listed_weights_and_their_errors(name, add, order):
    shifts, weights, errors, (wider, farther), close = PARTS[name]
    law = [0.0, *(farther * d for d in shifts)], [0.0, *(wider * w for w in weights)]
    truth = divergence(1.5, *law, order, add)
    found = arb(mixture_rdp(GaussianMixture(1.5, shifts, weights, add, *errors), order))
    assert truth <= found <= truth * (1 + arb(close))


@pytest.mark.parametrize("add", [False, True])
def test_no_shift_may_be_next_to_impossible(add):
    """Then its weight is given, and is no more what the others leave."""
    part = GaussianMixture(1.0, (1.0, 2.0), (0.5, 0.5), add, 1e-30, 1e-15)
    truth = divergence(1.0, [1.0, 2.0], [0.5, 0.5], 2.5, add)
    found = mixture_rdp(part, 2.5)
    assert arb(found) <= truth * (1 + arb(1e-10))
    assert arb(found) >= truth * (1 - arb(1e-15))


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_every_record_may_shift_the_noise(add, order):
    pair = ac.MixtureOfGaussians(2.0, sensitivities=[1, 2, 3], probabilities=[0.5, 0.25, 0.25])
    truth = divergence(2.0, [1.0, 2.0, 3.0], [0.5, 0.25, 0.25], order, add)
    found = pair.pairs()[add].rdp(order)
    assert arb(found) >= truth
    assert arb(found) <= truth * (1 + arb(1e-10))


@pytest.mark.parametrize("order", ORDERS)
def test_shifts_that_are_not_listed(order):
    """Infinite loss one way; the other way the second law has less mass wherever they were."""
    weights = (0.9, 0.09, 0.01 - 1e-6)
    remove, add = (repeated_draws(weights, 1.0, remainder=1e-6, add=way) for way in (False, True))
    assert remove.rdp(order) == math.inf
    # What is listed is at most the law with the remainder at no shift ...
    truth = divergence(1.0, [0.0, 1.0, 2.0], list(weights), order, False)
    assert arb(remove.finite_rdp(order)) >= truth
    # ... and the reverse is dearest where the remainder is nowhere near.
    far = [0.0, *weights[1:], 1e-6]
    found = arb(add.rdp(order))
    assert found >= divergence(1.0, [0.0, 1.0, 2.0, 40.0], far, order, True) * (1 - arb(1e-15))


@pytest.mark.parametrize(
    "mechanism",
    [
        ac.PoissonSampled(ac.Gaussian(1.0), 0.01).group(4),
        ac.PoissonSampled(
            ac.MixtureOfGaussians(1.0, sensitivities=[1, 2], probabilities=[0.5, 0.5]), 0.01
        ),
        ac.MixtureOfGaussians(0.3, sensitivities=[0, 1, 2], probabilities=[0.5, 0.25, 0.25]),
    ],
)
def test_curves_increase_with_the_order_and_stay_below_the_largest_shift(mechanism):
    for pair in mechanism.pairs():
        before = 0.0
        for order in (1.0 + 1e-10, 1.001, 1.3, 2.0, 5.5, 64.0, 1e3, 1e6, 1e12):
            now = pair.rdp(order)
            assert before * (1.0 - 1e-10) <= now <= order * pair.rho * (1.0 + 1e-12)
            before = now


def test_what_the_core_does_not_take_has_no_curve_of_its_own():
    assert mixture_rdp(GaussianMixture(1e-120, (1.0,), (0.5,), False), 2.0) == math.inf
    assert mixture_rdp(GaussianMixture(1.0, (1.0,), (1.0,), False, 0.0, 1e-3), 2.0) == math.inf
