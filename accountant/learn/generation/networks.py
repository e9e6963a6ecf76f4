"""The generator, a network from normal noise to the features of records, and what is drawn from it.

It never meets a record: its gradients come through a discriminator's released parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.learn.account import Released
from accountant.learn.generation.domain import Category, Domain
from accountant.learn.models.layers import Activation, Dense, Layer, LayerStack
from accountant.mechanisms.base import Mechanism

TEMPERATURE = 0.5  # The softmax in gradients is sharper than that of the logits.
SNAPSHOTS = 50  # Iterates that are kept of the second half of the steps.


def dense_layers(inputs: int, hidden: Sequence[int]) -> list[Layer]:
    """Return the layers of a discriminator: dense ones with leaky relu, and one output."""
    layers: list[Layer] = []
    for width_in, width_out in pairwise([inputs, *hidden, 1]):
        layers += [Dense(width_in, width_out), Activation("leaky_relu")]
    return layers[:-1]


class Generator(LayerStack):
    """Dense layers with relu, then one head a column.

    A column of values gets the largest of logits with Gumbel noise, a draw of one of them, and in
    the gradient their softmax instead (straight-through; Jang, Gu, Poole 2017); a column of numbers
    gets a sigmoid.

    Parameters
    ----------
    domain : Domain
        The columns.
    noise : int
        How many normal numbers a record is made from.
    hidden : sequence of int
        Widths of the hidden layers.
    generator : numpy.random.Generator
        For parameters and records; it has no part in any guarantee.
    """

    def __init__(
        self, domain: Domain, noise: int, hidden: Sequence[int], generator: np.random.Generator
    ) -> None:
        self.domain, self.noise, self.random = domain, noise, generator
        columns = list(domain.columns.values())
        ends = np.cumsum([0, *(column.width for column in columns)])
        self._heads = [
            (slice(int(a), int(b)), isinstance(column, Category))
            for (a, b), column in zip(pairwise(ends), columns, strict=True)
        ]
        layers: list[Layer] = []
        for inputs, outputs in pairwise([noise, *hidden, int(ends[-1])]):
            layers += [Dense(inputs, outputs), Activation("relu")]
        self._stack(layers[:-1], np.float64, generator)
        self.kept: list[FloatArray] = []

    def draw(self, n: int) -> FloatArray:
        """Return features of ``n`` generated records; :meth:`gradient` refers to the last ones."""
        a: FloatArray = self.random.standard_normal((n, self.noise))
        for layer in self.layers:
            a = layer.forward(a)
        out, soft = np.empty_like(a), np.empty_like(a)
        for part, is_category in self._heads:
            if is_category:
                logits = a[:, part] + self.random.gumbel(size=a[:, part].shape)
                soft[:, part] = special.softmax(logits / TEMPERATURE, axis=1)
                out[:, part] = np.eye(logits.shape[1])[logits.argmax(axis=1)]
            else:
                out[:, part] = soft[:, part] = special.expit(a[:, part])
        self._soft = soft
        return out

    def explore(self, n: int, chance: float) -> FloatArray:
        """Return ``n`` records, every second with columns redrawn uniformly with ``chance``.

        Who sees only what is generated never learns what is not.
        """
        records = self.draw(n)
        odd = np.arange(n) % 2 == 1
        for part, is_category in self._heads:
            rows = np.flatnonzero(odd & (self.random.random(n) < chance))
            width = part.stop - part.start
            if is_category:
                records[rows, part] = np.eye(width)[self.random.integers(width, size=len(rows))]
            else:
                records[rows, part] = self.random.random((len(rows), 1))
        return records

    def gradient(self, g: FloatArray) -> FloatArray:
        """Return the gradient in the parameters, from that in the features of the last draw."""
        back = np.empty_like(g)
        for part, is_category in self._heads:
            p, own = self._soft[:, part], g[:, part]
            if is_category:
                back[:, part] = p * (own - (p * own).sum(axis=1, keepdims=True)) / TEMPERATURE
            else:
                back[:, part] = own * p * (1.0 - p)
        total = np.zeros(self.parameters.size)
        ones = np.ones(len(g))
        for i in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[i]
            below = layer.backward(back, i > 0)
            layer.add_gradient(ones, total[self._slices[i]])
            if below is not None:
                back = below
        return total

    def keep(self, step: int, steps: int) -> None:
        """Remember the parameters after ``step`` (from 1), for some of the second half of steps."""
        every = max(1, steps // (2 * SNAPSHOTS))
        if (2 * step > steps and (steps - step) % every == 0) or step == steps:
            self.kept.append(self.parameters.copy())

    def sample(self, n: int, generator: np.random.Generator) -> dict[str, NDArray[np.generic]]:
        """Return ``n`` generated records as a table, each by one of the iterates kept.

        Two players that learn against each other circle around what they seek; the mixture of the
        iterates is nearer to it than the last one.
        """
        present, random = self.parameters.copy(), self.random
        kept = self.kept or [present]
        shares = generator.multinomial(n, np.full(len(kept), 1.0 / len(kept)))
        parts = [np.zeros((0, self._heads[-1][0].stop))]
        self.random = generator
        try:
            for parameters, share in zip(kept, shares.tolist(), strict=True):
                self.parameters[:] = parameters
                parts += [self.draw(min(4096, share - i)) for i in range(0, share, 4096)]
        finally:
            self.parameters[:], self.random = present, random
        features = generator.permutation(np.concatenate(parts))
        return self.domain.read(features, generator)


@dataclass(frozen=True, eq=False, kw_only=True)
class Synthesis(Released, ABC):
    """A source of synthetic records with a guarantee.

    Attributes
    ----------
    mechanism : Mechanism
        What the run released.
    ledger : Accountant
        The ledger given, or the run's own, with the mechanism charged.
    epsilon, delta : float
        The guarantee of everything in the ledger when the run ended.
    run_epsilon : float
        The ε of this run alone, at ``delta``.
    private : bool
        False when noise came from a known seed.
    """

    mechanism: Mechanism

    @abstractmethod
    def sample(self, n: int, *, seed: int | None = None) -> dict[str, Array]:
        """Draw a table of ``n`` records; post-processing, as often as one likes.

        Parameters
        ----------
        n : int
            The number of records, which must not be the private one unless that is public.
        seed : int, optional
            For the same table again; it has no part in the guarantee.
        """


@dataclass(frozen=True, eq=False)
class GeneratorSynthesis(Synthesis):
    """A trained network that turns noise into records: a function of released values."""

    generator: Generator

    def sample(self, n: int, *, seed: int | None = None) -> dict[str, Array]:
        """Draw a table of ``n`` records; post-processing, as often as one likes."""
        count, random = public_generator(n, seed)
        return self.generator.sample(count, random)


def public_generator(n: int, seed: int | None) -> tuple[int, np.random.Generator]:
    """Check a number of records, and return it with a generator for post-processing."""
    count = checks.integer("n", n, 0, 10**8)
    if seed is not None:
        checks.integer("seed", seed, 0)
    return count, np.random.default_rng(seed)
