"""The coins of opacus' samplers: their probability, and numbers that must not come twice."""

import math

import pytest

import accountant as ac
from support.opacus_runs import DELTA, QUIET, adapter, opacus, torch
from support.opacus_twins import make, records
from support.refusals import refused

pytestmark = QUIET
coin_probability = adapter.coin_probability
UniformWithReplacementSampler = opacus.utils.uniform_sampler.UniformWithReplacementSampler


@pytest.mark.parametrize("rate", [1e-9, 2.0**-24, 2.0**-20, 1e-5, 1 / 937, 1 / 93, 0.1, 1 / 7, 0.3])
def test_the_probability_is_the_share_of_all_words_that_a_sampler_takes(rate, monkeypatch):
    words = torch.arange(2**24, dtype=torch.float32) / 2**24
    sampler = UniformWithReplacementSampler(num_samples=2**24, sample_rate=rate, steps=1)
    monkeypatch.setattr(torch, "rand", lambda *_, **__: words)
    (batch,) = sampler
    assert coin_probability(rate) == len(batch) / 2**24


def test_words_have_24_bits():
    torch.manual_seed(1)
    words = torch.rand(1_000_000).double() * 2**24
    assert torch.equal(words, words.round())
    # All 24 of them, the lowest as often as not.
    assert abs(float((words % 2).mean()) - 0.5) < 6 * 0.0005


def test_other_types_of_words():
    assert coin_probability(0.0) == 0.0
    assert coin_probability(1.0) == 1.0
    try:
        torch.set_default_dtype(torch.float64)
        for rate in (1e-9, 1 / 93, 0.1, 0.3):
            assert rate <= coin_probability(rate) <= rate + 2.0**-53
        torch.set_default_dtype(torch.bfloat16)
        refused(ac.UnsupportedError, "float32 or float64", coin_probability, 0.1)
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_is_recorded_is_the_coins_probability_and_not_the_nominal_one():
    made = make(records(930, True), batch_size=10)
    for x, y in made.loader:
        made.step(x, y)
    ((_, rate, steps),) = made.engine.accountant.history
    # A float32 just above 1/93, and the next word.
    assert rate == math.ceil(2**24 / 93) / 2**24 > 1 / 93
    nominal = ac.get_epsilon(1 / 93, 4.0, steps, DELTA)
    assert nominal < made.engine.get_epsilon(DELTA) < nominal * (1 + 1e-4)


def test_micro_batches_and_whole_ones_have_one_ledger():
    data = records(4096, True)
    found = []
    for size in (256, 1024, 4096):
        made = make(data, batch_size=1024)
        torch.manual_seed(3)
        with made.parts(size) as parts:
            count = 0
            for x, y in parts:
                made.step(x, y)
                count += 1
        found.append((made.engine.accountant.history, made.engine.get_epsilon(DELTA)))
        assert made.inner.updates == 4
        assert count >= 4096 / size
    assert found[0] == found[1] == found[2]
    assert found[0][0] == [(4.0, 0.25, 4)]


def test_noise_that_comes_again_is_refused():
    made = make(records(100, True))
    for steps in (5, 0):
        torch.manual_seed(3)
        if steps:
            for x, y in made.loader:
                made.step(x, y)
        else:
            refused(ac.UnsupportedError, "must be drawn anew", next, iter(made.loader))
    x, y = next(iter(made.loader))
    torch.manual_seed(4)
    made.step(x, y)
    x, y = next(iter(made.loader))
    torch.manual_seed(4)
    refused(ac.UnsupportedError, "the noise of a step must be drawn anew", made.step, x, y)
    assert len(made.engine.accountant) == made.inner.updates == 6


def test_noise_of_an_earlier_optimizer_on_the_ledger_is_refused():
    made = make(records(100, True), noise_generator=torch.Generator().manual_seed(5))
    made.step(*next(iter(made.loader)))
    again = torch.Generator().manual_seed(5)
    model, optimizer, loader = made.engine.make_private(
        module=made.model, optimizer=made.inner, data_loader=made.plain,
        noise_multiplier=4.0, max_grad_norm=1.0, noise_generator=again,
    )  # fmt: skip
    x, y = next(iter(loader))
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    refused(ac.UnsupportedError, "the noise of a step must be drawn anew", optimizer.step)


def test_coins_that_come_again_are_refused():
    data = records(100, True)
    coins = torch.Generator()
    plain = torch.utils.data.DataLoader(data, batch_size=20, generator=coins)
    made = make(data, data_loader=plain)
    for _ in range(2):
        for x, y in made.loader:
            made.step(x, y)
    coins.manual_seed(2)
    made.step(*next(iter(made.loader)))
    coins.manual_seed(2)
    refused(ac.UnsupportedError, "batches must be drawn anew", next, iter(made.loader))
    assert made.inner.updates == len(made.engine.accountant) == 11
