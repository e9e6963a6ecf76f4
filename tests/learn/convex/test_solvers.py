"""Certified minima: the certificate against exact gradients, the solver on hard problems."""

import itertools

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from accountant.errors import DomainError
from accountant.learn.convex import rows as exact_gradients
from accountant.learn.convex.fit import FINE_BITS, NoiseSource, rounded_shift
from accountant.learn.convex.losses import BoundedPoisson, Huber, HuberHinge, Logistic, Softmax
from accountant.learn.convex.perturbation import perturb_objective, perturb_output
from accountant.learn.convex.rows import clip_rows, sum_by_blocks
from accountant.learn.convex.solvers import RegularizedRisk, minimize
from support.published_objectives import normal_profile

LOSSES = [Logistic(), HuberHinge(0.1), Huber(0.8), BoundedPoisson(1.0, 4.0), Softmax(4)]


def problem(loss, n=400, d=6, lam=0.5, seed=0, tilt=3.0):
    rng = np.random.default_rng(seed)
    x = clip_rows(rng.normal(size=(n, d)), 1.0)
    if loss.outputs is not None:
        y = rng.integers(0, loss.outputs, size=n)
    else:
        y = rng.choice([-1.0, 1.0], size=n)
    shape = (d,) if loss.outputs is None else (d, loss.outputs)
    return RegularizedRisk(x, loss.encode(y), loss, lam, tilt * rng.normal(size=shape), 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e4])
def test_every_loss_reaches_a_tiny_certified_gradient(loss, lam):
    p = problem(loss, lam=lam)
    theta = minimize(p, 1e-7)
    assert theta is not None
    assert p.certified_gradient_norm(theta) <= 1e-7


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_are_derivatives_and_bounds_hold(loss):
    p = problem(loss, n=50)
    u = p.x @ np.random.default_rng(1).normal(size=p.linear.shape) * 5
    step = 1e-6
    slopes = loss.slope(u, p.y)
    if loss.outputs is None:
        numeric = (loss.value(u + step, p.y) - loss.value(u - step, p.y)) / (2 * step)
        assert np.allclose(slopes, numeric, atol=1e-5)
        assert (np.abs(slopes) <= loss.slope_bound * (1 + 1e-12)).all()
        curvature = (loss.slope(u + step, p.y) - slopes) / step
        assert (curvature <= loss.curvature_bound * (1 + 1e-4)).all()
    else:
        for j in range(loss.outputs):
            bump = np.zeros(loss.outputs)
            bump[j] = step
            numeric = (loss.value(u + bump, p.y) - loss.value(u - bump, p.y)) / (2 * step)
            assert np.allclose(slopes[:, j], numeric, atol=1e-5)
        assert (np.linalg.norm(slopes, axis=1) <= loss.slope_bound).all()


def exact_gradient(p, theta):
    """|∇J| of the logistic risk to 40 digits."""
    with mp.workdps(40):
        total = [mp.mpf(float(b)) + mp.mpf(p.regularization) * mp.mpf(float(t))
                 for b, t in zip(p.linear, theta, strict=True)]  # fmt: skip
        for row, y in zip(p.x, p.y, strict=True):
            pairs = zip(row, theta, strict=True)
            u = mp.fsum(mp.mpf(float(a)) * mp.mpf(float(t)) for a, t in pairs)
            s = -mp.mpf(float(y)) / (1 + mp.exp(mp.mpf(float(y)) * u))
            total = [g + s * mp.mpf(float(a)) for g, a in zip(total, row, strict=True)]
        return mp.sqrt(mp.fsum(g * g for g in total))


@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
def test_the_certificate_is_above_the_exact_gradient(scale):
    p = problem(Logistic(), n=300, d=5)
    theta = scale * np.random.default_rng(3).normal(size=5)
    assert mp.mpf(p.certified_gradient_norm(theta)) >= exact_gradient(p, theta)


def test_at_the_minimum_the_certificate_is_above_the_exact_gradient_and_near_it():
    p = problem(Logistic(), n=300, d=5)
    theta = minimize(p, 1e-9)
    exact = exact_gradient(p, theta)
    certified = p.certified_gradient_norm(theta)
    assert exact <= mp.mpf(certified) <= exact + mp.mpf(1e-10)
    # And the minimum is as near as strong convexity says.
    better = minimize(p, 2e-11)
    assert np.linalg.norm(theta - better) <= (1e-9 + 2e-11) / p.regularization


