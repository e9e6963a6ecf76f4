"""Moments: mixtures of orders keep (ε, δ), truncated ones are above integrals and sums."""

import math
import random

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.analyses.moments import is_within, truncated, used
from accountant.composition.problems import symmetrised_pairs
from accountant.pairs.base import DominatingPair, Masses

BELOW = (0.5, 6.0, 25.0)


def subsampled(q, sigma, add):
    """The loss and the density under P of a subsampled Gaussian, and the z where the loss is t."""
    q, sigma = mpmath.mpf(q), mpmath.mpf(sigma)

    def mixture(z):
        return (1 - q) * mpmath.npdf(z, 0, sigma) + q * mpmath.npdf(z, 1, sigma)

    def loss(z):
        value = mpmath.log(1 - q + q * mpmath.exp((2 * z - 1) / (2 * sigma**2)))
        return -value if add else value

    def at(t):
        t = -t if add else t
        return sigma**2 * mpmath.log((mpmath.exp(t) - 1 + q) / q) + mpmath.mpf(1) / 2

    return loss, (lambda z: mpmath.npdf(z, 0, sigma)) if add else mixture, at


def exact(q, sigma, add, b, end):
    """Return E[e^(bL); L <= T] - 1 and P{L > T}."""
    loss, density, at = subsampled(q, sigma, add)
    reach = 30 * mpmath.mpf(sigma) + 1
    if add and mpmath.exp(-mpmath.mpf(end)) <= 1 - mpmath.mpf(q):
        edge = -reach  # no loss is as large
    else:
        edge = at(mpmath.mpf(end))
    low, high = (edge, reach) if add else (-reach, edge)
    points = [low, *(x for x in (-8, -3, 0, 1, 3, 8) if low < x < high), high]
    inside = mpmath.quad(lambda z: mpmath.expm1(b * loss(z)) * density(z), points)
    rest = (-reach, edge) if add else (edge, reach)
    beyond = mpmath.quad(density, mpmath.linspace(*rest, 9)) if rest[0] < rest[1] else mpmath.mpf(0)
    return inside - beyond, beyond


@pytest.mark.long
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("q", "sigma", "spread"),
    [(0.01, 1.0, 0.01), (1e-3, 0.7, 3e-3), (0.3, 2.0, 0.2), (1e-4, 1, 1e-4)],
)
def test_subsampled_gaussians(q, sigma, spread, add):
    pair = ac.PoissonSampled(ac.Gaussian(sigma), q).pairs()[int(add)]
    found = truncated(pair, BELOW, spread, 2.0)
    with mpmath.workdps(22):
        for place in (20, 300, 520):
            for k, b in enumerate(BELOW):
                moment, beyond = exact(q, sigma, add, b, found.ends[place])
                truth = max(mpmath.log1p(moment), mpmath.mpf(0))
                assert truth <= found.logs[k, place]
                # What is cut off is known to be small, and its part under Q is counted in full.
                wide = truth * 5e-3 + (2 * b + 1) * beyond + mpmath.mpf(10) ** -9
                assert found.logs[k, place] <= truth + wide
                # An end is raised by the error of the losses.
                assert beyond <= found.beyond[place] <= beyond * (1 + 1e-7) + 1e-290


@pytest.mark.parametrize("moved", [-1e-3, 1e-3])
def test_an_end_and_its_moments_allow_for_the_error_of_the_losses(moved):
    """Masses may belong to edges that are off by ``loss_error``, on either side."""
    losses = np.concatenate([-np.geomspace(0.004, 1.9, 40)[::-1], np.geomspace(0.004, 1.9, 41)])
    p = np.exp(0.5 * losses) / np.exp(0.5 * losses).sum()
    q = p * np.exp(-losses) / (p @ np.exp(-losses))
    losses = np.log(p / q)

    class Moved(DominatingPair):
        loss_error = 1e-3

        def masses(self, edges):
            cell = np.searchsorted(edges + moved, losses)
            each = (np.bincount(cell, weights=w, minlength=len(edges) + 1) for w in (p, q))
            return Masses(*each, 1e-14)

    found = truncated(Moved(), BELOW, 0.05, 2.0)
    for place, end in enumerate(found.ends):
        kept = found.beyond[place] < np.cumsum(p[::-1])[::-1] * (1.0 - 1e-12)
        assert losses[kept].max(initial=0.0) <= end
        for k, b in enumerate(BELOW):
            assert np.log(p[kept] @ np.exp(b * losses[kept])) <= found.logs[k, place]


