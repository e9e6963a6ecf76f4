"""The curve of random shifts as pairs ask for it: what is rounded, unknown or not listed."""

import math

import pytest
from flint import arb

import accountant as ac
from accountant.mechanisms.mixture import repeated_draws
from accountant.pairs.base import GaussianMixture
from accountant.pairs.mixture_renyi import mixture_rdp
from support.oracle.shift_mixture_renyi import divergence

ORDERS = [1.0 + 1e-9, 1.5, 4.0, 30.5]


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_listed_weights_leave_the_weight_of_no_shift(add, order):
    part = GaussianMixture(1.5, (1.0, 2.5), (0.01, 0.002), add)
    truth = divergence(1.5, [0.0, 1.0, 2.5], [0.0, 0.01, 0.002], order, add)
    found = mixture_rdp(part, order)
    assert arb(found) >= truth
    assert arb(found) <= truth * (1 + arb(1e-11))


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_errors_of_weights_and_shifts_are_rounded_up(add, order):
    """Every weight and shift within its error costs no more."""
    part = GaussianMixture(1.5, (1.0, 2.5), (0.01, 0.002), add, 0.0, 1e-9, 1e-9)
    most = 1.0 + 1e-9
    truth = divergence(1.5, [0.0, most, 2.5 * most], [0.0, 0.01 * most, 0.002 * most], order, add)
    found = mixture_rdp(part, order)
    assert arb(found) >= truth
    assert arb(found) <= truth * (1 + arb(1e-6))


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
