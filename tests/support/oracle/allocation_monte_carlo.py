"""ε and δ of random allocation, removal, by importance sampling: no code of the package."""

import math
from collections import namedtuple
from statistics import NormalDist

import numpy as np

Interval = namedtuple("Interval", "lower upper")
_CHUNK = 2_000_000
_PILOT = 1000
_COMPONENTS = tuple((t, m) for t in (0.0, 0.8, 1.6, 2.4, 3.2) for m in (0.0, 1.5, 3.0, 4.5))


# Total losses drawn from a proposal, the logarithms of their weights, and of the ratios of each
# component of the proposal to the law of interest.
_Sample = namedtuple("_Sample", "loss log_weight log_ratios")


def monte_carlo_delta(noise, *, steps, epochs, epsilon, samples, confidence=0.999, seed):
    """Return an interval of δ(epsilon) by the central limit theorem."""
    sample = _draw(noise, steps, epochs, epsilon, samples, seed)
    centre, half = _interval(sample, epsilon, _score(confidence))
    return Interval(max(centre - half, 0.0), min(centre + half, 1.0))


def monte_carlo_epsilon(noise, *, steps, epochs, delta, near, samples, confidence=0.999, seed):
    """Return where the ends of the interval of δ cross ``delta``; ``near`` is a rough answer."""
    sample = _draw(noise, steps, epochs, near, samples, seed)
    score = _score(confidence)

    def crossing(sign):
        low, high = 0.0, 4.0 * near + 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            centre, half = _interval(sample, middle, score)
            low, high = (middle, high) if centre + sign * half > delta else (low, middle)
        return 0.5 * (low + high)

    return Interval(crossing(-1.0), crossing(1.0))


def _score(confidence):
    return NormalDist().inv_cdf(0.5 + 0.5 * confidence)


def _interval(sample, epsilon, score):
    values = np.exp(sample.log_weight) * -np.expm1(np.minimum(epsilon - sample.loss, 0.0))
    return float(values.mean()), score * float(values.std(ddof=1)) / math.sqrt(values.size)


def _draw(noise, steps, epochs, epsilon, samples, seed):
    """Choose the proposal in a pilot run, then draw afresh from it."""
    rng = np.random.default_rng(seed)
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


def _simulate(rng, noise, steps, epochs, weights, samples):
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
