"""vmath.h keeps the error budget its header states, which the certificates rely on.

Sound: relative to mpmath at 40 digits, at corners and random arguments, and to long double at many
more where that is wider than double.
"""

import mpmath
import numpy as np
import pytest

from support.native import Elementary

U = 2.0**-53
EPS = np.nextafter(1.0, 2.0) - 1.0


def neighbours(*points):
    """Return the points and the doubles next to them."""
    points = np.array(points, dtype=np.float64)
    return np.concatenate(
        [points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)], dtype=np.float64
    )


def spread(rng, low, high, n):
    """Draw ± log-uniform magnitudes."""
    return rng.choice([-1.0, 1.0], n) * np.exp(rng.uniform(np.log(low), np.log(high), n))


def exponents(rng, n):
    """Arguments of exp and its relatives: all magnitudes, and every reduction's seam."""
    seams = np.log(2.0) * (np.arange(-1000, 1010) + 0.5)
    return np.concatenate(
        [
            neighbours(*seams[:: max(1, 20000 // n)], 0.6, -0.6, 0.35, -0.35, -700.0, 709.0, 1.0),
            rng.uniform(-700.0, 709.0, n),
            rng.uniform(-2.0, 2.0, n),
            spread(rng, 1e-300, 600.0, n),
        ]
    ).clip(-700.0, 709.0)


def above_minus_one(rng, n):
    half = np.sqrt(0.5)
    return np.concatenate(
        [
            neighbours(half - 1.0, 2.0 * half - 1.0, 4.0 * half - 1.0, 1.0, -0.5, 1e16, 2.0**53),
            [np.nextafter(-1.0, 0.0), -1.0 + 2.0**-40, 1e308, 1e-308],
            rng.uniform(-1.0 + EPS, 3.0, n),
            -1.0 + np.exp(rng.uniform(-36.0, 0.0, n)),
            spread(rng, 1e-300, 0.5, n),
            np.exp(rng.uniform(-5.0, 709.0, n)),
        ]
    )


def positive(rng, n):
    seams = np.sqrt(0.5) * 2.0 ** np.arange(-1000, 1001, 50)
    return np.concatenate(
        [
            neighbours(*seams),
            neighbours(0.5, 2.0, 1e308, 1e-307),
            np.nextafter([1.0, 1.0], [0.0, 2.0]),
            rng.uniform(0.25, 4.0, n),
            1.0 + spread(rng, 1e-15, 0.5, n),
            np.exp(rng.uniform(-707.0, 709.0, n)),
        ]
    )


def angles(rng, n):
    quarter = np.pi / 4.0
    most = 2.0**20
    return np.concatenate(
        [
            neighbours(*(quarter * np.arange(-9, 10))),
            neighbours(*(2.0 * quarter * np.arange(600000, 660000, 60000 // 50))),
            rng.uniform(-quarter, quarter, n),
            spread(rng, 1e-300, quarter, n),
            rng.uniform(-most, most, n),
        ]
    ).clip(-most, most)


def e2(x):
    """e^x - 1 - x by its series where that does not cancel."""
    if abs(x) < 1:
        return mpmath.nsum(lambda k: x**k / mpmath.factorial(k), [2, 40])
    return mpmath.expm1(x) - x


def long_e2(x):
    total, term = np.zeros_like(x), x * x / 2
    for k in range(3, 45):
        total, term = total + term, term * x / k
    return np.where(np.abs(x) < 2, total, np.expm1(x) - x)


# name, arguments, (mpmath, long double), error relative to |f|, or to 1 if absolute, in units u
FUNCTIONS = {
    "vexp": (exponents, mpmath.exp, np.exp, 5.0),
    "vexpm1": (exponents, mpmath.expm1, np.expm1, 5.0),
    "ve2": (exponents, e2, long_e2, 32.0),
    "vlog1p": (above_minus_one, mpmath.log1p, np.log1p, 5.0),
    "vlog": (positive, mpmath.log, np.log, 5.0),
}


@pytest.fixture(scope="module")
def elementary(tmp_path_factory):
    return Elementary(tmp_path_factory.mktemp("elementary"))


def relative_error(value, truth):
    if truth == 0:
        return 0.0 if value == 0.0 else np.inf
    return float(abs((mpmath.mpf(value) - truth) / truth))


def is_normal(truth):
    return truth == 0 or abs(truth) >= np.finfo(float).tiny


@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error(elementary, name):
    draw, exact, _, budget = FUNCTIONS[name]
    x = draw(np.random.default_rng(1), 300)
    worst = 0.0
    with mpmath.workdps(40):
        for argument, value in zip(x.tolist(), elementary(name, x).tolist(), strict=True):
            truth = exact(mpmath.mpf(argument))
            if is_normal(truth):
                worst = max(worst, relative_error(value, truth))
    assert worst <= budget * U, worst / U


wide = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="long double is not wider")


@wide
@pytest.mark.parametrize("name", FUNCTIONS)
def test_relative_error_in_bulk(elementary, name):
    draw, _, longer, budget = FUNCTIONS[name]
    x = draw(np.random.default_rng(2), 100_000)
    x = x[np.abs(x) > 1e-140]  # e2 ~ x^2/2 stays a normal number
    truth = longer(x.astype(np.longdouble))
    error = np.abs((elementary(name, x) - truth) / truth)
    assert error.max() <= budget * U, (float(error.max()) / U, x[error.argmax()])


@pytest.mark.parametrize(("name", "exact"), [("sin", mpmath.sin), ("cos", mpmath.cos)])
def test_sine_and_cosine(elementary, name, exact):
    """Absolute error at most 4 u below 2^20, and relative up to pi/4."""
    x = angles(np.random.default_rng(3), 400)
    worst = worst_relative = 0.0
    with mpmath.workdps(40):
        values = elementary(f"vector_{name}", x)
        for argument, value in zip(x.tolist(), values.tolist(), strict=True):
            truth = exact(mpmath.mpf(argument))
            worst = max(worst, float(abs(mpmath.mpf(value) - truth)))
            if abs(argument) <= np.pi / 4.0 and is_normal(truth):
                worst_relative = max(worst_relative, relative_error(value, truth))
    assert worst <= 4.0 * U, worst / U
    assert worst_relative <= 4.0 * U, worst_relative / U


@wide
@pytest.mark.parametrize(("name", "longer"), [("sin", np.sin), ("cos", np.cos)])
def test_sine_and_cosine_in_bulk(elementary, name, longer):
    x = angles(np.random.default_rng(4), 200_000)
    error = np.abs(elementary(f"vector_{name}", x) - longer(x.astype(np.longdouble)))
    assert error.max() <= 4.0 * U, (float(error.max()) / U, x[error.argmax()])


def planes(rng, n):
    """Draw points of all quadrants: of one size, of different ones, next to axes and diagonals."""
    size, other = spread(rng, 1e-290, 1e290, n), spread(rng, 1e-290, 1e290, n)
    near = size * rng.uniform(-3.0, 3.0, n)
    diagonal = rng.choice([-1.0, 1.0], n) * size * (1.0 + spread(rng, 1e-16, 1e-3, n))
    axis = size * spread(rng, 1e-17, 1e-3, n)
    y = np.concatenate([size, size, size, axis, size, [0.0, 1.0, 1.0, -1.0, 1.0, -1.0, 0.0]])
    x = np.concatenate([other, near, diagonal, size, axis, [1.0, 0.0, 1.0, 1.0, -1.0, -1.0, -1.0]])
    return y, x


def test_angles_of_points(elementary):
    y, x = planes(np.random.default_rng(5), 400)
    worst = 0.0
    with mpmath.workdps(40):
        values = elementary("vatan2", y, x)
        for a, b, value in zip(y.tolist(), x.tolist(), values.tolist(), strict=True):
            truth = mpmath.atan2(mpmath.mpf(a), mpmath.mpf(b))
            if is_normal(truth):
                worst = max(worst, relative_error(value, truth))
    assert worst <= 5.0 * U, worst / U


@wide
def test_angles_of_points_in_bulk(elementary):
    y, x = planes(np.random.default_rng(6), 100_000)
    truth = np.arctan2(y.astype(np.longdouble), x)
    normal = np.abs(truth) > np.finfo(float).tiny
    values = elementary("vatan2", y, x)
    error = np.abs((values - truth)[normal] / truth[normal])
    assert error.max() <= 5.0 * U, (float(error.max()) / U, y[normal][error.argmax()])


def test_no_point_has_the_angle_of_a_number(elementary):
    x = np.array([np.nan, 1.0, np.nan])
    assert np.isnan(elementary("vatan2", x, x[::-1].copy())[[0, 2]]).all()
    assert elementary("vatan2", np.zeros(1), np.zeros(1)) == 0.0


def test_exponentials_saturate_instead_of_overflowing(elementary):
    x = np.array([710.0, 1e300, np.inf, -701.0, -1e300, -np.inf])
    ends = elementary("vexp", np.array([709.0] * 3 + [-700.0] * 3))
    assert np.array_equal(elementary("vexp", x), ends)
    assert np.isfinite(elementary("vexpm1", x)).all()
