"""What releases made of other releases share."""

from __future__ import annotations

from accountant.errors import ArgumentTypeError
from accountant.mechanisms.base import Mechanism

__all__ = ["check_base"]


def check_base(base: object) -> None:
    """Refuse a base that is no mechanism."""
    if not isinstance(base, Mechanism):
        raise ArgumentTypeError(
            f"base must be a mechanism that bounds one run, as in Gaussian(2.0); got {base!r:.60}"
        )
