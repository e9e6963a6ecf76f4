"""The secure generator: the cipher against its published vector, the laws against exact ones."""

import copy
import hashlib
import math
import os
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accountant._core import training
from accountant.errors import ArgumentTypeError, DomainError
from accountant.noise import Grid, SecureGenerator
from accountant.noise.generator import nearest_integer, tail_probability


def keystream(key: bytes, counter: int, blocks: int) -> bytes:
    """ChaCha20 word by word, written from RFC 8439's description."""

    def rotate(x, n):
        return ((x << n) | (x >> (32 - n))) & 0xFFFFFFFF

    out = b""
    for block in range(counter, counter + blocks):
        start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
        start += [int.from_bytes(key[4 * i : 4 * i + 4], "little") for i in range(8)]
        start += [block & 0xFFFFFFFF, block >> 32, 0, 0]
        x = list(start)
        for _ in range(10):
            for a, b, c, d in [
                (0, 4, 8, 12),
                (1, 5, 9, 13),
                (2, 6, 10, 14),
                (3, 7, 11, 15),
                (0, 5, 10, 15),
                (1, 6, 11, 12),
                (2, 7, 8, 13),
                (3, 4, 9, 14),
            ]:
                for p, q, r, n in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)]:
                    x[p] = (x[p] + x[q]) & 0xFFFFFFFF
                    x[r] = rotate(x[r] ^ x[p], n)
        out += b"".join(
            ((u + v) & 0xFFFFFFFF).to_bytes(4, "little") for u, v in zip(x, start, strict=True)
        )
    return out


@pytest.mark.parametrize("blocks", [1, 7, 8, 9, 33])
@pytest.mark.parametrize("counter", [0, 5, 2**32 - 3])
def test_chacha20_is_the_cipher(blocks, counter):
    key = hashlib.sha256(b"k").digest()
    out = np.empty(64 * blocks, np.uint8)
    training.chacha20(np.frombuffer(key, "<u4").astype(np.uint32), counter, out)
    assert out.tobytes() == keystream(key, counter, blocks)


def test_published_vector():
    out = np.empty(64, np.uint8)
    training.chacha20(np.zeros(8, np.uint32), 0, out)
    assert out.tobytes().hex().startswith("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1a")


def test_the_stream_does_not_depend_on_how_it_is_cut():
    whole = SecureGenerator(3).words(1000)
    pieces, generator = [], SecureGenerator(3)
    for n in (1, 7, 8, 0, 100, 884):
        pieces.append(generator.words(n))
    assert np.array_equal(np.concatenate(pieces), whole)


def test_default_generators_differ_and_are_not_seeded():
    drawn = {SecureGenerator().words(4).tobytes() for _ in range(300)}
    assert len(drawn) == 300  # 256 seeds would repeat
    assert not SecureGenerator().seeded
    assert SecureGenerator(0).seeded


def test_copies_are_refused():
    with pytest.raises(TypeError, match="repeat its noise"):
        copy.copy(SecureGenerator())
    with pytest.raises(TypeError, match="repeat its noise"):
        pickle.dumps(SecureGenerator())


@pytest.mark.parametrize("seed", [1.0, True, "1"])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(ArgumentTypeError, match="seed"):
        SecureGenerator(seed)


def test_a_state_knows_only_the_future():
    generator = SecureGenerator(1)
    before = generator.words(64)
    state = generator.state()
    again = SecureGenerator.from_state(state, seeded=True)
    later = generator.words(64)
    assert np.array_equal(again.words(64), later)
    # The new key is not the old one, and its stream does not meet the old stream.
    assert state != SecureGenerator(1)._key.astype("<u4").tobytes()
    assert not set(before.tolist()) & set(later.tolist())


def test_a_key_that_was_given_is_not_private():
    for seeded in (True, False):
        generator = SecureGenerator.from_state(bytes(32), seeded=seeded)
        assert generator.seeded
        assert "key was given" in generator.why_not_private
    assert not SecureGenerator().why_not_private


