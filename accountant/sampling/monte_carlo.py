"""Monte-Carlo estimates for random allocation, as a cross-check without guarantee."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.sampling.drawing import Seed, generator
from accountant.search import narrow

if TYPE_CHECKING:
    FloatArray: TypeAlias = NDArray[np.float64]


CONFIDENCE = checks.Argument(
    "confidence",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "It is that of the interval, as in 0.999",
)
_CHUNK = 2_000_000
_PILOT = 1000
_COMPONENTS = tuple((t, m) for t in (0.0, 0.8, 1.6, 2.4, 3.2) for m in (0.0, 1.5, 3.0, 4.5))


class _Sample(NamedTuple):
    """Total losses drawn from a proposal, and the logarithms of their weights."""

    loss: FloatArray
    log_weight: FloatArray
    log_ratios: FloatArray  # of each component of the proposal to the law of interest


@to_nearest
def monte_carlo_delta(
    noise_multiplier: float,
    *,
    steps: int,
    epochs: int,
    epsilon: float,
    samples: int = 20_000,
    confidence: float = 0.999,
    seed: Seed = None,
) -> Bounds:
    """Estimate δ(epsilon) of random allocation, remove direction, by importance sampling.

    Parameters
    ----------
    noise_multiplier : float
        σ.
    steps, epochs : int
        Steps of an epoch, of which a record picks one, and epochs.
    epsilon : float
        In nats, >= 0.
    samples : int
        Number of simulated runs; each takes ``steps * epochs`` normal variates.
    confidence : float
        Of the interval.
    seed : int or numpy Generator, optional
        For reproducible estimates.

    Returns
    -------
    Bounds
        A confidence interval by the central limit theorem: *not* a guarantee, and no substitute
        for :meth:`~accountant.sampling.RandomAllocation.epsilon_bounds`.
    """
    sample = _draw(noise_multiplier, steps, epochs, epsilon, samples, seed)
    centre, half = _interval(sample, epsilon, _score(confidence))
    return Bounds(max(centre - half, 0.0), min(centre + half, 1.0))


@to_nearest
def monte_carlo_epsilon(
    noise_multiplier: float,
    *,
    steps: int,
    epochs: int,
    delta: float,
    near: float,
    samples: int = 20_000,
    confidence: float = 0.999,
    seed: Seed = None,
) -> Bounds:
    """Estimate ε(delta) of random allocation, remove direction, by importance sampling.

    Parameters
    ----------
    noise_multiplier, steps, epochs, samples, confidence, seed
        As in :func:`monte_carlo_delta`.
    delta : float
        In (0, 1).
    near : float
        A rough value of the answer, for which the proposal is chosen.

    Returns
    -------
    Bounds
        Where the ends of the interval of δ cross ``delta``.
    """
    sample = _draw(noise_multiplier, steps, epochs, near, samples, seed)
    score = _score(confidence)

    def crossing(sign: float) -> float:
        def above(epsilon: float) -> bool:
            centre, half = _interval(sample, epsilon, score)
            return centre + sign * half > delta

        return 0.5 * sum(narrow(above, 0.0, 4.0 * near + 1.0, 60))

    return Bounds(crossing(-1.0), crossing(1.0))


def _score(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + 0.5 * checks.number(CONFIDENCE, confidence))


def _interval(sample: _Sample, epsilon: float, score: float) -> tuple[float, float]:
    values = np.exp(sample.log_weight) * -np.expm1(np.minimum(epsilon - sample.loss, 0.0))
    return float(values.mean()), score * float(values.std(ddof=1)) / math.sqrt(values.size)


def _draw(
    noise_multiplier: float, steps: int, epochs: int, epsilon: float, samples: int, seed: Seed
) -> _Sample:
    """Choose the proposal in a pilot run, then draw afresh from it."""
    noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
    steps = checks.integer("steps", steps, 1)
    epochs = checks.integer("epochs", epochs, 1)
    samples = checks.integer("samples", samples, 1)
    rng = generator(seed)
    weights = np.full(len(_COMPONENTS), 1.0 / len(_COMPONENTS))
    for _ in range(2):
        pilot = _simulate(rng, noise, steps, epochs, weights, min(_PILOT, samples))
        value = np.exp(pilot.log_weight) * -np.expm1(np.minimum(epsilon - pilot.loss, 0.0))
        if not value.sum() > 0.0:
            break
        # Cross-entropy: components in proportion to what they explain of the integral.
        weights = weights * (value @ np.exp(pilot.log_ratios + pilot.log_weight[:, None]))
        weights = 0.9 * weights / weights.sum() + 0.1 / weights.size
    return _simulate(rng, noise, steps, epochs, weights, samples)


def _simulate(
    rng: np.random.Generator,
    noise: float,
    steps: int,
    epochs: int,
    weights: FloatArray,
    samples: int,
) -> _Sample:
    """Simulate runs with the record present, from a mixture of shifted laws.

    A component (t, m) shifts every release by t/√(all steps) standard deviations and the record's
    own release in one epoch by m more.
    """
    total = steps * epochs
    component = rng.choice(weights.size, size=samples, p=weights)
    drift, jump = (np.array(column)[component] for column in zip(*_COMPONENTS, strict=True))
    where = rng.integers(epochs, size=samples)
    loss, sums = np.zeros(samples), np.zeros(samples)
    own = np.zeros((samples, epochs))
    rows = max(1, _CHUNK // steps)
    for start in range(0, samples, rows):
        part = slice(start, min(start + rows, samples))
        for epoch in range(epochs):
            score = rng.standard_normal((part.stop - part.start, steps))
            score += (drift[part] / math.sqrt(total))[:, None]
            # By symmetry the record picks the first step.
            score[:, 0] += jump[part] * (where[part] == epoch)
            sums[part] += score.sum(axis=1)
            own[part, epoch] = score[:, 0]
            score[:, 0] += 1.0 / noise
            ratio = np.exp(score / noise - 0.5 / noise**2)
            loss[part] += np.log(ratio.mean(axis=1))
    columns = []
    for t, m in _COMPONENTS:
        shift = t / math.sqrt(total)
        jumped = np.exp(m * own - m * shift - 0.5 * m * m).mean(axis=1)
        columns.append(shift * sums - 0.5 * t * t + np.log(jumped))
    log_ratios = np.stack(columns, axis=1)
    log_weight = -np.logaddexp.reduce(log_ratios + np.log(weights), axis=1)
    return _Sample(loss, log_weight, log_ratios)
