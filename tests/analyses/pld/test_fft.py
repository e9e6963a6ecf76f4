"""Transforms of laws: their round-off is within the stated bound of the theorem."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.fft
from flint import acb

from accountant._core import tools as core
from accountant.analyses.pld import fft


class TestTransforms:
    @pytest.mark.parametrize("size", [96, 128, 192, 256])
    def test_round_off_of_the_transform_is_within_the_stated_bound(self, size):
        """The constant of Theorem G4, against sums in ball arithmetic."""
        rng = np.random.default_rng(size)
        x = rng.random(size) * np.exp(-20 * rng.random(size))
        exact = acb.dft([acb(float(v)) for v in x])
        got = np.fft.rfft(x)
        error = norm = 0.0
        for value, truth in zip(got, exact, strict=False):
            difference = acb(float(value.real), float(value.imag)) - truth
            error += float(abs(difference).mid()) ** 2
            norm += float(abs(truth).mid()) ** 2
        assert math.sqrt(error / norm) <= fft.fft_error(size)

    @pytest.mark.long(keep=3)
    @pytest.mark.parametrize("size", [2**12, 3 * 2**12, 2**16, 3 * 2**17, 2**20])
    def test_round_off_of_long_transforms(self, size):
        if np.finfo(np.longdouble).nmant < 63:
            pytest.skip("no longer double to compare with")
        rng = np.random.default_rng(size)
        for x in (rng.random(size), np.exp(-np.arange(size) / 50.0), rng.standard_normal(size)):
            exact = scipy.fft.rfft(x.astype(np.longdouble))
            error = np.linalg.norm((np.fft.rfft(x) - exact).astype(complex))
            assert error <= fft.fft_error(size) * np.linalg.norm(exact.astype(complex))
            apart = np.abs((np.fft.rfft(x) - exact).astype(complex)).max()
            assert apart <= fft.fft_error(size) * np.abs(x).sum()
            y = exact.astype(complex)
            back = scipy.fft.irfft(y.astype(np.clongdouble), size)
            error = np.linalg.norm((np.fft.irfft(y, size) - back).astype(float))
            assert error <= fft.fft_error(size) * np.linalg.norm(back.astype(float))

    def test_error_of_a_composition_is_within_its_bound(self):
        rng = np.random.default_rng(7)
        for count in (2, 5, 33):
            a = rng.random(40)
            a /= a.sum()
            total = fft.compose([fft.Tilted(a, 0, count)], 0, 2048, 0.0)
            exact = np.array([1], dtype=object)
            scaled = np.array([int(v * 2**60) for v in a], dtype=object)
            assert all(int(v * 2**60) == v * 2**60 for v in a[a > 2**-7])
            for _ in range(count):
                exact = np.convolve(exact, scaled)
            exact = np.array([float(Fraction(int(v), 2 ** (60 * count))) for v in exact])
            error = np.linalg.norm(total.weights[: exact.size] - exact)
            assert error <= total.error + 1e-15
            assert total.error <= 1e-11

    def test_power(self):
        z = np.array([0.3 + 0.4j, 1.0, -1j, 0.0])
        for power in (1, 2, 3, 10, 1001):
            out = np.ones(4, dtype=complex)
            core.multiply_power(z, power, out)
            assert out == pytest.approx(z**power, rel=1e-12, abs=1e-38)


mp = mpmath.mpf

U = mp(2) ** -53


pytestmark = pytest.mark.usefixtures("sixty_digits")


def near(found, truth, relative=1e-9):
    return abs(mp(found) - truth) <= relative * abs(truth)


def test_sizes_are_the_least_of_their_kind():
    sizes = sorted({2**a for a in range(1, 23)} | {3 * 2**a for a in range(22)})
    for least in (*range(2, 400), 1023, 1024, 1025, 1536, 1537, 10**6):
        found = fft.fft_size(least)
        assert found == next(n for n in sizes if n >= least)


@pytest.mark.parametrize("size", [2, 3, 96, 2**20])
def test_the_error_of_a_transform_is_the_theorems(size):
    assert near(fft.fft_error(size), 8 * U * (mpmath.log(size, 2) + 1))


def tilted(*parts):
    return [fft.Tilted(np.array(w, dtype=float), first, times) for w, first, times in parts]


COMPOSITIONS = [
    (tilted(([1.0], 0, 1), ([1.0], 0, 1)), 4),
    (tilted(([0.5, 0.25, 0.25], -3, 4)), 16),
    (tilted(([0.5, 0.25, 0.25], 1, 40), ([0.125, 0.875], -7, 3)), 128),
    (tilted(([0.75, 0.75], 0, 6)), 12),
]


def exact_weights(parts, size):
    """The cyclic convolution, in fractions, from the first knot on."""
    weights = [Fraction(0)] * size
    weights[0] = Fraction(1)
    for part in parts:
        for _ in range(part.times):
            after = [Fraction(0)] * size
            for i, w in enumerate(part.weights.tolist()):
                for j, v in enumerate(weights):
                    after[(i + j) % size] += Fraction(w) * v
            weights = after
    return weights


@pytest.mark.parametrize(("parts", "size"), COMPOSITIONS)
def test_the_error_of_a_composition_is_the_theorems(parts, size):
    """Theorem G5 with the constants the code chose: rounded up by some per cent."""
    start = sum(part.first * part.times for part in parts)
    exact = exact_weights(parts, size)
    # By Parseval both norms are those of the weights; half of a spectrum stands for all of it.
    norm = mpmath.sqrt(sum(mp(w.numerator) / w.denominator * mp(float(w)) for w in exact))
    half = np.abs(np.fft.rfft([float(w) for w in exact])) ** 2
    spectrum = mpmath.sqrt(2 * mp(float(half.sum())))
    relative = 8 * U * (mpmath.log(size, 2) + 1)
    growth, lipschitz = mp(1), mp(0)
    for part in parts:
        error = relative * mpmath.sqrt(size) * mpmath.sqrt(sum(mp(w) ** 2 for w in part.weights))
        growth *= (max(sum(map(mp, part.weights)), 1) + error) ** part.times
        lipschitz += part.times * error
    count = sum(part.times for part in parts) + len(parts)
    product = mp("1.01") * mpmath.expm1(mp("3.1") * U * count) * spectrum
    bound = (growth * lipschitz + product) / mpmath.sqrt(size) + mp("1.01") * relative * norm
    for first in (start, start - 2, start + 1):
        total = fft.compose(parts, first, size, 0.125)
        assert near(total.error, mp("1.01") * bound, 1e-6)
        assert (total.first, total.outside, total.whole) == (first, 0.125, first <= start)
        found = total.weights.tolist()
        shifted = [exact[(first - start + j) % size] for j in range(size)]
        difference = sum((mp(a) - mp(b.numerator) / b.denominator) ** 2
                         for a, b in zip(found, shifted, strict=True))  # fmt: skip
        assert mpmath.sqrt(difference) <= total.error


def test_the_error_of_a_long_composition_grows_with_the_sums():
    # A sum of weights is a few units off: a millionth of a millionth is left for it, each time.
    count, size = 10**7, 4
    total = fft.compose(tilted(([1.0], 0, count)), 0, size, 0.0)
    relative = 8 * U * 3
    error = relative * 2 * (1 + mp("1e-9"))
    growth = ((1 + mp("1e-12")) + error) ** count
    product = mp("1.01") * mpmath.expm1(mp("3.1") * U * (count + 1)) * mpmath.sqrt(6)
    expected = (growth * count * error + product) / 2 + mp("1.01") * relative
    assert near(total.error, mp("1.01") * expected, 1e-9)


def test_one_law_once_is_left_alone():
    weights = np.array([0.25, 0.75])
    total = fft.compose([fft.Tilted(weights, -4, 1)], -9, 64, 0.5)
    assert total == fft.Total(weights, -4, 0.0, 0.0, True)
    twice = fft.compose([fft.Tilted(weights, -4, 2)], -8, 4, 0.0)
    assert twice.weights == pytest.approx([0.0625, 0.375, 0.5625, 0.0])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("outside", [0.0, 1e-9])
@pytest.mark.parametrize("last", [40, 15, 3])
@pytest.mark.parametrize("epsilon", [-0.3, 0.0, 0.05, 0.1, 1.07, 2.8])
def test_sums_and_their_errors(whole, outside, last, epsilon):
    weights, first = np.linspace(0.1, 2.0, 20) / 20, -4
    offset, spacing, tilt, error = 0.05, 0.1, 3.0, 1e-10
    if not whole and epsilon < offset + first * spacing:
        epsilon = -0.31
    total = fft.Total(weights, first, error, outside, whole)
    value, bound, nearest = fft.total_sums(total, offset, spacing, tilt, epsilon, last)
    above = [
        (j, mp(offset) + j * mp(spacing) - mp(epsilon))
        for j in range(first if whole else -10, 60)
        if mp(offset) + j * mp(spacing) > epsilon
    ]
    assert near(nearest, above[0][1], 1e-12)
    terms = [
        (mp(weights[j - first]), mpmath.exp(-tilt * (v - nearest)), v)
        for j, v in above
        if first <= j <= last and j - first < weights.size
    ]
    assert near(value, sum(w * e * -mpmath.expm1(-v) for w, e, v in terms), 1e-12)
    factors = [e * -mpmath.expm1(-v) for _, e, v in terms]
    expected = mp("4e-13") * sum(w * e for w, e, _ in terms) + mp("1e-290")
    expected += error * mpmath.sqrt(sum(f * f for f in factors))
    if outside:
        end = mp(offset) + (first + weights.size) * mp(spacing) - mp(epsilon)
        expected += mp(outside) * (max(factors, default=0) + mpmath.exp(tilt * (nearest - end)))
    assert near(bound, mp("1.0001") * expected)