def test_a_subclass_is_not_private():
    class Quiet(SecureGenerator):
        def rounded_normal(self, n, scale):
            return np.zeros(n)

    assert Quiet().seeded
    assert "subclass" in Quiet().why_not_private
    assert Quiet.from_state(bytes(32), seeded=False).seeded
    for name in ("seeded", "_why"):
        with pytest.raises(TypeError, match=name):
            type("Lying", (SecureGenerator,), {name: False})


def test_an_instance_keeps_its_methods():
    generator = SecureGenerator()
    with pytest.raises(AttributeError):
        generator.rounded_normal = lambda n, scale: np.zeros(n)
    with pytest.raises(AttributeError):
        SecureGenerator(1).seeded = False


def test_a_forked_child_draws_another_key():
    generator = SecureGenerator()
    generator.words(1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, generator.words(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 32) != generator.words(4).tobytes()
    os.close(read)
    os.close(write)


@given(st.floats(0.0, 12.0))
def test_tail_probability_against_mpmath(x):
    with mpmath.workdps(130):
        exact = mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) / 2
        ours = tail_probability(Fraction(x))
        error = abs(mpmath.mpf(ours.numerator) / ours.denominator - exact)
    assert error < mpmath.mpf("1e-100")


@given(st.floats(min_value=2.0**-40, max_value=0.5, exclude_max=True))
def test_quantile_is_within_a_sixteenth_of_its_budget(p):
    with mpmath.workdps(50):
        exact = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(p))
        error = abs(mpmath.mpf(training.normal_tail_quantile(p)) - exact)
    assert error <= 2.0**-50 * (1 + float(exact))


@pytest.mark.long
@given(st.integers(0, 2**64 - 1), st.floats(1e-3, 2.0**39))
def test_decided_integers_are_the_exact_ones(word, scale):
    out, undecided = np.empty(1), np.empty(1, np.uintp)
    count = training.rounded_normal(np.array([word], np.uint64), scale, out, undecided)
    extension = iter(np.random.default_rng(word % 2**32).integers(0, 2**63, 50).tolist())
    exact = nearest_integer(word, scale, lambda: next(extension))
    if not count:
        assert out[0] == exact


def exact_integer(word, extension, scale):
    """Invert the tail with mpmath, for the number that word and extension begin."""
    with mpmath.workdps(80):
        tail = (mpmath.mpf((word >> 1) * 2**64 + extension) + 0.5) / mpmath.mpf(2) ** 128
        z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * tail)
        j = int(mpmath.nint(z * mpmath.mpf(scale)))
    return -j if word & 1 else j


@pytest.mark.long
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.floats(1e-3, 2.0**30))
def test_the_last_word_against_mpmath(word, extension, scale):
    more = iter([extension])
    try:
        ours = nearest_integer(word, scale, lambda: next(more))
    except StopIteration:
        return  # 128 bits do not decide
    assert ours == exact_integer(word, extension, scale)


@given(st.integers(0, 5), st.floats(0.6, 40.0), st.integers(-3, 2), st.booleans())
def test_words_next_to_a_boundary(j, scale, offset, negative):
    # The tail probability of a boundary, cut to 128 bits, and its neighbours.
    with mpmath.workdps(80):
        x = (mpmath.mpf(j) + 0.5) / mpmath.mpf(scale)
        bits = int(mpmath.erfc(x / mpmath.sqrt(2)) / 2 * mpmath.mpf(2) ** 128) + offset
    word, extension = bits >> 64 << 1 | negative, bits & (2**64 - 1)
    more = iter([extension])
    try:
        ours = nearest_integer(word, scale, lambda: next(more))
    except StopIteration:
        return
    assert abs(ours) == (j if offset >= 0 else j + 1)
    assert ours == exact_integer(word, extension, scale)


