"""Outward-rounded decimal arithmetic: a formula written once, certified in both directions.

An :class:`Interval` holds two 40-digit decimals between which the exact value lies. Sums, products
and quotients are rounded outward by the decimal contexts; the exponential and the logarithm of
:mod:`decimal` are correctly rounded, and their ends are moved out by one unit more. The range of
exponents holds e**(10**17), so nothing overflows that a privacy loss can be. A formula costs some
ten microseconds: searches run on floats, and only the number returned is evaluated here.
"""

from __future__ import annotations

import math
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    Context,
    Decimal,
    InvalidOperation,
)
from itertools import product
from typing import TypeAlias

Number: TypeAlias = "Interval | Decimal | float"

DIGITS = 40
# Where series take over from the logarithm and the exponential, which would cancel against 1.
SMALL = Decimal("0.1")
ZERO, ONE = Decimal(0), Decimal(1)


def _context(rounding: str) -> Context:
    return Context(
        prec=DIGITS, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation]
    )


DOWN, UP = _context(ROUND_FLOOR), _context(ROUND_CEILING)


class Interval:
    """An enclosure ``lower <= x <= upper`` of a real number."""

    __slots__ = ("lower", "upper")

    def __init__(self, lower: Decimal, upper: Decimal) -> None:
        self.lower = lower
        self.upper = upper

    def __repr__(self) -> str:
        return f"Interval({self.lower!r}, {self.upper!r})"

    def __neg__(self) -> Interval:
        # copy_negate: unary minus would round to the thread's own context.
        return Interval(self.upper.copy_negate(), self.lower.copy_negate())

    def __add__(self, other: Number) -> Interval:
        y = of(other)
        return Interval(DOWN.add(self.lower, y.lower), UP.add(self.upper, y.upper))

    __radd__ = __add__

    def __sub__(self, other: Number) -> Interval:
        y = of(other)
        return Interval(DOWN.subtract(self.lower, y.upper), UP.subtract(self.upper, y.lower))

    def __rsub__(self, other: Number) -> Interval:
        return of(other) - self

    def __mul__(self, other: Number) -> Interval:
        y = of(other)
        # An end at infinity stands for all that is finite: nothing times it is nothing.
        ends = product((self.lower, self.upper), (y.lower, y.upper))
        pairs = [(a, b) if a and b else (ZERO, ZERO) for a, b in ends]
        low, high = (DOWN.multiply(*p) for p in pairs), (UP.multiply(*p) for p in pairs)
        return Interval(min(low), max(high))

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Interval:
        y = of(other)
        if y.lower <= 0 <= y.upper:
            raise ZeroDivisionError("division by an interval that contains zero")
        pairs: list[tuple[Decimal, Decimal]] = []
        for a, b in product((self.lower, self.upper), (y.lower, y.upper)):
            if a.is_infinite() and b.is_infinite():
                # What grows over what grows is anything from 0 on.
                pairs += [(ZERO, b), (a, ONE.copy_sign(b))]
            else:
                pairs.append((a, b))
        return Interval(min(DOWN.divide(*p) for p in pairs), max(UP.divide(*p) for p in pairs))

    def __rtruediv__(self, other: Number) -> Interval:
        return of(other) / self

    def up(self) -> float:
        """Return the smallest double that is certainly not below the value."""
        value = float(self.upper)
        return value if not Decimal(value) < self.upper else math.nextafter(value, math.inf)

    def down(self) -> float:
        """Return the largest double that is certainly not above the value."""
        value = float(self.lower)
        return value if not Decimal(value) > self.lower else math.nextafter(value, -math.inf)


def of(value: Number) -> Interval:
    """Enclose a float or decimal (exactly, or to 40 digits)."""
    if isinstance(value, Interval):
        return value
    return Interval(DOWN.create_decimal(value), UP.create_decimal(value))


def exp(x: Number) -> Interval:
    """Enclose e**x."""
    y = of(x)
    # At 0 both functions are exact, and results at ε = 0 stay so.
    return Interval(
        _next_below(DOWN.exp(y.lower)) if y.lower else Decimal(1),
        UP.next_plus(UP.exp(y.upper)) if y.upper else Decimal(1),
    )


def log(x: Number) -> Interval:
    """Enclose log(x), x > 0."""
    y = of(x)
    if not y.lower > 0:
        raise ValueError("log of an interval that is not positive")
    return Interval(
        DOWN.next_minus(DOWN.ln(y.lower)) if y.lower != 1 else Decimal(0),
        UP.next_plus(UP.ln(y.upper)) if y.upper != 1 else Decimal(0),
    )


def expm1(x: Number) -> Interval:
    """Enclose e**x - 1 to full relative precision."""
    y = of(x)
    return Interval(_expm1(y.lower).lower, _expm1(y.upper).upper)


def log1p(x: Number) -> Interval:
    """Enclose log(1 + x), x > -1, to full relative precision."""
    y = of(x)
    return Interval(_log1p(y.lower).lower, _log1p(y.upper).upper)


def sqrt(x: Number) -> Interval:
    """Enclose the square root, x >= 0."""
    y = of(x)
    # The root is rounded half even, whatever the context says.
    lower, upper = DOWN.sqrt(y.lower), UP.sqrt(y.upper)
    return Interval(
        lower if UP.multiply(lower, lower) <= y.lower else _next_below(lower),
        upper if DOWN.multiply(upper, upper) >= y.upper else UP.next_plus(upper),
    )


def _next_below(value: Decimal) -> Decimal:
    """Return the decimal below a value that is known not to be negative."""
    return max(DOWN.next_minus(value), Decimal(0))


def _expm1(x: Decimal) -> Interval:
    if x.copy_abs() >= SMALL:
        return exp(x) - 1.0
    # 1 + x/2! + x²/3! + …; what is left out is below 1.2 times the first term left out.
    term, total, n = of(1.0), of(1.0), 1
    while max(term.lower.copy_abs(), term.upper.copy_abs()) > Decimal("1e-42"):
        n += 1
        term = term * x / float(n)
        total = total + term
    rest = max(term.lower.copy_abs(), term.upper.copy_abs())
    return (total + Interval(-rest, rest)) * x


def _log1p(x: Decimal) -> Interval:
    if x.copy_abs() >= SMALL:
        return log(of(x) + 1.0)
    # log(1+x) = 2 (y + y³/3 + y⁵/5 + …), y = x/(2+x); the terms fall by a factor below 1/300.
    y = of(x) / (of(x) + 2.0)
    square = y * y
    power, total, n = of(1.0), of(1.0), 1
    while power.upper > Decimal("1e-42"):
        n += 2
        power = power * square
        total = total + power / float(n)
    return (total + Interval(Decimal(0), power.upper)) * y * 2.0
