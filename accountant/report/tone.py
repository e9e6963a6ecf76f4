"""How an ε sounds: a tone that grows with it, so that 46 does not look like 1."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tone:
    """A grade of a privacy loss.

    Attributes
    ----------
    grade : int
        From 0, no loss, to 4, no protection worth the name.
    word : str
        One word for it.
    sentence : str
        What it says, and for whom it is enough.
    """

    grade: int
    word: str
    sentence: str


# Ponomareva et al. 2023 (How to DP-fy ML) call ε <= 1 strong, <= 10 reasonable, and more weak.
_NONE = Tone(0, "no loss", "Nothing about any record was revealed.")
_TONES = (
    (1.0, Tone(1, "strong", "A formal guarantee that hardly depends on who the attacker is.")),
    (
        10.0,
        Tone(
            2,
            "moderate",
            "A real guarantee, weaker than the strong one of ε ≤ 1. Read the table of attacks"
            " before relying on it.",
        ),
    ),
    (
        20.0,
        Tone(
            3,
            "weak",
            "The proof excludes few attacks. Protection in practice, if any, rests on attackers"
            " being weaker than the proof allows.",
        ),
    ),
)
_FAILED = Tone(
    4,
    "no meaningful protection",
    "An ε of this size excludes almost no attack. Do not publish it as a guarantee of privacy.",
)


def tone(epsilon: float) -> Tone:
    """Return the grade of an upper bound on ε; infinite ones have the last."""
    if epsilon == 0.0:
        return _NONE
    if not epsilon < math.inf:
        return _FAILED
    return next((found for most, found in _TONES if epsilon <= most), _FAILED)
