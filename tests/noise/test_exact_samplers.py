"""Exact selection noise: laws by chi-square, the undecided words by brute force."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from accountant.errors import DomainError
from accountant.noise import SecureGenerator, exact_samplers

LEAST_P = 1e-4


def test_rounded_laplace_has_the_law_of_rounding():
    scale, n = 1.7, 60_000
    drawn = exact_samplers.rounded_laplace(SecureGenerator(11), n, scale)
    marks = np.arange(-8, 9) + 0.5
    law = np.diff(np.concatenate([[0.0], stats.laplace.cdf(marks, scale=scale), [1.0]]))
    cells = np.bincount(np.searchsorted(marks, drawn), minlength=law.size)
    assert stats.chisquare(cells, n * law).pvalue > LEAST_P
    # The mutant rounds down.
    assert stats.chisquare(np.roll(cells, 1), n * law).pvalue < 1e-12


def test_coins_have_their_probabilities():
    exponents = [Fraction(1, 3), Fraction(2), Fraction(5, 2**40)]
    n = 20_000
    coins = exact_samplers.bernoulli_exp(SecureGenerator(12), exponents * n).reshape(n, 3)
    for column, exponent in enumerate(exponents):
        chance = math.exp(-float(exponent))
        assert stats.binomtest(int(coins[:, column].sum()), n, chance).pvalue > LEAST_P
    assert exact_samplers.bernoulli_exp(SecureGenerator(1), [Fraction(0)] * 50).all()
    assert not exact_samplers.bernoulli_exp(SecureGenerator(1), [Fraction(10**9)] * 50).any()
    with pytest.raises(DomainError):
        exact_samplers.bernoulli_exp(SecureGenerator(1), [Fraction(-1)])


def test_undecided_words_are_decided_as_the_digits_say():
    rng = np.random.default_rng(5)
    words = [int(x) for x in rng.integers(2**63, size=400)]
    for word in words:
        below = exact_samplers._is_below_exp(word, Fraction(3, 7), lambda: 7)
        assert below == (word / 2**64 < math.exp(-3 / 7))
        assert exact_samplers._floor_of(word >> 1, 5.0, lambda: 7) == math.floor(
            0.5 - 5.0 * math.log((word >> 1) / 2**63)
        )
    # A word on the boundary itself asks for more digits.
    boundary = int(math.exp(-1.0) * 2**64)
    asked = []
    exact_samplers._is_below_exp(boundary, Fraction(1), lambda: asked.append(1) or 3)
    assert asked


def test_indices_are_uniform():
    drawn = exact_samplers.uniform_index(SecureGenerator(13), 6, 30_000)
    assert stats.chisquare(np.bincount(drawn, minlength=6)).pvalue > LEAST_P
    assert exact_samplers.uniform_below(SecureGenerator(1), 1) == 0
    with pytest.raises(DomainError):
        exact_samplers.uniform_below(SecureGenerator(1), 0)


@pytest.mark.parametrize("scale", [0.01, 0.1, 0.24])
def test_the_tail_of_the_smallest_word_has_no_end(scale):
    """With leading bits of zero alone the magnitude is still open, however small the scale."""

    class Zeros:
        left = 20

        def words(self, n):
            self.left -= 1
            return np.full(n, 0 if self.left >= 0 else 2**63, np.uint64)

    drawn = exact_samplers.rounded_laplace(Zeros(), 1, scale)
    # U is just above one half of 2 ** (1 - 64 * 20).
    assert drawn[0] == math.floor(scale * (64 * 20) * math.log(2.0) + 0.5)


def test_indices_below_a_large_bound_are_uniform():
    """Words modulo three eighths of their range would favour the lowest two thirds."""
    n, bound = 20_000, 3 * 2**61
    drawn = exact_samplers.uniform_index(SecureGenerator(12), bound, n)
    low = (drawn < 2**62).sum()
    assert abs(low - n * 2 / 3) < 6 * math.sqrt(n * 2 / 9)
