"""Steps of the game that are left out: each choice is continued from the last few that were played.

What a choice makes of a sum of values is the sum of what it makes of each, so it is known for every
value that past ones nearly add up to; what is missing counts in full (docs/theorems_sampling.md,
Theorem S19).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray

if TYPE_CHECKING:
    from accountant.analyses.replacement_round import Step


# Steps of a leap, of which one is played, and how many that were played it continues.
STRIDE, _KNOWN = 4, 3
# After a leap that missed too much the next is tried so many steps later, or this share of all.
_WAIT, _WAIT_SHARE = 4, 1.0 / 16.0


class _Played(NamedTuple):
    """A step that was played: its number, the tilted value before it, and what choices made."""

    number: int
    value: FloatArray
    choices: FloatArray
    error: float


class Leaps:
    """The last steps that were played, and leaps from the last of them."""

    def __init__(self, step: Step, share: float) -> None:
        self._step, self._share, self._next = step, share, 0
        self._played: list[_Played] = []

    def tried(
        self,
        number: int,
        value: FloatArray,
        choices: FloatArray,
        error: float,
        following: FloatArray,
        count: int,
    ) -> FloatArray | None:
        """Return a bound on the value ``STRIDE`` steps after step ``number``.

        None where there are not so many steps, or where it would be too far above. ``following`` is
        the bound one step after it.
        """
        self._played = [_Played(number, value, choices, error), *self._played[: _KNOWN - 1]]
        if len(self._played) < _KNOWN or number < self._next or number + STRIDE > count:
            return None
        found, added = self._leap(following)
        if added > STRIDE * self._share * float(following.max()):
            self._next = number + max(_WAIT, int(_WAIT_SHARE * number))
            return None
        return self._step.best(found, added)

    def _leap(self, following: FloatArray) -> tuple[FloatArray, float]:
        """Return what choices make of the last value before the leap ends, and what to add."""
        last = self._played[0].number
        shares = _shares(tuple(each.number - last for each in self._played))
        size = float(np.abs(shares).sum(axis=1).max()) + 1.0
        parts = [part for each in self._played for part in (each.value, each.choices)]
        largest = max(float(np.abs(part).max()) for part in parts)
        # Sums of a few terms, shares whose sum is not quite one, and a start a little above one.
        slack = 64.0 * U * size * (largest + 1.0) * (1.0 + self._step.gain)
        slack += size * max(each.error for each in self._played)
        found, added, bound = following, 0.0, following
        for row in shares:
            near = _sum(row, [each.value for each in self._played])
            above = float((bound - near).max()) + added
            found = _sum(row, [each.choices for each in self._played])
            added = max(above, 0.0) * self._step.gain + slack
            bound = self._step.best(found, 0.0)
        return found, added


@lru_cache(maxsize=256)
def _shares(numbers: tuple[int, ...]) -> FloatArray:
    """Return the weights of values at ``numbers`` in their polynomial at 1 … STRIDE - 1."""
    rows = []
    for at in range(1, STRIDE):
        row = []
        for one in numbers:
            share = 1.0
            for other in numbers:
                share *= (at - other) / (one - other) if other != one else 1.0
            row.append(share)
        rows.append(row)
    return np.array(rows)


def _sum(shares: FloatArray, parts: list[FloatArray]) -> FloatArray:
    total = shares[0] * parts[0]
    for share, part in zip(shares[1:], parts[1:], strict=True):
        total += share * part
    return np.asarray(total)
