"""DP-GAN: a discriminator trained by DP-SGD, and a generator that sees only the discriminator.

The generator, a network from normal noise to the features of records, never meets a record: its
gradients come through a discriminator's released parameters. PATE-GAN trains the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.learn.dp_sgd import Watch, train_dp_sgd
from accountant.learn.generation.domain import Category, Domain, Synthesis
from accountant.learn.models.layers import Activation, Dense, Layer, LayerStack
from accountant.learn.models.network import LogisticLoss, Network
from accountant.learn.optimizers import Adam, Optimizer
from accountant.learn.plan import Batches, Noise
from accountant.learn.result import Progress, TrainingResult
from accountant.learn.selection.noisy_max import generator_of
from accountant.ledger import Accountant
from accountant.noise import SecureGenerator

TEMPERATURE = 0.5  # The softmax in gradients is sharper than that of the logits.
BATCH = 256  # Generated records in a step.
NOISE_SIZE = 32  # Normal numbers that a record is made from.
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


@dataclass(frozen=True, eq=False)
class GeneratorSynthesis(Synthesis):
    """A trained network that turns noise into records: a function of released values."""

    generator: Generator

    def _draw(self, n: int, generator: np.random.Generator) -> dict[str, Array]:
        return self.generator.sample(n, generator)


RATE = checks.positive("generator_rate", "Adam's step")


@dataclass(frozen=True, eq=False)
class GanSynthesis(GeneratorSynthesis):
    """A trained generator, and what training it cost.

    Attributes
    ----------
    generator : Generator
        From noise to records; a function of released values.
    training : TrainingResult
        Of the discriminator, with its ledger and statement.
    mechanism : Mechanism
        The discriminator's steps.
    ledger : Accountant
        The ledger given, or the run's own, with these steps charged.
    epsilon, delta : float
        The guarantee of everything in the ledger when the run ended, under add-or-remove.
    run_epsilon : float
        The ε of this run alone, at ``delta``.
    private : bool
        False for a seeded run.
    """

    training: TrainingResult

    def _charged(self) -> int:
        return 0  # step by step


class _Discriminator(Network):
    """A logistic network whose gradient on generated records is added after the noise."""

    def __init__(
        self,
        features: int,
        hidden: Sequence[int],
        fakes: Callable[[], FloatArray],
        clipping_norm: float,
        seed: int,
    ) -> None:
        super().__init__(dense_layers(features, hidden), LogisticLoss(), (features,), seed=seed)
        self._fakes, self._norm = fakes, clipping_norm

    def penalty_gradient(self) -> FloatArray:
        """Return the mean clipped gradient on generated records: no private record enters it."""
        records = self._fakes()
        zeros = np.zeros(len(records), int)
        return self.clipped_gradient_sum(records, zeros, self._norm) / len(records)


def _improvement(
    generator: Generator, judge: _Discriminator, rate: Adam, steps: int
) -> Callable[[Progress], None]:
    """Return what the generator does after a step of the discriminator: post-processing."""

    def improve(progress: Progress) -> None:
        fakes = generator.draw(BATCH)
        g = judge.input_gradient(fakes, np.ones(BATCH, int)) / BATCH
        rate.step(generator.parameters, generator.gradient(g))
        generator.keep(progress.step, steps)

    return improve


def train_dp_gan(
    table: object,
    domain: Domain,
    *,
    batches: Batches,
    noise: Noise,
    delta: float,
    clipping_norm: float = 1.0,
    optimizer: Optimizer | None = None,
    generator_rate: float = 2e-3,
    hidden: Sequence[int] = (64,),
    generator_hidden: Sequence[int] = (64, 64),
    ledger: Accountant | None = None,
    rng: SecureGenerator | int | None = None,
) -> GanSynthesis:
    """Train a generator against a discriminator that learns by DP-SGD.

    Every step releases the discriminator's clipped and noisy gradient on real records; its gradient
    on generated records, and the steps of the generator, are functions of released parameters.

    Parameters
    ----------
    table : mapping of str to sequence, or ndarray of shape (n, columns)
        The private records; see :meth:`Domain.encode` for odd entries.
    domain : Domain
        Public.
    batches, noise, delta, clipping_norm
        As in :func:`~accountant.learn.train_dp_sgd`, for the discriminator: a number of steps, and
        noise that is > 0. Without a sampling probability the number of records is public.
    optimizer : Optimizer, optional
        Of the discriminator; ``Adam(2e-3, 0.5)`` when left out.
    generator_rate : float
        Adam's step for the generator.
    hidden, generator_hidden : sequence of int
        Widths of the hidden layers of the discriminator and of the generator.
    ledger : Accountant, optional
        Charged step by step.
    rng : SecureGenerator, int or None
        A seed is for tests only.

    Returns
    -------
    GanSynthesis

    Notes
    -----
    *Guarantee.* That of :func:`~accountant.learn.train_dp_sgd` for the discriminator's steps, all
    iterates included; the generator is post-processing (docs/theorems_selection.md, Theorem P16).
    """
    checks.instance("domain", domain, Domain, "a Domain")
    if noise.noise_multiplier is not None:
        checks.number(checks.NOISE_MULTIPLIER, noise.noise_multiplier)
    steps = checks.integer("steps", batches.steps, 1)
    rate = Adam(checks.number(RATE, generator_rate), 0.5)
    secure = generator_of(rng)
    random = np.random.default_rng(int(secure.words(1)[0]))
    features = domain.features(table)
    sizes = [checks.integer("hidden", width, 1) for width in (*hidden, *generator_hidden)]
    inner, outer = sizes[: len(hidden)], sizes[len(hidden) :]
    generator = Generator(domain, NOISE_SIZE, outer, random)
    seed = int(secure.words(1)[0] >> np.uint64(33))
    judge = _Discriminator(
        features.shape[1], inner, partial(generator.draw, BATCH), clipping_norm, seed
    )
    training = train_dp_sgd(
        judge, features, np.ones(len(features), int), batches=batches, noise=noise,
        clipping_norm=clipping_norm, delta=delta, ledger=ledger, rng=secure,
        optimizer=Adam(2e-3, 0.5) if optimizer is None else optimizer,
        watch=Watch([_improvement(generator, judge, rate, steps)]),
    )  # fmt: skip
    return GanSynthesis(
        generator, training,
        mechanism=training.plan.charges(training.steps) * training.plan.mechanism,
        ledger=training.ledger, delta=delta, run_epsilon=training.run_epsilon,
        private=training.private,
    )  # fmt: skip
