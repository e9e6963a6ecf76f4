"""Selection noise: the law of weighted indices, the undecided words by brute force."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from accountant.errors import DomainError
from accountant.noise import SecureGenerator, exact_samplers
from accountant.noise.exact_samplers import weighted_index

LEAST_P = 1e-4


def test_coins_at_the_ends():
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
    assert exact_samplers.uniform_below(SecureGenerator(1), 1) == 0
    with pytest.raises(DomainError):
        exact_samplers.uniform_below(SecureGenerator(1), 0)
    low = (drawn < 2**62).sum()
    assert abs(low - n * 2 / 3) < 6 * math.sqrt(n * 2 / 9)


def law(scores, rate, widths):
    """The probabilities to 60 digits."""
    with mp.workdps(60):
        w = [
            int(b) * mp.exp(-mpf(rate.numerator) / rate.denominator * (int(s) - int(min(scores))))
            for s, b in zip(scores, widths, strict=True)
        ]
        return [x / sum(w) for x in w]


CASES = {
    "even": ([5, 5, 5, 5], Fraction(1, 3), [1, 1, 1, 1]),
    "steep": ([0, 1, 2, 3, 40], Fraction(3, 2), [1, 1, 1, 1, 1]),
    "widths": ([7, 2, 2, 9], Fraction(1, 5), [3, 0, 5, 40]),
    "fine": ([2**30, 2**31, 0, 2**29], Fraction(1, 2**30), [1, 2, 1, 1]),
    "lone": ([-(2**61), 2**60], Fraction(1), [0, 9]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_the_index_has_its_law(name):
    scores, rate, widths = (np.array(x) if isinstance(x, list) else x for x in CASES[name])
    generator = SecureGenerator(len(name))
    n = 20_000
    drawn = np.bincount(
        [weighted_index(generator, scores, rate, widths) for _ in range(n)], minlength=len(scores)
    )
    expected = np.array([float(p) for p in law(scores, rate, widths)]) * n
    possible = expected > 1e-3
    assert drawn[~possible].sum() == 0
    if possible.sum() > 1:
        found = drawn[possible] + 0.0
        assert (
            stats.chisquare(found, expected[possible] * n / expected[possible].sum()).pvalue
            > LEAST_P
        )
        # The mutant's rate is a quarter larger, or its first weight is.
        mutant = np.array([float(p) for p in law(scores, rate * 5 / 4, widths)])
        mutant[np.flatnonzero(possible)[0]] *= 1.25
        mutant = mutant[possible] / mutant[possible].sum() * n
        assert stats.chisquare(found, mutant).pvalue < 1e-6


@pytest.mark.long
def test_every_word_falls_where_its_digits_say():
    """Brute force: sums to 60 digits against words on, below and above every boundary."""
    rng = np.random.default_rng(2)
    undecided = 0
    for _ in range(60):
        k = int(rng.integers(2, 9))
        scores = rng.integers(0, 50, size=k)
        widths = rng.integers(1, 2 ** int(rng.integers(1, 50)), size=k)
        rate = Fraction(int(rng.integers(1, 1000)), 1000)
        with mp.workdps(60):
            ends = np.cumsum(np.array(law(scores, rate, widths), dtype=object))
            places = [int(mp.floor(end * 2**64)) for end in ends[:-1]]
        exponents = [int(s - scores.min()) * rate for s in scores]
        words = [int(w) for w in rng.integers(2**63, size=5)]
        for near in places:
            words += [max(0, min(2**64 - 1, near + j)) for j in (-(2**30), -3, -1, 0, 1, 3, 2**30)]
        for word in words:
            tail = int(rng.integers(2**63))
            # The number that begins with the word and goes on with copies of the tail.
            with mp.workdps(60):
                u = (mpf(word) * 2**64 + tail) / mpf(2) ** 128
            expected = int(np.searchsorted(ends[:-1], u, side="right"))
            rough = exact_samplers._by_floats(word, np.array([float(x) for x in exponents]), widths)
            undecided += rough is None
            assert rough is None or rough == expected
            found = exact_samplers._by_digits(word, exponents, widths.tolist(), lambda t=tail: t)
            assert found == expected
    assert undecided > 50


def test_digits_far_below_the_first_word_count():
    """The 128 bits of the boundary itself, and those one above: digits 30 to 38 decide."""
    rate, scores = Fraction(1, 3), [0, 1, 2]
    with mp.workdps(80):
        p = [mp.exp(-mpf(s) / 3) for s in scores]
        ends = [p[0] / sum(p), (p[0] + p[1]) / sum(p)]
        starts = [int(mp.floor(end * 2**128)) for end in ends]
        coin = int(mp.floor(mp.exp(-mpf(1) / 3) * 2**128))
    for i, start in enumerate(starts):
        for bits, index in ((start - 1, i), (start + 1, i + 1)):
            word, tail = divmod(bits, 2**64)
            exponents = [s * rate for s in scores]
            assert exact_samplers._by_digits(word, exponents, [1] * 3, lambda t=tail: t) == index
    for bits, head in ((coin - 1, True), (coin + 1, False)):
        word, tail = divmod(bits, 2**64)
        assert exact_samplers._is_below_exp(word, rate, lambda t=tail: t) is head


def test_a_word_on_a_boundary_asks_for_more_digits():
    # Two equal weights: the boundary is exactly one half, which no digits before the last decide.
    asked = []

    def more():
        asked.append(1)
        return 0 if len(asked) < 5 else 2**63

    assert exact_samplers._by_floats(2**63, np.zeros(2), np.ones(2, np.int64)) is None
    assert exact_samplers._by_digits(2**63, [Fraction(0)] * 2, [1, 1], more) == 1
    assert len(asked) == 5
    assert exact_samplers._by_floats(2**63 - 2**30, np.zeros(2), np.ones(2, np.int64)) == 0
    assert exact_samplers._by_floats(2**63 + 2**30, np.zeros(2), np.ones(2, np.int64)) == 1


@pytest.mark.long
def test_the_stated_error_covers_the_floats():
    """The error that decides is above the truth, at a thousand candidates."""
    rng = np.random.default_rng(3)
    for k, spread in ((10, 1.0), (300, 30.0), (700, 2000.0)):
        scores = rng.integers(0, 2**30, size=k)
        rate = Fraction(spread) / 2**30
        true = law(scores, rate, np.ones(k, int))
        offsets = (scores - scores.min()).astype(float) * float(rate)
        with np.errstate(under="ignore"):
            w = np.exp(-offsets)
        units = (w * (exact_samplers.UNITS / w.sum())).astype(np.int64)
        error = (
            2
            * exact_samplers.WEIGHT_ERROR
            * float((units + 1.0) @ (1 + np.minimum(offsets, 800.0)))
            + 2 * k
        )
        with mp.workdps(60):
            scale = mpf(int(units[np.argmax(units)])) / true[int(np.argmax(units))]
            apart = sum(abs(int(u) - p * scale) for u, p in zip(units, true, strict=True))
        assert apart < error


def test_bad_arguments():
    generator = SecureGenerator(1)
    for widths in ([0, 0], [-1, 2]):
        with pytest.raises(DomainError):
            weighted_index(generator, np.array([1, 2]), Fraction(1), np.array(widths))
    with pytest.raises(DomainError):
        weighted_index(generator, np.array([1, 2]), Fraction(-1))
    # Scores beyond any float's exponential.
    far = np.array([0, 2**61])
    assert weighted_index(generator, far, Fraction(10**12)) == 0
    assert math.isclose(float(law(far, Fraction(10**12), [1, 1])[0]), 1.0)


def test_rounded_laplace_has_the_law_of_rounding():
    scale, n = 1.7, 60_000
    drawn = exact_samplers.rounded_laplace(SecureGenerator(11), n, scale)
    marks = np.arange(-8, 9) + 0.5
    law = np.diff(np.concatenate([[0.0], stats.laplace.cdf(marks, scale=scale), [1.0]]))
    cells = np.bincount(np.searchsorted(marks, drawn), minlength=law.size)
    assert stats.chisquare(cells, n * law).pvalue > LEAST_P
    # The mutant rounds down.
    assert stats.chisquare(np.roll(cells, 1), n * law).pvalue < 1e-12
