"""Skellam noise: its tables against Bessel functions, and words that they do not decide."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

from accountant import errors
from accountant.noise import SecureGenerator
from accountant.noise.integer_law import LARGEST_VARIANCE, skellam, thresholds


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize("variance", [1, 2, 50, 700])
def test_thresholds_are_those_of_the_law(variance, bits):
    reach, known = thresholds(variance, bits)
    assert len(known) == 2 * reach
    with mp.workdps(150):
        masses = [mp.besseli(k, variance) * mp.exp(-variance) for k in range(reach + 1)]
        left = (1 - masses[0] - 2 * sum(masses[1:])) / 2
        assert left * 2**bits < 1
        below = left
        for k, threshold in zip(range(-reach, reach), known, strict=True):
            below += masses[abs(k)]
            assert abs(threshold - below * 2**bits) < 3
    assert list(known) == sorted(known)


class Told(SecureGenerator):
    """Returns the words that it was told."""

    def __init__(self, *words):
        super().__init__(0)
        self.left = list(words)

    def words(self, n):
        taken, self.left = self.left[:n], self.left[n:]
        return np.array(taken, dtype=np.uint64)


def exactly(words, variance):
    """Return the integer that the binary digits of these words decide, if they do."""
    bits = 64 * len(words)
    uniform = Fraction(int.from_bytes(b"".join(w.to_bytes(8, "big") for w in words)), 2**bits)
    with mp.workdps(150):
        reach = 60
        below = mp.fsum(
            mp.besseli(k, variance) * mp.exp(-variance) for k in range(reach + 1, reach + 200)
        )
        for k in range(-reach, reach):
            below += mp.besseli(k, variance) * mp.exp(-variance)
            if mp.mpf(uniform.numerator) / uniform.denominator < below:
                return k
    return reach


@pytest.mark.long
def test_words_next_to_a_threshold_are_extended():
    reach, long = thresholds(9, 128)
    for place in (reach - 20, reach - 2, reach, reach + 7, reach + 15):
        middle = long[place]
        for moved in (-(2**40), -1000, 1000, 2**40):
            word, rest = divmod(middle + moved, 2**64)
            told = Told(word, rest)
            assert skellam(told, 1, 9)[0] == exactly([word, rest], 9) == place - reach + (moved > 0)
            assert not told.left
    # Not decided by two words either.
    word, rest = divmod(long[reach], 2**64)
    told = Told(word, rest, 2**63)
    assert skellam(told, 1, 9)[0] == exactly([word, rest, 2**63], 9)
    assert not told.left
    # The open ends.
    for word, rest in [(0, 2**40), (2**64 - 1, 2**64 - 2**40)]:
        assert skellam(Told(word, rest), 1, 9)[0] == exactly([word, rest], 9)


@pytest.mark.parametrize("variance", [1, 7, 400])
def test_the_numbers_have_the_law(variance):
    found = skellam(SecureGenerator(4), 100_000, variance)
    law = stats.skellam(variance / 2, variance / 2)
    edges = np.arange(-3 * math.isqrt(variance) - 1, 3 * math.isqrt(variance) + 2)
    counts = np.array([np.sum(found <= edges[0]), *(np.sum(found == k) for k in edges[1:]),
                       np.sum(found > edges[-1])])  # fmt: skip
    chances = [law.cdf(edges[0]), *law.pmf(edges[1:]), law.sf(edges[-1])]
    assert stats.chisquare(counts, np.array(chances) * found.size).pvalue > 1e-6


def test_a_large_variance_is_that_of_a_sum():
    found = skellam(SecureGenerator(5), 20_000, 3 * 2**16 + 10)
    assert found.var() == pytest.approx(3 * 2**16 + 10, rel=0.06)
    for wrong in (0, LARGEST_VARIANCE + 1):
        with pytest.raises(errors.AccountantError, match="variance"):
            skellam(SecureGenerator(5), 1, wrong)
    assert skellam(SecureGenerator(5), 0, 5).shape == (0,)
