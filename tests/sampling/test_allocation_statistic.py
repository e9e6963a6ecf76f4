"""Several participations from below: the law of the sum, brute force and simulation."""

import math

import numpy as np
import pytest

from accountant import sampling
from accountant.sampling import allocation_statistic
from accountant.sampling.allocation_statistic import Chances, SumOverSteps, SumPair


def _direct(cells, counts):
    """The law of the sum by direct convolution, at 64 bits of mantissa."""
    law, first = np.ones(1, np.longdouble), 0
    for count, mass in zip(counts, (cells.shifted, cells.plain), strict=True):
        for _ in range(count):
            law = np.convolve(law, mass.astype(np.longdouble))
            first += cells.first
    return law, first


@pytest.mark.parametrize(("steps", "picks"), [(2, 1), (3, 2)])
@pytest.mark.parametrize("noise", [0.6, 2.0])
@pytest.mark.parametrize("add", [False, True])
def test_masses_are_on_the_safe_side(monkeypatch, steps, picks, noise, add):
    monkeypatch.setattr(allocation_statistic, "FINE", 60.0)
    monkeypatch.setattr(allocation_statistic, "LARGEST", 2**12)
    cells = allocation_statistic._one_step(noise, picks, steps)
    p, _ = _direct(cells, (picks, steps - picks))
    q, _ = _direct(cells, (0, steps))
    table = SumPair(noise, steps, Chances(picks, (1.0,)), add).loss_atoms
    above, below = (q, p) if add else (p, q)
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        exact = np.maximum(above - np.exp(np.longdouble(epsilon)) * below, 0.0).sum()
        mine = float(table.p @ -np.expm1(np.minimum(epsilon - table.loss, 0.0)))
        assert mine <= exact
        assert mine >= exact * (1.0 - 1e-6) - 1e-11


def _simulated(noise, steps, picks, epsilon, add, runs, seed):
    """A 99.9 % interval for δ of the exact pair: S = e_k(Y) / C(T, k) by its recursion."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0.0, noise, (runs, steps))
    if not add:
        x[:, :picks] += 1.0  # the ratio does not depend on which steps were picked
    y = np.exp((2.0 * x - 1.0) / (2.0 * noise * noise))
    e = np.zeros((runs, picks + 1))
    e[:, 0] = 1.0
    for t in range(steps):
        e[:, 1:] += e[:, :-1] * y[:, t : t + 1]
    loss = np.log(e[:, picks] / math.comb(steps, picks)) * (-1.0 if add else 1.0)
    values = -np.expm1(np.minimum(epsilon - loss, 0.0))
    radius = 3.3 * values.std() / math.sqrt(runs) + 8.0 / runs
    return values.mean() - radius, values.mean() + radius


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("steps", "picks", "epsilon"), [(4, 2, 0.5), (60, 5, 0.8), (40, 20, 4.0)])
@pytest.mark.parametrize("add", [False, True])
def test_simulation_contains_the_bracket(steps, picks, epsilon, add):
    low, high = _simulated(1.0, steps, picks, epsilon, add, 40_000, 7)
    lower = float(SumOverSteps(1.0, steps, picks).pairs()[add].profile(epsilon).lower)
    assert lower <= high
    # The sum tells nearly everything: it is not a trivial bound.
    assert lower >= 0.9 * low
    blocks = picks * sampling.Allocated(1.0, steps=steps // picks)
    assert blocks.delta(epsilon) >= low


def test_exchanged_laws_would_be_noticed():
    remove, add = SumOverSteps(1.0, 60, 5).pairs()
    truth = _simulated(1.0, 60, 5, 0.8, True, 40_000, 7)[1]
    assert remove.profile(0.8).lower > truth
    assert add.profile(0.8).lower <= truth


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("picks", "low", "high"), [(2, 0.3604, 0.3625), (10, 1.943, 1.966), (50, 11.18, 11.49)]
)
def test_brackets_of_an_epoch(picks, low, high):
    # They were [0.243, 0.362], [1.37, 1.97] and [8.31, 11.48].
    sampler = sampling.RandomAllocation(
        dataset_size=10_000, steps_per_epoch=1000, participations=picks
    )
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert low <= found.lower <= found.upper <= high


@pytest.mark.parametrize(
    ("noise", "steps", "picks"),
    [(0.15, 2, 1), (1e8, 3, 2), (1.0, 2, 1), (1.0, 10**9, 10**6), (0.2, 10**6, 3), (30.0, 5, 4)],
)
def test_extremes(noise, steps, picks):
    for pair in SumOverSteps(noise, steps, picks).pairs():
        table = pair.loss_atoms
        assert (table.p >= 0.0).all()
        assert float(table.p.sum()) <= 1.0 + 1e-6
        assert (table.q <= 1.0 + 1e-12).all()
        for epsilon in (0.0, 1.0):
            found = pair.profile(epsilon)
            assert 0.0 <= found.lower <= found.upper <= 1.0