@pytest.mark.long
def test_losses_below_the_lattice_are_counted():
    # Losses are at most 0.36, but under Q a third of them is below -0.4.
    pair = ac.PoissonSampled(ac.Gaussian(0.5), 0.3).pairs()[1]
    found = truncated(pair, BELOW, 0.1, 0.4)
    with mpmath.workdps(22):
        for place in (20, 300, 690):
            for k, b in enumerate(BELOW):
                moment, _ = exact(0.3, 0.5, True, b, found.ends[place])
                assert mpmath.log1p(moment) <= found.logs[k, place]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    "mechanism",
    [
        ac.PureDP(0.3),
        ac.ApproximateDP(0.2, delta=1e-4),
        ac.RandomizedResponse(0.7),
        ac.PoissonSampled(ac.PureDP(1.5), 0.01),
    ],
    ids=repr,
)
def test_few_losses(mechanism):
    """Atoms: the loss distribution is read from masses of cells around each, on a fine grid."""
    for pair in (symmetrised_pairs(mechanism)[0], symmetrised_pairs(mechanism)[-1]):
        edges = np.linspace(-2.0, 2.0, 100_001)
        masses = pair.masses(edges)
        found = truncated(pair, BELOW, 0.1, 2.0)
        for place in range(5, len(found.ends), 97):
            end = found.ends[place]
            inside = edges[1:] <= end
            for k, b in enumerate(BELOW):
                # Each mass at the lower edge of its fine cell: below the truth.
                least = math.fsum(masses.p[1:-1][inside] * np.exp(b * edges[:-1][inside]))
                assert math.log(least) - 1e-12 <= found.logs[k, place]
                wide = b * 4e-3 + (2 * b + 1) * found.beyond[place] / least + 1e-6
                assert found.logs[k, place] <= max(math.log(least), 0.0) + wide
            cells = np.append(edges[:-1] >= end, True)
            assert found.beyond[place] >= math.fsum(masses.p[1:][cells]) - 1e-9


def test_beyond_the_support_nothing_is_cut():
    pair = ac.PureDP(0.25).pairs()[0]
    found = truncated(pair, BELOW, 0.25, 2.0)
    assert found.beyond[-1] <= 1e-290
    assert np.all(np.diff(found.beyond) <= 0.0)
    for k, b in enumerate(BELOW):
        truth = math.log(math.cosh((b + 0.5) * 0.25) / math.cosh(0.125))
        assert truth <= found.logs[k, -1] <= truth * (1.0 + 1e-3)


@pytest.mark.parametrize("q", [1e-12, 1e-300, 1.0])
@pytest.mark.parametrize("sigma", [0.05, 1.0, 1e6])
@pytest.mark.parametrize(("spread", "reach"), [(1e-9, 1e-3), (1.0, 1400.0), (64.0, 64.0)])
def test_extreme_arguments_stay_bounds(q, sigma, spread, reach):
    for pair in ac.PoissonSampled(ac.Gaussian(sigma), q).pairs():
        found = truncated(pair, (1e-3, 10.0, 1e4), spread, reach)
        assert not np.any(np.isnan(found.logs))
        assert np.all(found.logs >= 0.0)
        assert np.all(np.diff(found.ends) > 0.0)
        if q < 1e-100:
            assert np.all(found.logs[:2, 300:] < 1e-6)


