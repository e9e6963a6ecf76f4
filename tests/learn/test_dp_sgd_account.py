"""What a run of DP-SGD costs: its account is get_epsilon's, its noise is that of the account."""

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountant as ac
from accountant.errors import BudgetExceeded
from accountant.learn import SGD, AdaptiveQuantile, PerExampleModel
from accountant.ledger import Accountant, Budget
from support.dp_sgd_runs import Still, train


@settings(max_examples=25)
@given(st.floats(0.3, 20.0), st.integers(0, 40), st.integers(1, 400), st.sampled_from([1e-5, 1e-3]))
def test_the_ledger_is_get_epsilon(sigma, steps, batch, delta):
    result = train(noise_multiplier=sigma, steps=steps, expected_batch_size=batch, delta=delta)
    q = Fraction(result.plan.sampling_probability)
    assert Fraction(batch, 400) <= q <= Fraction(batch, 400) * (1 + Fraction(1, 2**52))
    assert result.epsilon == ac.get_epsilon(result.plan.sampling_probability, sigma, steps, delta)
    assert result.ledger.epsilon(delta) == result.epsilon
    assert result.steps == steps


def test_full_batches_are_accounted_without_amplification():
    result = train(sampler="full", expected_batch_size=400)
    assert result.epsilon == ac.get_epsilon(1.0, 1.0, 5, 1e-5) > train().epsilon


@pytest.mark.parametrize("target", [0.1, 1.0, 8.0])
def test_a_target_is_met(target):
    result = train(noise_multiplier=None, target_epsilon=target, steps=20)
    assert result.epsilon <= target
    assert result.plan.noise_multiplier == ac.calibrate_sigma(target, 1e-5, 0.125, 20)


def test_epochs_are_steps():
    assert train(steps=None, epochs=2).steps == 16
    assert train(steps=None, epochs=2.01).steps == 17


def test_the_noise_has_the_deviation_of_the_account():
    for noise in ("gaussian", "discrete_gaussian"):
        model = Still(20_000)
        train(
            model, optimizer=SGD(1.0), noise=noise, noise_multiplier=2.0, clipping_norm=0.5,
            steps=1, expected_batch_size=50,
        )  # fmt: skip
        spread = model.parameters.std() * 50
        # The sensitivity is a little above the clipping norm, never below.
        assert 1.0 * 0.98 < spread < 1.0 * 1.03
        assert abs(model.parameters.mean() * 50) < 6 / math.sqrt(20_000)


def test_empty_batches_are_released():
    result = train(sampling_probability=0.0, expected_batch_size=1.0)
    assert result.parameters.any()
    assert result.steps == 5


@pytest.mark.long
def test_a_budget_says_how_many_steps():
    ledger = Accountant(Budget(2.0, 1e-5, filter="non-adaptive"))
    result = train(ledger=ledger, steps=None)
    assert result.steps == ac.calibrate_steps(2.0, 1e-5, q=0.125, sigma=1.0)
    assert result.epsilon <= 2.0
    with pytest.raises(BudgetExceeded):
        train(ledger=ledger, steps=1)
    assert ledger.epsilon(1e-5) == result.epsilon


def test_training_stops_when_somebody_else_spends_the_budget():
    ledger = Accountant(Budget(4.0, 1e-5, filter="non-adaptive"))

    def spend(progress):
        with contextlib.suppress(BudgetExceeded):
            ledger.compose(ac.PoissonSampled(ac.Gaussian(1.0), 0.125))

    allowed = ac.calibrate_steps(4.0, 1e-5, q=0.125, sigma=1.0)
    assert allowed > 10
    result = train(ledger=ledger, steps=allowed - allowed % 2, callbacks=[spend])
    assert result.steps == (allowed + 1) // 2
    assert ledger.epsilon(1e-5) <= 4.0


def test_callbacks_stop_training():
    seen = []

    def stop(progress):
        seen.append(progress.step)
        return progress.step == 3

    result = train(steps=10, callbacks=[stop])
    assert seen == [1, 2, 3]
    assert result.steps == 3
    assert result.epsilon == ac.get_epsilon(0.125, 1.0, 3, 1e-5)


def test_discrete_gaussian_is_accounted_by_renyi():
    result = train(noise="discrete_gaussian", noise_multiplier=1.5, steps=20)
    exact = ac.get_epsilon(0.125, 1.5, 20, 1e-5)
    rdp = ac.get_epsilon(0.125, 1.5, 20, 1e-5, method="rdp")
    assert exact < rdp <= result.epsilon < 1.1 * rdp
    result = train(noise="discrete_gaussian", noise_multiplier=None, target_epsilon=1.0)
    assert 0.999 < result.epsilon <= 1.0


def test_the_adaptive_count_is_paid_for():
    rule = AdaptiveQuantile(1.0, count_noise=2.0)
    gradient = rule.gradient_noise(1.0)
    # Two Gaussian releases of one sample: the squared ratios add up.
    assert gradient**-2 + (2 * 2.0) ** -2 <= 1.0
    assert gradient == pytest.approx((1 - 1 / 16) ** -0.5)


@pytest.mark.parametrize("noise", ["gaussian", "discrete_gaussian"])
def test_a_white_box_audit_of_a_whole_run(noise):
    # Canary i moves coordinate i by the clipping norm, and takes part with probability 1/2. After
    # k steps of σ, the released sums separate the worlds by √k/σ: that much and no more.
    canaries, steps, sigma = 4000, 4, 2.0
    rng = np.random.default_rng(3)
    into = rng.random(canaries) < 0.5

    def gradients(w, x, t):
        rows = np.zeros((len(x), canaries))
        rows[np.arange(len(x)), x[:, 0].astype(int)] = 3.0  # clipped to 1
        return rows

    model = PerExampleModel(np.zeros(canaries), gradients)
    index = np.flatnonzero(into)[:, None].astype(float)
    result = train(
        model, index, np.zeros(len(index)), noise=noise, noise_multiplier=sigma, steps=steps,
        sampler="full", expected_batch_size=canaries, optimizer=SGD(canaries), rng=7,
    )  # fmt: skip
    score = -result.parameters
    assert score[into].mean() - score[~into].mean() == pytest.approx(steps, rel=0.05)
    separation = (score[into].mean() - score[~into].mean()) / score[~into].std()
    claimed = math.sqrt(steps) / sigma
    # Four standard errors of the estimate on either side.
    assert 0.87 * claimed < separation < 1.13 * claimed