def test_small_words_are_always_decided_exactly():
    words = np.array([0, 1, 2, 3, 2**20, 2**21 - 1], np.uint64)
    out, undecided = np.empty(words.size), np.empty(words.size, np.uintp)
    assert training.rounded_normal(words, 1.0, out, undecided) == words.size


def test_fine_grids_are_normal():
    drawn = SecureGenerator(5).rounded_normal(200_000, 2.0**30) / 2.0**30
    assert stats.kstest(drawn, "norm").pvalue > 1e-6
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.012


@pytest.mark.parametrize("scale", [0, 2**20 + 1, -1])
def test_discrete_scale_out_of_range(scale):
    with pytest.raises(DomainError):
        SecureGenerator(1).discrete_gaussian(1, scale)


@pytest.mark.parametrize("scale", [0.0, math.nan, math.inf, 2.0**40])
def test_scale_out_of_range(scale):
    with pytest.raises(DomainError):
        SecureGenerator(1).rounded_normal(1, scale)


def test_poisson_sample():
    generator = SecureGenerator(7)
    sizes = [generator.subset(300_000, 0.01).size for _ in range(40)]
    assert abs(np.mean(sizes) - 3000) < 6 * math.sqrt(3000 * 0.99 / 40)
    hits = np.zeros(50)
    for _ in range(4000):
        hits[generator.subset(50, 0.3)] += 1
    assert stats.chisquare(hits).pvalue > 1e-6
    assert generator.subset(5, 1.0).tolist() == [0, 1, 2, 3, 4]
    assert generator.subset(5, 0.0).size == 0
    assert generator.subset(0, 0.5).size == 0


@given(st.floats(1e-200, 1e200))
def test_grids_are_powers_of_two(step):
    grid = Grid.at_most(step)
    assert grid.step <= step < 2 * grid.step
    assert math.frexp(grid.step)[0] == 0.5


def test_released_values_lie_on_the_grid():
    generator, grid = SecureGenerator(1), Grid(2.0**-12)
    value = np.random.default_rng(0).normal(size=1000)
    for released in (
        grid.release_gaussian(value, 0.7, generator),
        grid.release_discrete_gaussian(value, 3000, generator),
    ):
        scaled = released / grid.step
        assert np.array_equal(scaled, np.rint(scaled))
        assert 0.6 < (released - value).std() < 0.85


def test_a_grid_must_be_fine_and_exact():
    with pytest.raises(DomainError, match="power of two"):
        Grid(0.3)
    with pytest.raises(DomainError, match="exactly"):
        Grid(2.0**-40).require_range(1e4)


@pytest.mark.parametrize("scale", [1, 3, 40])
def test_the_discrete_gaussian_has_its_tails(scale):
    """The tails hold δ: a cut at four scales costs 1e-3 of it, and no bin of a chi-square test."""
    n = 300_000
    drawn = np.abs(SecureGenerator(6).discrete_gaussian(n, scale))
    support = np.arange(-60 * scale, 60 * scale + 1)
    weights = np.exp(-(support**2) / (2.0 * scale**2))
    for scales in (3, 4):
        tail = weights[np.abs(support) > scales * scale].sum() / weights.sum()
        low, high = stats.binom.ppf([1e-7, 1 - 1e-7], n, tail)
        assert low <= (drawn > scales * scale).sum() <= high
        assert low > 0 or tail * n < 17


def test_coins_of_far_records_are_independent():
    n = 2**18
    inside = np.zeros(n, bool)
    inside[SecureGenerator(8).subset(n, 0.5)] = True
    for lag in (1, 8, 64, 1000, 2**12, 2**14, 2**16, 2**17):
        same = (inside[lag:] == inside[:-lag]).sum()
        assert abs(same - (n - lag) / 2) < 6.0 * math.sqrt((n - lag) / 4), lag


def test_no_word_is_handed_out_twice():
    generator = SecureGenerator(9)
    drawn = np.concatenate([generator.words(n) for n in (1, 3, 1, 7, 8, 9, 2, 64, 5, 1000, 1, 1)])
    assert np.unique(drawn).size == drawn.size
