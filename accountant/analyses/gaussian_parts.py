"""The parameters of Gaussian pairs."""

from __future__ import annotations

from accountant.errors import UnsupportedError
from accountant.pairs.base import DominatingPair, GaussianPart


def gaussian_part(pair: DominatingPair) -> GaussianPart:
    """Return the parameters of a pair that is Gaussian."""
    part = pair.gaussian_part
    if part is None:  # pragma: no cover (chosen by the caller)
        raise UnsupportedError(f"{pair!r} is not Gaussian")
    return part
