"""Ghost clipping in real opacus runs: what it does not clip is refused."""

import copy
import math
import re

import pytest

import accountant as ac
from support.opacus_runs import QUIET, adapter, opacus, torch
from support.opacus_twins import DataLoader, TensorDataset, twins

pytestmark = QUIET

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


# What a record adds, against float64 and its own backward pass.


class Dot(torch.nn.Module):
    """A loss whose derivative by the output is the target."""

    reduction = "mean"

    def forward(self, output, target):
        found = (output * target).flatten(1).sum(1)
        return found if self.reduction == "none" else found.mean()


class Scaled(torch.nn.Module):
    """A layer that opacus does not know."""

    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(5))

    def forward(self, x):
        return x * self.factor


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = opacus.layers.DPLSTM(5, 5, batch_first=True)

    def forward(self, x):
        return self.inner(x)[0]


def ghost(model, x, y, bound=1.0, criterion=Dot):
    made = opacus.PrivacyEngine(accountant="exact").make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=criterion(),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=4),
        noise_multiplier=1.0,
        max_grad_norm=bound,
        grad_sample_mode="ghost",
    )
    return made[:3]


def gradients(made, x, y):
    model, optimizer, criterion = made
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    return [p.grad.double().clone() for p in optimizer.params]


def length(parts):
    return math.hypot(*(float(each.norm()) for each in parts))


