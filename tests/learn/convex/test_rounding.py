"""What floating point rounds is inside the accounts: sums, steps, points on a grid."""

import math
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import ndtr

from accountant._basics.rounding import U
from accountant.learn.convex import bolt_on, gradient
from accountant.learn.convex import statistics as regression
from accountant.learn.convex.bolt_on import (
    bolt_on_sgd,
    permutation_sgd_rounding,
    permutation_sgd_sensitivity,
)
from accountant.learn.convex.fit import LinearFit, NoiseSource
from accountant.learn.convex.gradient import last_iterate_mu
from accountant.learn.convex.losses import Huber, HuberHinge, Logistic, Softmax
from accountant.learn.convex.rows import (
    clip_rows,
    gradient_rounding,
    project,
    row_scores,
    sum_by_blocks,
)
from support.exact_slopes import exact_slopes
from support.oracle import convex as oracle
from support.published_objectives import normal_profile

RNG = np.random.default_rng(4)
X = clip_rows(RNG.normal(size=(60, 3)), 1.0)
Y = RNG.choice([-1.0, 1.0], size=60)


@pytest.mark.parametrize("points", [7, 15, 61])
@pytest.mark.parametrize("steps", [1, 3, 30])
@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_a_rounded_last_iterate_is_inside_its_account(points, steps, lam):
    """A coarse grid makes a finite chain, whose law is exact: the account pays for the rounding."""
    eta, sigma, radius = 0.8, 0.5, 1.0
    data = [oracle.logistic(1.0, 0.7), oracle.logistic(-1.0, 0.4)]
    h = 2 * radius / (points - 1)
    states = np.linspace(-radius, radius, points)

    def law(slopes):
        go = states - eta * (sum(s(states) for s in slopes) + lam * states)
        go = np.rint(go / h) * h  # before the noise
        edges = np.concatenate([[-np.inf], (states[1:] + states[:-1]) / 2, [np.inf]])
        move = np.diff(ndtr((edges[None, :] - go[:, None]) / (eta * sigma)), axis=1)
        out = np.zeros(points)
        out[points // 2] = 1
        for _ in range(steps):
            out = out @ move  # after it, and the projection
        return out

    def mu(rounding):
        return last_iterate_mu(
            steps=steps,
            step_size=eta,
            noise=sigma,
            sensitivity=1.0 + rounding / eta,
            smoothness=0.75 + lam,
            convexity=lam,
            diameter=2 * radius,
        )

    p, q = law([*data, oracle.logistic(1.0, 1.0)]), law(data)
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        exact = max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))
        assert exact <= normal_profile(epsilon, mu(2 * h)) + 1e-12


def test_a_rounding_that_nobody_paid_for_is_caught():
    # The step moves the point by 0.8, the grid of halves by one: more than the gradient did.
    eta, sigma, h = 0.8, 0.5, 0.5
    moved = np.rint(eta * -oracle.huber(9.0, 1.0, 1.0)(np.zeros(1)) / h)[0] * h
    mu = last_iterate_mu(steps=1, step_size=eta, noise=sigma, sensitivity=1.0, smoothness=1.0)
    exact = normal_profile(1.0, moved / (eta * sigma))
    assert exact > 1.1 * normal_profile(1.0, mu)
    paid = {"sensitivity": 1.0 + 2 * h / eta, "smoothness": 1.0}
    assert exact <= normal_profile(
        1.0, last_iterate_mu(steps=1, step_size=eta, noise=sigma, **paid)
    )


def test_the_last_release_is_one_of_the_point():
    """The noise is on the point, and what follows it depends on nothing else."""
    log = []

    class Spy(NoiseSource):
        def release(self, values, sigma):
            out = super().release(values, sigma)
            log.append((values, sigma, out))
            return out

    fit = LinearFit(X, 1.0, Logistic(), "test", 1.0, 1e-5, None, 3)
    fit.source = Spy(3)
    run = gradient._Run(fit, X, Y, 7, 0.01, 0.5, 0.3, 0.0)
    noise = run.noise_for_last(0.4)
    value = run.last_iterate(noise)
    assert len(log) == 7
    assert (value == project(log[-1][2], 0.3)).all()
    for (_, _, before), (point, sigma, _) in pairwise(log):
        theta = project(before, 0.3)
        step = X.T @ Logistic().slope(X @ theta, Y) + 0.5 * theta
        assert np.allclose(point, theta - 0.01 * step, rtol=0, atol=1e-12)
        assert sigma == 0.01 * noise


@pytest.mark.parametrize("account", ["all", "last"])
def test_descent_pays_for_its_rounding(account):
    fit = LinearFit(X, 1.0, Logistic(), "test", 1.0, 1e-5, None, 3)
    run = gradient._Run(fit, X, Y, 20, 0.01, 0.1, 2.0, 0.0)
    exact = math.sqrt(20) / 0.5
    if account == "last":
        unit = {"steps": 20, "step_size": 0.01, "noise": 1.0, "sensitivity": 1.0, "diameter": 4.0}
        exact = last_iterate_mu(smoothness=15.1, convexity=0.1, **unit) / 0.5
    paid = run.noise_for_all(0.5) if account == "all" else run.noise_for_last(0.5)
    assert exact * (1 + 1e-9) < paid < exact * (1 + 1e-4)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("loss", [Logistic(), Huber(0.5), HuberHinge(0.5), Softmax(3)])
