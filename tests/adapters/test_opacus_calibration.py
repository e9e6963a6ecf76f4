"""Opacus asks the exact accountant for the noise that meets a target."""

import pytest

import accountant as ac
from support.opacus_runs import BATCH, DELTA, QUIET, RECORDS, coin, opacus, private, toy, train

pytestmark = QUIET


def test_target_epsilon_goes_through_our_calibration():
    data = toy()
    engine, model, optimizer, loader = private(data, epsilon=2.0, epochs=3)
    rate = coin(BATCH / RECORDS)
    steps = int(3 / (BATCH / RECORDS))
    assert optimizer.noise_multiplier == ac.calibrate_sigma(2.0, DELTA, rate, steps)
    for _ in range(3):
        train(model, optimizer, loader)
    # Opacus' loader is a step shorter than 1 / rate, and its hook would say 1/92.
    assert engine.accountant.history == [(optimizer.noise_multiplier, rate, 3 * 92)]
    assert engine.get_epsilon(DELTA) <= 2.0


@pytest.mark.parametrize("name", ["rdp", "prv"])
def test_other_accountants_calibrate_as_before(name):
    _, _, optimizer, _ = private(
        toy(), engine=opacus.PrivacyEngine(accountant=name), epsilon=2.0, epochs=1
    )
    original = opacus.accountants.utils.get_noise_multiplier.__wrapped__
    wanted = original(
        target_epsilon=2.0, target_delta=DELTA, sample_rate=BATCH / RECORDS, epochs=1,
        accountant=name,
    )  # fmt: skip
    assert optimizer.noise_multiplier == wanted


def test_calibration_without_an_engine():
    find = opacus.accountants.utils.get_noise_multiplier
    known = {"target_epsilon": 1.0, "target_delta": DELTA, "sample_rate": 0.3}
    found = find(accountant="exact", epsilon_tolerance=0.1, steps=40, **known)
    assert found == ac.calibrate_sigma(1.0, DELTA, coin(0.3), 40)
    # Ten epochs are int(10 / 0.3) steps to opacus, and three batches each to its loader.
    assert find(accountant="exact", epochs=10, **known) == ac.calibrate_sigma(
        1.0, DELTA, coin(0.3), 33
    )
    with pytest.raises(ValueError, match="either steps or epochs"):
        find(accountant="exact", epochs=1, steps=1, **known)