def cancelling(kind):
    """One record whose gradient is 1e-4 of its terms, among ordinary ones."""
    torch.manual_seed(kind)
    positions, width = 256, 64
    signs = torch.tensor([1.0, -1.0]).repeat(positions // 2).view(1, positions, 1)
    x = torch.randn(1, 1, width).expand(1, positions, width)
    y = torch.randn(1, 1, width) * signs + 3e-4 * torch.randn(1, 1, width)
    return (
        torch.cat([x, torch.randn(7, positions, width)]),
        torch.cat([y, torch.randn(7, positions, width)]),
    )


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_terms_that_cancel_do_not_hide_a_record_from_its_norm(seed, bias):
    x, y = cancelling(seed)
    made = ghost(torch.nn.Sequential(torch.nn.Linear(64, 64, bias=bias)), x, y)
    assert length(gradients(made, x[:1], y[:1])) <= 1
    whole, others = gradients(made, x, y), gradients(made, x[1:], y[1:])
    assert length(a - b for a, b in zip(whole, others, strict=True)) <= 1


@pytest.mark.parametrize("size", [1e8, 1e10, 1e13])
def test_terms_that_cancel_beyond_float64_are_clipped_harder(size):
    for seed in range(8):
        torch.manual_seed(seed)
        x = torch.randn(1, 1, 64).expand(4, 3, 64)
        y = torch.randn(1, 1, 64) * torch.tensor([size, -size, 1.0]).view(1, 3, 1)
        made = ghost(torch.nn.Sequential(torch.nn.Linear(64, 64)), x, y.expand(4, 3, 64))
        assert length(gradients(made, x[:1], y)) <= 1


def test_words_whose_terms_cancel_do_not_either():
    torch.manual_seed(1)
    words = torch.randint(0, 9, (6, 256))
    words[0] = 3
    y = cancelling(1)[1][:6]
    made = ghost(torch.nn.Sequential(torch.nn.Embedding(9, 64)), words, y)
    assert length(gradients(made, words[:1], y[:1])) <= 1
    whole, others = gradients(made, words, y), gradients(made, words[1:], y[1:])
    assert length(a - b for a, b in zip(whole, others, strict=True)) <= 1


def test_no_record_makes_a_backward_pass_raise():
    for seed in range(8):
        x, y = cancelling(seed)
        made = ghost(torch.nn.Sequential(torch.nn.Linear(64, 64)), x, y)
        for first in range(4):
            gradients(made, x[first : first + 1], y[first : first + 1])


LAYERS = {
    "flat": (lambda: torch.nn.Linear(5, 5), (9, 5)),
    "sequence": (lambda: torch.nn.Linear(5, 5), (9, 7, 5)),
    "short sequence": (lambda: torch.nn.Linear(5, 5), (9, 2, 5)),
    "image": (lambda: torch.nn.Linear(5, 5), (9, 2, 3, 5)),
    "no bias": (lambda: torch.nn.Linear(5, 5, bias=False), (9, 7, 5)),
    "norm": (lambda: torch.nn.LayerNorm(5), (9, 7, 5)),
    "recurrent": (Recurrent, (9, 7, 5)),
    "own": (Scaled, (9, 7, 5)),
    "convolution": (lambda: torch.nn.Conv1d(7, 7, 1), (9, 7, 5)),
    "bias alone": (lambda: torch.nn.Linear(5, 5), (9, 7, 5)),
    "weight alone": (lambda: torch.nn.Linear(5, 5), (9, 7, 5)),
    "embedding": (lambda: torch.nn.Embedding(6, 5, padding_idx=2), (9, 7)),
    "one word": (lambda: torch.nn.Embedding(6, 5), (9,)),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("bound", [0.5, 1e6])
def test_the_sum_is_that_of_records_clipped_one_by_one(name, bound):
    torch.manual_seed(2)
    kind, shape = LAYERS[name]
    layer = kind()
    if name.endswith("alone"):
        getattr(layer, "weight" if name == "bias alone" else "bias").requires_grad_(False)
    words = isinstance(layer, torch.nn.Embedding)
    x = torch.randint(0, 6, shape) if words else torch.randn(shape)
    model = torch.nn.Sequential(layer, torch.nn.Tanh(), torch.nn.Linear(5, 3))
    y = torch.randn(*shape[: None if words else -1], 3)
    known = copy.deepcopy(model).double()
    trained = [p for p in known.parameters() if p.requires_grad]
    found = gradients(made := ghost(model, x, y, bound), x, y)
    expected = [torch.zeros_like(p) for p in trained]
    for row, target in zip(x, y.double(), strict=True):
        known.zero_grad()
        output = known((row if words else row.double())[None])
        (output * target).sum().backward()
        norm = length(p.grad for p in trained)
        factor = min(1.0, adapter._opacus_ghost.clipping.limit(made[1], bound) / (norm + 1e-6))
        for total, p in zip(expected, trained, strict=True):
            total += factor * p.grad
    for total, other in zip(found, expected, strict=True):
        assert (total - other).norm() <= 1e-4 * other.norm()


def penalised(criterion, model, x, y, p):
    return criterion(model(x), y) + 1e6 * p.square().sum()


def weight_used_twice(criterion, model, x, y, p):
    return criterion(model(x) @ p, y)


@pytest.mark.parametrize("loss", [penalised, weight_used_twice])
@pytest.mark.parametrize("records", [0, 1, 8])
def test_what_does_not_go_through_layers_is_refused_whatever_the_records(loss, records):
    x, y = cancelling(0)
    model, optimizer, criterion = ghost(
        torch.nn.Sequential(torch.nn.Linear(64, 64, bias=False)), x, y
    )
    with pytest.raises(ac.UnsupportedError, match="does not go through"):
        loss(criterion, model, x[:records], y[:records], *optimizer.params).backward()


@pytest.mark.parametrize("loss", [penalised, weight_used_twice])
def test_nor_does_it_reach_the_sum_in_a_pass_that_is_not_looked_at(loss):
    x, y = cancelling(0)
    made = model, optimizer, criterion = ghost(
        torch.nn.Sequential(torch.nn.Linear(64, 64, bias=False)), x, y
    )
    for _ in range(3):
        gradients(made, x, y)
    optimizer.zero_grad()
    loss(criterion, model, x, y, *optimizer.params).backward()
    assert length(p.grad for p in optimizer.params) <= len(x)
