"""The parameters of Gaussian pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accountant.errors import UnsupportedError

if TYPE_CHECKING:
    from accountant.pairs.base import DominatingPair, GaussianPart

__all__ = ["gaussian_part"]


def gaussian_part(pair: DominatingPair) -> GaussianPart:
    """Return the parameters of a pair that is Gaussian."""
    part = pair.gaussian_part
    if part is None:  # pragma: no cover (chosen by the caller)
        raise UnsupportedError(f"{pair!r} is not Gaussian")
    return part
