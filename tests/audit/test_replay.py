"""Record and replay: every planted data dependence is found, and no correct learner is flagged."""

import inspect
import random

import numpy as np
import pytest

import accountant as ac
from accountant.audit import audit_replay
from accountant.errors import AccountantError, DomainError, UnsupportedError
from accountant.learn import (
    AdaptiveQuantile,
    Batches,
    LogisticRegression,
    Noise,
    SoftmaxRegression,
    train_dp_sgd,
)
from accountant.learn import run as dp_sgd_run
from accountant.learn.generation import Category, Domain, synthesize_marginals
from accountant.learn.release import Privatiser
from accountant.learn.selection import noisy_max
from accountant.noise import Grid
from support import replayed_defects, replayed_trainers
from support.replayed_trainers import CLASSES, REMOVED, SIGMA, STEPS, Q, Sgd, public_data


def made_in(module):
    """Return a learner of each class and function of a module, by name."""
    own = [
        (name, made)
        for name, made in vars(module).items()
        if getattr(made, "__module__", "") == module.__name__ and name != "public_data"
    ]
    return [pytest.param(made, id=name) for name, made in own]


def runner(made):
    return made() if inspect.isclass(made) else made


def found(made, **given):
    given = {"remove": getattr(made, "removed", REMOVED), **given}
    return audit_replay(runner(made), public_data(), **given)


CORRECT, DEFECTS = made_in(replayed_trainers), made_in(replayed_defects)


@pytest.mark.parametrize("made", CORRECT)
def test_a_correct_learner_is_not_flagged(made):
    report = found(made)
    assert not report.flagged, str(report)
    assert report.releases >= 1
    assert 0.0 < report.largest_ratio <= 1.0 + 1e-9


@pytest.mark.long(keep=20)
@pytest.mark.parametrize("made", DEFECTS)
def test_a_planted_defect_is_found(made):
    assert found(made).flagged


def test_there_are_twenty_of_each():
    assert len(CORRECT) + len(PACKAGE) >= 20
    assert len(DEFECTS) >= 20


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("DividesByTheBatch", "result"),
        ("RateOfSampling", "public value"),
        ("ForgetsToClip", "sensitivity"),
        ("SkipsEmptyBatches", "control flow"),
        ("DrawsForEachRecord", "randomness"),
        ("fails_without_a_class", "error"),
        ("classes_that_occur", "sensitivity"),
    ],
)
def test_a_finding_says_what_it_is(made, kind):
    report = found(getattr(replayed_defects, made))
    assert kind in {finding.kind for finding in report.findings}
    assert kind in str(report)
    assert "FLAGGED" in str(report)


# Learners of the package, under patches of the functions that add their noise.


def dp_sgd(model, q=Q, law="gaussian", clipping_norm=1.0):
    def run(data, releases):
        x, y = data
        releases.patch(
            Privatiser, "release", value="value", ignore=["generator"],
            sensitivity=lambda self, rule, **_: self.settings(rule)[1] / self.noise_multiplier,
            mechanism=lambda **_: ac.PoissonSampled(ac.Gaussian(SIGMA), Q),
        )  # fmt: skip
        releases.patch(
            dp_sgd_run, "release_fraction", value="unclipped", sensitivity=1.0,
            ignore=["generator", "records"],
        )  # fmt: skip
        releases.patch_sampler(dp_sgd_run, "draw_batch", records="records", ignore=["generator"])
        made = model()
        train_dp_sgd(
            made, x, np.minimum(y, 1) if made.size < 5 else y,
            batches=Batches(18.0, steps=STEPS, sampling_probability=q), noise=Noise(SIGMA, law=law),
            clipping_norm=clipping_norm, delta=1e-5, rng=1,
        )  # fmt: skip
        return made.parameters

    return run


def marginals(data, releases):
    releases.patch(Grid, "release_gaussian", value="value", sensitivity=1.0, ignore=["generator"])
    table = {"label": data[1], "sign": (data[0][:, 0] > 0).astype(int)}
    made = synthesize_marginals(
        table, Domain({"label": Category([0, 1, 2]), "sign": Category([0, 1])}),
        delta=1e-5, noise_multiplier=2.0, pairs=[("label", "sign")], rng=1,
    )  # fmt: skip
    return made.sample(5, seed=1)


def noisy_winner(data, releases):
    releases.patch(
        noisy_max, "report_noisy_max", value="scores", sensitivity=1.0, norm=float("inf"),
        ignore=["rng"],
    )  # fmt: skip
    counts = np.bincount(data[1], minlength=CLASSES)
    return noisy_max.report_noisy_max(counts, 2.0, monotonic=True, rng=1).index


