"""The sum over full batches (Theorem S25) against a lattice, and against the grid."""

import numpy as np
import pytest
from scipy.stats import norm

from accountant import Gaussian
from accountant.analyses.overflow_counts import OverflowContour
from accountant.analyses.solvers import Grid
from accountant.pairs.product import BlendPair
from accountant.sampling import PoissonSampled, TruncatedPoissonSampled, TruncatedPoissonSampler
from accountant.sampling.truncated_poisson import DoubtfulGaussian, OverflowPair

# Cells of the output, so small that their ratios are those of the densities, and of the losses.
EDGES = np.linspace(-12.0, 13.0, 40_001)
SPACING = 1e-4


def cells(at, sigma):
    """Return the masses of the cells, from the nearer tail."""
    below, above = np.diff(norm.cdf(EDGES, at, sigma)), -np.diff(norm.sf(EDGES, at, sigma))
    return np.where(EDGES[1:] < at, below, above)


def laws_of_a_step(weight, share, q, sigma, add):
    """Return the two laws on (coin, output), and on the outcome that tells nothing."""
    out, hit = (cells(at, sigma) for at in (0.0, 1.0))
    with_it = [(1 - q) * out + q * hit, (1 - q) * (1 - share) * out + q * hit, (1 - q) * share]
    without = [out, (1 - share) * out, share]
    coins = [1 - weight, weight, weight]
    p = np.concatenate([np.atleast_1d(c * law) for c, law in zip(coins, with_it, strict=True)])
    r = np.concatenate([np.atleast_1d(c * law) for c, law in zip(coins, without, strict=True)])
    return (r, p) if add else (p, r)


def profile(law, steps, epsilon, *, up):
    """Return H(ε): losses are rounded down or up to a lattice, and composed by one transform."""
    p, r = law
    kept = (p > 0) & (r > 0)
    place = (np.ceil if up else np.floor)(np.log(p[kept] / r[kept]) / SPACING).astype(int)
    size = 2**20  # a window of 105 nats, cyclic
    masses = np.bincount(place % size, weights=p[kept], minlength=size)
    total = np.fft.irfft(np.fft.rfft(masses) ** steps, size)
    least = -int(30.0 / SPACING)
    loss = SPACING * ((np.arange(size) - least) % size + least)
    return float((total * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())


def pair_of(weight, share, q, sigma, add):
    plain = DoubtfulGaussian(sigma, share)
    usual = PoissonSampled(Gaussian(sigma), q).pairs()[int(add)]
    if not add:
        return BlendPair(weight, OverflowPair(plain, q, add=False), usual)
    inner = DoubtfulGaussian(sigma, share, add=True)
    return BlendPair(weight, OverflowPair(inner, q, add=True, reverse=plain), usual)


class Alone(OverflowContour):
    """Never narrowed by a grid."""

    def _narrowed(self, found, **_):
        return found


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("share", "q", "sigma"), [(0.4, 0.2, 1.0), (0.9, 0.5, 0.8), (0.7, 0.1, 1.5)]
)
def test_steps_compose_as_on_a_lattice(share, q, sigma, add):
    steps, weight = 40, 0.0025
    contour = Alone(((pair_of(weight, share, q, sigma, add), steps),))
    law = laws_of_a_step(weight, share, q, sigma, add)
    for epsilon in (0.0, 0.01, 0.5, 2.0, 4.0):
        low, high = (profile(law, steps, epsilon, up=up) for up in (False, True))
        found = contour.delta_bounds(epsilon)
        assert found.upper >= low - 1e-11  # the transform's rounding
        assert found.lower <= high + 1e-11
        if epsilon >= 2.0 and low > 1e-3:  # not losses moved below 0, nor what contours leave open
            assert found.upper <= high * (1 + 1e-2) + 1e-9
            assert found.lower >= low * (1 - 1e-2) - 1e-9


@pytest.mark.long
@pytest.mark.parametrize("delta", [1e-12, 1e-5])
@pytest.mark.parametrize(("noise", "cap"), [(1.0, 351), (3.0, 351), (0.7, 340)])
def test_the_grid_agrees(noise, cap, delta):
    one = TruncatedPoissonSampled(
        noise, sampling_probability=256 / 60_000, cap=cap, dataset_size=60_000
    )
    for pair in one.pairs():
        contour, grid = OverflowContour(((pair, 300),)), Grid(((pair, 300),), (1e-5,))
        ours, theirs = contour.epsilon_bounds(delta), grid.epsilon_bounds(delta)
        assert ours.lower <= theirs.upper
        assert theirs.lower <= ours.upper
        assert ours.upper <= ours.lower * (1 + 1e-5)
        back = contour.delta_bounds(float(ours.upper))
        assert back.lower <= delta * (1 + 1e-9)
        assert contour.delta_bounds(float(ours.lower)).upper >= delta * (1 - 1e-9)


def test_a_language_models_delta_takes_no_grid():
    settings = {"dataset_size": 60_000, "sampling_probability": 256 / 60_000, "steps": 2350}
    mechanism = TruncatedPoissonSampler(cap=351, **settings).mechanism(1.0)
    assert mechanism.explain(1e-10).analysis == "overflow contour"
    assert 2.0550387 < mechanism.epsilon(1e-10) < 2.0550388