def test_separable_data_and_hopeless_tolerances():
    x = np.eye(4).repeat(100, axis=0)
    y = np.ones(400)
    p = RegularizedRisk(x, y, Logistic(), 1e-6, np.zeros(4), 1.0)
    assert minimize(p, 1e-6) is not None
    # Below round-off nothing can be certified; trainers ask public numbers beforehand.
    with pytest.raises(DomainError, match="below what double precision"):
        minimize(problem(Logistic()), 1e-20)


def test_nothing_is_raised_by_what_records_hold():
    rng = np.random.default_rng(0)
    extremes = [
        np.zeros((30, 3)),
        np.full((30, 3), 1e300),
        rng.normal(size=(30, 3)) * 1e-300,
        np.zeros((0, 3)),
        np.ones((1, 3)),
    ]
    for x, eps in itertools.product(extremes, (0.01, 50.0)):
        y = np.where(np.arange(len(x)) % 2, 1, -1)
        r = perturb_objective(x, y, epsilon=eps, delta=1e-6, data_norm=1.0, rng=0)
        assert np.isfinite(r.value).all()


def test_sums_by_blocks_are_sums():
    rng = np.random.default_rng(2)
    for n in (0, 1, 255, 256, 257, 3000):
        x, s = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
        assert np.allclose(sum_by_blocks(x, s), x.T @ s)
        assert np.allclose(sum_by_blocks(x, s[:, 0]), x.T @ s[:, 0])


@pytest.mark.long
def test_a_margin_without_roundoff_is_caught(monkeypatch):
    # The same check as above, with the round-off terms removed, must fail somewhere.
    monkeypatch.setattr(exact_gradients.PublicRisk, "gradient_error", 0.0)
    below = 0
    for seed in range(40):
        p = problem(Logistic(), n=300, d=5, seed=seed, lam=30.0)
        theta = minimize(p, 1e-9)
        for _ in range(3):
            # Polish to the last digit, where the computed gradient says nothing.
            theta = theta - p.gradient(p.loss.slope(p.x @ theta, p.y), theta) / 60.0
        below += mp.mpf(p.certified_gradient_norm(theta)) < exact_gradient(p, theta)
    assert below > 0


def test_the_release_is_on_its_grid_and_near_its_value():
    source = NoiseSource(1)
    value = np.array([0.1, -3.0, 1e9])
    released = source.release(value, 1e-3, 20)
    step = 2.0**-30  # 1e-3 lies in [2**-10, 2**-9): the grid is 20 bits below
    assert (released / step == np.rint(released / step)).all()
    assert np.abs(released - value)[:2].max() < 1e-2
    # Clipped to what float64 holds exactly on this grid.
    assert released[2] < 2.0**52 * step


def test_noise_has_its_variance_and_never_repeats():
    source = NoiseSource()
    assert source.private
    assert not NoiseSource(3).private
    draws = np.stack([NoiseSource().normal((4,), 2.0) for _ in range(2000)])
    # 256 possible seeds, as in a published implementation, would collide at once.
    assert len(np.unique(draws[:, 0])) == 2000
    assert abs(draws.std() / 2.0 - 1) < 0.05
    assert rounded_shift(4, FINE_BITS) == 2.0**-36


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_pure_variants_noise_has_its_density_up_to_the_stated_rounding(d, monkeypatch):
    source = NoiseSource(d)
    drawn = np.stack([source.multivariate_laplace((d,))[0] for _ in range(5000)])
    lengths = np.linalg.norm(drawn, axis=1)
    assert stats.kstest(lengths, stats.gamma(d).cdf).pvalue > 1e-4
    assert stats.kstest(lengths, stats.gamma(d + 1).cdf).pvalue < 1e-12
    # Any direction: its first coordinate has the law of a uniform point of the sphere.
    first = (drawn[:, 0] / lengths + 1.0) / 2.0
    if d > 1:
        half = (d - 1) / 2.0
        assert stats.kstest(first, stats.beta(half, half).cdf).pvalue > 1e-4
    # Exact factors within half a grid step of those drawn move the product by less than stated.
    parts = []
    real = NoiseSource.normal

    def normal(self, shape, *options):
        parts.append(real(self, shape, *options))
        return parts[-1]

    monkeypatch.setattr(NoiseSource, "normal", normal)
    rng = np.random.default_rng(d)
    for _ in range(200):
        parts.clear()
        b, apart = NoiseSource().multivariate_laplace((d,))
        z, g = (part + rng.choice([-1, 1], size=part.shape) * 2.0**-37 for part in parts)
        assert np.linalg.norm(z * np.linalg.norm(g) - b) < apart
    assert apart < 1e-8


