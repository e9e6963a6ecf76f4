"""Losses under Poisson sampling, forwards and backwards, against 800 digits."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import accountant as ac
from accountant._basics.rounding import U
from accountant.pairs.excess import loss_of_sample, loss_of_sample_inverse

PROBABILITIES = [5e-324, 1e-300, 1e-100, 1e-8, 0.01, 0.3, 0.5, math.nextafter(0.5, 1.0), 0.7]
PROBABILITIES += [
    1e-12,
    math.nextafter(0.51, 1.0),
    0.9,
    1 - 1e-9,
    0.99,
    1 - 1e-8,
    1 - 1e-12,
    1 - 2.0**-52,
    1 - 2.0**-53,
]
SIZES = [1e-300, 1e-20, 1e-8, 1e-3, 0.1, 0.5, 0.7, 1.0, 1.5, 2.0, 5.0, 17.0, 36.0, 37.5, 100.0]
SIZES += [600.0, 705.0, 709.0, 711.0, 750.0, 1400.0, 1420.0, 1e5]
SIZES += [
    690.0,
    701.0,
    720.0,
    800.0,
    900.0,
    *(10 ** random.Random(5).uniform(-12, 2) for _ in range(60)),
]
LOSSES = [sign * size for size in SIZES for sign in (-1.0, 1.0)]


def forwards(q, loss):
    with mp.workdps(800):
        q, loss = mp.mpf(q), mp.mpf(loss)
        if loss > 2000:
            return mp.log(q) + loss
        return mp.log(1 - q + q * mp.exp(loss)) if loss > -2000 else mp.log(1 - q)


@pytest.mark.long(keep=11)
@pytest.mark.parametrize("q", PROBABILITIES)
def test_forwards_to_a_few_units_of_the_result(q):
    for loss, found in zip(LOSSES, loss_of_sample(q, np.array(LOSSES)).tolist(), strict=True):
        truth = forwards(q, loss)
        assert abs(mp.mpf(found) - truth) <= 16 * mp.mpf(U) * abs(truth) + mp.mpf(5e-324), loss
    assert loss_of_sample(q, np.array([math.inf]))[0] == math.inf
    assert loss_of_sample(q, np.array([-math.inf]))[0] == pytest.approx(math.log1p(-q), rel=1e-14)


@pytest.mark.parametrize("q", PROBABILITIES)
def test_backwards_to_a_few_units_of_the_given_loss(q):
    bottom = math.log1p(-q)
    below = [bottom * share for share in (1e-9, 0.1, 0.4, 0.6, 0.9, 1 - 1e-6, 1 - 1e-12)]
    given = [size for size in SIZES if size >= 1e-290] + [x for x in below if x <= -1e-290]
    for loss, found in zip(given, loss_of_sample_inverse(q, np.array(given)).tolist(), strict=True):
        allowed = 16 * U * abs(loss) + 8 * U * max(found, 0.0)
        assert abs(forwards(q, found) - mp.mpf(loss)) <= allowed, loss
    ends = loss_of_sample_inverse(q, np.array([math.inf, math.nextafter(bottom, -math.inf) * 1.01]))
    assert ends.tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("q", [1e-300, 1e-100, 1e-20])
@pytest.mark.parametrize("loss", [1.5, 2.0, 5.0])
def test_rare_sampling_of_losses_above_one(q, loss):
    truth = forwards(q, loss)
    found = ac.PoissonSampled(ac.PureDP(loss), q).epsilon(0.0)
    assert truth <= found <= truth * (1 + 1e-13) + 2e-300
    found = ac.PoissonSampled(ac.Laplace(1.0, sensitivity=loss), q).epsilon(0.0)
    assert truth <= found <= truth * (1 + 1e-13) + 2e-300


@pytest.mark.parametrize("inner", [ac.DiscreteGaussian(100.0), ac.DiscreteGaussian(1.0)])
def test_support_holds_what_unbounded_losses_are_mapped_to(inner):
    remove, add = ac.PoissonSampled(inner, 0.5).pairs()
    assert remove.support[0] <= -math.log(2.0) < remove.support[0] + 1e-12
    assert remove.support[1] == math.inf
    assert add.support[0] == -math.inf
    assert add.support[1] - 1e-12 < math.log(2.0) <= add.support[1]


@pytest.mark.parametrize("q", [1e-3, 0.3, 1 - 2.0**-40])
def test_chances_of_a_group_are_binomial_to_the_last_digit(q):
    records = 200
    found = ac.PoissonSampled(ac.Gaussian(50.0), q).group(records).probabilities
    truth = [
        math.comb(records, k) * Fraction(q) ** k * (1 - Fraction(q)) ** (records - k)
        for k in range(records + 1)
    ]
    # Chances that underflow are counted together, at the largest shift.
    listed = len(found) if len(found) == records + 1 else len(found) - 1
    for chance, exact in zip(found[:listed], truth, strict=False):
        assert abs(Fraction(chance) - exact) <= exact * Fraction(U) + Fraction(5e-324)
    assert sum(truth[listed:]) <= sum(map(Fraction, found[listed:]))
    assert sum(map(Fraction, found[listed:])) < Fraction(1e-300)
