"""Exact sums: every double is an integer multiple of 2⁻¹⁰⁷⁴, so sums of them are integers.

A filter compares a sum of charges with a capacity. In integers the comparison is exact whatever the
order, the number or the size of the charges: nothing is overspent by round-off, and a budget that
is divided into equal parts can be spent to the last one.
"""

from __future__ import annotations

import math
from fractions import Fraction

from accountant._basics.rounding import fraction_up

_BITS = 1074
_SCALE = 1 << _BITS

# Above every finite double, and every sum of 2**53 of them.
INFINITE = 1 << 2300


def ceiling(value: float | Fraction) -> int:
    """Return ``value`` in units of 2⁻¹⁰⁷⁴, rounded up (a double is exact); ∞ is ``INFINITE``."""
    if value == math.inf:
        return INFINITE
    return math.ceil(Fraction(value) * _SCALE)


def units(value: float) -> int:
    """Return a finite double in units of 2⁻¹⁰⁷⁴, exactly."""
    return int(Fraction(value) * _SCALE)


def floor(value: float | Fraction) -> int:
    """Return ``value`` in units of 2⁻¹⁰⁷⁴, rounded down."""
    return math.floor(Fraction(value) * _SCALE)


def fraction(units: int) -> Fraction:
    """Return ``units`` times 2⁻¹⁰⁷⁴."""
    return Fraction(units, _SCALE)


def to_float_up(units: int) -> float:
    """Return the least double that is at least ``units`` times 2⁻¹⁰⁷⁴; ``inf`` beyond all."""
    return fraction_up(Fraction(units, _SCALE))


def quickly_up(units: int) -> float:
    """Return a double that is at least ``units`` >= 0 times 2⁻¹⁰⁷⁴, within a part of 2⁻⁵¹ of it."""
    shift = max(units.bit_length() - 52, 0)
    if shift > 2044:
        return math.inf
    return math.ldexp((units >> shift) + (shift > 0), shift - _BITS)


def to_float_down(units: int) -> float:
    """Return the largest double that is at most ``units`` times 2⁻¹⁰⁷⁴."""
    return -fraction_up(Fraction(-units, _SCALE))
