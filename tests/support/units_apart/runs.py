"""Runs of the adapters that go unit by unit, and what each unit added."""

import hashlib
import random
import secrets
import warnings
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import torch

from accountant.adapters.torch_steps import PrivateSteps
from accountant.adapters.torch_units import UnitLoader, Units
from accountant.noise import SecureGenerator
from accountant.sampling import FullBatch
from support.units_apart.models import WIDTH
from support.units_worker import ALONE

UNITS, STEPS, NORM, NOISE = 6, 2, 1.0, 1.0


@dataclass
class Found:
    """What was added, by batch and unit, in steps of the grid; and each batch's sum."""

    order: list
    added: list = field(default_factory=list)
    sums: list = field(default_factory=list)
    grid: float = 0.0
    epsilon: float = 0.0

    def by_unit(self, step):
        first = step * len(self.order)
        rows = self.added[first : first + len(self.order)]
        return dict(zip(self.order, rows, strict=True))


def rows_of(unit, rows):
    made = torch.Generator().manual_seed(100 + unit)
    return torch.randn(rows, WIDTH, generator=made)


def data(order, longer=None):
    return [{"x": rows_of(unit, 5 if unit == longer else 2 + unit % 3)} for unit in order]


def collate(records):
    return {"x": torch.cat([each["x"] for each in records])}


def augmenting(records):
    """A collator that masks, as those of language models do."""
    x = collate(records)["x"]
    return {"x": x * (torch.rand(x.shape) < 0.7)}


def plain(model, records, units, sampler, gather):
    steps = PrivateSteps(model, sampler, noise_multiplier=NOISE, clipping_norm=NORM)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for batch in UnitLoader(records, units, sampler, gather):
        for unit in steps.units(batch):
            model(**unit)["loss"].backward()
        steps.release()
        optimizer.step()
    return steps.ledger


def by_transformers(model, records, units, sampler, gather, folder):
    from transformers import Trainer, TrainingArguments

    from accountant.adapters.transformers import PrivacyCallback

    known = {"learning_rate": 0.0, "remove_unused_columns": False}
    arguments = TrainingArguments(str(folder), **known, **ALONE)
    trainer = Trainer(model=model, args=arguments, train_dataset=records, data_collator=gather)
    privacy = PrivacyCallback(units, NOISE, NORM, delta=1e-5, sampler=sampler)
    privacy.attach(trainer)
    trainer.train()
    return privacy.ledger


def by_lightning(model, records, units, sampler, gather, folder):
    import lightning.pytorch as lightning

    from accountant.adapters.lightning import PrivacyCallback
    from support.lightning_module import QUIET

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = model

        def training_step(self, batch, _):
            return self.inner(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.0)

    privacy = PrivacyCallback(units, sampler, NOISE, NORM, delta=1e-5)
    known = {"max_epochs": 1, "enable_checkpointing": False, "default_root_dir": str(folder)}
    trainer = lightning.Trainer(callbacks=[privacy], **known, **QUIET)
    trainer.fit(Module(), privacy.loader(records, gather))
    return privacy.ledger


class Entropy:
    """The system's random bits, as the unit that asks for them gets them.

    Units are fetched and then gone through, each time in their order, and ask once.
    """

    def __init__(self, order):
        self.order, self.calls = order, 0

    def randbits(self, bits):
        phase, place = divmod(self.calls, len(self.order))
        self.calls += 1
        text = f"{phase} {self.order[place]}".encode()
        return int.from_bytes(hashlib.shake_256(text).digest(bits // 8 + 1)) % 2**bits


def run(loop, make, order, patch, longer=None, gather=collate):
    """Run a loop once; every seed that a user knows is what it always is."""
    found = Found(order)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = make()
    own, sums = PrivateSteps._add, PrivateSteps.release

    def _add(self, sums):
        added = [torch.zeros_like(each) for each in sums]
        own(self, added)
        found.added.append(torch.cat([each.flatten() for each in added]))
        found.grid = self._grid.step
        for total, each in zip(sums, added, strict=True):
            total += each

    def release(self):
        found.sums.append(torch.cat([each.flatten() for each in self._sums]))
        sums(self)

    with patch.context() as patched, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patched.setattr(PrivateSteps, "_add", _add)
        patched.setattr(PrivateSteps, "release", release)
        patched.setattr(
            SecureGenerator, "rounded_normal", lambda self, n, scale: np.zeros(n, np.int64)
        )
        patched.setattr(secrets, "randbits", Entropy(order).randbits)
        torch.manual_seed(42)
        random.seed(42)
        np.random.seed(42)  # noqa: NPY002
        units = Units.single(len(order), "record")
        sampler = FullBatch(dataset_size=len(order), steps=STEPS)
        ledger = loop(model, data(order, longer), units, sampler, gather)
    found.epsilon = ledger.epsilon(1e-5)
    return found


def twins(loop, make, patch, gather=collate):
    """Yield pairs of runs on neighbours, with the unit that differs and what it may move.

    The sum may move by the clipping norm where a unit left, and by two where it was replaced.
    """
    order = list(range(UNITS))
    whole = run(loop, make, order, patch, gather=gather)
    for unit in (0, 2, UNITS - 1):
        without = [each for each in order if each != unit]
        yield whole, run(loop, make, without, patch, gather=gather), unit, NORM
    yield whole, run(loop, make, order, patch, longer=2, gather=gather), 2, 2 * NORM


def check(first, second, unit, most):
    """Every other unit adds the same bits, and the sum moves by no more than was charged for."""
    for step in range(STEPS):
        one, other = first.by_unit(step), second.by_unit(step)
        for each in set(first.order) - {unit}:
            assert torch.equal(one[each], other[each]), f"unit {each} differs in step {step}"
        moved = (first.sums[step] - second.sums[step]).tolist()
        length = sum(Fraction(value) ** 2 for value in moved) * Fraction(first.grid) ** 2
        assert length <= Fraction(most) ** 2
    assert len(first.sums) == len(second.sums) == STEPS


def distance(first, second):
    """Return how far the first sum moved, in clipping norms."""
    return float((first.sums[0] - second.sums[0]).double().norm()) * first.grid / NORM
