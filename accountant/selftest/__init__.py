"""A quick check that the numerics of *this* installation are those that were tested.

A processor that flushes subnormal numbers, a compiler that rearranges sums or a broken mathematics
library would void every certificate. The checks compare answers of this machine, and the elementary
functions behind them, with enclosures that other programs computed in ball arithmetic, and stored,
once and for all.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accountant._core import training
from accountant.errors import AccountantError
from accountant.ledger import Accountant
from accountant.mechanisms import Gaussian, Laplace
from accountant.selftest import numerics

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
    ("the C library's functions", numerics.libm),
    ("the core's own functions", numerics.own),
    ("NumPy's functions and the normal distribution", numerics.arrays),
    ("DP-SGD: privacy profiles", numerics.profiles),
    ("DP-SGD: inverted for ε", numerics.inverses),
    ("Rényi divergences", numerics.divergences),
    ("Gaussian noise, closed form", numerics.gaussians),
    ("different Gaussians, on a contour", numerics.mixed_gaussians),
    ("other mechanisms, on a grid", numerics.grids),
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
