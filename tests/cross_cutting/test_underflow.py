"""Scales at the ends of the doubles: what is released costs something, and nothing crashes."""

from __future__ import annotations

import contextlib
import math

import mpmath as mp
import numpy as np
import pytest

import accountant as ac
from accountant import sampling
from accountant._basics.rounding import U
from accountant.errors import AccountantError
from accountant.pairs.excess import rdp_excess_terms

LITTLE = [
    ac.Gaussian(1e300, sensitivity=1e-300),
    ac.Gaussian(1e200),
    ac.GDP(1e-320),
    ac.Laplace(1e300, sensitivity=1e-300),
    ac.Laplace(1e200),
    ac.PureDP(1e-200),
    ac.PureDP(5e-324),
    ac.RandomizedResponse(1e-200, k=3),
    ac.DiscreteLaplace(1e200),
    ac.DominatingPMFs((0.5, 0.5), (0.5, 0.5 - 2.0**-54)),
    ac.ExponentialMechanism(1e-200),
    ac.AboveThreshold(1e300, query_scale=1e300, sensitivity=1e-300),
    ac.MixtureOfGaussians(1e200, sensitivities=[0.0, 1.0], probabilities=[0.5, 0.5]),
    ac.PoissonSampled(ac.Gaussian(1e200), 0.5),
    ac.PoissonSampled(ac.Gaussian(1.0), 1e-200),
    ac.PoissonSampled(ac.PureDP(1.0), 1e-200),
    ac.PoissonSampled(ac.Laplace(1e200), 0.5),
    ac.PoissonSampled(ac.ZCDP(1e-200), 1e-200),
]


@pytest.mark.parametrize("mechanism", LITTLE, ids=repr)
def test_what_is_released_is_never_free(mechanism):
    for times in (1, 3):
        for order in (1.0001, 1.5, 2.0, 33.0):
            assert (times * mechanism).rdp(order) > 0.0
        assert (times * mechanism).delta(0.0) > 0.0
        for name in ("rho", "mu"):
            with contextlib.suppress(AccountantError):
                assert getattr(times * mechanism, name)() > 0.0


@pytest.mark.parametrize("epsilon", [5e-324, 1e-323, 1e-310, 1e-300, 1e-291, 1e-289])
def test_gaussian_parameter_of_a_tiny_pure_epsilon(epsilon):
    # Φ(μ/2) - 1/2 = tanh(ε/2)/2 with both sides linear.
    truth = mp.mpf(epsilon) * mp.sqrt(mp.pi / 2)
    assert truth <= mp.mpf(ac.PureDP(epsilon).mu()) <= 1.02 * truth + 1e-323


@pytest.mark.parametrize("sizes", [(3.0, 4.0), (3e-200, 4e-200), (3e200, 4e200)])
def test_squares_of_gdp_neither_underflow_nor_overflow(sizes):
    truth = 5.0 * sizes[0] / 3.0
    a, b = map(ac.GDP, sizes)
    assert truth * (1 - 1e-15) <= (a + b).mu() <= truth * (1 + 1e-14)
    assert truth * (1 - 1e-15) <= ac.PoissonSampled(a + b, 0.5).mu() <= truth * (1 + 1e-14)


@pytest.mark.parametrize(
    "mechanism",
    [
        ac.Gaussian(1.0, sensitivity=1e308),
        ac.Gaussian(1e-300, sensitivity=1e300),
        ac.Gaussian(1e-300) + ac.Gaussian(2e-300),
        ac.Gaussian(1e200) + ac.Gaussian(3e200),
        ac.Gaussian(1e-300) + ac.Laplace(1.0),
        ac.GDP(1e308),
        ac.DiscreteGaussian(1e-200),
        3 * ac.PoissonSampled(ac.DiscreteGaussian(1e-200), 0.5),
        ac.MixtureOfGaussians(1e-200, sensitivities=[0.0, 1.0], probabilities=[0.5, 0.5]),
        3 * ac.PoissonSampled(ac.Gaussian(1e-200), 0.5),
    ],
    ids=repr,
)
def test_extremes_answer_or_refuse(mechanism):
    for name, at in (("epsilon_bounds", 1e-10), ("delta_bounds", 0.0), ("delta_bounds", 1.0)):
        try:
            lower, upper = getattr(mechanism, name)(at)
            assert 0.0 <= lower <= upper
        except AccountantError:
            pass
    for name in ("rho", "mu"):
        with contextlib.suppress(AccountantError):
            assert getattr(mechanism, name)() >= 0.0
    assert mechanism.rdp(2.0) > 0.0


