"""Every sampler over several epochs: its own batches, simulated, against what it accounts for.

A run is several independent blocks of two steps, whose laws tests/sampling/test_brute_force.py
enumerates: the loss of the simulated outputs is exact, and only the mean over runs is uncertain.
"""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from accountant import matrix, sampling
from sampling.test_brute_force import ADAPTIVE, BLANK, CASES, TURNED

BLOCKS, RUNS, NOISE, CONFIDENCE = 4, 3000, 1.0, 0.999


def longer(sampler):
    """Return the same sampler for several blocks of two steps; nothing if blocks depend."""
    if isinstance(sampler, sampling.SeparatedPoisson):
        return None
    if isinstance(sampler, sampling.BallsInBins):
        steps = 2 * BLOCKS
        # One band: noise that is independent from step to step.
        return replace(sampler, strategy=matrix.banded_square_root(steps, bands=1))
    field = "epochs" if hasattr(sampler, "epochs") else "steps"
    return replace(sampler, **{field: getattr(sampler, field) * BLOCKS})


def block_densities(law, others, own, outputs):
    """Return the density of every block of two outputs, up to a factor of both data sets."""
    found = np.zeros(outputs.shape[:-1])
    for steps, chance in law.items():
        means = np.array([own * row[0] + others * sum(row[1:]) for row in steps])
        found += chance * np.exp(-0.5 * ((outputs - means) ** 2).sum(axis=-1) / NOISE**2)
    return found


def simulated(sampler, law, data, rng):
    """Return the losses of runs on the data, and of runs without the record or with another."""
    others, own, without = data
    found = []
    for one, two in ((own, without), (without, own)):
        sums = []
        for _ in range(RUNS):
            batches = [batch.tolist() for batch in sampler.batches(rng)]
            hits = np.array([[b.count(0), len(b) - b.count(0)] for b in batches])
            sums.append(hits @ [one, others])
        outputs = np.array(sums) + NOISE * rng.standard_normal((RUNS, 2 * BLOCKS))
        outputs = outputs.reshape(RUNS, BLOCKS, 2)
        ratio = block_densities(law, others, one, outputs)
        ratio /= block_densities(law, others, two, outputs)
        found.append(np.log(ratio).sum(axis=1))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if longer(CASES[name][0]) is not None])
def test_simulated_runs_lie_in_the_bracket(name):
    short, law, data = CASES[name]
    sampler = longer(short)
    losses = simulated(sampler, law, data, np.random.default_rng(23))
    score = NormalDist().inv_cdf(0.5 + 0.5 * CONFIDENCE)
    for epsilon in (0.3, 1.5):
        gains = [np.maximum(-np.expm1(epsilon - loss), 0.0) for loss in losses]
        means = [float(gain.mean()) for gain in gains]
        halves = [score * float(gain.std()) / math.sqrt(RUNS) for gain in gains]
        low = max(m - h for m, h in zip(means, halves, strict=True))
        assert low <= sampler.mechanism(NOISE).delta(epsilon)
        if name in ADAPTIVE or data not in (BLANK, TURNED):
            continue
        high = max(m + h for m, h in zip(means, halves, strict=True))
        for witness in sampler.worst_case_instances(NOISE):
            assert witness.mechanism.delta_bounds(epsilon).lower - witness.excess <= high
