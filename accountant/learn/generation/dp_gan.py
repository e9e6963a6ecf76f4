"""DP-GAN: a discriminator trained by DP-SGD, and a generator that sees only the discriminator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.errors import DomainError
from accountant.learn.dp_sgd import Watch, train_dp_sgd
from accountant.learn.generation.domain import Domain, as_domain
from accountant.learn.generation.networks import Generator, GeneratorSynthesis, dense_layers
from accountant.learn.models.network import LogisticLoss, Network
from accountant.learn.optimizers import Adam, Optimizer
from accountant.learn.plan import Batches, Noise
from accountant.learn.result import Progress, TrainingResult
from accountant.ledger import Accountant
from accountant.noise import SecureGenerator

RATE = checks.Argument(
    "generator_rate", "a finite number > 0", lambda x: (x > 0.0) & (x < math.inf), "Adam's step"
)


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
    generator: Generator, judge: _Discriminator, rate: Adam, batch: int, every: int, steps: int
) -> Callable[[Progress], None]:
    """Return what the generator does after a step of the discriminator: post-processing."""

    def improve(progress: Progress) -> None:
        if progress.step % every == 0:
            fakes = generator.draw(batch)
            g = judge.input_gradient(fakes, np.ones(batch, int)) / batch
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
    generator_batch: int = 256,
    generator_every: int = 1,
    noise_size: int = 32,
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
    generator_batch : int
        Generated records in a step.
    generator_every : int
        Discriminator steps for one of the generator.
    noise_size, hidden, generator_hidden
        Sizes of the networks.
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
    domain = as_domain(domain)
    if noise.noise_multiplier is not None:
        checks.number(checks.NOISE_MULTIPLIER, noise.noise_multiplier)
    every = checks.integer("generator_every", generator_every, 1)
    batch = checks.integer("generator_batch", generator_batch, 1)
    steps = checks.integer("steps", batches.steps, 1)
    if steps < every:
        raise DomainError(f"steps must be at least generator_every; got {steps} and {every}")
    rate = Adam(checks.number(RATE, generator_rate), 0.5)
    secure = rng if isinstance(rng, SecureGenerator) else SecureGenerator(rng)
    random = np.random.default_rng(int(secure.words(1)[0]))
    features = domain.features(table)
    sizes = [checks.integer("hidden", width, 1) for width in (*hidden, *generator_hidden)]
    inner, outer = sizes[: len(hidden)], sizes[len(hidden) :]
    generator = Generator(domain, checks.integer("noise_size", noise_size, 1), outer, random)
    seed = int(secure.words(1)[0] >> np.uint64(33))
    judge = _Discriminator(
        features.shape[1], inner, partial(generator.draw, batch), clipping_norm, seed
    )
    training = train_dp_sgd(
        judge, features, np.ones(len(features), int), batches=batches, noise=noise,
        clipping_norm=clipping_norm, delta=delta, ledger=ledger, rng=secure,
        optimizer=Adam(2e-3, 0.5) if optimizer is None else optimizer,
        watch=Watch([_improvement(generator, judge, rate, batch, every, steps)]),
    )  # fmt: skip
    return GanSynthesis(
        generator, training,
        mechanism=training.plan.charges(training.steps) * training.plan.mechanism,
        ledger=training.ledger, delta=delta, run_epsilon=training.run_epsilon,
        private=training.private,
    )  # fmt: skip
