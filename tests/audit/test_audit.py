"""Audits of the shipped trainers: tight where they can be, and never above the certificate."""

import math

import numpy as np
import pytest
from scipy import special, stats

import accountant as ac
from accountant.audit import (
    audit_masses,
    audit_mechanism,
    audit_observations,
    audit_trainer,
    cell_masses,
)
from accountant.audit.trainer import CanaryModel
from accountant.errors import AccountantError
from accountant.learn import (
    SGD,
    AdaptiveQuantile,
    Automatic,
    LogisticRegression,
    MultilayerPerceptron,
    PerLayer,
    SoftmaxRegression,
)
from accountant.learn.clipping import Rule
from accountant.learn.models.base import Totals
from accountant.learn.release import Privatiser
from accountant.noise import SecureGenerator
from accountant.sampling.poisson import PoissonSampled
from support.dp_sgd_runs import arranged

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5))
Y = (X[:, 0] > 0).astype(int)


def audit(model=None, **given):
    settings = {
        "clipping_norm": 1.0,
        "delta": 1e-5,
        "noise_multiplier": 1.0,
        "expected_batch_size": 60.0,
        "steps": 50,
        "canaries": 600,
        "rng": 1,
    } | given
    if settings.get("sampler") == "full":
        settings.pop("expected_batch_size")
    return audit_trainer(model or LogisticRegression(5), X, Y, **arranged(settings))


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 2.0, 4.0])
def test_the_trainers_own_release_is_audited_to_nine_tenths(multiplier):
    # Full batch: a release of 10⁵ coordinates, each with a canary's clipped gradient or without.
    n, norm = 100_000, 0.5
    model = LogisticRegression(n, bias=False)
    privatiser = Privatiser(model, "gaussian", multiplier, 100.0)
    generator = SecureGenerator(3)

    def release(values):
        return privatiser.release(values, Rule((norm,)), generator)[0]

    report = audit_mechanism(
        release, norm, claimed=ac.Gaussian(multiplier), delta=1e-5, observations=n, vectorized=True
    )
    assert 0.9 <= report.ratio <= 1.0
    assert not report.flagged


@pytest.mark.long
def test_whole_runs_with_poisson_sampling_stay_below_the_certificate():
    given = {"canaries": 1500, "expected_batch_size": 400.0, "steps": 20}
    reports = [audit(rng=seed, **given) for seed in range(12)]
    flagged = sum(report.flagged for report in reports)
    assert flagged <= stats.binom.isf(1e-4, len(reports), 0.05)
    # And see a good part of it: half of the canaries are some 750 observations in each world.
    assert np.median([report.ratio for report in reports]) > 0.4


@pytest.mark.slow
def test_a_hundred_whole_runs_stay_below_the_certificate():
    reports = [audit(rng=seed, canaries=4000, expected_batch_size=400.0) for seed in range(100)]
    assert sum(report.flagged for report in reports) <= stats.binom.isf(1e-4, 100, 0.05)
    assert np.median([report.ratio for report in reports]) > 0.4


@pytest.mark.long(keep=8)
@pytest.mark.parametrize(
    "given",
    [
        {"clipping_norm": Automatic(0.5)},
        {"clipping_norm": PerLayer(0.7)},
        {"clipping_norm": AdaptiveQuantile(1.0)},
        {"noise": "discrete_gaussian", "method": "clopper-pearson"},
        {"optimizer": SGD(1.0, 0.9), "averaging": "ema"},
        {"method": "one-run"},
        {"method": "one-run-tradeoff"},
        {"method": "clopper-pearson"},
        {"threshold": "ranks"},
        {"threshold": "split"},
        {"threshold": 0.0},
    ],
    ids=lambda given: "-".join(
        f"{key}={value if isinstance(value, str) else type(value).__name__}"
        for key, value in given.items()
    ),
)
def test_no_setting_is_flagged(given):
    report = audit(
        MultilayerPerceptron((5, 4, 2)),
        **({"sampler": "full", "steps": 6, "noise_multiplier": 2.0, "canaries": 3000} | given),
    )
    assert not report.flagged
    assert report.epsilon_lower > 0.25 * report.epsilon_claimed
    assert report.seeded


def test_single_precision_and_other_models():
    for model in (SoftmaxRegression(5, 3, dtype=np.float32), LogisticRegression(5)):
        before = model.parameters.copy()
        report = audit(model, sampler="full", steps=5)
        assert not report.flagged
        assert np.array_equal(model.parameters, before)


