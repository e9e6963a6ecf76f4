"""The exponential mechanism, integer losses and the Gibbs posterior: what they claim."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats
from scipy.special import ndtr, ndtri

from accountant.errors import DomainError
from accountant.learn.convex import posterior as gibbs
from accountant.learn.convex.fit import NoiseSource
from accountant.learn.convex.losses import BoundedPoisson, Huber, HuberHinge, Logistic, Softmax
from accountant.learn.convex.posterior import (
    exponential_mechanism,
    gibbs_posterior,
    gibbs_posterior_mu,
    integer_risk,
    oscillation,
)
from accountant.learn.convex.rows import PublicRisk, RegularizedRisk, clip_rows
from accountant.learn.convex.solvers import minimize
from accountant.mechanisms.stated_guarantees import PureDP
from support.published_objectives import normal_profile

RNG = np.random.default_rng(4)
X = clip_rows(RNG.normal(size=(60, 3)), 1.0)
Y = RNG.choice([-1.0, 1.0], size=60)


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(0.5), Huber(0.5), BoundedPoisson(0.5, 2)])
def test_the_exponential_mechanism_is_pure(loss):
    # Exact probabilities on the grid, for many added records.
    reach, epsilon = 2.0, 0.7
    grid = np.linspace(-reach, reach, 41)
    width = oscillation(loss, reach)

    def law(x, y):
        labels = loss.encode(np.asarray(y))
        risk = sum(loss.value(a * grid, b) for a, b in zip(x, labels, strict=True))
        w = np.exp(-epsilon / width * (risk - risk.min()))
        return w / w.sum()

    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(200):
        x, y = rng.uniform(-1, 1, size=4), rng.choice([-1.0, 1.0], size=4)
        x[0] = rng.choice([-1.0, 1.0])
        worst = max(worst, np.abs(np.log(law(x, y) / law(x[1:], y[1:]))).max())
    assert worst <= epsilon
    if isinstance(loss, Logistic):
        assert worst > 0.4 * epsilon


WILD = [1.0, -1.0, 1e300, -1e300, 1e16, 0.3]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(0.5), Huber(0.5), BoundedPoisson(0.5, 2)])
def test_whatever_floats_do_a_record_moves_integer_losses_by_their_range(loss):
    # Brute force of the ratio: weights exp(-ε k / 2**30), and 0 <= added k <= 2**30 everywhere.
    rng = np.random.default_rng(7)
    axis = np.linspace(-3, 3, 15)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    width = oscillation(loss, 3.0)
    wild = not isinstance(loss, (Logistic, HuberHinge))
    with mp.workdps(40):
        worst = mpf(0)
        for _ in range(40):
            x = clip_rows(rng.normal(size=(6, 2)) * 3, 1.0)
            y = loss.encode(rng.choice(WILD if wild else WILD[:2], size=6))
            risks = [integer_risk(x[i:], y[i:], loss, grid, width) for i in (0, 1)]
            added = risks[0] - risks[1]
            assert (added == integer_risk(x[:1], y[:1], loss, grid, width)).all()
            assert added.min() == 0
            assert added.max() <= 2**30
            w = [[mp.exp(-mpf(int(k)) / 2**30) for k in risk] for risk in risks]
            totals = [sum(v) for v in w]
            ratios = [a / totals[0] / (b / totals[1]) for a, b in zip(*w, strict=True)]
            worst = max(worst, *(abs(mp.log(ratio)) for ratio in ratios))
        assert 0.1 < worst <= 1


@pytest.mark.parametrize("n", [1, 7, 300])
def test_a_records_losses_do_not_depend_on_its_neighbours(n):
    rng = np.random.default_rng(n)
    x = clip_rows(rng.normal(size=(n, 2)), 1.0)
    y = rng.choice([-1.0, 1.0], size=n)
    grid = rng.uniform(-3, 3, size=(10_007, 2))
    alone = sum(integer_risk(x[i : i + 1], y[i : i + 1], Logistic(), grid, 3.0) for i in range(n))
    assert (integer_risk(x, y, Logistic(), grid, 3.0) == alone).all()
    assert (integer_risk(x[::-1], y[::-1], Logistic(), grid, 3.0) == alone).all()


class LastDigits(Logistic):
    """Not a loss: what is left of a score below 2^-40, so that one rounding shows."""

    def value(self, u, y):
        return np.modf(u * 2.0**40)[0]


@pytest.mark.parametrize("n", [2, 9, 64])
def test_no_digit_of_a_score_depends_on_the_other_records(n):
    rng = np.random.default_rng(n)
    x, y = clip_rows(rng.normal(size=(n, 2)), 1.0), np.ones(n)
    grid = rng.uniform(-3, 3, size=(5003, 2))
    alone = sum(integer_risk(x[i : i + 1], y[:1], LastDigits(), grid, 2.0) for i in range(n))
    assert (integer_risk(x, y, LastDigits(), grid, 2.0) == alone).all()
    assert (integer_risk(x[::-1], y, LastDigits(), grid, 2.0) == alone).all()


@pytest.mark.long
def test_the_exponential_mechanism_draws_by_its_weights():
    x, y = np.array([[1.0], [0.5]]), np.array([1.0, -1.0])
    options = {"epsilon": 6.0, "data_norm": 1.0, "radius": 2.0, "points": 5}
    drawn = [exponential_mechanism(x, y, rng=s, **options).value[0] for s in range(3000)]
    grid = np.linspace(-2, 2, 5)
    w = np.exp(-3.0 * (np.logaddexp(0, -grid) + np.logaddexp(0, 0.5 * grid)))
    counts = np.bincount(np.searchsorted(grid, drawn), minlength=5)
    assert stats.chisquare(counts, 3000 * w / w.sum()).pvalue > 1e-4
    # The mutant divides by twice the range.
    assert stats.chisquare(counts, 3000 * np.sqrt(w) / np.sqrt(w).sum()).pvalue < 1e-6


def test_exponential_samplers_run_and_refuse_three_columns():
    options = {"epsilon": 2.0, "data_norm": 1.0, "rng": 1}
    r = exponential_mechanism(X[:, :2], Y, radius=3.0, points=31, **options)
    assert r.value.shape == (2,)
    assert r.mechanisms == (PureDP(2.0),)
    with pytest.raises(DomainError, match="at most 2 columns"):
        exponential_mechanism(X, Y, radius=3.0, **options)
    with pytest.raises(DomainError, match="at most 2 columns"):
        gibbs_posterior(X, Y, delta=1e-5, regularization=1.0, **options)
    with pytest.raises(DomainError, match="at most 2 columns"):
        exponential_mechanism(X[:, :2], Y, radius=3.0, loss=Softmax(2), **options)


@pytest.mark.parametrize(("lam", "temperature"), [(0.5, 1.0), (2.0, 5.0), (0.2, 10.0)])
def test_the_gibbs_account_holds_for_exact_densities(lam, temperature):
    mu = gibbs_posterior_mu(slope=1.0, regularization=lam, temperature=temperature)
    t = np.linspace(-60, 60, 200_001)

    def law(x, y):
        risk = 0.5 * lam * t * t
        for a, b in zip(x, y, strict=True):
            risk = risk + np.logaddexp(0, -a * b * t)
        w = np.exp(-(risk - risk.min()) / temperature)
        return w / w.sum()

    for x, y in [([1.0], [1.0]), ([1.0, 0.5], [1.0, -1.0]), ([1.0, -1.0, 0.3], [1, 1, 1])]:
        p, q = law(x, y), law(x[1:], y[1:])
        for epsilon in (0.0, 0.2, 1.0):
            for a, b in ((p, q), (q, p)):
                exact = np.maximum(a - math.exp(epsilon) * b, 0).sum()
                assert exact <= normal_profile(epsilon, mu) * (1 + 1e-6) + 1e-12


@pytest.mark.long
def test_gibbs_samples_have_the_gibbs_law(monkeypatch):
    x, y, lam = np.array([[1.0], [0.5], [-1.0]]), np.array([1.0, 1.0, 1.0]), 0.5
    law = gibbs._law(PublicRisk(Logistic(), 10**5, (1,), 1.0, lam), 0.3)
    problem = RegularizedRisk(x, y, Logistic(), lam, np.zeros(1), 1.0)
    centre = minimize(problem, 1e-6)
    tau = problem.certified_gradient_norm(centre)
    monkeypatch.setattr(gibbs, "PROPOSALS", 4)  # most draws need no more
    source = NoiseSource(2)
    n = 20_000
    draws = np.sort([gibbs._rejection(problem, centre, tau, law, source)[0] for _ in range(n)])
    t = np.linspace(-400, 400, 400_001)
    risk = 0.5 * lam * t * t + sum(
        np.logaddexp(0, -a * b * t) for a, b in zip(x[:, 0], y, strict=True)
    )

    def gap(power):
        w = np.exp(-power * (risk - risk.min()) / law.temperature)
        cdf = np.cumsum(w) / w.sum()
        return np.abs(np.interp(draws, t, cdf) - (np.arange(n) + 0.5) / n).max()

    assert gap(1.0) < 1.95 / math.sqrt(n)
    # A tenth more or less of temperature is noticed.
    assert min(gap(1.1), gap(0.9)) > 1.95 / math.sqrt(n)


def test_gibbs_samples_lie_on_a_public_grid():
    # A centre off the grid would show in every sample's last digits, without noise.
    x, y = np.array([[0.5], [0.7], [-0.3], [0.2]]), np.array([1.0, 1.0, -1.0, 1.0])
    for n in (3, 4):
        for _ in range(5):
            r = gibbs_posterior(
                x[:n], y[:n], epsilon=1.0, delta=1e-5, data_norm=1.0, regularization=1.0
            )
            spread = math.sqrt(2.0 * r.details["temperature"])
            steps = r.value / 2.0 ** math.floor(math.log2(spread * 2.0**-36))
            assert np.array_equal(steps, np.rint(steps))


GIBBS_LOSSES = [Logistic(), HuberHinge(0.5), HuberHinge(40.0), Huber(0.5), BoundedPoisson(2, 9)]


def exact_value(loss, u, y):
    if isinstance(loss, Logistic):
        return mp.log1p(mp.exp(-y * u))
    if isinstance(loss, HuberHinge):
        gap, h = 1 - y * u, mpf(loss.half_width)
        return (gap + h) ** 2 / (4 * h) if abs(gap) < h else max(gap, mpf(0))
    if isinstance(loss, Huber):
        r, t = abs(u - y), mpf(loss.threshold)
        return r * r / 2 if r <= t else t * (r - t / 2)
    low = min(u, mpf(loss.max_score))
    return mp.exp(low) * (1 + u - low) - y * u


@pytest.mark.parametrize("loss", GIBBS_LOSSES, ids=repr)
@pytest.mark.parametrize("reach", [0.5, 300.0])
def test_the_computed_risk_is_within_its_rounding(loss, reach):
    rng = np.random.default_rng(1)
    n = 400
    x = clip_rows(rng.normal(size=(n, 2)) * 9, 1.0)
    label = reach + 0.5 if isinstance(loss, Huber) else 1.0
    y = loss.encode(rng.choice([-1.0, 1.0], size=n) * label)
    theta = np.array([[0.6, -0.8]]) * reach
    computed = loss.value(theta @ x.T, y[None, :]).sum(axis=1)[0]
    with mp.workdps(40):
        exact = mp.fsum(
            exact_value(loss, mpf(a) * mpf(theta[0, 0]) + mpf(b) * mpf(theta[0, 1]), mpf(c))
            for (a, b), c in zip(x.tolist(), y.tolist(), strict=True)
        )
        base = float(np.abs(loss.value(np.zeros(2), np.array([-1.0, 1.0]))).max())
        largest = loss.slope_bound * (reach + label + 1.0) + base
        assert 0 < abs(mpf(computed) - exact) < gibbs.LOSS_ROUNDING * n * largest
    # No loss is larger than what its rounding is measured by.
    assert np.abs(loss.value(theta @ x.T, y[None, :])).max() <= largest


@pytest.mark.parametrize("xi", [1e-4, 0.01])
@pytest.mark.parametrize("mu", [0.05, 1.0, 6.0])
def test_laws_that_are_off_by_a_factor_cost_three_times_its_logarithm(mu, xi):
    """The best test between laws within e^±ξ of two normals, against one normal shift."""
    z = np.concatenate([np.linspace(-12, 12, 4001), [mu / 2]])
    alpha = ndtr(z)

    def most(p, p_of_rest):
        """The largest log-odds of a set's mass, when masses may be off by e^±ξ."""
        return np.where(
            p < 0.5,
            np.minimum(p * math.exp(xi), 1 - p_of_rest * math.exp(-xi)),
            1 - p_of_rest * math.exp(-xi),
        )

    # From a set of mass α under the one to its mass under the other, worst on the way there and on.
    under_p = most(alpha, ndtr(-z))
    power = ndtr(ndtri(under_p) + mu)
    power = most(power, ndtr(-(ndtri(under_p) + mu)))
    inside = (power > 1e-12) & (power < 1 - 1e-12) & (alpha > 1e-12)
    gained = ndtri(power[inside]) - z[inside] - mu
    assert gained.max() <= 3 * xi
    assert gained.max() > (2 if mu < 1 else 1) * xi


def test_the_rounding_of_a_gibbs_sample_is_paid_for():
    for loss in GIBBS_LOSSES:
        for mu in (0.05, 0.3, 2.0):
            law = gibbs._law(PublicRisk(loss, 10**5, (2,), 1.0, 1.0), mu)
            paid = gibbs_posterior_mu(
                slope=loss.slope_bound, regularization=1.0, temperature=law.temperature
            )
            assert 0 < law.rounding < 1e-2
            assert paid + 3 * law.rounding <= mu * (1 + 1e-12)
            assert paid > 0.95 * mu
    with pytest.raises(DomainError, match="must be nearer"):
        gibbs._law(PublicRisk(Logistic(), 10**5, (2,), 1.0, 1e-6), 1.0)


def test_huber_labels_beyond_reach_change_nothing_and_cost_no_digits():
    x = np.array([[1.0], [0.5], [-1.0]])
    options = {"epsilon": 1.0, "delta": 1e-3, "data_norm": 1.0, "regularization": 1.0, "rng": 5}
    draws = [
        gibbs_posterior(x, np.array([far, -far, 0.3]), loss=Huber(0.5), **options).value
        for far in (1e12, 1e300)
    ]
    assert draws[0] == draws[1]