@pytest.mark.parametrize("n", [3, 1000])
def test_computed_sums_of_gradients_are_within_their_bound(loss, n):
    rng = np.random.default_rng(n)
    x = clip_rows(rng.normal(size=(n, 5)) * 10, 1.0)
    y = loss.encode(rng.integers(0, 3, size=n) if loss.outputs else rng.choice([-1.0, 1.0], n))
    theta = rng.normal(size=(5, 3) if loss.outputs else 5) * 10
    reach = float(np.linalg.norm(theta))
    bound = gradient_rounding(loss, records=n, columns=5, norm=1.0, reach=reach)
    with mp.workdps(40):
        total = [[mpf(0)] * (loss.outputs or 1) for _ in range(5)]
        for row, label in zip(x.tolist(), y.tolist(), strict=True):
            weights = np.atleast_2d(theta.T).tolist()
            u = [mp.fsum(mpf(a) * mpf(b) for a, b in zip(row, w, strict=True)) for w in weights]
            for j, s in enumerate(exact_slopes(loss, u, label)):
                for i, a in enumerate(row):
                    total[i][j] += mpf(a) * s
        computed = sum_by_blocks(x, loss.slope(x @ theta, y)).reshape(5, -1)
        apart = mp.sqrt(
            sum((mpf(computed[i, j]) - total[i][j]) ** 2 for i in range(5) for j in range(len(u)))
        )
    assert 0 < apart < bound < 1e-9


@pytest.mark.parametrize("gamma", [0.0, 0.05])
@pytest.mark.parametrize("radius", [None, 0.5])
def test_permutation_sgd_in_floats_stays_within_its_rounding(monkeypatch, gamma, radius):
    loss, passes, batch = Logistic(), 4, 5
    options = {"loss": loss, "passes": passes, "batch_size": batch, "radius": radius}
    options |= {"regularization": gamma} if gamma else {"step_size": 0.7}
    order = NoiseSource(7).permutation(60)
    monkeypatch.setattr(bolt_on, "add_noise", lambda fit, theta, distance, *_: (theta, distance))
    computed, bound = bolt_on_sgd(X, Y, epsilon=1, delta=1e-5, data_norm=1.0, rng=7, **options)
    rounding = permutation_sgd_rounding(
        loss, norm=1.0, columns=3, batch_size=batch, steps=48, regularization=gamma,
        step_size=None if gamma else 0.7, radius=radius or math.inf,
    )  # fmt: skip
    rows = clip_rows(X, 1.0).tolist()
    with mp.workdps(40):
        theta = [mpf(0)] * 3
        for t in range(48):
            step = min(1 / (mpf(1) / 4 + gamma), 1 / (mpf(gamma) * (t + 1))) if gamma else mpf(0.7)
            total = [mpf(gamma) * v for v in theta]
            for k in order[t * batch % 60 : t * batch % 60 + batch].tolist():
                u = sum(mpf(a) * b for a, b in zip(rows[k], theta, strict=True))
                (s,) = exact_slopes(loss, [u], Y[k])
                total = [v + s * mpf(a) / batch for v, a in zip(total, rows[k], strict=True)]
            theta = [v - step * g for v, g in zip(theta, total, strict=True)]
            length = mp.sqrt(sum(v * v for v in theta))
            if radius is not None and length > radius:
                theta = [v * radius / length for v in theta]
        apart = mp.sqrt(
            sum((mpf(a) - b) ** 2 for a, b in zip(computed.tolist(), theta, strict=True))
        )
    assert 0 < apart < rounding < 1e-9
    exact = permutation_sgd_sensitivity(
        slope=1.0, curvature=0.25, dataset_size=60, passes=passes, batch_size=batch,
        regularization=gamma, step_size=None if gamma else 0.7,
    )  # fmt: skip
    assert bound == exact + 2 * rounding


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("d", [1, 5, 15])
def test_computed_eigenvalues_are_within_their_rounding(d):
    rng = np.random.default_rng(d)
    n = 600
    x = clip_rows(rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 1, size=(n, 1)), 1.0)
    computed = np.linalg.eigvalsh(sum_by_blocks(x, x))[0]
    with mp.workdps(40):
        rows = mp.matrix(x.tolist())
        exact = min(mp.eigsy(rows.T * rows, eigvals_only=True))
        allowed = n * U * (256 + 2 * math.log2(n) + 8 + 32 * d)
        assert abs(mpf(computed) - exact) < allowed
    assert regression._computed_eigenvalue(d) < 1 + 1e-5


@pytest.mark.parametrize("d", [1, 2, 3, 7, 16, 108])
@pytest.mark.parametrize("outputs", [None, 3])
def test_scores_depend_on_their_row_alone(d, outputs):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(500, d))
    theta = rng.normal(size=d if outputs is None else (d, outputs))
    alone = np.concatenate([row_scores(x[i : i + 1], theta) for i in range(500)])
    assert np.allclose(alone, x @ theta)
    order = rng.permutation(500)
    assert (row_scores(x, theta) == alone).all()
    assert (row_scores(x[order], theta) == alone[order]).all()
    for start, length in ((1, 2), (3, 5), (8, 13), (7, 64), (2, 399)):
        part = slice(start, start + length)
        assert (row_scores(x[part], theta) == alone[part]).all()


@pytest.mark.parametrize("d", [4097, 8193, 20_001])
def test_long_rows_have_the_same_digits_alone_and_among_others(d):
    """NumPy adds up a single row of more than 8192 numbers otherwise than one of two."""
    rng = np.random.default_rng(d)
    x, theta = rng.normal(size=(9, d)), rng.normal(size=d)
    for n in (1, 2, 3):
        for i in range(9 - n):
            part = np.ascontiguousarray(x[i : i + n])
            assert (row_scores(part, theta) == row_scores(x, theta)[i : i + n]).all()
            assert (clip_rows(part, 1.0) == clip_rows(x, 1.0)[i : i + n]).all()
