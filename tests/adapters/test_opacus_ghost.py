"""Ghost clipping in real opacus runs: what it does not clip is refused."""

import re

import pytest

torch = pytest.importorskip("torch")
import accountant.adapters.opacus  # noqa: E402, F401 (registers)
from support.opacus_twins import twins  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Secure RNG turned off"),
    pytest.mark.filterwarnings("ignore:Full backward hook"),
]

GHOST = {"grad_sample_mode": "ghost"}


def column_of_losses(made):
    for x, y in made.loader:
        made.optimizer.zero_grad()
        made.criterion(made.model(x), y).backward()
        made.optimizer.step()


def other_criterion(made):
    for x, y in made.loader:
        made.optimizer.zero_grad()
        torch.nn.functional.mse_loss(made.model(x), y).backward()
        made.optimizer.step()


def second_backward(made):
    for x, y in made.loader:
        made.backward(x, y)
        sum(p.square().sum() for p in made.optimizer.params).backward()
        made.optimizer.step()


def penalty(made):
    for x, y in made.loader:
        made.optimizer.zero_grad()
        (made.loss(x, y) + 1e6 * sum(p.square().sum() for p in made.optimizer.params)).backward()
        made.optimizer.step()


def gradient_changed(made):
    for x, y in made.loader:
        made.backward(x, y)
        for p in made.optimizer.params:
            p.grad *= 2
        made.optimizer.step()


def hooks_disabled(made):
    for at, (x, y) in enumerate(made.loader):
        if at == 2:
            made.model.disable_hooks()
        made.step(x, y)


def thawed(made):
    for at, (x, y) in enumerate(made.loader):
        if at == 2:
            for p in made.model.parameters():
                p.requires_grad_(True)
        made.step(x, y)


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (column_of_losses, r"shape \(batch,\)"),
        (other_criterion, "clips in the backward pass of the criterion"),
        (second_backward, "no other backward pass"),
        (penalty, "penalty on the parameters"),
        (gradient_changed, "no change of p.grad"),
        (hooks_disabled, "disabled"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_ghost_clipping_does_not_clip_is_refused(loop, reason, monkeypatch):
    done = twins(loop, monkeypatch, **GHOST)
    assert re.search(reason, done.refused or ""), done.refused


def test_ghost_clipping_of_parameters_it_never_saw_is_refused(monkeypatch):
    done = twins(thawed, monkeypatch, layers=2, frozen=1, **GHOST)
    assert "the parameters that make_private saw" in (done.refused or "")
