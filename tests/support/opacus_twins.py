"""Neighbour twins of a run with opacus: what a step really summed and added, against its account.

A loop runs twice with the same coins and noise, on data in which the last record has a gradient far
above the norm it is clipped to, and on data in which it has none. The learning rate is zero, so the
two sums of a step differ by what that record put into it.
"""

import warnings
from dataclasses import dataclass, field

import accountant as ac
from support.opacus_runs import opacus, parts, torch

DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset
WIDTH = 64


class CountingSGD(torch.optim.SGD):
    """Counts the updates of the parameters."""

    updates = 0

    def step(self, closure=None):
        self.updates += 1
        return super().step(closure)


def records(number, present):
    """Targets are far away, so that every gradient is large; a row of zeros has none."""
    made = torch.Generator().manual_seed(5)
    rows = torch.randn(number, WIDTH, generator=made)
    rows[-1] = 100.0 if present else 0.0
    return TensorDataset(rows, torch.randn(number, 1, generator=made) * 10)


@dataclass
class Run:
    """One of two twins: what a loop is given, and what it did."""

    engine: object
    data: TensorDataset
    model: object
    optimizer: object
    criterion: object
    loader: object
    inner: CountingSGD
    plain: DataLoader
    sums: list = field(default_factory=list)
    deviations: list = field(default_factory=list)
    noises: list = field(default_factory=list)
    refused: str | None = None

    def loss(self, x, y):
        return self.criterion(self.model(x).flatten(), y.flatten())

    def backward(self, x, y):
        self.optimizer.zero_grad()
        self.loss(x, y).backward()

    def step(self, x, y):
        self.backward(x, y)
        self.optimizer.step()

    def parts(self, size):
        return parts(self.loader, self.optimizer, size)

    @property
    def rows(self):
        history = self.engine.accountant.history
        return [(noise, rate) for noise, rate, count in history for _ in range(count)]


def make(data, batch_size=20, noise_multiplier=4.0, layers=1, workers=0, frozen=0, **options):
    torch.manual_seed(1)
    hidden = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers - 1)]
    model = torch.nn.Sequential(*hidden, torch.nn.Linear(WIDTH, 1, bias=False))
    for layer in model[:frozen]:
        layer.requires_grad_(False)
    inner = CountingSGD(model.parameters(), lr=0.0)
    plain = DataLoader(data, batch_size=batch_size, num_workers=workers)
    engine = opacus.PrivacyEngine(accountant="exact")
    made = engine.make_private(
        module=model,
        optimizer=inner,
        criterion=torch.nn.MSELoss(),
        **{"data_loader": plain, "noise_multiplier": noise_multiplier, "max_grad_norm": 1.0}
        | options,
    )
    criterion = made[2] if len(made) == 4 else torch.nn.MSELoss()
    # Without a wrapper the model is used as it is, and what came back is its hooks alone.
    used = made[0] if options.get("wrap_model", True) else model
    return Run(engine, data, used, made[1], criterion, made[-1], inner, plain)


def run(loop, monkeypatch, present, number=100, **options):
    """Run a loop on one of the twins; note its sums, their noise, and a refusal."""
    with warnings.catch_warnings(), monkeypatch.context() as patched:
        warnings.simplefilter("ignore")
        made = make(records(number, present), **options)
        own = opacus.optimizers.optimizer._generate_noise
        parameters = len(made.optimizer.params)

        def seen(std, reference, **rest):
            found = own(std=std, reference=reference, **rest)
            made.sums.append(reference.detach().clone().flatten())
            made.deviations.append(float(std))
            made.noises.append(found.flatten())
            return found

        for name in ("optimizer", "optimizer_fast_gradient_clipping"):
            patched.setattr(getattr(opacus.optimizers, name), "_generate_noise", seen)
        torch.manual_seed(7)
        try:
            loop(made)
        except ac.UnsupportedError as error:
            made.refused = str(error)
    for name in ("sums", "deviations", "noises"):
        parts = getattr(made, name)
        steps = [parts[at : at + parameters] for at in range(0, len(parts), parameters)]
        setattr(made, name, steps)
    return made


def check(first, second):
    """Check that every update of the parameters is covered by its row of the history."""
    for each in (first, second):
        assert each.inner.updates == len(each.rows)
    shares = []
    for at, (noise, rate) in enumerate(first.rows):
        moved = torch.cat(first.sums[at]).sub(torch.cat(second.sums[at])).norm()
        deviation = first.deviations[at][0]
        assert set(first.deviations[at]) == {deviation}
        # Zero tolerance but for the float32 norms of both sums.
        assert noise * float(moved) <= deviation * (1 + 1e-5), (at, float(moved), deviation, noise)
        shares.append((float(moved) > 0, rate))
    used, expected = sum(s for s, _ in shares), sum(r for _, r in shares)
    assert abs(used - expected) <= 5 * (sum(r * (1 - r) for _, r in shares) + 1e-9) ** 0.5 + 1e-9
    units = [
        noise / deviation
        for at in range(len(first.rows))
        for noise, deviation in zip(first.noises[at], first.deviations[at], strict=True)
    ]
    if units:
        found = torch.cat(units)
        assert abs(float(found.square().mean()) - 1) <= 6 * (2 / len(found)) ** 0.5


def twins(loop, monkeypatch, **options):
    """Run both twins, check them, and return the one with the record."""
    first, second = (run(loop, monkeypatch, present, **options) for present in (True, False))
    check(first, second)
    return first
