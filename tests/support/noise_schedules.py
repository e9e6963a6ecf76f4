"""Schedules of the noise multiplier at a fixed sampling probability, published or plausible.

With each goes what was known before the first step: a list of levels, or the range of the noise.

A schedule is a function of the epoch and of a stream of verdicts, one an epoch, on whether the
validation score has stopped improving. It returns the noise multiplier of the epoch. Those that
read verdicts are adaptive; the others are known in advance, but a filter must not need to know.
"""

import math
import random

__all__ = ["LADDER", "SCHEDULES", "steps_afforded"]

# Ten levels, each √1.25 apart: a fixed menu, as adaptive methods use.
LADDER = [1.0 * 1.25 ** (k / 2) for k in range(10)]


def _verdicts(seed, chance):
    coins = random.Random(seed)
    while True:
        yield coins.random() < chance


def _descend(start, drop, seed, chance):
    """Less noise, by ``drop`` levels, whenever the score has stopped improving."""

    def schedule():
        level = start
        for plateau in _verdicts(seed, chance):
            yield LADDER[level]
            level = max(level - drop * plateau, 0)

    return schedule


def _climb(seed, chance):
    def schedule():
        level = 0
        for plateau in _verdicts(seed, chance):
            yield LADDER[level]
            level = min(level + plateau, len(LADDER) - 1)

    return schedule


def _walk(seed):
    def schedule():
        coins, level = random.Random(seed), 4
        while True:
            yield LADDER[level]
            level = min(max(level + coins.choice((-1, 0, 1)), 0), len(LADDER) - 1)

    return schedule


def _pick(seed, levels):
    def schedule():
        coins = random.Random(seed)
        while True:
            yield coins.choice(levels)

    return schedule


def _known(formula):
    """A formula of the epoch, kept at one or above."""

    def schedule():
        epoch = 0
        while True:
            yield max(1.0, formula(epoch))
            epoch += 1

    return schedule


SCHEDULES = {
    # Yu, Liu, Pu, Gursoy, Truex 2019: validation-based decay.
    "validation-based, slow": (_descend(6, 1, 1, 0.1), LADDER[:7]),
    "validation-based, fast": (_descend(6, 1, 2, 0.4), LADDER[:7]),
    "validation-based, two levels": (_descend(8, 2, 3, 0.2), LADDER[:9:2]),
    # Lee, Kifer 2018: the budget of an iteration grows when the noisy step is no descent.
    "adaptive budget, from 1.95": (_descend(6, 1, 4, 0.25), LADDER[:7]),
    "adaptive budget, from 1.4": (_descend(3, 1, 5, 0.15), LADDER[:4]),
    # Opacus: StepNoise, ExponentialNoise, LambdaNoise.
    "step noise": (_known(lambda e: LADDER[max(6 - e // 8, 0)]), LADDER[:7]),
    "exponential noise": (_known(lambda e: 2.5 * 0.985**e), (1.0, 2.5)),
    "lambda noise": (_known(lambda e: 2.0 / (1.0 + 0.01 * e)), (1.0, 2.0)),
    # Yu et al. 2019: time-based, polynomial; Du et al. 2021: linear.
    "time-based": (_known(lambda e: 2.0 / (1.0 + 0.03 * e)), (1.0, 2.0)),
    "polynomial": (_known(lambda e: 1.0 + (max(0.0, 1.0 - e / 60.0)) ** 3), (1.0, 2.0)),
    "linear": (_known(lambda e: 2.0 - 0.02 * e), (1.0, 2.0)),
    "cosine": (_known(lambda e: 1.5 + 0.5 * math.cos(math.pi * min(e, 60) / 60)), (1.0, 2.0)),
    "constant 1": (_known(lambda e: 1.0), LADDER[:1]),
    "constant 1.4": (_known(lambda e: LADDER[3]), [LADDER[3]]),
    "constant 2": (_known(lambda e: LADDER[6]), [LADDER[6]]),
    "growing": (_climb(6, 0.15), LADDER),
    "growing fast": (_climb(7, 0.4), LADDER),
    "random walk": (_walk(8), LADDER),
    "two levels at random": (_pick(9, [LADDER[0], LADDER[6]]), [LADDER[0], LADDER[6]]),
    "any level at random": (_pick(10, LADDER[:7]), LADDER[:7]),
}


def steps_afforded(ledger, step_of, schedule, steps_per_epoch):
    """Return how many steps a ledger admits; the last epoch is made as long as it still fits."""
    total = 0
    for sigma in schedule():
        step = step_of(sigma)
        fits = min(ledger.affordable(step), steps_per_epoch)
        if fits:
            ledger.compose(step, fits)
        total += fits
        if fits < steps_per_epoch:
            break
    return total
