"""Minima are certified whatever the records hold; public numbers alone decide what is refused.

The trainers used to release zero where a minimum could not be certified, which one of two
neighbours could and the other could not.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from accountant.learn import convex
from accountant.learn.convex import rows as exact_gradients
from accountant.learn.convex import solvers
from accountant.learn.convex.losses import (
    SLOPE_ROUNDINGS,
    BoundedPoisson,
    Huber,
    HuberHinge,
    Logistic,
    Softmax,
)
from accountant.learn.convex.rows import Point, PublicRisk, RegularizedRisk, clip_rows
from accountant.learn.convex.solvers import least_tolerance, minimize
from support.exact_slopes import exact_slopes

LOSSES = [
    Logistic(), HuberHinge(0.5), HuberHinge(1e-6), Huber(0.8), BoundedPoisson(1.0, 4.0),
    BoundedPoisson(-3.0, 0.5), Softmax(4),
]  # fmt: skip
KW = {"epsilon": 1.0, "delta": 1e-5, "data_norm": 1.0}


def first_column(n, d):
    x = np.zeros((n, d))
    x[:, 0] = 1.0
    return x


# -- Neighbours that one trainer told apart, with the same noise ---------------------------------


@pytest.mark.parametrize(
    ("n", "d", "lam", "label"), [(173, 1, 1e-5, 1e30), (3586, 5, 1e-2, 1e12)], ids=str
)
def test_output_perturbation_moves_by_its_sensitivity(n, d, lam, label):
    """One more record used to move the release from 1.7e7 to zero, 46 standard deviations."""
    options = KW | {"regularization": lam, "loss": Huber(1.0), "rng": 3}
    for records in (n - 1, n, n + 4):
        one, other = (
            convex.perturb_output(first_column(k, d), np.full(k, label), **options)
            for k in (records, records + 1)
        )
        # All residuals are far beyond the threshold: the minimum moves by all it can.
        moved = np.linalg.norm(one.value - other.value)
        step = 2.0 ** math.floor(math.log2(one.details["noise"] * 2.0**-30))
        assert 0.99 / lam < moved <= one.details["sensitivity"] + math.sqrt(d) * step


@pytest.mark.parametrize("loss", [Huber(1.0), BoundedPoisson(1.0, 5.0)], ids=repr)
def test_objective_perturbation_of_many_records_finds_their_minimum(loss):
    """From 44,006 records on the release was zero."""
    n = 44_006
    fit = convex.perturb_objective(
        first_column(n, 2), np.full(n, 1e12), **KW | {"epsilon": 8.0}, loss=loss, rng=1
    )
    lam, slope = fit.details["regularization"], (1.0 if isinstance(loss, Huber) else 5.0 - math.e)
    assert fit.value[0] == pytest.approx(n * slope / lam, rel=0.01)


@pytest.mark.slow
def test_many_one_hot_records_are_learned():
    rng = np.random.default_rng(0)
    n, d = 20_000, 1_500
    column = rng.integers(0, d, size=n)
    x = np.zeros((n, d))
    x[np.arange(n), column] = 1.0
    y = np.where(rng.normal(size=d)[column] > 0, 1.0, -1.0)
    fit = convex.perturb_objective(x, y, **KW | {"epsilon": 8.0})
    assert np.mean((x @ fit.value > 0) == (y > 0)) >= 0.95


@pytest.mark.long
def test_a_gibbs_sample_of_many_equal_records_is_drawn():
    """The centre was zero for want of a certificate, where no proposal was ever accepted."""
    n = 60_000
    fit = convex.gibbs_posterior(
        np.ones((n, 1)), np.full(n, 1e9), **KW, regularization=1.0, loss=Huber(1.0), rng=2
    )
    assert abs(fit.value[0] - n) < 20 * math.sqrt(fit.details["temperature"])


# -- The exact gradient ---------------------------------------------------------------------------


def gradient_of(p, point):
    """∇J to 60 digits, as a matrix of d rows."""
    theta = [
        [mp.mpf(a) + mp.mpf(b) for a, b in zip(high, low, strict=True)]
        for high, low in zip(
            np.atleast_2d(point.high.T).tolist(), np.atleast_2d(point.low.T).tolist(), strict=True
        )
    ]
    linear, lam = np.atleast_2d(p.linear.T).tolist(), mp.mpf(p.regularization)
    total = [
        [mp.mpf(b) + lam * t for b, t in zip(bs, ts, strict=True)]
        for bs, ts in zip(linear, theta, strict=True)
    ]
    for row, label in zip(p.x.tolist(), p.y.tolist(), strict=True):
        u = [mp.fsum(mp.mpf(a) * t for a, t in zip(row, ts, strict=True)) for ts in theta]
        for k, s in enumerate(exact_slopes(p.loss, u, label)):
            total[k] = [g + s * mp.mpf(a) for g, a in zip(total[k], row, strict=True)]
    return total


def distance(computed, total):
    flat = np.atleast_2d(computed.T).tolist()
    return mp.sqrt(
        mp.fsum((mp.mpf(a) - b) ** 2 for r, t in zip(flat, total, strict=True)
                for a, b in zip(r, t, strict=True))
    )  # fmt: skip


def labels_for(loss, rng, n, u):
    if isinstance(loss, Softmax):
        return loss.encode(rng.integers(0, loss.classes, size=n))
    if isinstance(loss, Huber):
        # Half of them near their score, where no residual may lose its digits.
        return np.where(rng.random(n) < 0.5, u + rng.normal(size=n), rng.normal(size=n) * 1e9)
    if isinstance(loss, BoundedPoisson):
        return loss.encode(rng.poisson(2.0, size=n))
    return rng.choice([-1.0, 1.0], size=n)


def hard_problem(loss, n, d, scale, seed):
    rng = np.random.default_rng(seed)
    x = clip_rows(rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-12, 2, size=(n, 1)), 1.0)
    shape = (d,) if loss.outputs is None else (d, loss.outputs)
    theta = rng.normal(size=shape) * scale
    y = labels_for(loss, rng, n, x @ theta)
    return RegularizedRisk(x, y, loss, 1e-9, rng.normal(size=shape), 1.0), theta


@pytest.mark.long(keep=13)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("scale", [0.3, 1e3, 1e7])
def test_the_exact_gradient_is_within_its_public_error(loss, scale):
    """However large the parameter: the error holds neither its norm nor the number of columns."""
    p, theta = hard_problem(loss, 130, 9, scale, seed=1)
    low = theta * 2.0**-54 * np.random.default_rng(2).uniform(-1, 1, size=theta.shape)
    point = Point(theta, low)
    assert np.linalg.norm(theta) < p.reach
    with mp.workdps(60):
        apart = distance(p.exact_gradient(point), gradient_of(p, point))
    # The last additions of λθ dominate at the largest; the bound is for all points within reach.
    assert apart <= p.gradient_error
    assert p.gradient_error < 200 * 2.0**-53 * 130 * max(loss.slope_bound, 1.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_one_slope_rounds_by_less_than_a_third_of_what_is_assumed(loss):
    rng = np.random.default_rng(3)
    worst = mp.mpf(0)
    for _ in range(400):
        shape = (1,) if loss.outputs is None else (1, loss.outputs)
        high = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 4)
        if isinstance(loss, HuberHinge):
            high = 1.0 + rng.normal(size=shape) * loss.half_width
        low = high * 2.0**-53 * rng.uniform(-1, 1, size=shape)
        y = labels_for(loss, rng, 1, high)
        if isinstance(loss, HuberHinge):
            y = np.ones(1)
        computed = np.atleast_2d(loss.slope_of_sum(high, low, y)).ravel().tolist()
        with mp.workdps(60):
            u = [mp.mpf(a) + mp.mpf(b) for a, b in
                 zip(high.ravel().tolist(), low.ravel().tolist(), strict=True)]  # fmt: skip
            expected = exact_slopes(loss, u, y[0].tolist())
            off = [(mp.mpf(a) - b) ** 2 for a, b in zip(computed, expected, strict=True)]
            worst = max(worst, mp.sqrt(mp.fsum(off)))
    assert worst <= SLOPE_ROUNDINGS / 3 * 2.0**-53 * loss.slope_bound


def test_products_with_pieces_are_exact():
    rng = np.random.default_rng(5)
    x = exact_gradients.grid_rows(clip_rows(rng.normal(size=(40, 700)) * 9, 1.0), 1.0)
    for scale in (1e-9, 1.0, 1e15):
        theta = rng.normal(size=700) * scale * 10.0 ** rng.uniform(-5, 0, size=700)
        pieces = Point.of(theta).pieces(-60)
        assert (
            np.abs(pieces.sum(axis=-1) - theta).max() <= 2.0**-61 + 2.0**-53 * np.abs(theta).max()
        )
        unit = 2**29 * 2**80
        for piece in pieces.T:
            whole = [int(mp.mpf(v) * 2**80) for v in piece.tolist()]
            for row, computed in zip(x, x @ piece, strict=True):
                total = sum(int(a * 2**29) * b for a, b in zip(row.tolist(), whole, strict=True))
                assert mp.mpf(float(computed)) * unit == total


def test_a_row_on_its_grid_is_near_and_no_longer():
    rng = np.random.default_rng(6)
    for norm in (1e-50, 0.7, 1.0, 3.0, 1e50):
        rows = clip_rows(rng.normal(size=(50, 4)) * norm * 10.0 ** rng.uniform(-9, 2), norm)
        kept = exact_gradients.grid_rows(rows, norm)
        assert (np.abs(kept) <= np.abs(rows)).all()
        assert np.abs(kept - rows).max() <= 2.0**-29 * norm
        assert (exact_gradients.grid_rows(rows[7:8], norm) == kept[7:8]).all()


def test_a_gradient_does_not_depend_on_the_order_of_its_pieces():
    """BLAS may add in any order: where everything is exact no digit moves."""
    rng = np.random.default_rng(7)
    x = exact_gradients.grid_rows(clip_rows(rng.normal(size=(1024, 5)), 1.0), 1.0)
    slopes = np.rint(rng.uniform(-1, 1, size=1024) * 2**11) / 2**11
    order = rng.permutation(1024)
    assert (x.T @ slopes == x[order].T @ slopes[order]).all()


# -- The descent ----------------------------------------------------------------------------------


def adversarial(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([0, 1, 2, 60, 1023, 1025])), int(rng.integers(1, 6))
    loss = LOSSES[rng.integers(len(LOSSES))]
    kind = rng.integers(5)
    x = [
        rng.normal(size=(n, d)),
        np.outer(np.ones(n), rng.normal(size=d)),
        first_column(n, d),
        rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-30, 3, size=(1, d)),
        np.eye(d)[rng.integers(d, size=n)],
    ][kind]
    lam = 10.0 ** rng.uniform(-6, 3) * loss.curvature_bound
    shape = (d,) if loss.outputs is None else (d, loss.outputs)
    linear = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 4) * rng.choice([0, 1])
    public = PublicRisk(loss, 10**6, shape, 1.0, lam, float(np.linalg.norm(linear)))
    tau = least_tolerance(public)
    y = labels_for(loss, rng, n, np.zeros(n))
    if isinstance(loss, Huber):
        y = loss.cut(
            y * 10.0 ** rng.uniform(-9, 290),
            PublicRisk(loss, 10**6, shape, 1.0, lam).largest_target,
        )
    return RegularizedRisk(clip_rows(x, 1.0), y, loss, lam, linear, 1.0), tau


@pytest.mark.parametrize("seed", range(40))
def test_every_data_set_is_certified_at_the_least_tolerance(seed, monkeypatch):
    steps = []
    real = solvers._step
    monkeypatch.setattr(solvers, "_step", lambda *a: steps.append(1) or real(*a))
    p, tau = adversarial(seed)
    theta = minimize(p, tau)
    found = np.linalg.norm(p.exact_gradient(Point.of(theta)))
    # θ is rounded to doubles last, which strong convexity measures and the gradient does not.
    slack = p.smoothness * 2.0**-53 * np.linalg.norm(theta)
    assert found <= tau + slack
    assert len(steps) < 60


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("start", ["zero", "far", "nan", "inf"])
def test_a_failed_guess_is_mended(loss, start, monkeypatch):
    """What L-BFGS returns counts for speed alone."""
    p, _ = hard_problem(loss, 80, 4, 1.0, seed=4)
    lam = 1e-2 * loss.curvature_bound
    p = RegularizedRisk(p.x, p.y, loss, lam, p.linear, 1.0)
    drawn = float(np.linalg.norm(p.linear))
    tau = least_tolerance(PublicRisk(loss, 10**5, p.linear.shape, 1.0, lam, drawn))
    wanted = minimize(p, tau)
    value = {"zero": 0.0, "far": 1e200, "nan": math.nan, "inf": math.inf}[start]
    monkeypatch.setattr(solvers, "descend", lambda *_: np.full_like(p.linear, value))
    assert np.linalg.norm(minimize(p, tau) - wanted) <= 2 * tau / lam


@pytest.mark.parametrize("direction", [0.0, math.nan, 1e300, -1.0])
def test_without_any_help_plain_steps_reach_the_tolerance(direction, monkeypatch):
    p, _ = hard_problem(Logistic(), 80, 4, 1.0, seed=4)
    p = RegularizedRisk(p.x, p.y, p.loss, 5.0, p.linear, 1.0)
    wanted = minimize(p, 1e-9)
    monkeypatch.setattr(solvers, "descend", lambda *_: np.zeros_like(p.linear))
    monkeypatch.setattr(
        solvers, "_newton", lambda problem, here: (np.full_like(p.linear, direction), 1.0)
    )
    assert np.linalg.norm(minimize(p, 1e-9) - wanted) <= 2e-9 / 5.0


def test_a_step_that_only_pretends_is_not_taken(monkeypatch):
    """Without the certified decrease a useless direction is followed for ever."""
    p, _ = hard_problem(Logistic(), 80, 4, 1.0, seed=4)
    p = RegularizedRisk(p.x, p.y, p.loss, 5.0, p.linear, 1.0)
    here = solvers._start(p, np.zeros(4), 1e9)
    useless = np.array([1e-9, 0.0, 0.0, 0.0]) * -np.sign(here.gradient[0])
    monkeypatch.setattr(solvers, "_newton", lambda *_: (useless, 1.0))
    taken = solvers._step(p, here, here.norm, p.gradient_error)
    assert np.allclose(taken.point.high, -here.gradient / p.smoothness)
