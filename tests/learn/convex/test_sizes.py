"""Public numbers alone decide what is refused; nothing else is said about the records."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest

from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn import convex
from accountant.learn.convex import gradient, statistics
from accountant.learn.convex import posterior as gibbs
from accountant.learn.convex.losses import BoundedPoisson, Huber, Logistic
from accountant.learn.convex.rows import PublicRisk, clip_rows, sum_by_blocks
from accountant.learn.convex.solvers import least_tolerance
from support.convex_fits import FITS, OF_X, OF_X_AND_Y
from support.convex_fits import ROWS as KW

X, Y = np.eye(3)[:, :2], np.array([1.0, -1.0, 1.0])
TRAINERS = {name: fit for name, fit in FITS.items() if name != "bolt_on_sgd"}
CAPPED = ("perturb_objective", "perturb_output", "gibbs_posterior")


@pytest.mark.parametrize("name", TRAINERS)
def test_more_records_than_the_public_bound_are_refused_without_their_number(name, monkeypatch):
    options = {"max_records": 41} if name in CAPPED else {}
    for module in (gradient, statistics):
        monkeypatch.setattr(module, "MOST_RECORDS", 41)
    monkeypatch.setattr(gibbs, "MOST_COUNTED", 41)
    x, y = np.tile(X, (20, 1)), np.tile(Y, 20)
    for n in (40, 41):
        TRAINERS[name](x[:n], y[:n], **options)
    messages = set()
    for n in (42, 43, 57):
        with pytest.raises(DomainError, match="at most 41 rows") as raised:
            TRAINERS[name](x[:n], y[:n], **options)
        messages.add(str(raised.value))
    assert len(messages) == 1


@pytest.mark.parametrize("name", CAPPED)
def test_public_numbers_are_refused_before_the_data_are_read(name):
    for labels in (np.array([1.0, 7.0]), np.array([math.nan, 1.0]), np.ones(5)):
        with pytest.raises(DomainError, match=r"max_records|regularization must be"):
            TRAINERS[name](np.eye(2), labels, regularization=1e-12, epsilon=40.0)


def test_the_least_tolerance_is_of_public_numbers():
    small, middle, large = (
        least_tolerance(PublicRisk(Logistic(), n, (100,), 1.0, 0.125, 10.0))
        for n in (10**4, 10**7, 10**9)
    )
    assert small < 1e-9 < 1e-5 < large < 1e-3
    assert middle < 2e-7  # the default tolerance is certified for ten million records
    fits = [
        convex.perturb_output(X, Y, regularization=1.0, **KW, max_records=n, rng=1)
        for n in (10**7, 10**9)
    ]
    # What it costs is charged: the sensitivity grows with the tolerance.
    paid = 2 * least_tolerance(PublicRisk(Logistic(), 10**9, (2,), 1.0, 1.0))
    assert fits[1].details["sensitivity"] > 1.0 + paid * 0.999
    assert fits[0].details["sensitivity"] == pytest.approx(1.0 + 2e-6, rel=1e-9)


def test_a_loss_that_does_not_say_how_it_rounds_is_refused():
    class Mine(Logistic):
        slope_roundings = math.inf

    with pytest.raises(DomainError, match="slope_roundings"):
        convex.perturb_output(X, Y, regularization=1.0, loss=Mine(), **KW)


def test_gibbs_settings_that_may_take_too_many_proposals_are_refused():
    with pytest.raises(DomainError, match="proposals"):
        gibbs._require_proposals(PublicRisk(Logistic(), 10**5, (2,), 1.0, 1e-3))
    gibbs._require_proposals(PublicRisk(Logistic(), 10**4, (2,), 1.0, 1e-3))


@pytest.mark.parametrize("name", OF_X_AND_Y)
def test_unequal_lengths_are_refused_without_a_number(name):
    with pytest.raises(DomainError, match="one label a row") as raised:
        FITS[name](np.ones((1237, 2)), np.ones(1238))
    assert not re.search(r"123[78]", str(raised.value))


EXTREMES = {
    "huge": (np.full((5, 2), 1e300), 1e300),
    "tiny": (np.full((5, 2), 1e-300), 1e-300),
    "mixed": (np.outer(10.0 ** np.array([30, -30, 0, 300, -310]), [1.0, -1.0]), 1e30),
    "none": (np.zeros((0, 2)), 1.0),
    "one": (np.ones((1, 2)), -1.0),
    "constant": (np.ones((1025, 2)), 1e30),
}


@pytest.mark.long(keep=22)
@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("name", TRAINERS)
def test_extreme_records_give_no_warning_and_no_exception(name, extreme):
    x, label = EXTREMES[extreme]
    signed = name in (*CAPPED, "noisy_gradient_descent", "exponential_mechanism")
    y = np.full(len(x), label)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        TRAINERS[name](x, np.sign(y) if signed else y)


@pytest.mark.parametrize("extreme", EXTREMES)
def test_extreme_targets_give_no_warning_and_no_exception(extreme):
    x, label = EXTREMES[extreme]
    y = np.full(len(x), label)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        for loss in (Huber(0.5), BoundedPoisson(2.0, 3.0)):
            convex.perturb_objective(x, y, loss=loss, **KW)
            convex.perturb_output(x, y, loss=loss, regularization=1.0, **KW)
            convex.perturb_output(x, y, loss=loss, regularization=1.0, **KW | {"delta": 0.0})
            convex.gibbs_posterior(x[:, :1], y, loss=loss, regularization=1.0, **KW)
            convex.noisy_gradient_descent(x, y, loss=loss, steps=2, step_size=0.1, **KW)
            if len(x):
                convex.bolt_on_sgd(x, y, loss=loss, batch_size=1, passes=1, **KW)


def test_a_failed_eigenvalue_is_found_otherwise(monkeypatch):
    """It was zero then, for one neighbour and perhaps not for the other: nothing paid for it."""
    rng = np.random.default_rng(8)
    x = clip_rows(rng.normal(size=(300, 6)), 1.0)
    gram = sum_by_blocks(x, x)
    expected = np.linalg.eigvalsh(gram)[0]

    def fail(_):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(np.linalg, "eigvalsh", fail)
    fit = convex.ada_ssp(x, np.sign(x[:, 0]), target_bound=1.0, **KW)
    assert np.isfinite(fit.value).all()
    assert abs(statistics._least_eigenvalue(gram) - expected) < 300 * 2.0**-53 * 32 * 6
    assert statistics._least_eigenvalue(np.zeros((3, 3))) == 0.0


WRONG = np.array([1.0, 5.0, 1.0])  # a label outside the domain: it would be asked first


@pytest.mark.parametrize("trainer", ["perturb_output", "perturb_objective", "bolt_on_sgd"])
@pytest.mark.parametrize(
    "bad", [(-1.0, 1e-5), (1.0, 2.0), (1e-9, 1e-12), (1e-10, 0.0)], ids=["eps", "delta", "g", "p"]
)
def test_a_guarantee_is_refused_before_the_data_are_read(trainer, bad):
    """Both used to be refused after a minimum had been found, and labels before them."""
    options = {
        "perturb_output": {"regularization": 1.0},
        "perturb_objective": {"regularization": 1e15},
        "bolt_on_sgd": {"batch_size": 1},
    }[trainer]
    eps, delta = bad
    with pytest.raises(DomainError, match=r"eps|delta"):
        getattr(convex, trainer)(X, WRONG, epsilon=eps, delta=delta, data_norm=1.0, **options)


@pytest.mark.parametrize("name", TRAINERS)
def test_no_message_quotes_a_record_or_counts_them(name):
    # What is refused is the type of an array and its shape; what is in a record is not looked at.
    long = np.array([["1", "2"], ["3", "hidden"]])
    columns = (np.ones((1237, 2)), np.ones((1237, 1)))
    tried = [(long, long[:, 1]), (np.eye(2), long[:, 1]), columns]
    for x, y in tried[:1] if name in OF_X else tried[1:] if name == "private_quantile" else tried:
        with pytest.raises((DomainError, ArgumentTypeError)) as raised:
            TRAINERS[name](x, y)
        assert not re.search(r"hidden|1237|\(2,\)", str(raised.value))


@pytest.mark.parametrize("name", TRAINERS)
def test_a_record_that_cannot_be_read_raises_nothing(name):
    huge = np.array([[1, 2], [3, 10**400]], dtype=object)
    labels = np.array([1.0, -1.0])
    for x, y in ((huge, huge[:, 1]), (np.eye(2), huge[:, 1]), ([[1.0, 2.0], [3.0]], labels)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            TRAINERS[name](x, y)
