"""Runs with opacus, whose passes are batched, and the sums of their steps without noise."""

import hashlib
import warnings

import opacus
import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import accountant.adapters.opacus  # noqa: F401 (registers the accountant)
from support.units_apart.models import WIDTH

RECORDS, NORM = 12, 1.0


class Network(torch.nn.Module):
    def __init__(self, between=None):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, 8)
        self.between = torch.nn.Tanh() if between is None else between
        self.last = torch.nn.Linear(8, 1)

    def forward(self, x):
        return self.last(self.between(self.first(x)))[:, 0]


class Frozen(Network):
    def __init__(self):
        super().__init__(torch.nn.Dropout(0.5))
        self.first.requires_grad_(False)


class Embedded(Network):
    def __init__(self):
        super().__init__(torch.nn.Dropout(0.5))
        self.words = torch.nn.Embedding(11, 8)

    def forward(self, x):
        words = torch.nan_to_num(x, 0.0, 0.0, 0.0).abs().mul(3).clamp(max=10).long()[:, 0]
        return self.last(self.between(self.first(x) + self.words(words)))[:, 0]


def dropping():
    return Network(torch.nn.Dropout(0.5))


def normalised():
    return Network(torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Dropout(0.5)))


def deep():
    inner = [torch.nn.Linear(8, 8), torch.nn.Softmax(-1), torch.nn.Linear(8, 8), torch.nn.ReLU()]
    return Network(torch.nn.Sequential(*inner))


def rows(number=RECORDS):
    made = torch.Generator().manual_seed(5)
    return torch.randn(number, WIDTH, generator=made) * 2


def private(make, x, engine=None, generator=None, **options):
    """Return engine, model, optimizer, criterion, loader; every record is in every batch."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = make()
    y = x[:, :1].nan_to_num(0.0, 0.0, 0.0).clamp(-3, 3)[:, 0]
    engine = opacus.PrivacyEngine(accountant="exact") if engine is None else engine
    model, optimizer, *criterion, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=len(x), generator=generator),
        criterion=torch.nn.MSELoss(),
        **{"noise_multiplier": 1.0, "max_grad_norm": NORM} | options,
    )
    return engine, model, optimizer, (criterion or [torch.nn.MSELoss()])[0], loader


def by_row(x, p=0.5, training=True, inplace=False):
    """Drop out by masks that are each row's own: the coupling of two runs on neighbours."""
    masks = []
    for row in x.detach():
        digest = hashlib.sha256(row.numpy().tobytes()).digest()
        seed = int.from_bytes(digest[:8], "little") % 2**62
        masks.append(torch.rand(row.shape, generator=torch.Generator().manual_seed(seed)) >= p)
    return x * torch.stack(masks) / (1 - p) if masks else x


def run(make, x, patch, steps=2, coupled=True, **options):
    """Return the sum of every step, before its noise, and what made it."""
    sums = []

    def quiet(std, reference, **_):
        sums.append(reference.detach().flatten().clone())
        return torch.zeros_like(reference)

    with patch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("optimizer", "optimizer_fast_gradient_clipping"):
            patched.setattr(getattr(opacus.optimizers, name), "_generate_noise", quiet)
        if coupled:
            patched.setattr(functional, "dropout", by_row)
        torch.manual_seed(42)
        engine, model, optimizer, criterion, loader = private(make, x, **options)
        for _ in range(steps):
            for features, targets in loader:
                optimizer.zero_grad()
                criterion(model(features), targets).backward()
                optimizer.step()
    number = len(optimizer.params)
    wholes = [torch.cat(sums[at : at + number]) for at in range(0, len(sums), number)]
    return wholes, engine, model
