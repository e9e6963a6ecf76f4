"""Regression and moments: sensitivities by brute force, noise as accounted, sane estimates."""

import math

import numpy as np
import pytest

import accountant as ac
from accountant.errors import DomainError
from accountant.learn.convex import fit as fits
from accountant.learn.convex import statistics as regression
from accountant.learn.convex.fit import NoiseSource
from accountant.learn.convex.posterior import private_quantile
from accountant.learn.convex.statistics import (
    ada_ssp,
    private_covariance,
    private_mean,
    private_ridge,
)
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.stated_guarantees import PureDP
from accountant.noise.exact_samplers import discrete_laplace

RNG = np.random.default_rng(0)


class Recorder(NoiseSource):
    """Releases without noise, and remembers what was released and how noisily."""

    def __init__(self, rng=None):
        super().__init__(0)
        self.seen = log

    def release(self, values, sigma):
        self.seen.append((values.copy(), sigma))
        return values


log = []


@pytest.fixture(autouse=True)
def clear():
    log.clear()


def worst_mu(fit, d, monkeypatch, tries=60):
    """The largest Σ (shift / σ)² over neighbours: (1 / multiplier)² at most."""
    monkeypatch.setattr(fits, "NoiseSource", Recorder)
    worst = 0.0
    for i in range(tries):
        x = RNG.normal(size=(5, d)) * RNG.choice([0.1, 3.0])
        y = RNG.normal(size=5) * 10
        if i % 3 == 0:  # at both bounds, where the sensitivity is attained
            x[0] = 9 * np.eye(d)[i % d]
            y[0] = 100
        log.clear()
        fit(x, y)
        first = list(log)
        log.clear()
        fit(x[1:], y[1:])
        mu = sum(
            (np.linalg.norm(a - b) / s) ** 2 for (a, s), (b, _) in zip(first, log, strict=True)
        )
        worst = max(worst, math.sqrt(mu))
    return worst


@pytest.mark.parametrize("method", [ada_ssp, private_ridge])
@pytest.mark.parametrize("d", [1, 3])
def test_statistics_move_by_no_more_than_is_accounted(method, d, monkeypatch):
    def fit(x, y):
        method(x, y, epsilon=1.0, delta=1e-6, data_norm=2.0, target_bound=3.0)

    allowed = 1 / ac.calibrate_sigma(1.0, 1e-6)
    worst = worst_mu(fit, d, monkeypatch)
    # Attained; a sensitivity without the factor √2 for the pair would be violated.
    assert 0.95 * allowed < worst <= allowed
    assert worst > allowed / math.sqrt(2) * 1.01


@pytest.mark.parametrize("method", [private_mean, private_covariance])
def test_moments_move_by_no_more_than_is_accounted(method, monkeypatch):
    def fit(x, y):
        method(x, epsilon=1.0, delta=1e-6, bound=2.0, center=0.5)

    allowed = 1 / ac.calibrate_sigma(1.0, 1e-6)
    assert 0.99 * allowed < worst_mu(fit, 3, monkeypatch) <= allowed


@pytest.mark.parametrize("d", [1, 4])
def test_absolute_sensitivities_of_the_pure_variants(d):
    upper = np.triu_indices(d, 1)
    worst_mean = worst_second = 0.0
    for _ in range(2000):
        v = RNG.normal(size=d)
        v /= np.linalg.norm(v)
        outer = np.outer(v, v)
        worst_mean = max(worst_mean, np.abs(v).sum() + 1)
        packed = np.abs(np.diag(outer)).sum() + math.sqrt(2) * np.abs(outer[upper]).sum() + 1
        worst_second = max(worst_second, packed)
    assert worst_mean <= math.sqrt(d) + 1 + 1e-12
    assert worst_second <= d + 1 + 1e-12


