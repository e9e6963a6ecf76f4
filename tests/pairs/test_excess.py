"""Terms of Rényi moments that lose no digits, against mpmath."""

import math
import random
import sys

import mpmath
import numpy as np
import pytest

from accountant.pairs import excess

mp = mpmath.mpf

U = mp(2) ** -53


pytestmark = pytest.mark.usefixtures("sixty_digits")


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("order", [1 + 1e-9, 1.001, 1.1, 2.0, 7.5, 1e3, 1e8, 2e13])
def test_bends_keep_their_stated_accuracy(order):
    draw = random.Random(int(order * 1000))
    losses = [s * 10 ** draw.uniform(-150, 2) for s in (-1, 1) for _ in range(40)]
    losses += [s * 10 ** draw.uniform(-6, 1) for s in (-1, 1) for _ in range(60)]
    losses += [s * x / order for s in (-1, 1) for x in (0.2, 0.26, 0.9, 1.1, 30.0, 699.0)]
    for loss, found in zip(
        losses, excess.rdp_excess_terms(order, np.array(losses)).tolist(), strict=True
    ):
        a, x = mp(order), mp(loss)
        with mpmath.workdps(500):
            truth = mpmath.exp(a * x) - 1 - a * mpmath.expm1(x)
        if a * x > 700:
            assert found == math.inf
        else:
            assert abs(found - truth) <= (512 + 8 * abs(a * x)) * U * truth + mp(5e-324)
    assert excess.rdp_excess_terms(order, np.zeros(1))[0] == 0.0


def test_the_exponential_without_its_line():
    for z in (1e-200, 1e-9, 0.1, 0.49, 0.5, 0.51, 3.0, 30.0, -0.3, -0.5, -7.0, -1e-5):
        truth = mpmath.expm1(mp(z)) - mp(z)
        for found in (excess.exp_minus_linear(z), excess.exps_minus_linear(np.array([z]))[0]):
            assert abs(found - truth) <= 16 * U * truth + mp(5e-324)


def test_divergences_from_their_moments():
    for moment in (1e-300, 1e-10, 0.5, 1e10, 1e308):
        for order in (1.5, 2.0, 100.0):
            truth = mpmath.log1p(mp(moment)) / (mp(order) - 1)
            found = excess.divergence(moment, order)
            assert truth * (1 + 20 * U) <= found <= truth * (1 + 48 * U) + mp(3e-308)
    assert excess.divergence(0.0, 2.0) == 0.0
    assert excess.divergence(math.inf, 2.0) == math.inf
    assert excess.divergence(5e-324, 2.0) > sys.float_info.min