class Scaled(DominatingPair):
    """Masses that are no probability."""

    def masses(self, edges):
        found = ac.PureDP(0.25).pairs()[0].masses(edges)
        return Masses(found.p, found.q * 0.9, found.relative_error)


def test_masses_that_do_not_add_up_to_one_are_left_alone():
    assert truncated(Scaled(), BELOW, 0.1, 1.0) is None


def worst(logs, below, epsilon):
    """Return sup over losses of (1 - e^(ε - x)) over the mixture Σ w_j·e^(b_j·x - k_j)."""
    with mpmath.workdps(40):
        epsilon = mpmath.mpf(epsilon)
        rows = [(mpmath.mpf(k), mpmath.mpf(b)) for k, b in zip(logs, below, strict=True)]

        def log_ratio(x):
            whole = sum(mpmath.exp(b * x - k) for k, b in rows) / len(rows)
            return mpmath.log(-mpmath.expm1(epsilon - x)) - mpmath.log(whole)

        # Concave less convex: one maximum.
        low, high = epsilon + mpmath.mpf(10) ** -15, epsilon + 60
        for _ in range(300):
            one, two = low + (high - low) / 3, high - (high - low) / 3
            low, high = (one, high) if log_ratio(one) < log_ratio(two) else (low, two)
        return mpmath.exp(log_ratio((low + high) / 2))


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("seed", range(40))
def test_what_is_accepted_keeps_the_budget_and_little_more_would(seed):
    coins = random.Random(seed)
    epsilon, delta = coins.choice([0.05, 0.5, 1.0, 4.0, 30.0]), 10 ** -coins.uniform(0.3, 12)
    orders = coins.choice([1, 2, 3, 7])
    below = [math.exp(coins.uniform(-1.0, 1.0)) * 8.0 / epsilon for _ in range(orders)]
    logs = [b * (b + 1.0) * coins.uniform(0.5, 2.0) for b in below]
    part = used(logs, below, epsilon, delta)
    if part == math.inf:
        return  # no order leaves anything to spend
    just = [k / part * (1.0 - 1e-9) for k in logs]
    assert is_within(just, below, epsilon, delta)
    assert worst(just, below, epsilon) <= delta
    more = [k / part * (1.0 + 1e-6) for k in logs]
    assert not is_within(more, below, epsilon, delta)
    assert worst(more, below, epsilon) > delta * (1.0 - 1e-3)


def test_one_order_is_the_usual_conversion():
    b, epsilon, delta = 9.0, 1.0, 1e-5
    order = b + 1.0
    most = b * (epsilon - math.log1p(-1.0 / order)) + math.log(delta * order)
    assert is_within([most * (1.0 - 1e-12)], [b], epsilon, delta)
    assert not is_within([most * (1.0 + 1e-12)], [b], epsilon, delta)


def test_several_orders_allow_more_than_equal_parts_of_delta():
    below, epsilon, delta = [14.0, 18.0, 22.0], 1.0, 1e-6
    logs = [b * (b + 1.0) for b in below]
    together = used(logs, below, epsilon, delta)
    apart = min(used([k], [b], epsilon, delta / 3) for k, b in zip(logs, below, strict=True))
    alone = min(used([k], [b], epsilon, delta) for k, b in zip(logs, below, strict=True))
    assert alone < together < 0.97 * apart


def test_degenerate_sums():
    assert is_within([0.0, 0.0], [1.0, 9.0], 1.0, 0.5)
    assert used([0.0], [9.0], 1.0, 1e-5) == 0.0
    assert not is_within([math.inf], [9.0], 1.0, 1e-5)
    assert used([math.inf], [9.0], 1.0, 1e-5) == math.inf
    assert is_within([math.inf, 1.0], [9.0, 20.0], 1.0, 1e-5)
    assert not is_within([1e300, 1e300], [9.0, 20.0], 1.0, 1e-5)
    for delta in (1e-300, 0.9):
        part = used([1.0, 2.0], [900.0, 1200.0], 1.0, delta)
        assert 0.0 < part < 1.0
