"""Which optimisers the opacus adapter watches."""

import pytest

import accountant as ac
from support.opacus_runs import QUIET, adapter, opacus, torch
from support.opacus_twins import make, records

pytestmark = QUIET


def test_two_optimizers_do_not_share_a_batch():
    first = make(records(100, True))
    second = make(first.data, data_loader=first.loader, poisson_sampling=False)
    x, y = next(iter(first.loader))
    first.step(x, y)
    with pytest.raises(ac.UnsupportedError, match="a Poisson batch of its own"):
        second.step(x, y)
    second.step(*next(iter(first.loader)))
    assert len(first.engine.accountant) == len(second.engine.accountant) == 1


def test_an_optimizer_can_be_made_private_again_and_by_others():
    made = make(records(100, True))
    options = {"module": made.model, "data_loader": made.plain}
    for name, steps in (("exact", 5), ("rdp", 1)):
        engine = opacus.PrivacyEngine(accountant=name)
        model, optimizer, loader = engine.make_private(
            optimizer=made.optimizer, noise_multiplier=4.0, max_grad_norm=1.0, **options
        )
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        # Opacus' own count rows.
        assert len(engine.accountant) == steps
    assert made.inner.updates == 10


def test_optimizers_that_are_not_watched_are_refused():
    made = make(records(100, True))
    bare = opacus.optimizers.DPOptimizer(
        made.inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=20
    )
    with pytest.raises(ac.UnsupportedError, match="make_private did not return"):
        adapter.ExactAccountant().get_optimizer_hook_fn(sample_rate=0.1)(bare)
    with pytest.raises(ac.UnsupportedError, match="make_private returned"):
        adapter.discard_unfinished(bare)


def test_a_part_left_out_is_noticed_among_parts_of_one_size():
    # A rate of one: every batch is cut into four parts of 25, and sizes tell nothing.
    made = make(records(100, True), batch_size=100)
    with made.parts(25) as parts:
        batches = iter(parts)
        next(batches)
        x, y = next(batches)
        with pytest.raises(ac.UnsupportedError, match="a batch was left out"):
            made.step(x, y)
    assert len(made.engine.accountant) == made.inner.updates == 0