def test_the_noise_drawn_is_the_noise_accounted_for(monkeypatch):
    seen = {}
    real_normal, real_release = NoiseSource.normal, NoiseSource.release

    def normal(self, shape, sigma=1.0, bits=FINE_BITS):
        seen["normal"] = (shape, sigma)
        return real_normal(self, shape, sigma, bits)

    def release(self, values, sigma, bits):
        seen["release"] = (values, sigma, bits)
        return real_release(self, values, sigma, bits)

    monkeypatch.setattr(NoiseSource, "normal", normal)
    monkeypatch.setattr(NoiseSource, "release", release)
    p = problem(Logistic(), n=500, d=4)
    fit = perturb_objective(p.x, p.y, epsilon=1.0, delta=1e-5, data_norm=1.0, rng=0)
    mechanism, correction = fit.mechanisms
    shape, sigma = seen["normal"]
    assert shape == (4,)
    assert sigma == mechanism.noise
    assert mechanism.pairs()[0].profile(1 - 1e-3).upper <= 1e-5 * (1 - 1e-3)
    # The correction: twice the tolerance over λ, and the grid, within a thousandth of (ε, δ).
    tau, lam = fit.details["tolerance"], mechanism.regularization
    values, sigma, bits = seen["release"]
    mu = (2 * tau / lam) / sigma + 2 * rounded_shift(4, bits)
    assert normal_profile(1e-3, mu) <= 1e-8
    assert normal_profile(1e-3, mu * 1.02) > 1e-8
    assert (correction.epsilon0, correction.delta0) == (1e-3, 1e-8)
    # What is released is the certified minimum of the perturbed objective.
    assert np.linalg.norm(fit.value - values) < 10 * sigma


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("loss", [Huber(2.5), HuberHinge(1e-6), HuberHinge(0.01), Logistic()])
def test_no_exception_depends_on_the_records(loss):
    # Below round-off of the Gram matrix all are refused, by public numbers; above it none.
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, d = int(rng.choice([2, 50, 3000])), int(rng.integers(1, 5))
        x = np.outer(np.ones(n), rng.normal(size=d))
        y = np.where(rng.random(n) < 0.9, 1.0, -1.0)
        if isinstance(loss, Huber):
            y = y * 10.0 ** rng.uniform(-5, 300)
        options = {"epsilon": 1.0, "delta": 1e-5, "data_norm": 1.0, "loss": loss}
        options["max_records"] = 3000
        with pytest.raises(DomainError, match="too small for max_records = 3000"):
            perturb_output(x, y, regularization=10.0 ** rng.uniform(-16, -12), **options)
        lam = 3000 * loss.curvature_bound * 10.0 ** rng.uniform(-13, -9)
        with np.errstate(all="raise", under="ignore"):
            result = perturb_output(x, y, regularization=lam, **options)
        assert np.isfinite(result.value).all()


def test_the_pure_release_pays_for_the_rounding_of_its_linear_term(monkeypatch):
    seen = {}
    real_release, real_laplace = NoiseSource.release_pure, NoiseSource.multivariate_laplace

    def laplace(self, shape):
        seen["apart"] = real_laplace(self, shape)[1]
        return real_laplace(self, shape)

    def release(self, values, distance, epsilon, lost):
        seen["distance"] = distance
        return real_release(self, values, distance, epsilon, lost)

    monkeypatch.setattr("accountant.learn.convex.perturbation.TOLERANCE", 1e-10)
    monkeypatch.setattr(NoiseSource, "multivariate_laplace", laplace)
    monkeypatch.setattr(NoiseSource, "release_pure", release)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 4)), rng.choice([-1.0, 1.0], size=50)
    lam, tau = 3.0, 1e-9
    fit = perturb_objective(
        x, y, epsilon=0.5, delta=0.0, data_norm=1.0, regularization=lam, tolerance=tau,
        max_records=10_000, rng=1,
    )  # fmt: skip
    # √d Euclidean distances in absolute sum: both minima's tolerance, both linear terms' rounding.
    exact = 2.0 * (tau + fit.details["noise"] * seen["apart"]) / lam * np.sqrt(4)
    assert exact <= seen["distance"] <= exact * (1 + 1e-6)
    assert seen["distance"] > 1.1 * 2.0 * tau / lam * np.sqrt(4)
