"""Comparisons of brackets with stored enclosures: in exact decimals, with zero tolerance.

Each function yields, case by case, None or what is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeAlias

from accountant._core import answers as core
from accountant.analyses import mixed
from accountant.bounds import Bounds
from accountant.mechanisms import Gaussian, Laplace, RandomizedResponse

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
