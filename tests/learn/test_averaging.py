"""Averages of iterates: the mean they claim to be, of one run's iterates and of no other's."""

from fractions import Fraction

import numpy as np
import pytest

from accountant.learn import (
    Batches,
    LastIterate,
    LogisticRegression,
    MeanOfLast,
    MovingAverage,
    Noise,
    train_dp_sgd,
)

RNG = np.random.default_rng(0)
EVERY = [
    LastIterate,
    MeanOfLast,
    lambda: MeanOfLast(1.0),
    MovingAverage,
    lambda: MovingAverage(0.0),
]


def seen(averaging, iterates):
    averaging.reset()
    for step, iterate in enumerate(iterates, 1):
        averaging.see(iterate.copy(), step, len(iterates))
    return averaging.result(iterates[-1])


@pytest.mark.parametrize("make", EVERY)
def test_a_run_knows_nothing_of_the_iterates_of_another(make):
    """What an earlier run on other records left would be in this one's result, and unpaid."""
    X = RNG.normal(size=(40, 2))

    def run(averaging, y):
        return train_dp_sgd(
            LogisticRegression(2), X, y, batches=Batches(40, sampler="full", steps=3),
            noise=Noise(1.0), clipping_norm=1.0, delta=1e-5, rng=1, averaging=averaging,
        ).parameters  # fmt: skip

    used = make()
    run(used, np.ones(40, int))
    assert np.array_equal(run(used, np.arange(40) % 2), run(make(), np.arange(40) % 2))


@pytest.mark.parametrize("steps", [1, 2, 5, 8])
@pytest.mark.parametrize("fraction", [0.2, 0.5, 1.0])
def test_the_mean_is_of_the_last_iterates(steps, fraction):
    iterates = RNG.integers(-8, 8, size=(steps, 3)).astype(float)
    last = max(1, int(fraction * steps))
    exact = [sum(map(Fraction, column), Fraction(0)) / last for column in iterates[-last:].T]
    assert np.allclose(seen(MeanOfLast(fraction), iterates), [float(x) for x in exact], atol=1e-14)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.99])
def test_the_moving_average_weighs_every_iterate_as_it_says(decay):
    iterates = RNG.normal(size=(6, 3))
    weights = [Fraction(decay) ** age for age in range(5, -1, -1)]
    exact = [
        float(sum(w * Fraction(x) for w, x in zip(weights, column, strict=True)) / sum(weights))
        for column in iterates.T
    ]
    assert np.allclose(seen(MovingAverage(decay), iterates), exact, atol=1e-14)


@pytest.mark.parametrize("make", EVERY)
def test_later_writing_into_the_parameters_changes_no_average(make):
    averaging, parameters = make(), np.ones(3)
    averaging.see(parameters, 1, 1)
    before = averaging.result(parameters).copy()
    parameters += 1.0
    if "mean" in averaging.state:
        assert np.array_equal(averaging.result(parameters), before)
