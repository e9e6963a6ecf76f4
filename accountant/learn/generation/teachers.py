"""Discriminators of PATE-GAN: one for every shard, trained side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from accountant._typing import FloatArray
from accountant.learn.pate.ensemble import assign_shards
from accountant.noise import SecureGenerator

SLOPE = 0.01


class Teachers:
    """Networks with one hidden layer; each sees its own shard and generated records.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        The private records.
    count, hidden : int
        Numbers of teachers, and of hidden units of each.
    rate, batch : float, int
        Step of the gradient descent with momentum 0.9, and records of a step, real and generated.
    secure : SecureGenerator
        Draws every record's shard.
    random : numpy.random.Generator
        Draws all else, always the same amount, whatever the data.

    Notes
    -----
    *Guarantee.* None of its own: votes are private. Whatever one teacher computes is a function of
    its shard, of numbers drawn for it, and of the generated records it is shown. Arrays have a
    first axis of teachers, and no operation mixes its entries.
    """

    def __init__(
        self,
        features: FloatArray,
        count: int,
        hidden: int,
        rate: float,
        batch: int,
        secure: SecureGenerator,
        random: np.random.Generator,
    ) -> None:
        place = assign_shards(len(features), count, rng=secure)
        order = np.argsort(place, kind="stable")
        self._rows = features[order]
        self._sizes = np.bincount(place, minlength=count)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._count, self._rate, self._batch, self._random = count, rate, batch, random
        width = features.shape[1]
        reach = np.sqrt(6.0 / (width + hidden))
        self._inner = random.uniform(-reach, reach, (count, width + 1, hidden))
        reach = np.sqrt(6.0 / (hidden + 1))
        self._outer = random.uniform(-reach, reach, (count, hidden + 1, 1))
        self._speed = [np.zeros_like(self._inner), np.zeros_like(self._outer)]

    def learn(self, generated: FloatArray) -> None:
        """Make one step of every teacher: its own records are real, these are not."""
        # The same number of random numbers for every teacher, whatever its shard.
        share = self._random.random((self._count, self._batch))
        own = (share * self._sizes[:, None]).astype(np.int64) + self._starts[:, None]
        real = self._rows[np.minimum(own, max(len(self._rows) - 1, 0))] if len(self._rows) else None
        empty = self._sizes == 0
        with np.errstate(all="ignore"):  # a warning would say something about a record
            fake = np.broadcast_to(generated, (self._count, *generated.shape))
            step = self._gradient(fake, 0.0)
            if real is not None:
                # An empty shard learns from generated records only, and whether others hold any
                # must not reach it: zeros times weights that have diverged are NaN.
                real[empty] = 0.0
                more = self._gradient(real, 1.0)
                alone = empty[:, None, None]
                step = [np.where(alone, a, a + b) for a, b in zip(step, more, strict=True)]
            for weights, speed, g in zip(
                (self._inner, self._outer), self._speed, step, strict=True
            ):
                speed *= 0.9
                speed += g
                weights -= self._rate * speed

    def votes(self, records: FloatArray) -> NDArray[np.int64]:
        """Return how many teachers find each record less, and more, real than half of them.

        Shape (n, 2). Against a fixed level nearly all votes would say "generated", and their labels
        nothing.
        """
        with np.errstate(all="ignore"):
            shown = np.broadcast_to(records, (self._count, *records.shape))
            scores = self._forward(shown)[2][:, :, 0]
            real = (scores > np.median(scores, axis=1, keepdims=True)).sum(axis=0)
        return np.column_stack([self._count - real, real]).astype(np.int64)

    def _forward(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        a = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=2)
        h = a @ self._inner
        h = np.maximum(h, SLOPE * h)
        h = np.concatenate([h, np.ones((*h.shape[:2], 1))], axis=2)
        return a, h, h @ self._outer

    def _gradient(self, x: FloatArray, label: float) -> list[FloatArray]:
        a, h, z = self._forward(x)
        g = (special.expit(z) - label) / x.shape[1]
        back = g @ self._outer[:, :-1].transpose(0, 2, 1)
        back = np.where(h[:, :, :-1] > 0.0, back, SLOPE * back)
        return [a.transpose(0, 2, 1) @ back, h.transpose(0, 2, 1) @ g]
