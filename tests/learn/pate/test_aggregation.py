"""Aggregation of votes: the answers have the laws of the noise that is charged."""

import math

import numpy as np
import pytest
from scipy import special

from accountant.learn.pate import GNMax, LNMax
from accountant.noise import SecureGenerator

DRAWS = 4000


def agrees(hits, chance):
    assert abs(hits - DRAWS * chance) < 5.0 * math.sqrt(DRAWS * chance * (1.0 - chance))


@pytest.mark.parametrize("scale", [1.5, 3.0])
def test_teachers_answers_have_the_noise_that_is_charged(scale):
    votes, generator = np.array([5.0, 3.0]), SecureGenerator(5)
    gaussian = GNMax(scale, threshold=6, threshold_sigma=scale)
    assert gaussian.answer_mechanism.mu() == pytest.approx(math.sqrt(2.0) / scale, rel=1e-9)
    assert gaussian.test_mechanism.mu() == pytest.approx(1.0 / scale, rel=1e-9)
    agrees(
        sum(gaussian.winner(votes, generator) for _ in range(DRAWS)),
        special.ndtr(-2.0 / (math.sqrt(2.0) * scale)),
    )
    agrees(
        sum(gaussian.is_clear(votes, generator) for _ in range(DRAWS)), special.ndtr(-1.0 / scale)
    )
    laplace = LNMax(scale)
    assert laplace.answer_mechanism.epsilon(0.0) == pytest.approx(2.0 / scale, rel=1e-9)
    # A difference of two Laplace variables exceeds g scales with chance e^-g (1/2 + g/4).
    g = 2.0 / scale
    agrees(
        sum(laplace.winner(votes, generator) for _ in range(DRAWS)), math.exp(-g) * (0.5 + g / 4.0)
    )
