"""Integer noise by a table: its probabilities, and the words that it does not decide."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

import accountant as ac
from accountant import errors
from accountant.noise import SecureGenerator, integer_law
from accountant.noise.integer_law import (
    DIGITS,
    LARGEST_VARIANCE,
    discrete_gaussian,
    discrete_laplace,
    skellam,
    thresholds,
)

LAWS = {
    "gaussian": (discrete_gaussian, integer_law._gaussian_table),
    "laplace": (discrete_laplace, integer_law._laplace_table),
}


def masses(kind, scale, reach):
    x = np.arange(reach + 1, dtype=float)
    w = np.exp(-0.5 * (x / scale) ** 2) if kind == "gaussian" else np.exp(-x / scale)
    w[1:] *= 2.0
    return w / w.sum()


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [2.0**-10, 0.3, 1.0, 17.378, 300.0])
def test_the_table_has_the_law(kind, scale):
    table, first = LAWS[kind][1](scale)
    sums = np.array([each / 2**DIGITS for each in table])
    reach = len(table) + 50
    assert np.allclose(sums, masses(kind, scale, reach).cumsum()[: len(table)], rtol=1e-12)
    assert all(int(a) == b >> (DIGITS - 64) for a, b in zip(first, table, strict=True))
    # The last size has what is left; the next one has less mass than the last digit compared.
    after = len(table) + 1
    rate = 0.5 * (after / scale) ** 2 if kind == "gaussian" else after / scale
    assert rate > (DIGITS - 2) * math.log(2.0)


@pytest.mark.parametrize("kind", LAWS)
def test_the_table_agrees_in_forty_digits(kind):
    from mpmath import mp, mpf

    with mp.workdps(60):
        scale = 3.7
        weights = [
            mp.exp(-(mpf(j) ** 2) / (2 * mpf(scale) ** 2))
            if kind == "gaussian"
            else mp.exp(-mpf(j) / mpf(scale))
            for j in range(1500)
        ]
        total = weights[0] + 2 * sum(weights[1:])
        table, _ = LAWS[kind][1](scale)
        for j in (0, 1, 5, 30):
            truth = (weights[0] + 2 * sum(weights[1 : j + 1])) / total
            assert abs(mpf(table[j]) / mpf(2) ** DIGITS - truth) < mpf(10) ** -50


class Words:
    """A generator of given words."""

    def __init__(self, words):
        self._words = list(words)

    def words(self, n):
        taken, self._words = self._words[:n], self._words[n:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("kind", LAWS)
def test_an_open_word_is_decided_by_more_digits(kind):
    draw, of = LAWS[kind]
    table, first = of(1.5)
    j = 1
    word, rest = int(first[j]), table[j] % 2 ** (DIGITS - 64)
    digits = [rest >> (64 * i) & (2**64 - 1) for i in range(DIGITS // 64 - 2, -1, -1)]
    below = [*digits[:-1], digits[-1] - 1]
    assert draw(Words([word, *below, 0]), 1, 1.5)[0] == j
    assert draw(Words([word, *digits, 0]), 1, 1.5)[0] == j + 1
    assert draw(Words([word, *digits, 2**64 - 1]), 1, 1.5)[0] == -(j + 1)
    assert draw(Words([word - 1, 0]), 1, 1.5)[0] == j
    assert draw(Words([0, 0]), 1, 1.5)[0] == 0


@pytest.mark.parametrize("draw", [discrete_gaussian, discrete_laplace])
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e6, 1e-4])
def test_scales_out_of_range_are_refused(draw, scale):
    with pytest.raises(ac.DomainError, match="scale"):
        draw(SecureGenerator(1), 3, scale)


def test_nothing_is_drawn_for_nobody():
    assert discrete_laplace(SecureGenerator(1), 0, 1.0).size == 0


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


def test_a_large_variance_is_that_of_a_sum():
    found = skellam(SecureGenerator(5), 20_000, 3 * 2**16 + 10)
    assert found.var() == pytest.approx(3 * 2**16 + 10, rel=0.06)
    for wrong in (0, LARGEST_VARIANCE + 1):
        with pytest.raises(errors.AccountantError, match="variance"):
            skellam(SecureGenerator(5), 1, wrong)
    assert skellam(SecureGenerator(5), 0, 5).shape == (0,)
