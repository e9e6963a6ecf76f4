"""Counter-examples: each was once a bound on the wrong side, or a crash."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr

import accountant as ac
from accountant.errors import AccountantError

ONE_SIDED = ac.DominatingPMFs((0.1, 0.9), (0.0, 1.0), infinite_loss=True)


@pytest.mark.parametrize("inner", [1 * ONE_SIDED, ac.parallel(ONE_SIDED, ac.PureDP(0.1))])
def test_sampling_keeps_the_mass_at_infinity_of_compositions(inner):
    # Removal is noticed for certain with probability q/10, whatever the analysis of the rest.
    sampled = ac.PoissonSampled(inner, 0.5)
    assert sampled.delta(3.0) >= 0.05
    assert sampled.epsilon(1e-6) == math.inf
    assert sampled.rdp(2.0) == math.inf


@pytest.mark.parametrize("order", [10.0, 40.0, 100.0, 200.0])
def test_high_orders_see_the_tail_of_the_sampled_discrete_gaussian(order):
    with mp.workdps(60):
        q, sum_q = mp.mpf(0.01), mp.nsum(lambda x: mp.exp(-x * x / 2), [-mp.inf, mp.inf])
        moment = mp.fsum(
            mp.exp(-(mp.mpf(x) ** 2) / 2) / sum_q * (1 - q + q * mp.exp(x - mp.mpf(1) / 2)) ** order
            for x in range(-60, 400)
        )
        truth = mp.log(moment) / (order - 1)
        assert ac.PoissonSampled(ac.DiscreteGaussian(1.0), 0.01).rdp(order) >= truth


@pytest.mark.parametrize("rest", [1e-6, 1e-10, 1e-12, 1e-14])
def test_sampling_almost_everything_keeps_the_digits_of_losses(rest):
    q, x = 1.0 - rest, 0.5 * math.exp(-30.0)
    sampled = ac.PoissonSampled(ac.DominatingPMFs((x, 1.0 - x), (0.5, 0.5)), q)
    with mp.workdps(60):
        ratio = 2 * mp.mpf(x) / (mp.mpf(x) + mp.mpf(1.0 - x))
        truth = -mp.log(1 - mp.mpf(q) + mp.mpf(q) * ratio)
        assert sampled.epsilon(0.0) >= truth
        assert sampled.epsilon(0.0) <= truth * (1 + 1e-13)
        at = float(truth) - 0.5
        delta = (1 - mp.exp(at - truth)) / 2
        assert sampled.delta_bounds(at).lower <= delta <= sampled.delta_bounds(at).upper


def test_masses_of_a_nearly_full_sample_of_noise():
    # Edges close to the largest loss of an addition, where 1 - q + q·e^{-L} cancels.
    sigma, q = 0.2, 1.0 - 2.0**-40
    pair = ac.PoissonSampled(ac.Gaussian(sigma), q).pairs()[1]
    top = -math.log1p(-q)
    edges = [top - 0.1 * k for k in range(20, 0, -1)]
    found = pair.masses(edges)
    with mp.workdps(60):

        def below(t):  # P{L <= t}: x is at least where 1 - q + q·e^w = e^{-t}
            w = mp.log((mp.exp(-t) - 1 + mp.mpf(q)) / mp.mpf(q))
            return mp.ncdf(-(w * mp.mpf(sigma) + 1 / (2 * mp.mpf(sigma))))

        error = mp.mpf(pair.loss_error)
        for k, t in enumerate(edges[:-1]):
            low, high = mp.mpf(t), mp.mpf(edges[k + 1])
            most = below(high + error) - below(low - error)
            least = below(high - error) - below(low + error)
            slack = 1 + mp.mpf(found.relative_error)
            assert least / slack <= found.p[k + 1] <= most * slack


@pytest.mark.parametrize("off", [0.0, 1e-10])
def test_no_loss_lies_beyond_the_support(off):
    for k in range(1, 200):
        a, b = k / 200.0, (67 * k % 199 + 0.5) / 200.0
        p, q = (a * (1 + off), (1 - a) * (1 + off)), (b * (1 - off), (1 - b) * (1 - off))
        found = ac.DominatingPMFs(p, q).epsilon(0.0)
        with mp.workdps(50):
            sums = [sum(map(Fraction, row)) for row in (p, q)]
            ratios = [
                Fraction(x) / sums[0] / (Fraction(y) / sums[1]) for x, y in zip(p, q, strict=True)
            ]
            truth = max(abs(mp.log(mp.mpf(r.numerator) / r.denominator)) for r in ratios)
            assert found >= truth


def test_addition_uses_the_curves_of_both_directions():
    # Of P against (1-q)P + qQ the second order in q is the divergence of Q from P.
    rare, q = ac.DominatingPMFs((0.9, 0.1), (1 - 1e-6, 1e-6)), 1e-3
    with mp.workdps(40):
        p, r = ([mp.mpf(x) / mp.fsum(row) for x in row] for row in (rare.p, rare.q))
        mixed = [(1 - mp.mpf(q)) * b + mp.mpf(q) * a for a, b in zip(p, r, strict=True)]
        truth = mp.log(sum(b * b / c for b, c in zip(r, mixed, strict=True)))
        # By its atoms, and, beside another release, by its curve.
        for released in (1 * rare, rare + ac.PureDP(1e-9)):
            pair = ac.PoissonSampled(released, q).pairs()[1]
            assert pair.rdp(2.0) >= truth > 9e-5


@pytest.mark.parametrize(
    "mechanism", [3 * ac.DiscreteGaussian(0.1), 1000 * ac.DiscreteGaussian(100.0)]
)
def test_a_grid_out_of_reach_is_no_crash(mechanism):
    with contextlib.suppress(AccountantError):
        assert mechanism.epsilon(1e-300) > 0.0


@pytest.mark.parametrize("q", [0.5, 1.0 - 1e-5])
def test_a_loss_whose_mass_underflows_is_not_forgotten(q):
    reach = 1000.0
    mechanism = ac.PoissonSampled(ac.DiscreteLaplace(0.05, sensitivity=50), q)
    # With probability almost q the loss is log(q) + Δ/b, whatever the order.
    assert mechanism.rdp(1.5) >= reach + 3 * math.log(q) - 1e-6
    assert mechanism.delta(reach - 10.0) >= 0.99 * q
    assert mechanism.epsilon(0.4) >= reach - 5.0


def test_a_loss_distribution_is_accounted_in_both_directions():
    # A subsampled Gaussian, whose directions differ, told by either of its losses.
    q, sigma = 0.1, 1.0

    def noise(t):  # where the loss is t; -inf where it is always above
        ratio = np.maximum(np.expm1(np.minimum(t, 700.0)) / q, -1.0)
        with np.errstate(divide="ignore"):
            return sigma**2 * np.log1p(ratio) + 0.5

    def with_record(x):
        return (1.0 - q) * ndtr(x / sigma) + q * ndtr((x - 1.0) / sigma)

    def above_with_record(x):
        return (1.0 - q) * ndtr(-x / sigma) + q * ndtr((1.0 - x) / sigma)

    remove = (
        lambda t: with_record(noise(t)),
        lambda t: above_with_record(noise(t)),
        lambda t: ndtr(noise(t) / sigma),
        lambda t: ndtr(-noise(t) / sigma),
    )
    add = tuple(lambda t, f=remove[i]: f(-t) for i in (3, 2, 1, 0))
    low = math.log1p(-q)
    truth = 5 * ac.PoissonSampled(ac.Gaussian(sigma), q)
    for functions, ends in ((remove, (low, math.inf)), (add, (-math.inf, -low))):
        own = 5 * ac.LossDistribution(*functions, losses=ends, relative_error=1e-13)
        found, exact = own.delta_bounds(0.2), truth.delta_bounds(0.2)
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper <= exact.upper * (1 + 1e-3)


@pytest.mark.parametrize(
    "mechanism",
    [
        ac.Gaussian(1e300, sensitivity=1e-300),
        ac.Gaussian(1e200),
        ac.Laplace(1e300, sensitivity=1e-300),
        ac.ReportNoisyMax(1e300, sensitivity=1e-300),
        ac.AboveThreshold(1e300, query_scale=1e300, sensitivity=1e-300),
        ac.PureDP(1e-200),
    ],
    ids=repr,
)
def test_what_is_released_costs_something(mechanism):
    assert mechanism.delta(0.0) > 0.0
    assert mechanism.rho() > 0.0


@pytest.mark.parametrize("distance", [1e300, 1e308, 1.7e308])
@pytest.mark.parametrize("relation", list(ac.NeighbouringRelation))
def test_extreme_sensitivities_answer_infinity(distance, relation):
    for noise in (1e-300, 1.0):
        mechanism = ac.Gaussian(noise, sensitivity=distance, relation=relation)
        assert mechanism.epsilon(1e-5) == math.inf
        assert mechanism.delta(1.0) == 1.0
        assert mechanism.rdp(2.0) == math.inf


@pytest.mark.parametrize(
    ("q", "sigma", "steps"), [(0.06, 1.0, 7), (0.2, 0.5, 10), (0.01, 0.5, 20), (0.001, 1.0, 100)]
)
def test_few_steps_of_rare_sampling_have_a_narrow_profile(q, sigma, steps):
    release = steps * ac.PoissonSampled(ac.Gaussian(sigma), q)
    lower, upper = release.delta_bounds(0.1)
    assert 0.0 < lower <= upper <= 1.001 * lower
    # And the two analyses agree about the way back.
    assert release.epsilon_bounds(upper).lower <= 0.1
    assert release.epsilon_bounds(lower).upper >= 0.1
