"""Models that drop out, normalise, keep averages, tie and freeze weights, embed and mix types.

Each returns a loss of the rows of one unit, of which there may be any number.
"""

import random

import numpy as np
import torch
from torch.nn import functional

WIDTH, WORDS = 6, 11


class Model(torch.nn.Module):
    """Returns a loss in a dictionary, as models of Hugging Face do."""

    def __init__(self, **own):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, 8)
        self.last = torch.nn.Linear(8, 1)
        for name, value in own.items():
            keep = self.register_buffer if type(value) is torch.Tensor else self.__setattr__
            keep(name, value)

    def between(self, x):
        return torch.tanh(x)

    def forward(self, x):
        return {"loss": (self.last(self.between(self.first(x))).sum() - 3.0) ** 2}


class Dropout(Model):
    def __init__(self):
        super().__init__(drop=torch.nn.Dropout(0.5))

    def between(self, x):
        return self.drop(x)


class FunctionalDropout(Model):
    def between(self, x):
        return functional.dropout(x, 0.5, training=self.training)


class Numpy(Model):
    def between(self, x):
        return x * torch.from_numpy(np.random.normal(1.0, 0.5, x.shape)).float()  # noqa: NPY002


class Python(Model):
    def between(self, x):
        return x * torch.tensor([random.gauss(1.0, 0.5) for _ in range(len(x))])[:, None]


class Encoder(Model):
    def __init__(self):
        super().__init__(layer=torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))

    def between(self, x):
        return self.layer(x[None])[0]


class Normalised(Dropout):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)

    def between(self, x):
        return self.norm(super().between(x))


class Tied(Dropout):
    """An embedding that is the output layer, too."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, 8)
        self.out = torch.nn.Linear(8, WORDS, bias=False)
        self.out.weight = self.words.weight

    def forward(self, x):
        words = x.abs().mul(3).long().clamp(max=WORDS - 1)[:, 0]
        hidden = self.drop(self.words(words) + self.first(x))
        return {"loss": functional.cross_entropy(self.out(hidden), words)}


class Frozen(Dropout):
    def __init__(self):
        super().__init__()
        self.first.requires_grad_(False)


class Mixed(Encoder):
    """The forward pass is bfloat16 where torch thinks fit."""

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x)


class Generated(Model):
    """Draws from a generator of torch of its own."""

    def __init__(self):
        super().__init__(draws=torch.Generator())

    def between(self, x):
        return x * (torch.rand(x.shape, generator=self.draws) < 0.5)


APART = [
    Model, Dropout, FunctionalDropout, Numpy, Python, Encoder, Normalised, Tied, Frozen, Mixed,
    Generated,
]  # fmt: skip


# Those that keep what a unit leaves, without noise.


class FunctionalNorm(Model):
    def __init__(self):
        super().__init__(mean=torch.zeros(8), var=torch.ones(8))

    def between(self, x):
        rows = torch.cat([x, x + 1])
        return functional.batch_norm(rows, self.mean, self.var, training=True)


class UncountedNorm(Model):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(8)
        self.norm.num_batches_tracked = None

    def between(self, x):
        return self.norm(torch.cat([x, x + 1]))


class MovingAverage(Model):
    def __init__(self):
        super().__init__(mean=torch.zeros(8))

    def between(self, x):
        self.mean.data.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return x - self.mean


class FrozenCodebook(Model):
    def __init__(self):
        super().__init__(codes=torch.nn.Parameter(torch.zeros(3, 8), requires_grad=False))

    def between(self, x):
        with torch.no_grad():
            self.codes[0] = 0.9 * self.codes[0] + 0.1 * x.mean(0)
        return x - self.codes[0]


class PlainAttribute(Model):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(8)

    def between(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


class NumpyAttribute(Model):
    def __init__(self):
        super().__init__(kept={"mean": np.zeros(8)})

    def between(self, x):
        self.kept["mean"] *= 0.9
        self.kept["mean"] += 0.1 * x.detach().numpy().mean(0)
        return x - torch.from_numpy(self.kept["mean"]).float()


class TrainedThroughData(Model):
    def between(self, x):
        self.last.weight.data.mul_(0.9)
        return x


KEEPING = [
    FunctionalNorm, UncountedNorm, MovingAverage, FrozenCodebook, PlainAttribute, NumpyAttribute,
    TrainedThroughData,
]  # fmt: skip


class OwnNumpy(Model):
    """Draws from a generator that cannot be set for a unit."""

    def __init__(self):
        super().__init__(draws=np.random.default_rng(0))

    def between(self, x):
        return x * torch.from_numpy(self.draws.normal(1.0, 0.5, x.shape)).float()


class OwnPython(Model):
    def __init__(self):
        super().__init__(draws=random.Random(0))

    def between(self, x):
        return x * self.draws.gauss(1.0, 0.5)


INSEPARABLE = [OwnNumpy, OwnPython]