@pytest.mark.long
def test_too_little_noise_is_flagged():
    from accountant.learn import Noise, train_dp_sgd

    def quiet(*given, **settings):
        import dataclasses

        noise = Noise(0.8 * settings.pop("noise").noise_multiplier)
        result = train_dp_sgd(*given, noise=noise, **settings)
        sigma = result.plan.noise_multiplier / 0.8
        plan = dataclasses.replace(result.plan, noise_multiplier=sigma)
        claim = ac.Accountant()
        claim.compose(plan.mechanism, plan.steps)
        return dataclasses.replace(result, plan=plan, ledger=claim)

    for method in ("two-sample", "one-run-tradeoff"):
        report = audit(
            train=quiet, sampler="full", steps=10, canaries=20_000, method=method,
            noise_multiplier=2.0, threshold="simulated",
        )  # fmt: skip
        if method == "two-sample":
            assert report.flagged
            assert "REFUTED" in str(report)
        assert report.epsilon_lower > 0.5 * report.epsilon_claimed


def test_laplace_noise_by_clopper_pearson():
    rng = np.random.default_rng(0)
    release = lambda v: v + rng.laplace(size=v.shape)  # noqa: E731
    report = audit_mechanism(
        release, np.ones(()), claimed=ac.Laplace(1.0), delta=0.0, observations=50_000,
        vectorized=True,
    )  # fmt: skip
    assert 0.8 < report.epsilon_lower <= 1.0
    assert audit_mechanism(
        release, np.ones(()), claimed=0.7, delta=0.0, observations=50_000, vectorized=True
    ).flagged


def test_calls_one_by_one_and_scores_of_ones_own():
    rng = np.random.default_rng(0)
    release = lambda v: v + rng.standard_normal(v.shape)  # noqa: E731
    given = {"claimed": ac.Gaussian(1.0), "delta": 1e-5, "observations": 2000}
    one = audit_mechanism(release, np.array([0.6, 0.8]), **given)
    two = audit_mechanism(release, np.array([0.6, 0.8]), **given, vectorized=True)
    own = audit_mechanism(
        release, np.array([0.6, 0.8]), **given, score=lambda v: float(v[0] * 0.6 + v[1] * 0.8)
    )
    for report in (one, two, own):
        assert 0.6 < report.ratio <= 1.0


def test_subsampled_claims_are_tested_by_their_curve():
    rng, n, q = np.random.default_rng(0), 100_000, 0.3
    x = rng.standard_normal(n)
    y = rng.standard_normal(n) + (rng.random(n) < q)
    report = audit_observations(x, y, claimed=PoissonSampled(ac.Gaussian(1.0), q), delta=1e-3)
    assert not report.flagged
    assert report.ratio > 0.3
    wrong = audit_observations(x, y, claimed=PoissonSampled(ac.Gaussian(1.0), 0.1), delta=1e-3)
    assert wrong.flagged


def test_exact_masses_of_a_gaussian():
    edges = np.linspace(-12, 13, 20_001)
    p = cell_masses(lambda x: (special.ndtr(x), special.ndtr(-x)), edges)
    q = cell_masses(lambda x: (special.ndtr(x - 1), special.ndtr(1 - x)), edges)
    report = audit_masses(p, q, claimed=ac.Gaussian(1.0), delta=1e-5)
    assert not report.flagged
    assert report.ratio > 0.999
    assert report.confidence == 1.0
    assert audit_masses(p, q, claimed=ac.Gaussian(1.001), delta=1e-5).flagged
    # An error of the masses is taken off.
    assert audit_masses(p, q, claimed=1.0, delta=1e-5, error=1e-6).ratio < 4.3772


def test_round_off_of_the_cells_refutes_nobody():
    def tails(x):
        small = 0.5 * np.exp(-np.abs(x))
        return np.where(x < 0, small, 1 - small), np.where(x < 0, 1 - small, small)

    edges = np.linspace(-30.0, 31.0, 20_001)
    for scale in (1.0, 1e3):
        p, q = cell_masses(tails, edges), cell_masses(lambda x, by=1 / scale: tails(x - by), edges)
        report = audit_masses(p, q, claimed=ac.Laplace(scale), delta=0.0)
        assert not report.flagged
        assert report.ratio > 0.999
    # Nor does a sum that is not quite one.
    p, q = [0.75 + 9e-10, 0.25], [0.25, 0.75]
    assert not audit_masses(p, q, claimed=math.log(3.0), delta=0.0).flagged


@pytest.mark.long
def test_two_dimensions_of_masses():
    axis = np.linspace(-9, 10, 401)
    one = cell_masses(lambda x: (special.ndtr(x), special.ndtr(-x)), axis)
    moved = cell_masses(lambda x: (special.ndtr(x - 0.6), special.ndtr(0.6 - x)), axis)
    also = cell_masses(lambda x: (special.ndtr(x - 0.8), special.ndtr(0.8 - x)), axis)
    report = audit_masses(
        np.outer(one, one), np.outer(moved, also), claimed=ac.Gaussian(1.0), delta=1e-4
    )
    assert 0.99 < report.ratio <= 1.0


