"""The privacy profile of one release, without a grid (docs/theorems_grid.md, Theorem G9)."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

import numpy as np

from accountant._rounding import TINY, U
from accountant.bounds import Bounds
from accountant.errors import PrecisionError, UnsupportedError
from accountant.pairs.base import has_profile

if TYPE_CHECKING:
    from accountant.pairs.base import DominatingPair

__all__ = ["profile_of_one"]

FARTHEST = 600.0  # nats: e^ε·1e-300 is negligible below


def profile_of_one(pair: DominatingPair, epsilon: float) -> Bounds | None:
    """Bracket δ(epsilon), epsilon >= 0, of a pair with masses; None if they do not decide it."""
    if has_profile(pair):
        # A blend has one only where its parts do.
        with contextlib.suppress(UnsupportedError):
            return pair.profile(epsilon)
    moved = pair.loss_error
    if not (epsilon < FARTHEST and moved < 1.0):
        return None
    # The given first edge also has an error of `moved`.
    before = math.nextafter(epsilon - 2.0 * moved * (1.0 + 1e-9), -math.inf)
    try:
        found = pair.masses(np.array([before, epsilon]))
    except PrecisionError:
        return None
    p, q, near = float(found.p[2]), float(found.q[2]), float(found.p[1]) + float(found.p[2])
    grown = math.exp(epsilon)
    error = (found.relative_error + 16.0 * U) * (p + grown * q) + TINY * (2.0 + 2.0 * grown)
    error += math.expm1(moved) * (near * (1.0 + 2.0 * found.relative_error) + TINY) * (1.0 + 1e-9)
    upper = min(max(p - grown * q + error, 0.0), 1.0)
    return Bounds(min(max(p - grown * q - error, 0.0), upper), upper)
