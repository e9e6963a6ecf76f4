"""A profile that does not fall: all there is is a mass at infinity."""

from __future__ import annotations

from typing import Any

from accountant.mechanisms.black_boxes import ResponsePair

__all__ = ["flat"]

FAR = 800.0


def flat(search: Any) -> ResponsePair | None:
    """Return the pair of what is known by ``hockey(epsilon)`` when that is nearly constant.

    Without noise worth the name there is nothing to join by chords: (0, δ)-privacy is all.
    """
    everywhere = search.hockey(0.0)
    if search.hockey(FAR) * 1.001 >= everywhere:
        return ResponsePair(0.0, infinite=min(everywhere, 1.0))
    return None
