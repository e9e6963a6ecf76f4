"""ε after every step of a schedule: above the truth, close to it, and quick."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant.errors import AccountantError, DomainError
from accountant.ledger import Accountant, Odometer
from support.toy_mechanisms import Noise


def test_each_step_of_a_schedule_is_close_to_the_best_order():
    ledger = Accountant()
    orders = 1.0 + np.geomspace(0.5, 100.0, 200)
    sums, best = np.zeros_like(orders), []
    for k in range(40):
        ledger.step(noise_multiplier=1.0 + 0.05 * k, sampling_probability=0.02, count=5)
        sums += ac.get_rdp(0.02, 1.0 + 0.05 * k, 5, orders)
        by_renyi = sums + np.log1p(-1 / orders) - np.log(1e-5 * orders) / (orders - 1)
        best.append(by_renyi.min())
    curve = ledger.epsilon_over_steps(1e-5)
    assert curve.shape == (200,)
    assert (np.diff(curve) >= 0).all()
    assert (curve[4::5] <= 1.01 * np.array(best)).all()


def test_checkpoints_bring_the_curve_down_to_the_exact_composition():
    ledger = Accountant()
    ledger.step(noise_multiplier=2.0, sampling_probability=1.0, count=30)
    ledger.step(noise_multiplier=4.0, sampling_probability=1.0, count=10)
    curve = ledger.epsilon_over_steps(1e-5)
    sharper = ledger.epsilon_over_steps(1e-5, checkpoints=4)
    assert (np.diff(sharper) >= 0).all()
    assert (sharper <= curve).all()
    for steps in range(1, 41):
        sigma = 1.0 / math.sqrt(min(steps, 30) / 4.0 + max(steps - 30, 0) / 16.0)
        truth = ac.epsilon_bounds(1.0, sigma, 1, 1e-5)
        assert truth.lower * (1 - 1e-9) <= sharper[steps - 1]
        if steps % 10 == 0:
            assert sharper[steps - 1] <= truth.upper * (1 + 1e-5)


@pytest.mark.parametrize("bad", [-1, 1.0, True, "3", [1]])
def test_bad_checkpoints(bad):
    with pytest.raises(AccountantError):
        Accountant().epsilon_over_steps(1e-5, checkpoints=bad)


def test_ten_thousand_equal_steps():
    ledger = Accountant()
    ledger.step(noise_multiplier=1.0, sampling_probability=0.01, count=10_000)
    curve = ledger.epsilon_over_steps(1e-5)
    assert (np.diff(curve) >= 0).all()
    assert curve[-1] == ledger.epsilon(1e-5)
    checked = np.unique(np.geomspace(1, 10_000, 60).astype(int))
    truth = ac.epsilon_bounds(0.01, 1.0, checked, 1e-5)
    assert (truth.lower <= curve[checked - 1]).all()
    assert (curve[checked - 1] <= 1.08 * truth.upper).all()


@pytest.mark.long
def test_ten_thousand_different_steps():
    from accountant.analyses.over_steps.by_renyi import pointwise

    ledger = Accountant()
    for sigma in np.geomspace(0.8, 3.0, 10_000):
        ledger.step(noise_multiplier=float(sigma), sampling_probability=0.01)
    by_renyi = pointwise(ledger.history, 1e-5)
    curve = ledger.epsilon_over_steps(1e-5)
    assert (curve <= by_renyi).all()
    assert (np.diff(curve) >= 0).all()
    assert curve.shape == (10_000,)
    readings = Odometer(1e-5).over_steps(ledger)
    assert (readings >= curve).all()
    # Rounded parameters cost little: against the unrounded Rényi bound at the end.
    sigmas = np.geomspace(0.8, 3.0, 10_000)
    best = min(
        ac.get_rdp(0.01, sigmas, 1, a).sum() + math.log1p(-1 / a) - math.log(1e-5 * a) / (a - 1)
        for a in (5.0, 6.0, 7.0)
    )
    assert curve[-1] <= 1.01 * best


@pytest.mark.long
def test_each_step_of_a_schedule_of_gaussians_is_exact():
    ledger = Accountant()
    sigmas = [1.0 + 0.004 * k for k in range(500)]
    for sigma in sigmas:
        ledger.step(noise_multiplier=sigma, sampling_probability=0.02)
    ledger.step(noise_multiplier=8.0, sampling_probability=1.0, count=3)
    curve = ledger.epsilon_over_steps(1e-5)
    assert curve.shape == (503,)
    assert (np.diff(curve) >= 0).all()
    step = [ac.PoissonSampled(ac.Gaussian(sigma), 0.02) for sigma in sigmas]
    for length in (3, 50, 400, 500, 503):
        parts = [(m, 1) for m in step[: min(length, 500)]]
        parts += [(ac.Gaussian(8.0), length - 500)] if length > 500 else []
        truth = ac.Composition(tuple(parts)).epsilon_bounds(1e-5)
        assert truth.lower <= curve[length - 1]
        if length >= 400:
            assert curve[length - 1] <= truth.upper * (1.0 + 1e-9)


@given(
    st.lists(
        st.tuples(st.floats(0.3, 30.0), st.floats(1e-6, 1.0)), min_size=1, max_size=60, unique=True
    ),
    st.integers(1, 20),
)
def test_rounded_parameters_never_cost_less(settings, limit):
    from accountant.analyses.over_steps import history

    rounded = history._rounded([(q, sigma) for sigma, q in settings], limit)
    for (q, sigma), (up, down) in rounded.items():
        assert q <= up <= 1.0
        assert 0.0 < down <= sigma


def test_too_many_steps_for_one_number_each():
    ledger = Accountant()
    ledger.compose(Noise(1.0), 10**9)
    with pytest.raises(DomainError, match="releases"):
        ledger.epsilon_over_steps(1e-5)
