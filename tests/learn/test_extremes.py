"""Extreme and degenerate parameters of selection, votes, local reports and searches."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

import accountant as ac
from accountant.errors import DomainError
from accountant.learn.local import KaryResponse, Rappor, randomize_laplace
from accountant.learn.pate import (
    GNMax,
    LNMax,
    log_probability_of_another,
    release_data_dependent_epsilon,
)
from accountant.learn.selection import permute_and_flip, report_noisy_max, select_exponential
from accountant.learn.selection.noisy_max import in_steps
from accountant.mechanisms import ShuffledResponses, SmoothSensitivityGaussian
from accountant.mechanisms.selection import _binomial
from accountant.noise import SecureGenerator


@pytest.mark.parametrize(
    "draw",
    [
        lambda s: report_noisy_max(s, 1e-3, rng=1),
        lambda s: report_noisy_max(s, 1e-3, noise="exponential", rng=1),
        lambda s: select_exponential(s, 1e3, rng=1),
        lambda s: permute_and_flip(s, 1e3, rng=1),
    ],
    ids=["gumbel", "exponential", "select", "flip"],
)
def test_scores_far_apart_do_not_raise(draw):
    # An error would depend on the data.
    assert draw([-1e308, 1e308, -1e308]).index == 1


def test_the_scale_in_grid_steps_is_not_below_the_one_accounted():
    rng = np.random.default_rng(5)
    for scale, unit in [(1.0, 3.0), *np.exp(rng.normal(size=(500, 2))).tolist()]:
        assert Fraction(in_steps(scale, unit)) >= Fraction(scale) / Fraction(unit) * 2**20


def test_an_infinite_width_of_bounds_is_refused():
    # (value - low) / inf was NaN for one value and 0 for another, whatever the noise.
    with pytest.raises(DomainError, match="finite difference"):
        randomize_laplace([1e308, -1e308], (-1e308, 1e308), 1.0, rng=1)


@pytest.mark.parametrize(
    "values",
    [(1e-15, 0.0, 1.0), (1e-14, 0.0, 1.0), (0.5, 0.3, 0.7), (1e-10, 1e-12, 1.0), (0.999, 0.5, 0.6)],
)
def test_rappor_losses_against_many_digits(values):
    f, low, high = values
    with mp.workdps(60):
        a, b, c = mpf(f), mpf(low), mpf(high)
        p, q = a * (b + c) / 2 + (1 - a) * b, a * (b + c) / 2 + (1 - a) * c
        truth = min(mp.log(q * (1 - p) / (p * (1 - q))), 2 * mp.log((1 - a / 2) / (a / 2)))
    found = Rappor(3, *values).report_epsilon
    assert truth <= found <= float(truth) * (1 + 1e-13)


def test_rappor_reports_are_drawn_on_the_side_of_more_noise(monkeypatch):
    # Probabilities far below the digits of a coin: a one must not tell the bits apart.
    monkeypatch.setattr(SecureGenerator, "words", lambda self, n: np.zeros(n, np.uint64))
    reports = Rappor(2, 0.5, 1e-30, 2e-30).report(np.array([[True, False]]), rng=1)
    assert reports.tolist() == [[True, True]]


@pytest.mark.parametrize("noise", ["gumbel", "exponential", "laplace", "gaussian"])
def test_an_infinite_scale_is_refused(noise):
    with pytest.raises(DomainError, match="finite"):
        report_noisy_max([1.0, 2.0], math.inf, noise=noise)


def test_tiny_local_losses_are_refused():
    with pytest.raises(DomainError, match="1e-9"):
        KaryResponse(1e-17, 5)


@pytest.mark.parametrize("aggregator", [GNMax(2.0), LNMax(2.0)], ids=repr)
def test_ties_on_the_grid_are_within_log_q(aggregator):
    """The law of what is drawn, with the first class winning ties, by its worst case."""
    scale = 2.0
    law = stats.norm(scale=scale * math.sqrt(2.0)) if isinstance(aggregator, GNMax) else None
    for gap in (0, 1, 5, 30, 60):
        step = 2.0**-30 * scale if law is not None else 2.0**-20
        x = gap - step  # differences of rounded noise reach the gap a step earlier
        if law is not None:
            truth = law.logsf(x)
        else:
            x /= scale
            truth = math.log((2.0 + x) / 4.0) - x if x >= 0 else math.log(0.5 - 0.25 * x)
        noise = "gaussian" if law is not None else "laplace"
        found = float(log_probability_of_another([10, 10 + gap], scale, noise=noise)[0])
        assert found >= truth * (1 - 1e-14) or gap == 0
        assert found == pytest.approx(truth, abs=1e-4)


def test_binomial_masses_of_many_users():
    n, p = 10**7, 0.3
    x = np.arange(2_990_000, 3_010_001, dtype=float)
    masses = _binomial(x, n, p, 1 - p)
    with mp.workdps(40):
        for i in (0, 5000, 10_000, 17_000):
            k = mpf(x[i])
            log = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
            log += k * mp.log(mpf(p)) + (n - k) * mp.log1p(-mpf(p))
            assert masses[i] == pytest.approx(float(mp.exp(log)), rel=2e-11)


def test_grouped_clones_bound_single_ones(monkeypatch):
    bounds = ShuffledResponses(1.0, dataset_size=3000).pairs()[0].bounds
    one = bounds.delta(0.05)
    for blocks in (1, 7, 100):
        monkeypatch.setattr("accountant.mechanisms.selection.BLOCKS", blocks)
        assert one <= bounds.delta(0.05)
    assert bounds.delta(0.05) < 1.5 * one


@pytest.mark.parametrize(
    "search",
    [
        ac.BestOfRuns(ac.Gaussian(2.0), 1e-300, eta=0.5),
        ac.BestOfRuns(ac.Gaussian(2.0), 0.1, eta=1e300),
        ac.BestOfRuns(ac.Gaussian(1e-3), 0.1),
        ac.BestOfPoissonRuns(ac.Gaussian(2.0), 1e8),
        ac.BestOfPoissonRuns(ac.Gaussian(1e-3), 5.0),
    ],
    ids=repr,
)
def test_searches_too_costly_for_a_table_have_an_answer(search):
    assert search.epsilon(1e-5) > 40.0
    assert search.delta(3.0) > 0.99


def test_smooth_noise_of_any_size():
    assert SmoothSensitivityGaussian(1e-200, smoothness=0.01).rdp(2.0) == math.inf
    assert 0.0 < SmoothSensitivityGaussian(1e200, smoothness=0.01).rdp(2.0) < 1e-3


def test_a_released_bound_shows_no_digits_beyond_its_grid():
    votes = [[90, 10, 0]] * 20
    for seed in range(5):
        found = release_data_dependent_epsilon(votes, GNMax(20.0), delta=1e-5, rng=seed)
        steps = found.rdp * 2.0**40
        assert steps == math.floor(steps)
    with pytest.raises(DomainError, match="at least one row"):
        release_data_dependent_epsilon(np.zeros((0, 3), int), GNMax(20.0), delta=1e-5)


def test_local_values_are_descriptions():
    for value in (KaryResponse(1.0, 5), Rappor(5, 0.5), Rappor(5, 0.5, q=0.75)):
        assert eval(repr(value), {"KaryResponse": KaryResponse, "Rappor": Rappor}) == value
