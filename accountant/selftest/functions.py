"""Errors of the elementary functions of this installation, beside those the certificates trust.

The C library's functions, the core's own and NumPy's are compared with truths to 25 digits at
random arguments, and at the worst that are known of several libraries. Each function yields, case
by case, None or what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant._basics.rounding import U
from accountant._core import tools
from accountant.mechanisms.normal_masses import distribution

_Floats = NDArray[np.float64]

# What one call is trusted to, in units of roundoff (docs/theorems.md, Library functions).
TRUSTED = {"erf": 8.0, "erfc": 16.0, "pow": 8.0}
OTHERS = 5.0
# The stored rests have four decimals.
STORED = 1e-4
# Sine and cosine of the core are relative up to π/4, absolute up to 2^20.
QUARTER = 0.785
MOST_ANGLE = 2.0**20


class Truths(NamedTuple):
    """Arguments, the doubles nearest to the truth, and the rest in units of roundoff of those."""

    arguments: tuple[_Floats, ...]
    nearest: _Floats
    rest: _Floats


@lru_cache(maxsize=1)
def _stored() -> dict[str, Truths]:
    text = (files("accountant.selftest") / "elementary.json").read_text(encoding="utf-8")
    found = {}
    for name, rows in json.loads(text).items():
        *columns, rest = zip(*rows, strict=True)
        numbers = [np.array([float.fromhex(each) for each in column]) for column in columns]
        found[name] = Truths(tuple(numbers[:-1]), numbers[-1], np.array(rest, dtype=np.float64))
    return found


def libm() -> Iterator[str | None]:
    """Measure the C library's functions."""
    for name in tools.LIBM:
        truths = _stored()[name]
        yield from _judged(f"the C library's {name}", name, tools.libm, truths)


def core() -> Iterator[str | None]:
    """Measure the functions of vmath.h, on the ranges they are used on."""
    for name in tools.VMATH:
        truths = _stored()[name]
        size = np.ones_like(truths.nearest)
        if name in ("sin", "cos"):
            x = np.abs(truths.arguments[0])
            truths, x = _kept(truths, x < MOST_ANGLE), x[x < MOST_ANGLE]
            # in units of the truth
            size = np.where(x > QUARTER, 1.0 / np.abs(truths.nearest), 1.0)
        yield from _judged(f"the core's {name}", name, tools.vmath, truths, size)


def arrays() -> Iterator[str | None]:
    """Measure NumPy's functions, which have loops of their own, and the normal distribution."""
    for name in ("exp", "expm1", "log", "log1p", "sin", "cos"):

        def of_numpy(name: str, x: _Floats) -> _Floats:
            values: _Floats = getattr(np, name)(x)
            return values

        yield from _judged(f"NumPy's {name}", name, of_numpy, _stored()[name])
    truths = _stored()["ndtr"]
    # What mechanisms/normal_masses.py allows; its argument is exact here.
    size = (32.0 + 6.0 * truths.arguments[0] ** 2) / OTHERS
    yield from _judged("the normal distribution", "ndtr", _normal, truths, size)


def _normal(_: str, x: _Floats) -> _Floats:
    return distribution(x)


def _kept(truths: Truths, where: NDArray[np.bool_]) -> Truths:
    arguments = tuple(each[where] for each in truths.arguments)
    return Truths(arguments, truths.nearest[where], truths.rest[where])


def _judged(
    who: str, name: str, function: Callable[..., _Floats], truths: Truths, size: Any = 1.0
) -> Iterator[str | None]:
    """Tell, argument by argument, whether the function errs by more than it is trusted to."""
    values = function(name, *truths.arguments)
    with np.errstate(all="ignore"):
        error = np.abs((values - truths.nearest) / (U * np.abs(truths.nearest)) - truths.rest)
    trusted = TRUSTED.get(name, OTHERS) * size * np.ones_like(error)
    for row in zip(error, trusted, *truths.arguments, strict=True):
        found, most, *arguments = map(float, row)
        good = found <= most + STORED  # false for a NaN
        at = ", ".join(each.hex() for each in arguments)
        yield None if good else f"{who} errs by {found:.1f}u at {at}; it is trusted to {most:.1f}u"