def test_estimates_are_near_the_truth():
    x = RNG.normal(size=(20_000, 3)) * [1, 0.5, 0.2] + [1, 2, -1]
    options = {"epsilon": 1.0, "rng": 1}
    for delta in (1e-6, 0.0):
        mean = private_mean(x, delta=delta, bound=6.0, center=[1, 1, 0], **options)
        assert np.allclose(mean.value, [1, 2, -1], atol=0.05)
        second = private_covariance(x, delta=delta, bound=5.0, center=[1, 2, -1], **options)
        assert np.allclose(second.value, np.diag([1, 0.25, 0.04]), atol=0.1)
        assert (np.linalg.eigvalsh(second.value) >= -1e-12).all()
    for q in (0.1, 0.5, 0.99):
        drawn = private_quantile(x[:, 0], q, epsilon=1.0, lower=-50, upper=50, rng=2)
        assert drawn.value[0] == pytest.approx(np.quantile(x[:, 0], q), abs=0.1)
        assert drawn.mechanisms == (PureDP(1.0),)
    assert private_mean(x[:, 0], delta=1e-6, bound=6.0, **options).value.shape == (1,)


def quantile_law(values, level, epsilon, edges):
    """The density Smith's mechanism must have, on a fine grid, from the scores' definition."""
    t = (edges[1:] + edges[:-1]) / 2
    below = (values[None, :] < t[:, None]).sum(axis=1)
    above = (values[None, :] > t[:, None]).sum(axis=1)
    score = -np.abs((1 - level) * below - level * above)
    w = np.exp(0.5 * epsilon * score / max(level, 1 - level)) * np.diff(edges)
    return w / w.sum()


@pytest.mark.long
def test_the_quantiles_law_is_pure_and_is_what_is_drawn():
    edges = np.linspace(0, 1, 2001)
    worst = 0.0
    for level in (0.0, 0.25, 0.5, 0.9):
        for _ in range(100):
            values = RNG.uniform(size=6)
            p, q = (quantile_law(v, level, 1.3, edges) for v in (values, values[1:]))
            worst = max(worst, np.abs(np.log(p / q)).max())
    assert 0.4 < worst <= 1.3
    values = np.array([0.1, 0.2, 0.25, 0.7, 0.9])
    draws = [
        private_quantile(values, 0.25, epsilon=3.0, lower=0, upper=1, rng=s).value[0]
        for s in range(2000)
    ]
    cdf = np.cumsum(quantile_law(values, 0.25, 3.0, edges))
    gap = np.abs(np.interp(np.sort(draws), edges[1:], cdf) - (np.arange(2000) + 0.5) / 2000).max()
    assert gap < 0.045


def test_the_gram_noise_has_its_variances():
    x = np.zeros((1, 3))
    draws = []
    for seed in range(400):
        fit = fits.Fit("test", 1.0, 1e-5, None, seed)
        gram, _, _ = regression._noisy_statistics(fit, x, np.zeros(1), (1.0, 1.0), 2.0)
        assert (gram == gram.T).all()
        draws.append(gram)
    noise = np.stack(draws)
    sigma = 2 * math.sqrt(2)
    assert noise[:, 0, 0].std() == pytest.approx(sigma, rel=0.12)
    assert noise[:, 0, 1].std() == pytest.approx(sigma / math.sqrt(2), rel=0.12)


def simulated(n, d, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)
    theta = rng.normal(size=d)
    theta /= np.linalg.norm(theta)
    return x, np.clip(x @ theta + 0.1 * rng.normal(size=n), -1, 1)


