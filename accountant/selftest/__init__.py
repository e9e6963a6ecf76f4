"""A quick check that the numerics of *this* installation are those that were tested.

A processor that flushes subnormal numbers, a compiler that rearranges sums or a broken mathematics
library would void every certificate. The checks compare answers of this machine, and the elementary
functions behind them, with enclosures that other programs computed in ball arithmetic, and stored,
once and for all.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import answers as core
from accountant._core import tools, training
from accountant.analyses import mixed
from accountant.bounds import Bounds
from accountant.errors import AccountantError
from accountant.ledger import Accountant
from accountant.mechanisms import Gaussian, Laplace, RandomizedResponse
from accountant.pairs.excess import distribution

__all__ = ["Check", "checks"]

HALF_ULP = 2.0**-53
# RFC 8439, appendix A.1, test vectors 1 to 3 (key, block counter, keystream; nonce 0).
KEYSTREAMS = (
    (0, 0, ("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
           "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586")),
    (0, 1, ("9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
           "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f")),
    (1, 1, ("3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
           "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0")),
)  # fmt: skip


def arithmetic() -> Iterator[str | None]:
    """Check that doubles are IEEE's, rounded to nearest, subnormals and all; in arrays too."""
    nearest = {
        "1 + 2⁻⁵³ rounds to even": (1.0, HALF_ULP, 1.0),
        "1 + 3·2⁻⁵³ rounds up": (1.0, 3.0 * HALF_ULP, 1.0 + 4.0 * HALF_ULP),
        "-1 - 2⁻⁵³ rounds to even": (-1.0, -HALF_ULP, -1.0),
        "1 + 2⁻⁵²·0.75 rounds to nearest": (1.0, 1.5 * HALF_ULP, 1.0 + 2.0 * HALF_ULP),
    }
    for what, (a, b, expected) in nearest.items():
        arrays = np.full(9, a) + np.full(9, b)
        yield None if a + b == expected and (arrays == expected).all() else f"not so: {what}"
    least = sys.float_info.min
    halves = np.full(9, least) * 0.5
    kept = least * 0.5 > 0.0 and (halves > 0.0).all() and math.ldexp(1.0, -1074) * 1.0 > 0.0
    yield None if kept else "subnormal numbers are flushed to zero"
    # A fused multiply-add would leave 2⁻¹⁰⁶ here, a double rounding something else.
    x = np.full(9, 1.0 + 2.0**-53 * 2.0)
    exact = (x * x - (1.0 + 4.0 * HALF_ULP) == 0.0).all()
    yield None if exact else "products are not rounded on their own"
    for value, root in ((2.0, 1.4142135623730951), (3.0, 1.7320508075688772)):
        yield None if math.sqrt(value) == root == np.sqrt(value) else f"√{value} is not rounded"


def cipher() -> Iterator[str | None]:
    """Compare the generator's key stream with published test vectors."""
    for last, counter, expected in KEYSTREAMS:
        key = np.zeros(8, dtype=np.uint32)
        # Little-endian words: the last byte of the key is the highest of the last word.
        key[7] = last << 24
        out = np.zeros(64, dtype=np.uint8)
        training.chacha20(key, counter, out)
        yield None if out.tobytes().hex() == expected else f"key stream {counter} of key {last}"
    first, second = os.urandom(32), os.urandom(32)
    yield None if first != second else "the operating system's entropy repeats"


def ledger_files() -> Iterator[str | None]:
    """Save, lock, load and damage a ledger in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.json"
        ledger = Accountant()
        ledger.compose(Gaussian(1.5), 3, "a")
        ledger.compose(Laplace(2.0))
        ledger.save(path)
        yield (
            None if Accountant.load(path).history == ledger.history else "a ledger came back other"
        )
        with Accountant.transaction(path) as shared:
            shared.compose(Gaussian(1.5))
        yield None if len(Accountant.load(path)) == 5 else "a transaction was lost"


Row: TypeAlias = dict[str, Any]
DIRECTIONS = {"remove": core.REMOVE, "add": core.ADD}
# A bracket this wide is none: something is broken, though not unsafe.
WIDEST = 1e-3
# Smaller values than this are not told from zero.
LEAST = 1e-250


@lru_cache(maxsize=1)
def _stored() -> tuple[Row, ...]:
    text = (files("accountant.selftest") / "enclosures.json").read_text(encoding="utf-8")
    return tuple(json.loads(text))


def rows(kind: str) -> list[Row]:
    """Return the stored problems of one kind, with their enclosures as decimal texts."""
    return [row for row in _stored() if row["kind"] == kind]


def profiles() -> Iterator[str | None]:
    """Compare δ(ε) of DP-SGD."""
    for row in rows("profile"):
        problem = row["q"], row["sigma"], float(row["steps"]), row["epsilon"]
        yield _compare(core.delta_bounds(*problem, DIRECTIONS[row["direction"]]), row)


def inverses() -> Iterator[str | None]:
    """Compare ε(δ) of DP-SGD at doubles just below and just above the profile's δ."""
    # Every other one: they take the longest.
    for row in rows("profile")[::2]:
        problem = row["q"], row["sigma"], float(row["steps"])
        direction = DIRECTIONS[row["direction"]]
        below, above = _below(Decimal(row["lower"])), _above(Decimal(row["upper"]))
        safe = not below > 0.0 or (
            core.epsilon_bounds(*problem, below, direction)[1] >= row["epsilon"]
        )
        tight = not above < 1.0 or (
            core.epsilon_bounds(*problem, above, direction)[0] <= row["epsilon"]
        )
        yield None if safe and tight else _told(row, "ε is on the wrong side")


