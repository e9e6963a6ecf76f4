"""Clip factors in exact arithmetic: what they let through is never longer than the norm allowed."""

from fractions import Fraction

import numpy as np
import pytest

from accountant._core import training

SLACK = Fraction(1) + Fraction(1, 2**49)  # of a square: a root, a quotient and the product


@pytest.mark.parametrize("norm", [1e-3, 0.1, 1.0, 7.3, 1e6])
def test_no_clip_factor_lets_a_norm_through(norm):
    rng = np.random.default_rng(1)
    near = norm**2 * (1.0 + np.concatenate([np.linspace(-1e-6, 1e-6, 41), [2.0**-52, -(2.0**-52)]]))
    norms2 = np.concatenate([[0.0], near, norm**2 * 10.0 ** rng.uniform(-30.0, 30.0, 200)])
    for stability in (-1.0, 0.01):
        factors = np.zeros(norms2.size)
        training.clip_factors(norms2.copy(), norms2.size, norm, stability, factors)
        for squared, factor in zip(norms2.tolist(), factors.tolist(), strict=True):
            assert factor >= 0.0
            left = Fraction(factor) ** 2 * Fraction(squared)
            assert left <= Fraction(norm) ** 2 * SLACK, (squared, factor, stability)
            if stability < 0.0:
                kept = min(Fraction(squared), Fraction(norm) ** 2)
                assert left * SLACK >= kept, "no more is clipped than has to be"