def r2(theta, x, y):
    return 1 - ((y - x @ theta) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def diabetes():
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.load_diabetes(return_X_y=True)
    x = np.hstack([np.clip(x / 0.15, -1, 1), np.ones((len(x), 1))])
    return x / np.linalg.norm(x, axis=1, keepdims=True), y / 200 - 1


def predicted_r2(x, y, sigma, ridge):
    """R² of noisy ridge to first order: its bias, and the noise through the inverse."""
    d = x.shape[1]
    gram = x.T @ x
    exact = np.linalg.solve(gram, x.T @ y)
    inverse = np.linalg.inv(gram + ridge * np.eye(d))
    fitted = inverse @ gram @ exact
    bias = exact - fitted
    # Noise on Xᵀy and, isotropically, on XᵀX times the parameter.
    noise = sigma**2 * (1 + float(fitted @ fitted) * (d + 1) / (2 * d))
    excess = bias @ gram @ bias + noise * np.trace(inverse @ gram @ inverse)
    return r2(exact, x, y) - excess / ((y - y.mean()) ** 2).sum()


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("data", [lambda: simulated(20_000, 8), diabetes])
def test_ada_ssp_meets_its_own_noise_formula(data, epsilon):
    x, y = data()
    options = {"epsilon": epsilon, "delta": 1e-5, "data_norm": 1.0, "target_bound": 1.0}
    fits = [ada_ssp(x, y, rng=s, **options) for s in range(20)]
    predicted = np.mean(
        [predicted_r2(x, y, f.details["gram_noise"], f.details["regularization"]) for f in fits]
    )
    measured = [r2(f.value, x, y) for f in fits]
    print(f"predicted {predicted:.3f}, measured {np.mean(measured):.3f}")
    assert np.mean(measured) >= predicted - 2 * np.std(measured) / math.sqrt(20)


def test_ada_ssp_adapts_where_ridge_cannot():
    # Plenty of data: the noisy least eigenvalue lets the ridge vanish.
    x, y = simulated(20_000, 5)
    options = {"epsilon": 1.0, "delta": 1e-6, "data_norm": 1.0, "target_bound": 1.0, "rng": 1}
    fit = ada_ssp(x, y, **options)
    assert fit.details["regularization"] == 0
    assert private_ridge(x, y, **options).details["regularization"] > 0
    assert len(fit.mechanisms) == 2
    total = sum(m.noise_multiplier**-2 for m in fit.mechanisms)
    assert total <= ac.calibrate_sigma(1.0, 1e-6) ** -2 * (1 + 1e-12)
    assert private_ridge(x, y, **options).mechanisms == (Gaussian(ac.calibrate_sigma(1.0, 1e-6)),)


def test_bad_input():
    x, y = simulated(10, 2)
    options = {"epsilon": 1.0, "delta": 1e-6, "data_norm": 1.0, "target_bound": 1.0}
    with pytest.raises(DomainError, match="target_bound"):
        ada_ssp(x, y, **(options | {"target_bound": 0.0}))
    with pytest.raises(DomainError, match="regularization"):
        private_ridge(x, y, regularization=math.nan, **options)
    with pytest.raises(DomainError, match="quantile"):
        private_quantile(y, 1.5, epsilon=1, lower=0, upper=1)
    with pytest.raises(DomainError, match="lower must be below"):
        private_quantile(y, 0.5, epsilon=1, lower=1, upper=1)
    with pytest.raises(DomainError, match="center"):
        private_mean(x, epsilon=1, delta=1e-6, bound=1.0, center=math.inf)
    # No record at all is an answer, not an exception.
    empty = np.zeros((0, 2))
    assert np.isfinite(ada_ssp(empty, np.zeros(0), **options).value).all()
    assert np.isfinite(private_mean(empty, epsilon=1, delta=1e-6, bound=1.0).value).all()
    assert 0 <= private_quantile(np.zeros(0), 0.5, epsilon=1, lower=0, upper=1).value[0] <= 1


def test_a_quantile_shows_no_digit_of_a_record():
    for x in ([], [0.3], [0.3, 0.3000001]):
        for _ in range(50):
            value = private_quantile(np.array(x), 0.5, epsilon=0.1, lower=0, upper=1).value[0]
            cell = value * 2.0**41
            assert cell % 2 == 1


@pytest.mark.parametrize("statistic", [0.0, 1.0, 1e-17])
def test_pure_releases_lie_on_one_public_grid(statistic):
    # In floating point a sum of 0 shows digits that a sum of 1 cannot (Mironov 2012).
    source = NoiseSource()
    for _ in range(50):
        value = source.release_pure(np.array([statistic]), 1.0, 1.0)[0] * 2.0**30
        assert value == int(value)


@pytest.mark.long
def test_discrete_laplace_has_its_law():
    source = NoiseSource(3)
    drawn = np.array([discrete_laplace(3, source.below) for _ in range(20_000)])
    ratio = math.exp(-1 / 3)
    for j in range(-5, 6):
        p = (1 - ratio) / (1 + ratio) * ratio ** abs(j)
        assert abs(np.mean(drawn == j) - p) < 5 * math.sqrt(p / len(drawn))


def test_a_record_far_from_the_center_is_finite():
    with np.errstate(all="raise"):
        result = private_mean(np.array([1e308, 0.0]), epsilon=1, delta=1e-5, bound=1, center=-1e308)
    assert np.isfinite(result.value).all()
