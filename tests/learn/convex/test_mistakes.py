"""Ordinary mistakes in what the convex room is given, and inputs at the ends of its domain."""

from __future__ import annotations

import numpy as np
import pytest

from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn import convex
from accountant.learn.convex.fit import LinearFit
from accountant.learn.convex.gradient import _Run
from accountant.learn.convex.rows import clip_rows, row_scores, table
from support.convex_fits import FITS, OF_X_AND_Y
from support.convex_fits import ROWS as KW


@pytest.mark.parametrize("name", OF_X_AND_Y)
@pytest.mark.parametrize("shape", [(2, 1), (1, 2), ()])
def test_labels_have_one_dimension(name, shape):
    """A column of labels broadcasts: permutation SGD released a matrix with noise for a vector."""
    with pytest.raises(DomainError, match="y must have one dimension"):
        FITS[name](np.eye(2), np.ones(shape))


@pytest.mark.parametrize("shape", [(4, 2), (4, 1), ()])
def test_a_quantile_is_of_numbers_not_of_rows(shape):
    """Two numbers a record moved the ranks by two, at the price of one."""
    with pytest.raises(DomainError, match="x must have one dimension"):
        convex.private_quantile(np.zeros(shape), 0.5, epsilon=1.0, lower=-1.0, upper=1.0)


LAYOUTS = {
    "every second column": lambda x: x[:, ::2],
    "reversed": lambda x: x[:, ::-1],
    "by columns": np.asfortranarray,
    "every second row": lambda x: x[::2],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_one_long_row_does_not_change_how_others_round(layout):
    """Clipping it used to copy all rows into another layout, whose products round otherwise."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((100, 64)) / 20.0
    longer = np.concatenate((x, np.full((2, 64), 9.0)))
    one, other = (clip_rows(table(layout(rows)), 1.0) for rows in (x, longer))
    theta = generator.standard_normal(one.shape[1])
    if layout is LAYOUTS["every second row"]:
        assert len(one) == 50
    assert np.array_equal(row_scores(one, theta), row_scores(other, theta)[: len(one)])


@pytest.mark.parametrize("bound", [1e-175, 1e-51, 1e51, 1e200])
def test_norms_whose_squares_are_lost_are_refused(bound):
    """A row of 1e-165 has squares of zero: it was neither clipped to 1e-175 nor hidden by noise."""
    x, y = np.full((1, 1), 1e-165), np.ones(1)
    with pytest.raises(DomainError, match="bound must be a number in"):
        convex.private_mean(x, epsilon=1.0, delta=1e-5, bound=bound)
    with pytest.raises(DomainError, match="data_norm must be a number in"):
        convex.perturb_output(x, y, epsilon=1.0, delta=0.0, data_norm=bound, regularization=1.0)


@pytest.mark.parametrize("bound", [1e-50, 1.0, 1e50])
def test_rows_are_clipped_at_the_ends_of_the_domain(bound):
    x = np.array([[3.0, 4.0], [1e-300, 0.0], [1e300, 1e300], [1e-49, 1e-49]])
    clipped = clip_rows(x, bound)
    assert max(np.hypot(*row) for row in clipped) <= bound


@pytest.mark.parametrize("loss", [convex.Logistic(), convex.Softmax(3), convex.Huber()])
def test_a_diverged_iterate_says_nothing_about_a_record(loss):
    """Scores of inf - inf made the released gradient NaN, with one record and not without."""
    x = np.array([[1.0, 1.0], [0.0, 0.0]])
    fit = LinearFit(x, 2.0, loss, "test", 1.0, 1e-5, None, 3)
    run = _Run(fit, x, loss.encode(np.ones(2)), 1, 1.0, 0.0, None, 0.0)
    for one, two in ((np.inf, -np.inf), (1.7e308, 1.7e308), (np.nan, 0.0)):
        theta = np.array([one, two])
        if loss.outputs is not None:
            theta = np.stack((theta, -theta, np.ones(2)), axis=1)
        assert np.linalg.norm(run.gradient(theta)) <= 2.0 * fit.slope


TINY = {"epsilon": 1e-9, "delta": 1e-12}
X, Y = np.eye(2), np.array([1.0, -1.0])
MISTAKES = {
    "no points": lambda: convex.exponential_mechanism(
        X, Y, epsilon=1.0, data_norm=1.0, radius=1.0, points=0
    ),
    "corners alone": lambda: convex.exponential_mechanism(
        X, Y, epsilon=1.0, data_norm=1.0, radius=1.0, points=2
    ),
    "no column": lambda: convex.perturb_output(X[:, :0], Y, regularization=1.0, **KW),
    "half a class": lambda: convex.Softmax(2.5),
    "mean": lambda: convex.private_mean(X, bound=1.0, **TINY),
    "descent": lambda: convex.noisy_gradient_descent(
        X, Y, data_norm=1.0, steps=2, step_size=0.1, **TINY
    ),
    "ridge of tiny epsilon": lambda: convex.private_ridge(
        X, Y, data_norm=1.0, target_bound=1.0, **TINY
    ),
}


@pytest.mark.parametrize("call", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(call):
    with pytest.raises((DomainError, ArgumentTypeError), match=r"points|column|classes|epsilon"):
        call()


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 1.0, "tolerance": 2.5e-14},
        {"epsilon": 1.0, "tolerance": 1.9e-7},
        {"epsilon": 26.0, "regularization": 1e-11},
    ],
    ids=str,
)
def test_what_public_numbers_do_not_certify_is_refused_for_either_neighbour(settings):
    """No records gave -b/λ and one gave zero, with the noise of an approximation on either."""
    for x, y in ((np.zeros((0, 2)), np.zeros(0)), (np.array([[0.6, 0.8]]), np.ones(1))):
        with pytest.raises(DomainError, match=r"tolerance must be|too small for max_records"):
            convex.perturb_objective(x, y, **(KW | settings))
    if "tolerance" in settings:
        with pytest.raises(DomainError, match="tolerance"):
            convex.perturb_output(x, y, regularization=1.0, **(KW | settings))
