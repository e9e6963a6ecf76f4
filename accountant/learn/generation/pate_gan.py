"""PATE-GAN: teachers see their shards, the student only noisy labels of generated records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy import special

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.calibration.any_mechanism import calibrate
from accountant.errors import DomainError
from accountant.learn.generation.domain import Domain
from accountant.learn.generation.dp_gan import Generator, GeneratorSynthesis, dense_layers
from accountant.learn.models.network import LogisticLoss, Network
from accountant.learn.optimizers import Adam
from accountant.learn.pate import GNMax, VoteStream
from accountant.learn.pate.ensemble import assign_shards
from accountant.learn.selection.noisy_max import Generator as Randomness
from accountant.learn.selection.noisy_max import generator_of
from accountant.ledger import Accountant
from accountant.noise import SecureGenerator

MEMORY = 128  # The student learns from this many last labels: older ones mislead.
BATCH = 128  # Labels in a step of the student, and records in one of the generator.
RATE = checks.positive("rate", "It is a step length")
EXPLORE = 0.3  # A column of every second record shown is redrawn with this chance.


@dataclass(frozen=True, eq=False)
class PateGanSynthesis(GeneratorSynthesis):
    """A trained generator, and what the labels cost.

    Attributes
    ----------
    generator : Generator
        From noise to records; a function of noisy labels.
    labels : int
        How many labels the teachers gave.
    real_share : float
        The share of them that said "real"; public.
    sigma : float
        Of the noise on every count of votes.
    mechanism : Mechanism
        All labels, for every data set.
    ledger : Accountant
        The ledger given, or the run's own, with the labels charged.
    epsilon, delta : float
        The guarantee of everything in the ledger when the run ended, under add-or-remove.
    run_epsilon : float
        The ε of this run alone, at ``delta``.
    private : bool
        False for a seeded run.
    """

    labels: int
    real_share: float
    sigma: float


@dataclass(frozen=True)
class PateGanSettings:
    """What is fixed before a PATE-GAN is trained: counts, sizes and rates.

    Parameters
    ----------
    teachers : int
        Their number; well above the noise's ``sigma``, or labels are mostly noise.
    iterations, labels : int
        ``iterations * labels`` labels are paid for.
    teacher_steps, student_steps, generator_steps : int
        Gradient steps in an iteration.
    batch : int
        Real and generated records of a teacher's step.
    teacher_hidden, noise_size : int
        Hidden units of a teacher; numbers that a record is made from.
    hidden, generator_hidden : tuple of int
        Widths of the hidden layers of the student and of the generator.
    teacher_rate, student_rate, generator_rate : float
        Steps of gradient descent (teachers) and of Adam.
    """

    teachers: int = 50
    iterations: int = 400
    labels: int = 16
    teacher_steps: int = 5
    student_steps: int = 10
    generator_steps: int = 1
    batch: int = 64
    teacher_hidden: int = 32
    noise_size: int = 32
    hidden: tuple[int, ...] = (64,)
    generator_hidden: tuple[int, ...] = (64, 64)
    teacher_rate: float = 0.05
    student_rate: float = 2e-3
    generator_rate: float = 1e-3

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name.endswith("_rate"):
                checks.number(RATE.renamed(part.name), value)
            elif isinstance(part.default, tuple):
                for width in value:
                    checks.integer(part.name, width, 1)
            else:
                checks.integer(part.name, value, 1, 10**6)

    @property
    def answers(self) -> int:
        """How many labels are paid for."""
        return self.iterations * self.labels


def train_pate_gan(
    table: object,
    domain: Domain,
    *,
    delta: float,
    target_epsilon: float | None = None,
    sigma: float | None = None,
    settings: PateGanSettings | None = None,
    ledger: Accountant | None = None,
    rng: Randomness = None,
) -> PateGanSynthesis:
    """Train a generator against a student that learns from teachers' noisy votes.

    In every iteration teachers learn to tell the records of their own shards from generated ones,
    ``labels`` generated records get the noisy majority's label, the student learns from these
    labels, and the generator from the student. Other than in Yoon, Jordon, van der Schaar (2019), a
    teacher votes for the half of the records shown that it finds more real than the rest, and every
    second record shown has some columns redrawn, so that labels keep saying something.

    Parameters
    ----------
    table : mapping of str to sequence, or ndarray of shape (n, columns)
        The private records; there may be none. See :meth:`Domain.encode` for odd entries.
    domain : Domain
        Public.
    delta : float
        In (0, 1): where ε is reported.
    target_epsilon, sigma : float
        Exactly one: the ε of all labels together, or the noise on every count of votes.
    settings : PateGanSettings, optional
        Fixed without the data.
    ledger : Accountant, optional
        Charged for all labels before a teacher reads a record.
    rng : SecureGenerator, int or None
        A seed is for tests only.

    Returns
    -------
    PateGanSynthesis

    Notes
    -----
    *Guarantee.* One record reaches one teacher, so it moves one vote of every label: Gaussian
    mechanisms of sensitivity √2, one for each label, for every data set, composed exactly; the
    student and the generator are functions of the labels (docs/theorems_selection.md, Theorem P16).
    The lower, data-dependent account is not used: it is private itself.
    """
    public = checks.instance("domain", domain, Domain, "a Domain")
    target = checks.number(checks.TARGET_DELTA, delta)
    fixed = PateGanSettings() if settings is None else settings
    checks.instance("settings", fixed, PateGanSettings, "PateGanSettings")
    vote = GNMax(_sigma(target_epsilon, sigma, target, fixed.answers))
    secure = generator_of(rng)
    features = public.features(table)
    stream = VoteStream(vote, fixed.answers, ledger=ledger, rng=secure)
    random = np.random.default_rng(int(secure.words(1)[0]))
    generator = Generator(public, fixed.noise_size, fixed.generator_hidden, random)
    teachers = Teachers(features, fixed, secure, random)
    student = _Student(features.shape[1], fixed.hidden, fixed.student_rate, random)
    real = _play(stream, generator, teachers, student, fixed)
    spent = stream.mechanism.epsilon(target)
    return PateGanSynthesis(
        generator, stream.answers, real / stream.answers, vote.sigma, mechanism=stream.mechanism,
        ledger=stream.ledger, delta=target, run_epsilon=spent, private=stream.private,
    )  # fmt: skip


def _play(
    stream: VoteStream,
    generator: Generator,
    teachers: Teachers,
    student: _Student,
    fixed: PateGanSettings,
) -> int:
    """Make all iterations; return how many labels said "real"."""
    climb = Adam(fixed.generator_rate, 0.5)
    real = 0
    for step in range(1, fixed.iterations + 1):
        for _ in range(fixed.teacher_steps):
            teachers.learn(generator.explore(fixed.batch, EXPLORE))
        shown = generator.explore(fixed.labels, EXPLORE)
        # All that ever leaves the teachers.
        given = np.array([stream.ask(votes) for votes in teachers.votes(shown)], np.int64)
        real += int(given.sum())
        student.learn(shown, given, fixed.student_steps)
        for _ in range(fixed.generator_steps):
            fakes = generator.draw(BATCH)
            g = student.network.input_gradient(fakes, np.ones(BATCH, int)) / BATCH
            climb.step(generator.parameters, generator.gradient(g))
        generator.keep(step, fixed.iterations)
    return real


class _Student:
    """A discriminator of generated records with public labels: no noise, no cost."""

    def __init__(
        self, width: int, hidden: Sequence[int], rate: float, random: np.random.Generator
    ) -> None:
        seed = int(random.integers(2**31))
        self.network = Network(dense_layers(width, hidden), LogisticLoss(), (width,), seed=seed)
        self._optimizer, self._random = Adam(rate, 0.5), random
        self._records, self._labels = np.zeros((0, width)), np.zeros(0, np.int64)

    def learn(self, records: FloatArray, labels: NDArray[np.int64], steps: int) -> None:
        """Make some steps on random ones of the last labels, these included."""
        self._records = np.concatenate([self._records, records])[-MEMORY:]
        self._labels = np.concatenate([self._labels, labels])[-MEMORY:]
        for _ in range(steps):
            rows = self._random.integers(len(self._labels), size=BATCH)
            total = self.network.gradient_sum(self._records[rows], self._labels[rows])
            self._optimizer.step(self.network.parameters, total / BATCH)


def _sigma(target_epsilon: float | None, sigma: float | None, delta: float, answers: int) -> float:
    """Return the noise given, or the least that stays within the target."""
    if (target_epsilon is None) == (sigma is None):
        raise DomainError("give exactly one of target_epsilon and sigma")
    if sigma is not None:
        return GNMax(sigma).sigma
    goal = checks.number(checks.TARGET_EPS, target_epsilon)
    start = math.sqrt(2.0 * answers) * 4.0 / goal
    noise = calibrate(
        lambda s: answers * GNMax(s).answer_mechanism, epsilon=goal, delta=delta, start=start
    )
    return float(noise)


SLOPE = 0.01  # The slope of the leaky relu of a teacher.


class Teachers:
    """Networks with one hidden layer; each sees its own shard and generated records.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        The private records.
    settings : PateGanSettings
        Numbers of teachers, of hidden units, and of records of a step, real and generated; the step
        of the gradient descent, which has momentum 0.9.
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
        settings: PateGanSettings,
        secure: SecureGenerator,
        random: np.random.Generator,
    ) -> None:
        count, hidden = settings.teachers, settings.teacher_hidden
        place = assign_shards(len(features), count, rng=secure)
        order = np.argsort(place, kind="stable")
        self._rows = features[order]
        self._sizes = np.bincount(place, minlength=count)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._settings, self._count, self._random = settings, count, random
        width = features.shape[1]
        reach = np.sqrt(6.0 / (width + hidden))
        self._inner = random.uniform(-reach, reach, (count, width + 1, hidden))
        reach = np.sqrt(6.0 / (hidden + 1))
        self._outer = random.uniform(-reach, reach, (count, hidden + 1, 1))
        self._speed = [np.zeros_like(self._inner), np.zeros_like(self._outer)]

    def learn(self, generated: FloatArray) -> None:
        """Make one step of every teacher: its own records are real, these are not."""
        # The same number of random numbers for every teacher, whatever its shard.
        share = self._random.random((self._count, self._settings.batch))
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
            layers = (self._inner, self._outer)
            for weights, speed, g in zip(layers, self._speed, step, strict=True):
                speed *= 0.9
                speed += g
                weights -= self._settings.teacher_rate * speed

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