def divergences() -> Iterator[str | None]:
    """Compare Rényi divergences."""
    for row in rows("renyi"):
        direction = DIRECTIONS[row["direction"]]
        yield _compare(core.renyi_bounds(row["q"], row["sigma"], row["alpha"], direction), row)


def gaussians() -> Iterator[str | None]:
    """Compare δ(ε) of one Gaussian release."""
    for row in rows("gaussian"):
        yield _compare(Gaussian(row["sigma"]).delta_bounds(row["epsilon"]), row, WIDEST)


def mixed_gaussians() -> Iterator[str | None]:
    """Compare δ(ε) of Gaussian releases of different noise."""
    for row in rows("mixed"):
        parts = [mixed.Part(1.0, sigma, 1) for sigma in row["sigmas"]]
        yield _compare(mixed.bracket("delta", parts, row["epsilon"]), row, WIDEST)


def grids() -> Iterator[str | None]:
    """Compare δ(ε) of Laplace noise and randomised response, composed on a grid."""
    for row in rows("laplace"):
        composed = row["count"] * Laplace(row["scale"])
        yield _compare(composed.delta_bounds(row["epsilon"]), row, WIDEST)
    for row in rows("response"):
        response = row["count"] * RandomizedResponse(row["pure"])
        yield _compare(response.delta_bounds(row["epsilon"]), row, WIDEST)


def _compare(
    bracket: tuple[float, float] | Bounds, row: Row, widest: float = math.inf
) -> str | None:
    """Tell what is wrong with a bracket of the value that the row encloses."""
    low, high = (float(end) for end in bracket)
    lower, upper = Decimal(row["lower"]), Decimal(row["upper"])
    if not (low <= high and Decimal(low) <= upper and Decimal(high) >= lower):
        return _told(row, f"[{low!r}, {high!r}] misses the truth")
    if not high - low <= max(widest * high, LEAST):
        return _told(row, f"[{low!r}, {high!r}] is wide")
    return None


def _told(row: Row, fault: str) -> str:
    asked = ", ".join(
        f"{name} = {value}" for name, value in row.items() if name not in ("lower", "upper", "kind")
    )
    return f"{fault} at {asked}"


def _below(x: Decimal) -> float:
    value = float(x)
    return value if Decimal(value) <= x else math.nextafter(value, -math.inf)


def _above(x: Decimal) -> float:
    value = float(x)
    return value if Decimal(value) >= x else math.nextafter(value, math.inf)


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

    arguments: tuple[FloatArray, ...]
    nearest: FloatArray
    rest: FloatArray


@lru_cache(maxsize=1)
def _elementary() -> dict[str, Truths]:
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
        truths = _elementary()[name]
        yield from _judged(f"the C library's {name}", name, tools.libm, truths)


def own() -> Iterator[str | None]:
    """Measure the functions of vmath.h, on the ranges they are used on."""
    for name in tools.VMATH:
        truths = _elementary()[name]
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

        def of_numpy(name: str, x: FloatArray) -> FloatArray:
            values: FloatArray = getattr(np, name)(x)
            return values

        yield from _judged(f"NumPy's {name}", name, of_numpy, _elementary()[name])
    truths = _elementary()["ndtr"]
    # What pairs/excess.py allows; its argument is exact here.
    size = (32.0 + 6.0 * truths.arguments[0] ** 2) / OTHERS
    yield from _judged("the normal distribution", "ndtr", _normal, truths, size)


def _normal(_: str, x: FloatArray) -> FloatArray:
    return distribution(x)


def _kept(truths: Truths, where: NDArray[np.bool_]) -> Truths:
    arguments = tuple(each[where] for each in truths.arguments)
    return Truths(arguments, truths.nearest[where], truths.rest[where])


def _judged(
    who: str, name: str, function: Callable[..., FloatArray], truths: Truths, size: Any = 1.0
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


@dataclass(frozen=True)
class Check:
    """What one check found.

    Attributes
    ----------
    name : str
        What was checked.
    cases : int
        How many comparisons were made.
    faults : tuple of str
        The comparisons that failed, in words; none on a sound installation.
    seconds : float
        How long it took.
    """

    name: str
    cases: int
    faults: tuple[str, ...]
    seconds: float


_ALL: tuple[tuple[str, Callable[[], Iterator[str | None]]], ...] = (
    ("floating-point arithmetic", arithmetic),
    ("the C library's functions", libm),
    ("the core's own functions", own),
    ("NumPy's functions and the normal distribution", arrays),
    ("DP-SGD: privacy profiles", profiles),
    ("DP-SGD: inverted for ε", inverses),
    ("Rényi divergences", divergences),
    ("Gaussian noise, closed form", gaussians),
    ("different Gaussians, on a contour", mixed_gaussians),
    ("other mechanisms, on a grid", grids),
    ("the noise generator's cipher", cipher),
    ("ledger files and locks", ledger_files),
)


def checks() -> Iterator[Check]:
    """Run every check; some seconds together.

    Yields
    ------
    Check
        As each is done.

    Examples
    --------
    >>> from accountant.selftest import checks
    >>> next(checks()).faults
    ()
    """
    for name, cases in _ALL:
        began = time.perf_counter()
        found: list[str | None] = []
        try:
            found.extend(cases())
        except (AccountantError, OSError, ArithmeticError) as error:
            found.append(f"{type(error).__name__}: {error}")
        faults = tuple(each for each in found if each is not None)
        yield Check(name, len(found), faults, time.perf_counter() - began)
