"""What the account does not cover is refused before anything is released."""

import pytest

import accountant as ac
from support.opacus_runs import QUIET, network, opacus, private, torch, toy

pytestmark = QUIET


def test_batches_that_are_no_poisson_samples_are_refused():
    data = toy()
    model = network(data)
    with pytest.raises(ac.UnsupportedError, match="needs Poisson batches"):
        opacus.PrivacyEngine(accountant="exact").make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(data, batch_size=10, shuffle=True),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            poisson_sampling=False,
        )
    # Before anything was wrapped.
    assert not any(hasattr(p, "grad_sample") for p in model.parameters())
    with pytest.raises(ac.UnsupportedError, match="needs Poisson batches"):
        private(data, epsilon=1.0, epochs=1, poisson_sampling=False)
    # Opacus' own accountants still take it.
    private(data, engine=opacus.PrivacyEngine(accountant="rdp"), poisson_sampling=False)


def test_adaptive_clipping_is_refused():
    bounds = {"max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 5.0}
    with pytest.raises(ac.UnsupportedError, match="adaptive clipping"):
        private(
            toy(), clipping="adaptive", target_unclipped_quantile=0.5, clipbound_learning_rate=0.2,
            **bounds,
        )  # fmt: skip
    utils = pytest.importorskip("opacus.utils.adaptive_clipping.adaptive_clipping_utils")
    with pytest.raises(ac.UnsupportedError, match="adaptive clipping"):
        private(toy(), engine=utils.PrivacyEngineAdaptiveClipping(accountant="exact"))


def test_random_records_for_empty_batches_are_refused():
    data = toy(20)
    with pytest.raises(ac.UnsupportedError, match="rand_on_empty"):
        private(data, rand_on_empty=True)
    with pytest.raises(ac.UnsupportedError, match="rand_on_empty"):
        private(data, epsilon=1.0, epochs=1, rand_on_empty=True)
    own = opacus.data_loader.DPDataLoader(data, sample_rate=0.1, rand_on_empty=True)
    with pytest.raises(ac.UnsupportedError, match="rand_on_empty"):
        private(data, loader=own, poisson_sampling=False)
    private(data, rand_on_empty=False)
    # Opacus' own accountants still take it.
    private(data, engine=opacus.PrivacyEngine(accountant="rdp"), rand_on_empty=True)


def test_several_poisson_batches_in_one_step_are_refused():
    engine, model, optimizer, loader = private(toy())
    model.allow_grad_accumulation()
    batches = iter(loader)
    for _ in range(2):
        x, y = next(batches)
        torch.nn.functional.cross_entropy(model(x), y).backward()
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(ac.UnsupportedError, match="one Poisson batch"):
        optimizer.step()
    assert len(engine.accountant) == 0
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
