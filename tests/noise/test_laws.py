"""Every sampler's law: exact probabilities where it is discrete, a band of DKW where it is not.

Seeds are fixed, so a test passes always or never; the error each is designed for is one in a
million. Every test is also run on draws that are slightly wrong, which it must reject.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from accountant.learn.convex.fit import NoiseSource
from accountant.noise import SecureGenerator, integer_law
from accountant.noise import generator as generator_module
from accountant.noise.exact_samplers import (
    bernoulli_exp,
    discrete_laplace,
    rounded_laplace,
    uniform_below,
    uniform_index,
)

ERROR = 1e-6
N = 100_000


def fits(drawn, probability):
    """Pearson's test; values with fewer than ten expected draws are pooled into two tails.

    ``probability(j)`` is the exact one of the integer j.
    """
    drawn = np.asarray(drawn).astype(np.int64)
    low, high = int(drawn.min()), int(drawn.max())
    inner = [j for j in range(low, high + 1) if drawn.size * probability(j) >= 10]
    counts = np.array([np.count_nonzero(drawn == j) for j in inner], dtype=float)
    expected = drawn.size * np.array([probability(j) for j in inner], dtype=float)
    rest = drawn.size - expected.sum()
    statistic = ((counts - expected) ** 2 / expected).sum()
    if rest >= 10:
        statistic += (drawn.size - counts.sum() - rest) ** 2 / rest
    elif stats.poisson.sf(drawn.size - counts.sum() - 1, max(rest, 1e-9)) < ERROR:
        return False  # more in the tails than there should be
    return statistic < stats.chi2.isf(ERROR, max(1, len(inner)))


def within_dkw(drawn, cdf, grid=0.0):
    """Tell whether the empirical distribution function is within Massart's band, grid included."""
    x = np.sort(drawn)
    band = math.sqrt(math.log(2 / ERROR) / (2 * x.size)) + grid
    exact = cdf(x)
    steps = np.arange(x.size + 1) / x.size
    return max((steps[1:] - exact).max(), (exact - steps[:-1]).max()) <= band


def rounded_normal_pmf(scale):
    def mass(j):
        with mpmath.workdps(30):
            s = mpmath.mpf(scale)
            return float(mpmath.ncdf((j + 0.5) / s) - mpmath.ncdf((j - 0.5) / s))

    return mass


def discrete_gaussian_pmf(scale):
    total = math.fsum(math.exp(-(j**2) / (2 * scale**2)) for j in range(-1000, 1001))
    return lambda j: math.exp(-(j**2) / (2 * scale**2)) / total


def rounded_laplace_pmf(scale):
    def above(x):  # P{|X| scaled >= x}
        return math.exp(-x / scale)

    def mass(j):
        if j == 0:
            return 1.0 - above(0.5)
        return 0.5 * (above(abs(j) - 0.5) - above(abs(j) + 0.5))

    return mass


def discrete_laplace_pmf(scale):
    ratio = math.exp(-1.0 / scale)
    return lambda j: (1 - ratio) / (1 + ratio) * ratio ** abs(j)


def uniform_pmf(bound):
    return lambda j: 1.0 / bound if 0 <= j < bound else 0.0


