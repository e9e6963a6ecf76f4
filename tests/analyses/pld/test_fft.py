"""Transforms of laws: their round-off is within the stated bound."""

import math
from fractions import Fraction

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
