"""The platform's libm keeps the budget of rounding.h, ACCT_LIBM: certificates rely on it."""

import re

import mpmath
import numpy as np
import pytest

from support.native import SOURCES, Elementary, core_file

U = 2.0**-53
N = 600


def budget(name):
    if not SOURCES.is_dir():
        pytest.skip("the C sources are not beside these tests")
    text = core_file("rounding.h").read_text()
    factor = re.search(r"#define ACCT_LIBM \(([0-9.]+) \* ACCT_U\)", text)
    # erfc is trusted to twice as much.
    return float(factor.group(1)) * U * (2.0 if name == "erfc" else 1.0)


def log_uniform(rng, low, high):
    return np.exp(rng.uniform(np.log(low), np.log(high), N))


def signed(rng, low, high):
    return rng.choice([-1.0, 1.0], N) * log_uniform(rng, low, high)


def draw(name, rng):
    if name in ("exp", "expm1"):
        return np.concatenate([rng.uniform(-705.0, 709.0, N), signed(rng, 1e-300, 2.0)])
    if name == "log":
        return np.concatenate([log_uniform(rng, 1e-300, 1e300), rng.uniform(0.5, 2.0, N)])
    if name == "log1p":
        near_minus_one = np.exp(rng.uniform(-36.0, 0.0, N)) - 1.0
        return np.concatenate(
            [signed(rng, 1e-300, 0.9), log_uniform(rng, 0.1, 1e300), near_minus_one]
        )
    if name == "erfc":
        # The last: where glibc's is known to err most, by 7.14 units.
        known = [float.fromhex("0x1.3fafa066d0f45p+0")]
        return np.concatenate([rng.uniform(-7.0, 26.0, N), signed(rng, 1e-300, 1.0), known])
    return np.concatenate([signed(rng, 1e-300, 1.0), rng.uniform(-1e9, 1e9, N)])


@pytest.fixture(scope="module")
def elementary(tmp_path_factory):
    return Elementary(tmp_path_factory.mktemp("libm"))


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "sin", "cos", "erfc"])
def test_relative_error(elementary, name):
    x = draw(name, np.random.default_rng(5))
    values = elementary(f"libm_{name}", x)
    with mpmath.workdps(50):
        exact = getattr(mpmath, name)
        for argument, value in zip(x.tolist(), values.tolist(), strict=True):
            truth = exact(mpmath.mpf(argument))
            assert abs(mpmath.mpf(value) - truth) <= budget(name) * abs(truth), argument


def test_relative_error_of_the_arctangent(elementary):
    rng = np.random.default_rng(6)
    y, x = signed(rng, 1e-100, 1e100), signed(rng, 1e-100, 1e100)
    close = signed(rng, 0.1, 10.0), signed(rng, 0.1, 10.0)
    y, x = np.concatenate([y, close[0]]), np.concatenate([x, close[1]])
    values = elementary("libm_atan2", y, x)
    with mpmath.workdps(50):
        for a, b, value in zip(y.tolist(), x.tolist(), values.tolist(), strict=True):
            truth = mpmath.atan2(mpmath.mpf(a), mpmath.mpf(b))
            assert abs(mpmath.mpf(value) - truth) <= budget("atan2") * abs(truth), (a, b)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("name", "least", "most"), [("exp", -746.0, -705.0), ("erfc", 26.0, 28.5)])
def test_absolute_error_below_the_normal_doubles(elementary, name, least, most):
    x = np.random.default_rng(7).uniform(least, most, 4000)
    values = elementary(f"libm_{name}", x)
    with mpmath.workdps(50):
        for argument, value in zip(x.tolist(), values.tolist(), strict=True):
            truth = getattr(mpmath, name)(mpmath.mpf(argument))
            error = abs(mpmath.mpf(value) - truth)
            assert error <= budget(name) * truth + mpmath.mpf("2.5e-323"), argument