@pytest.mark.parametrize(
    "order", [1.5, 2.0, 1e3, 1e12, 1e14, 1e40, 1e100, 1e140, 1e150, 1e160, 1e200]
)
@pytest.mark.parametrize(
    "loss", [1e-13, -1e-14, 1e-40, 1e-100, -1e-139, 1e-141, -1e-150, 1e-160, 1e-200, -1e-300]
)
def test_bend_of_tiny_losses(order, loss):
    with mp.workdps(800):
        z, x = mp.mpf(order) * mp.mpf(loss), mp.mpf(loss)
        if z > 600:
            return
        truth = mp.expm1(z) - mp.mpf(order) * mp.expm1(x)
        found = float(rdp_excess_terms(order, np.array([loss]))[0])
        assert abs(mp.mpf(found) - truth) <= (512 + 8 * abs(z)) * mp.mpf(U) * truth + 1e-300


def test_exponential_losses_of_every_order():
    for order in (1.5, 2.0, 1e10, 1e199, 1e300):
        for reach in (1e-310, 1e-200, 1e-3):
            found = ac.ExponentialMechanism(reach).rdp(order)
            assert 0.0 < found <= reach * (1 + 1e-12)
    assert math.isfinite(ac.ExponentialMechanism(1e-200).delta(0.0))


@pytest.mark.parametrize("small", [ac.PureDP(5e-324), ac.RandomizedResponse(1e-300)], ids=repr)
def test_lattices_whose_ratio_no_double_holds(small):
    alone = ac.PureDP(0.2).delta(1e-3)
    assert alone <= (ac.PureDP(0.2) + small).delta(1e-3) <= alone * (1 + 1e-3)


@pytest.mark.parametrize("base", [ac.RandomizedResponse(1e-290), ac.Laplace(1.0)], ids=repr)
def test_more_repetitions_than_round_off_allows_on_a_grid(base):
    many = 3 * base + 2**53 * ac.RandomizedResponse(1e-12)
    # Most of it is a Gaussian of mean square 2^53 * 1e-24.
    assert (3 * base).delta(1e-3) <= many.delta(1e-3) <= 1.0
    assert (3 * base).epsilon(1e-3) <= many.epsilon(1e-3) <= 3.01


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("noise", [1e-300, 1e-20, 1e-8, 1e-3, 1e8, 1e150, 1.7e308])
@pytest.mark.parametrize(
    "kind",
    [
        lambda noise: sampling.WithReplacementSampled(noise, batch_size=2, dataset_size=3),
        lambda noise: ac.PoissonSampled(ac.Laplace(noise), 0.1),
        lambda noise: ac.MixtureOfGaussians(
            noise, sensitivities=(0.0, 1e-300), probabilities=(0.5, 0.5)
        ),
        lambda noise: sampling.TruncatedPoissonSampled(
            noise, sampling_probability=0.1, cap=2, dataset_size=5
        ),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_noise_at_the_ends_of_the_doubles(kind, noise):
    one = kind(noise)
    for mechanism in (one, 3 * one):
        delta = mechanism.delta_bounds(0.5)
        assert 0.0 <= delta.lower <= delta.upper <= 1.0
        assert mechanism.epsilon(1e-5) >= 0.0
        assert mechanism.rdp(2.5) >= 0.0


@pytest.mark.long
def test_tables_of_atoms_keep_a_bounded_room(monkeypatch):
    from accountant.pairs import atoms

    monkeypatch.setattr(atoms, "MOST_BYTES", 2**20)
    for k in range(12):
        mechanism = ac.DiscreteGaussian(1000.0 + k)
        assert 0.0 < mechanism.delta(0.0) < 1.0
        kept = sum(table.loss.nbytes + table.p.nbytes + table.q.nbytes for table in _kept())
        assert kept <= 2**20 or len(_kept()) == 1


def _kept():
    from accountant.pairs import atoms

    return list(atoms._tables.values())
