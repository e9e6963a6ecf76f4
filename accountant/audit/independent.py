"""The law of right guesses when the canaries' releases are independent given the coins."""

from __future__ import annotations

import numpy as np
from scipy import special

from accountant._basics.arrays import FloatArray
from accountant.audit.confidence import OUTWARD, binomial_tail
from accountant.search import narrow

CELLS = 256  # Cells of the cut's place: any number is sound, and more are tighter.
# The probability beyond the cells, where all guesses count as right.
BEYOND = 1e-30
# The relative error of the normal distribution function is far smaller.
NORMAL = 1e-12


def independent_tail(canaries: int, made: int, correct: int, mu: float) -> float:
    """Bound the probability of ``correct`` right guesses, canary by canary μ-GDP and independent.

    Parameters
    ----------
    canaries, made, correct : int
        The fields of :class:`~accountant.audit.Guesses`.
    mu : float
        At least 0.

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    *Guarantee.* An upper bound on P{V >= correct} for every guesser, under the assumption of
    Theorem A14 (docs/theorems_audit.md); the probability itself is attained. *Algorithm.* The
    binomial tail at the end of each of 256 cells of the cut's place, and the cut's exact law.
    """
    if made == canaries:
        return binomial_tail(correct, made, float(_right_beyond(mu, np.zeros(1))[0]))
    ends = _cells(canaries, made, mu)
    right = _right_beyond(mu, ends)
    tails = np.array([*(binomial_tail(correct, made, p) for p in right), 1.0])
    # The tail at a cell's end bounds it in the cell; all beyond the last one counts as 1.
    rises = np.diff(np.maximum.accumulate(tails))
    reached = special.betainc(
        made + 1.0, float(canaries - made), np.minimum(1.0, _beyond(mu, ends) * (1.0 + NORMAL))
    )
    total = float(tails[0]) + float((reached * (1.0 + OUTWARD)) @ rises)
    return min(1.0, total * (1.0 + NORMAL))


def _beyond(mu: float, distances: FloatArray) -> FloatArray:
    """Return P{|z - μ/2| > t} for z from either normal law."""
    return np.asarray(special.ndtr(mu / 2 - distances) + special.ndtr(-mu / 2 - distances))


def _right_beyond(mu: float, distances: FloatArray) -> FloatArray:
    """Bound the probability that the likelier coin is the true one, given a distance beyond t."""
    right, wrong = special.ndtr(mu / 2 - distances), special.ndtr(-mu / 2 - distances)
    # Beyond 38 nothing is left to divide.
    share = np.where(right > 0.0, right / np.maximum(right + wrong, 1e-320), 1.0)
    return np.asarray(np.minimum(1.0, share * (1.0 + NORMAL)))


def _cells(canaries: int, made: int, mu: float) -> FloatArray:
    """Return increasing distances about the cut's: any would be sound."""
    a, b = made + 1.0, float(canaries - made)
    most = float(special.betainccinv(a, b, BEYOND))
    least = max(float(special.betaincinv(a, b, BEYOND)), 1e-300)
    return np.linspace(_distance(mu, most), _distance(mu, least), CELLS)


def _distance(mu: float, share: float) -> float:
    def nearer(distance: float) -> bool:
        return bool(_beyond(mu, np.array([distance]))[0] > share)

    return narrow(nearer, 0.0, mu / 2 + 38.0, 60)[0]
