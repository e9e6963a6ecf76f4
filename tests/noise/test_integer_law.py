"""Integer noise by a table: its probabilities, its open words, its frequencies."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

import accountant as ac
from accountant.noise import SecureGenerator, integer_law
from accountant.noise.integer_law import DIGITS, discrete_gaussian, discrete_laplace

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


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [0.4, 2.5, 17.4])
def test_frequencies(kind, scale):
    n = 200_000
    drawn = LAWS[kind][0](SecureGenerator(11), n, scale)
    assert drawn.dtype == np.int64
    expected = masses(kind, scale, 2000)
    shown = int(np.count_nonzero(expected * n / 2.0 >= 10.0))
    for sign in (-1, 1):
        signed = drawn * sign
        counts = np.array([np.count_nonzero(signed == j) for j in range(1, shown)])
        wanted = expected[1:shown] * n / 2.0
        if wanted.size:
            statistic = float(((counts - wanted) ** 2 / wanted).sum())
            assert statistic < chi2.ppf(1.0 - 1e-7, wanted.size)
    zeros = np.count_nonzero(drawn == 0)
    assert abs(zeros - n * expected[0]) < 6.0 * math.sqrt(n * expected[0]) + 1.0


@pytest.mark.parametrize("draw", [discrete_gaussian, discrete_laplace])
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e6, 1e-4])
def test_scales_out_of_range_are_refused(draw, scale):
    with pytest.raises(ac.DomainError, match="scale"):
        draw(SecureGenerator(1), 3, scale)


def test_nothing_is_drawn_for_nobody():
    assert discrete_laplace(SecureGenerator(1), 0, 1.0).size == 0