PACKAGE = {
    "DP-SGD": dp_sgd(lambda: LogisticRegression(3)),
    "adaptive clipping": dp_sgd(
        lambda: LogisticRegression(3), clipping_norm=AdaptiveQuantile(clipping_norm=1.0)
    ),
    "softmax, discrete noise": dp_sgd(lambda: SoftmaxRegression(3, 3), law="discrete_gaussian"),
    "noisy winner": noisy_winner,
    "marginals": marginals,
}


@pytest.mark.parametrize("name", PACKAGE)
def test_a_learner_of_the_package_is_not_flagged(name):
    report = audit_replay(PACKAGE[name], public_data(), remove=REMOVED[:2], name=name)
    assert not report.flagged, str(report)
    assert report.releases >= 1
    assert report.largest_ratio > 0.0


def test_the_package_declares_the_number_of_records_public_where_it_uses_it():
    report = audit_replay(dp_sgd(lambda: LogisticRegression(3), q=None), public_data(), remove=[0])
    assert {finding.kind for finding in report.findings} == {"public value"}


def test_claims_are_compared_with_what_was_released():
    honest = STEPS * ac.PoissonSampled(ac.Gaussian(SIGMA), Q)
    report = found(Sgd, claimed=honest, delta=1e-5)
    assert not report.flagged
    assert report.mechanism.epsilon(1e-5) == report.epsilon_claimed
    report = found(Sgd, claimed=(STEPS - 1) * ac.PoissonSampled(ac.Gaussian(SIGMA), Q), delta=1e-5)
    assert [finding.kind for finding in report.findings] == ["claim"]
    assert report.epsilon_seen > report.epsilon_claimed
    with pytest.raises(DomainError, match="mechanism="):
        found(replayed_trainers.frank_wolfe, claimed=1.0, delta=1e-5)
    with pytest.raises(DomainError, match="both or neither"):
        found(Sgd, claimed=1.0)


def test_replacing_a_record_needs_twice_the_sensitivity():
    x, y = public_data()

    def release(data, releases):
        return releases.laplace(data[0][:, 0].sum(), sensitivity=1.0, scale=1.0)

    there = {0: (np.array([1.0, 0.0, 0.0]), 1)}
    x[0, 0] = -1.0
    report = audit_replay(release, (x, y), replace=there)
    assert [finding.kind for finding in report.findings] == ["sensitivity"]
    assert report.largest_ratio == pytest.approx(2.0)
    assert not audit_replay(release, (x, y), remove=[0]).flagged


def test_what_is_run_leaves_no_trace():
    x, y = public_data()
    before, states = x.copy(), (random.getstate(), np.random.get_state()[1].copy())  # noqa: NPY002

    def spoils(data, releases):
        data[0][:] = 0.0
        random.random()
        np.random.random()  # noqa: NPY002
        releases.patch(Privatiser, "release", value="value", sensitivity=1.0)
        return releases.gaussian(np.zeros(2), sensitivity=1.0, scale=1.0)

    assert not audit_replay(spoils, (x, y), remove=[1]).flagged
    np.testing.assert_array_equal(x, before)
    assert random.getstate() == states[0]
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert Privatiser.release.__qualname__ == "Release.release"


def test_a_run_that_cannot_be_repeated_is_refused():
    def unseeded(data, releases):
        return np.random.default_rng().random()

    with pytest.raises(UnsupportedError, match="same twice"):
        audit_replay(unseeded, public_data())


@pytest.mark.parametrize(
    "given",
    [
        {"remove": [60]}, {"remove": [-1]}, {"remove": ["a"]}, {"remove": [0], "replace": {}},
        {"replace": {99: (0, 0)}}, {"replace": {0: 1}}, {"delta": 2.0, "claimed": 1.0},
        {"seed": -1}, {"claimed": float("nan"), "delta": 1e-5},
    ],
)  # fmt: skip
def test_bad_arguments_are_named(given):
    with pytest.raises(AccountantError, match=next(iter(given)) + "|remove|replace|delta"):
        audit_replay(Sgd(), public_data(), **given)


@pytest.mark.parametrize(
    "given", [{"sensitivity": 0.0}, {"sensitivity": float("inf")}, {"scale": -1.0}]
)
def test_bad_releases_are_named(given):
    def run(data, releases):
        return releases.gaussian(0.0, **{"sensitivity": 1.0, "scale": 1.0, **given})

    with pytest.raises(DomainError, match=next(iter(given))):
        audit_replay(run, public_data())
