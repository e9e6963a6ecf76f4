"""Intervals contain the exact value: against mpmath at 90 digits, zero tolerance."""

import math
import random
from decimal import Decimal

import mpmath
import numpy as np
import pytest

from accountant._basics import intervals as iv


def exact(value):
    return mpmath.mpf(str(value))


def draws(seed):
    draw = random.Random(seed)
    for i in range(400):
        sign = draw.choice([-1, 1])
        yield sign * 10 ** draw.uniform(-320, 3.2) if i % 2 else draw.uniform(-1, 1)
    yield from (0.0, 0.1, -0.1, 1.0, 5e-324, -1 + 2**-53, 2000.0, -2000.0)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "sqrt"])
def test_functions(name):
    with mpmath.workdps(90):
        for x in draws(1):
            if (name == "sqrt" and x < 0) or (name == "log" and x <= 0):
                continue
            if name == "log1p" and x <= -1:
                continue
            bracket = getattr(iv, name)(x)
            truth = getattr(mpmath, name)(mpmath.mpf(x))
            assert exact(bracket.lower) <= truth <= exact(bracket.upper)
            width = exact(bracket.upper) - exact(bracket.lower)
            # -1 + 2**-53 has more digits than an interval.
            assert width <= mpmath.mpf(10) ** (-23 if name == "log1p" else -34) * abs(truth) or (
                truth == 0 and width < 1e-300
            )
            assert mpmath.mpf(bracket.down()) <= truth <= mpmath.mpf(bracket.up())


@pytest.mark.long
def test_arithmetic():
    operations = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
    }
    with mpmath.workdps(700):
        for x in draws(2):
            for y in (3.0, -1e-200, 0.1):
                for operation in operations.values():
                    truth = operation(mpmath.mpf(x), mpmath.mpf(y))
                    for bracket in (
                        operation(iv.of(x), y),
                        operation(x, iv.of(y)),
                        operation(iv.of(x) + iv.of(0.0), iv.of(y)),
                    ):
                        assert exact(bracket.lower) <= truth <= exact(bracket.upper)


def test_wide_intervals_multiply_by_their_corners():
    a = iv.Interval(iv.of(-2.0).lower, iv.of(3.0).upper)
    assert ((a * a).lower, (a * a).upper) == (-6, 9)
    assert ((-a).lower, (-a).upper) == (-3, 2)
    assert ((1.0 - a).lower, (1.0 - a).upper) == (-2, 3)
    with pytest.raises(ZeroDivisionError):
        1.0 / a


def test_no_overflow():
    assert iv.exp(1e6).down() == 1.7976931348623157e308
    assert iv.exp(1e6).up() == math.inf
    assert iv.log(iv.exp(1e6)).down() <= 1e6 <= iv.log(iv.exp(1e6)).up()
    assert iv.exp(-1e300).down() == 0.0
    assert iv.exp(-1e300).up() == 5e-324


def test_exact_roots():
    assert iv.sqrt(25.0).down() == iv.sqrt(25.0).up() == 5.0
    with mpmath.workdps(90):
        assert exact(iv.sqrt(2.0).lower) ** 2 < 2 < exact(iv.sqrt(2.0).upper) ** 2


def test_ends_are_doubles_on_the_right_side():
    third = iv.of(1.0) / 3.0
    assert third.up() == math.nextafter(third.down(), 1.0)
    assert iv.of(0.5).up() == iv.of(0.5).down() == 0.5


def test_refuses():
    with pytest.raises(ValueError, match="positive"):
        iv.log(0.0)


def test_numpy_expm1_keeps_its_budget():
    # The loss tables trust it to 8 roundings.
    rng = np.random.default_rng(3)
    x = -np.concatenate([np.exp(rng.uniform(-300, 6.5, 1500)), rng.uniform(0, 2, 1500)])
    with mpmath.workdps(60):
        for argument, value in zip(x.tolist(), np.expm1(x).tolist(), strict=True):
            truth = mpmath.expm1(mpmath.mpf(argument))
            assert abs(mpmath.mpf(value) - truth) <= 8 * mpmath.mpf(2) ** -53 * abs(truth)


def test_erf_keeps_its_budget():
    rng = np.random.default_rng(4)
    budget = 8 * mpmath.mpf(2) ** -53
    with mpmath.workdps(60):
        for x in np.concatenate([np.exp(rng.uniform(-600, 1.8, 800)), rng.uniform(0, 6, 800)]):
            truth = mpmath.erf(mpmath.mpf(float(x)))
            assert abs(mpmath.mpf(math.erf(float(x))) - truth) <= budget * truth


def test_infinite_over_infinite_is_anything():
    infinite = iv.of(math.inf)
    assert (infinite / infinite).lower <= 0
    assert (infinite / infinite).up() == math.inf
    assert (-infinite / infinite).down() == -math.inf
    some = iv.Interval(iv.of(2.0).lower, infinite.upper)
    assert (some / some).lower <= 0
    assert (some / some).up() == math.inf


@pytest.mark.parametrize("ends", [(-1, 2), (-1, 0), (0, 2), (0, 0), ("-0.5", "0.5")])
def test_nothing_is_divided_by_what_may_be_zero(ends):
    lower, upper = map(Decimal, ends)
    for call in (lambda y: iv.of(1.0) / y, lambda y: 1.0 / y):
        with pytest.raises(ZeroDivisionError):
            call(iv.Interval(lower, upper))