def test_the_report_is_rounded_to_the_safe_side():
    report = audit_masses([0.75, 0.25], [0.25, 0.75], claimed=1.2, delta=0.0)
    assert report.epsilon_lower <= math.log(3.0)
    assert "ε ≥ 1.098 " in str(report)
    assert "not refuted" in str(report)


def test_the_plot(tmp_path):
    pytest.importorskip("matplotlib")
    report = audit(sampler="full", steps=5)
    report.plot(tmp_path / "audit.png")
    assert (tmp_path / "audit.png").stat().st_size > 5000
    with pytest.raises(AccountantError, match="observations"):
        audit_masses([1.0], [1.0], claimed=1.0, delta=0.0).plot(tmp_path / "none.png")


@pytest.mark.parametrize(
    "given",
    [
        {"canaries": 3},
        {"canaries": 10.0},
        {"confidence": 1.5},
        {"method": "best"},
        {"checkpoint": "x"},
        {"ledger": None},
        {"steps": 0},
        {"expected_batch_size": None},
        {"expected_batch_size": 1e9},
        {"noise": "discrete_gaussian", "method": "one-run-tradeoff"},
    ],
    ids=str,
)
def test_bad_settings_are_refused(given):
    with pytest.raises(AccountantError):
        audit(**given)


def test_bad_mechanism_audits_are_refused():
    given = {"claimed": 1.0, "delta": 0.0}
    with pytest.raises(AccountantError, match="differ"):
        audit_mechanism(lambda v: v, 0.0, **given)
    with pytest.raises(AccountantError, match="Gaussian"):
        audit_mechanism(lambda v: v, 1.0, **given, method="gaussian")
    with pytest.raises(AccountantError, match="one output"):
        audit_mechanism(lambda v: v[:3], 1.0, **given, vectorized=True)
    for p, q in [([0.5], [0.5, 0.5]), ([0.5, 0.4], [0.5, 0.5]), ([-0.5, 1.5], [0.5, 0.5])]:
        with pytest.raises(AccountantError, match="masses"):
            audit_masses(p, q, **given)


@pytest.mark.parametrize("rule", [Rule((0.7,)), Rule((0.3, 0.4)), Rule((0.5,), 0.01)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_canaries_arrive_with_the_clipping_norm_and_disturb_nobody(rule, dtype):
    inner = MultilayerPerceptron((5, 4, 2), dtype=dtype)
    model = CanaryModel(inner, 300)
    included = RNG.random(300) < 0.5
    rows, targets = model.join(X, Y, included)
    chosen = np.sort(RNG.choice(len(rows), 200, replace=False))
    totals, alone = Totals(np.zeros(model.size)), Totals(np.zeros(inner.size))
    model.add_rows(rows, targets, chosen, rule, totals)
    ordinary = chosen[chosen < len(X)]
    inner.add_rows(*inner.check(X, Y), ordinary, rule, alone)
    assert np.allclose(totals.gradient[: inner.size], alone.gradient, atol=1e-6)
    present = np.zeros(300, bool)
    present[rows[chosen[chosen >= len(X)], -1].astype(int) - 1] = True
    assert present.any()
    assert not (present & ~included).any()
    signal = model.signal(totals.gradient)
    assert np.array_equal(signal > 0, present)
    # All of the norm, but for what automatic clipping takes of any gradient.
    assert np.allclose(signal[present], rule.sensitivity, rtol=1e-5)
    assert totals.records == 200


def test_losses_refute_what_the_same_scores_negated_refute():
    """The usual membership score is lower with the canary: μ = 5 against a claim of 1."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal(20_000), 5.0 + rng.standard_normal(20_000)
    given = {"claimed": ac.Gaussian(1.0), "delta": 1e-5}
    high, low = audit_observations(x, y, **given), audit_observations(-x, -y, **given)
    assert high.epsilon_lower == low.epsilon_lower > 25.0
    assert low.flagged
    assert low.direction == "both"
    assert "scores looked at both ways" in str(low)
    assert low.rates[0].direction == "lower"
    wrong = audit_observations(-x, -y, **given, direction="higher")
    assert not wrong.flagged
    assert "high scores accused" in str(wrong)
    assert np.array_equal(
        high.observations.empirical_tradeoff(), low.observations.empirical_tradeoff()
    )


def test_a_release_of_the_wrong_sign_is_seen():
    noise = np.random.default_rng(2)
    report = audit_mechanism(
        lambda values: noise.standard_normal(values.shape) - 5.0 * values,
        np.ones(()),
        claimed=ac.Gaussian(1.0),
        delta=1e-5,
        vectorized=True,
    )
    assert report.flagged