def laplace_draws(generator, n, scale):
    source = NoiseSource(1)
    source.generator = generator
    return np.array([discrete_laplace(scale, source.below) for _ in range(n // 5)])


SAMPLERS = {
    "rounded normal": (
        lambda g, s: g.rounded_normal(N, s), rounded_normal_pmf, (0.2, 0.5, 1.0, 7.3, 31.7)
    ),
    "discrete Gaussian": (
        lambda g, s: g.discrete_gaussian(N, s), discrete_gaussian_pmf, (1, 3, 20)
    ),
    "rounded Laplace": (
        lambda g, s: rounded_laplace(g, N, s), rounded_laplace_pmf, (0.3, 1.0, 6.5)
    ),
    "discrete Laplace": (
        lambda g, s: laplace_draws(g, N, s), discrete_laplace_pmf, (1, 4)
    ),
    "integer Gaussian": (
        lambda g, s: integer_law.discrete_gaussian(g, N, s), discrete_gaussian_pmf, (0.4, 2.5, 17.4)
    ),
    "integer Laplace": (
        lambda g, s: integer_law.discrete_laplace(g, N, s), discrete_laplace_pmf, (0.4, 2.5, 17.4)
    ),
    "Skellam": (
        lambda g, s: integer_law.skellam(g, N, s),
        lambda s: stats.skellam(s / 2, s / 2).pmf, (1, 7, 400),
    ),
    "uniform index": (
        lambda g, s: uniform_index(g, s, N), uniform_pmf, (1, 3, 7, 1000)
    ),
}  # fmt: skip
CASES = [(name, scale) for name, (_, _, scales) in SAMPLERS.items() for scale in scales]


@pytest.mark.long(keep=12)
@pytest.mark.parametrize(("name", "scale"), CASES)
def test_exact_laws(name, scale):
    draw, pmf, _ = SAMPLERS[name]
    drawn = draw(SecureGenerator(11), scale)
    assert fits(drawn, pmf(scale))
    if scale != 1 or name != "uniform index":
        # A twentieth of the draws doubled is noticed.
        assert not fits(np.where(np.arange(drawn.size) % 20 == 0, 2 * drawn + 1, drawn), pmf(scale))


def test_the_test_has_power_against_a_wrong_scale():
    drawn = SecureGenerator(11).rounded_normal(N, 1.03 * 7.3)
    assert not fits(drawn, rounded_normal_pmf(7.3))
    assert not fits(SecureGenerator(11).discrete_gaussian(N, 20), discrete_gaussian_pmf(21))
    assert not fits(rounded_laplace(SecureGenerator(11), N, 6.8), rounded_laplace_pmf(6.5))


@pytest.mark.parametrize("sigmas", [3.0, 4.0, 5.0])
def test_tails_of_the_rounded_normal_are_neither_cut_nor_fat(sigmas):
    scale, n = 64.0, 2_000_000
    beyond = int((np.abs(SecureGenerator(3).rounded_normal(n, scale)) > sigmas * scale).sum())
    p = 2.0 * special.ndtr(-(sigmas * scale + 0.5) / scale)
    assert stats.binom.cdf(beyond, n, p) > ERROR
    assert stats.binom.sf(beyond - 1, n, p) > ERROR
    assert beyond or sigmas > 4


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("exponent", [0, Fraction(35, 2**40), 1, Fraction(7, 3), 7, 25])
def test_coins_have_exact_probabilities(exponent):
    heads = int(bernoulli_exp(SecureGenerator(1), [Fraction(exponent, 7)] * N).sum())
    p = math.exp(-exponent / 7)
    assert stats.binom.cdf(heads, N, p) > ERROR
    assert stats.binom.sf(heads - 1, N, p) > ERROR
    # A fiftieth more or less would be noticed.
    if exponent == 7:
        assert min(stats.binom.cdf(heads, N, 1.02 * p), stats.binom.sf(heads, N, 0.98 * p)) < ERROR


def test_bits_of_words_are_fair_and_independent():
    words = SecureGenerator(5).words(50_000)
    bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    ones = bits.sum(axis=0)
    # 64 bits, 64 pairs of neighbouring bits and 64 of neighbouring words, at a share of the error.
    level = ERROR / 192
    along = (bits[:, 1:] ^ bits[:, :-1]).sum(axis=0)
    across = (bits[1:] ^ bits[:-1]).sum(axis=0)
    for counts, n in ((ones, len(words)), (along, len(words)), (across, len(words) - 1)):
        assert (stats.binom.cdf(counts, n, 0.5) > level).all()
        assert (stats.binom.sf(counts - 1, n, 0.5) > level).all()


def test_noise_is_independent_of_its_neighbours():
    drawn = SecureGenerator(6).rounded_normal(200_000, 1.0)
    # Consecutive pairs against the product law, by exact cells.
    mass = rounded_normal_pmf(1.0)
    place = np.clip(drawn, -2, 2).astype(int) + 2
    p = np.array([mass(j) for j in (-1, 0, 1)])
    p = np.concatenate([[(1 - p.sum()) / 2], p, [(1 - p.sum()) / 2]])
    table = np.bincount(5 * place[0::2] + place[1::2], minlength=25).reshape(5, 5)
    expected = np.outer(p, p) * drawn.size / 2
    assert ((table - expected) ** 2 / expected).sum() < stats.chi2.isf(ERROR, 24)


SOURCE = {
    "normal": (lambda s: s.normal((N,), 3.0), lambda x: special.ndtr(x / 3.0), 2.0**-30),
    "coarse normal": (
        lambda s: s.normal((N,), 1.0, 10), special.ndtr, 2.0**-11 / math.sqrt(2 * math.pi)
    ),
    "length of a multivariate Laplace vector": (
        lambda s: np.array([
            np.linalg.norm(s.multivariate_laplace((4,))[0]) for _ in range(N // 10)
        ]),
        lambda x: special.gammainc(4, x), 2.0**-30,
    ),
    "direction of a multivariate Laplace vector": (
        # In three dimensions a coordinate of the direction is uniform (Archimedes).
        lambda s: np.array([
            (v := s.multivariate_laplace((3,))[0])[0] / np.linalg.norm(v) for _ in range(N // 10)
        ]),
        lambda x: (x + 1) / 2, 2.0**-30,
    ),
    "fine rounded normal": (
        lambda s: s.generator.rounded_normal(N, 2.0**20) / 2.0**20, special.ndtr, 2.0**-21
    ),
    "wide discrete Gaussian": (
        lambda s: s.generator.discrete_gaussian(N, 2**18) / 2.0**18, special.ndtr, 2.0**-18
    ),
    "wide rounded Laplace": (
        lambda s: rounded_laplace(s.generator, N, 2.0**20) / 2.0**20, stats.laplace.cdf, 2.0**-20
    ),
}  # fmt: skip


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("name", SOURCE)
def test_continuous_laws_lie_in_the_band(name):
    draw, cdf, grid = SOURCE[name]
    drawn = draw(NoiseSource(8))
    assert within_dkw(drawn, cdf, grid)
    assert not within_dkw(1.15 * drawn, cdf, grid)


def test_permutations_are_uniform():
    source = NoiseSource(2)
    codes = [int("".join(map(str, source.permutation(4)))) for _ in range(12_000)]
    counts = np.unique(codes, return_counts=True)[1]
    assert counts.size == 24
    assert stats.chisquare(counts).pvalue > ERROR


@pytest.mark.long
def test_poisson_samples_are_products_of_coins():
    generator, n, q, rounds = SecureGenerator(7), 6, 0.3, 20_000
    patterns = np.zeros(2**n)
    for _ in range(rounds):
        patterns[int((1 << generator.subset(n, q)).sum())] += 1
    members = np.array([bin(j).count("1") for j in range(2**n)])
    expected = rounds * q**members * (1 - q) ** (n - members)
    assert expected.min() > 10
    assert ((patterns - expected) ** 2 / expected).sum() < stats.chi2.isf(ERROR, 2**n - 1)


def test_threads_change_nothing(monkeypatch):
    n = 10 * generator_module.PIECE + 17
    drawn = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(generator_module, "THREADS", threads)
        drawn.append(SecureGenerator(4).rounded_normal(n, 1e6))
    assert np.array_equal(drawn[0], drawn[1])
    assert np.array_equal(drawn[0], drawn[2])
    pieces = drawn[0][: 10 * generator_module.PIECE].reshape(10, -1)
    assert len({piece.tobytes() for piece in pieces}) == 10  # no stretch of the stream came twice


def test_no_stretch_of_the_stream_is_used_twice():
    # Words, samples and noise in turn, through erasures: all from different places of the stream.
    generator, seen = SecureGenerator(9), set()
    for step in range(200):
        words = generator.words(5 + step % 7)
        seen.update(words.tolist())
        generator.rounded_normal(3, 1.0)
        generator.subset(11, 0.5)
        if step % 3 == 0:
            generator.erase()
    assert len(seen) == sum(5 + step % 7 for step in range(200))


def test_zero_is_counted_once():
    """Discrete Laplace noise: the two signs share their zero."""
    generator = SecureGenerator(13)
    drawn = np.array(
        [discrete_laplace(2, lambda n: uniform_below(generator, n)) for _ in range(6000)]
    )
    share = math.tanh(1.0 / 4.0)  # of zero at scale 2
    deviation = math.sqrt(drawn.size * share * (1.0 - share))
    assert abs((drawn == 0).sum() - drawn.size * share) < 6.0 * deviation
    assert abs((drawn > 0).sum() - (drawn < 0).sum()) < 6.0 * math.sqrt(drawn.size)
