"""The constants written into the C sources, recomputed."""

import re

import mpmath
import pytest

from support.native import SOURCES, core_file


def table(text, name):
    body = re.search(rf"{name}\[\w+\] = \{{([^}}]*)\}}", text).group(1)
    return [float(number) for number in body.split(",")]


def source(name):
    if not SOURCES.is_dir():
        pytest.skip("the C sources are not beside these tests")
    return core_file(name).read_text()


def test_gauss_legendre_is_correctly_rounded():
    text = source("gauss_legendre.h")
    order = int(re.search(r"#define ACCT_GL_ORDER (\d+)", text).group(1))
    nodes, weights = table(text, "ACCT_GL_NODE"), table(text, "ACCT_GL_WEIGHT")
    assert len(nodes) == len(weights) == order
    with mpmath.workdps(50):
        for i, (node, weight) in enumerate(zip(nodes, weights, strict=True)):
            x = -mpmath.cos(mpmath.pi * (i + mpmath.mpf("0.75")) / (order + mpmath.mpf("0.5")))
            for _ in range(8):  # Newton, from well inside the basin
                below = mpmath.legendre(order - 1, x)
                value = mpmath.legendre(order, x)
                slope = order * (below - x * value) / (1 - x**2)
                x -= value / slope
            assert float(x) == node
            assert float(2 / ((1 - x**2) * slope**2)) == weight


@pytest.mark.parametrize(("name", "value"), [("ACCT_U", 2.0**-53), ("ACCT_PI", float(mpmath.pi))])
def test_named_constants(name, value):
    assert float(re.search(rf"#define {name} ([0-9.e-]+)", source("rounding.h")).group(1)) == value


def test_reduction_constants_of_vmath():
    """High parts have trailing zeros, so that k times them is exact; the sum is the constant."""
    text = source("vmath.h")
    high, low = (
        float(re.search(rf"#define ACCT_LN2_{part} (\S+)", text).group(1)) for part in ("HI", "LO")
    )
    with mpmath.workdps(50):
        assert abs(mpmath.mpf(high) + mpmath.mpf(low) - mpmath.log(2)) < mpmath.mpf(2) ** -85
    assert (high * 2.0**32).is_integer()
    parts = [float(x) for x in re.findall(r"k \* (1\.57\d+e\+00|6\.07\d+e-11|2\.02\d+e-21)", text)]
    assert len(parts) == 3
    with mpmath.workdps(60):
        assert abs(sum(map(mpmath.mpf, parts)) - mpmath.pi / 2) < mpmath.mpf(2) ** -100
    assert (parts[0] * 2.0**33).is_integer()
    assert (parts[1] * 2.0**66).is_integer()
