"""Profiles that do not fall with ε: the only loss is a mass at infinity."""

from __future__ import annotations

from accountant.pairs.profile_pair import ProfileBounds
from accountant.pairs.response import ResponsePair

FAR = 800.0


def constant_profile_pair(bounds: ProfileBounds) -> ResponsePair | None:
    """Return the (0, δ) pair if the profile is almost constant, None otherwise.

    Then the mechanism adds essentially no noise, and chords of the profile give no pair.
    """
    everywhere = bounds.delta(0.0)
    if bounds.delta(FAR) * 1.001 >= everywhere:
        return ResponsePair(0.0, infinite=min(everywhere, 1.0))
    return None
