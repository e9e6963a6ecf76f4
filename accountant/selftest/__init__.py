"""A quick check that the numerics of *this* installation are those that were tested.

A processor that flushes subnormal numbers, a compiler that rearranges sums or a broken mathematics
library would void every certificate. The checks compare answers of this machine, and the elementary
functions behind them, with enclosures that other programs computed in ball arithmetic, and stored,
once and for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from accountant.errors import AccountantError
from accountant.selftest import functions, numerics, system

__all__ = ["Check", "checks"]


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
    ("floating-point arithmetic", system.arithmetic),
    ("the C library's functions", functions.libm),
    ("the core's own functions", functions.core),
    ("NumPy's functions and the normal distribution", functions.arrays),
    ("DP-SGD: privacy profiles", numerics.profiles),
    ("DP-SGD: inverted for ε", numerics.inverses),
    ("Rényi divergences", numerics.divergences),
    ("Gaussian noise, closed form", numerics.gaussians),
    ("different Gaussians, on a contour", numerics.mixed_gaussians),
    ("other mechanisms, on a grid", numerics.grids),
    ("the noise generator's cipher", system.cipher),
    ("ledger files and locks", system.ledger_files),
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
