"""Neighbours without noise under opacus: one record moves a sum by its norm and decides nothing."""

import functools
import math

import pytest

import accountant as ac
from support.opacus_runs import QUIET

torch = pytest.importorskip("torch")

from support.units_apart import batched, models  # noqa: E402 (needs opacus)

pytestmark = [*QUIET, pytest.mark.filterwarnings("ignore::UserWarning")]
MODES = pytest.mark.parametrize("mode", ["hooks", "ghost"])
MODELS = [batched.dropping, batched.normalised, batched.Frozen, batched.Embedded, batched.deep]
SEEDED = "not private: seeded"


@MODES
@pytest.mark.parametrize("made", MODELS, ids=lambda made: made.__name__)
def test_a_record_moves_the_sum_by_its_norm(made, mode, monkeypatch):
    x = batched.rows()
    whole, *_ = batched.run(made, x, monkeypatch, grad_sample_mode=mode)
    for gone in (0, 5, len(x) - 1):
        others = torch.cat([x[:gone], x[gone + 1 :]])
        without, *_ = batched.run(made, others, monkeypatch, grad_sample_mode=mode)
        for first, second in zip(whole, without, strict=True):
            assert (first - second).double().norm() <= batched.NORM * (1 + 1e-5)


@MODES
def test_masks_come_from_the_system_whatever_the_seed(mode, monkeypatch):
    """Which is what makes them those of the other records: they have one law with and without."""
    x = batched.rows()
    found = [
        batched.run(batched.dropping, x, monkeypatch, coupled=False, grad_sample_mode=mode)[0][0]
        for _ in range(3)
    ]
    assert not torch.equal(found[0], found[1])
    assert not torch.equal(found[1], found[2])


def keeping(layer):
    """A layer that keeps what no noise covers, by the name of its model."""
    made = layer()
    return batched.Network(_Between(made))


class _Between(torch.nn.Module):
    def __init__(self, keeper):
        super().__init__()
        del keeper.first, keeper.last
        self.keeper = keeper

    def forward(self, x):
        return self.keeper.between(x)[: len(x)]


@MODES
@pytest.mark.parametrize(
    "layer",
    [
        pytest.param(each, id=each.__name__)
        for each in (
            models.FunctionalNorm, models.MovingAverage, models.FrozenCodebook,
            models.PlainAttribute, models.NumpyAttribute,
        )
    ],
)  # fmt: skip
def test_a_model_that_keeps_something_is_refused(layer, mode, monkeypatch):
    with pytest.raises(ac.UnsupportedError, match=r"must not keep|longer than the norm"):
        batched.run(
            functools.partial(keeping, layer), batched.rows(), monkeypatch, grad_sample_mode=mode
        )


@MODES
@pytest.mark.parametrize("made", [batched.Network, batched.Embedded, batched.deep])
def test_no_record_decides_whether_training_goes_on(made, mode, monkeypatch):
    x = batched.rows()
    others, engine, _ = batched.run(made, x[1:], monkeypatch, grad_sample_mode=mode)
    for value in (1e15, 1e20, 3e38, -3e38, math.inf, -math.inf, math.nan):
        for row in (
            torch.full((1, x.shape[1]), value),
            x[:1] * 0 + torch.eye(1, x.shape[1]) * value,
        ):
            odd = torch.cat([row, x[1:]])
            sums, odd_engine, model = batched.run(made, odd, monkeypatch, grad_sample_mode=mode)
            for first, second in zip(sums, others, strict=True):
                assert torch.isfinite(first).all()
                assert (first - second).double().norm() <= batched.NORM * (1 + 1e-5)
            assert odd_engine.accountant.history == engine.accountant.history
            assert all(torch.isfinite(p).all() for p in model.parameters())


def labels(engine):
    return {item.label for item in engine.accountant.ledger.history}


def steps(engine, model, optimizer, criterion, loader, seed=None):
    if seed is not None:
        torch.manual_seed(seed)
    for features, targets in loader:
        optimizer.zero_grad()
        criterion(model(features), targets).backward()
        optimizer.step()
    return labels(engine)


@MODES
def test_a_seed_of_the_user_is_marked(mode):
    x = batched.rows()
    made = batched.private(batched.dropping, x, grad_sample_mode=mode)
    assert not any(steps(*made))
    found = steps(*made, seed=3)
    assert any(SEEDED in (label or "") for label in found)
    for options in (
        {"noise_generator": torch.Generator().manual_seed(1)},
        {"generator": torch.Generator().manual_seed(1)},
    ):
        made = batched.private(batched.dropping, x, grad_sample_mode=mode, **options)
        assert all(SEEDED in (label or "") for label in steps(*made))
    found = made[0].accountant.ledger
    assert SEEDED in ac.report.statement(found, 1e-5).markdown()
