"""Audits by one run with many canaries: a coin includes each, and the audit guesses the coins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.audit.two_sample import (
    CONFIDENCE,
    DIRECTIONS,
    MOST_TRIALS,
    OUTWARD,
    binomial_modes,
    binomial_tail,
)
from accountant.errors import DomainError
from accountant.search import narrow

Curve: TypeAlias = Callable[[float], float]

BISECTIONS = 45  # They find a bound to more digits than anybody reads.
# Numbers of trials beyond it are looked at in blocks of a 128th of their size: a larger one is
# tighter and slower, and any is sound.
BLOCK = 128


class Guesses(NamedTuple):
    """How a guesser of coins did.

    Attributes
    ----------
    canaries : int
        How many coins there were, each fair and independent.
    made, correct : int
        Guesses made, a number fixed in advance, and those that were right.
    direction : {"higher", "lower", "both"}
        Which scores were guessed "in"; of both it was the better of two guessers, and bounds pay
        for both (Theorem A9).
    """

    canaries: int
    made: int
    correct: int
    direction: str = "higher"


def count_guesses(
    scores: object, included: object, made: int, *, direction: str = "both"
) -> Guesses:
    """Guess "in" for the highest scores and "out" for the lowest, or the other way round.

    Parameters
    ----------
    scores : array_like of shape (m,)
        Functions of the release alone.
    included : array_like of bool, shape (m,)
        The coins.
    made : int
        Guesses to make, at most m, half of them "in"; fixed before the run.
    direction : {"both", "higher", "lower"}
        Which scores indicate a canary; a loss is lower with it. Fixed before the run: otherwise
        both are tried, and share the error.
    """
    named = checks.choice("direction", direction, tuple(DIRECTIONS))
    s = np.asarray(scores, dtype=np.float64)
    coins = np.asarray(included, dtype=bool)
    if s.ndim != 1 or s.shape != coins.shape or not s.size or np.isnan(s).any():
        raise DomainError("scores and included must have one shape (m,), m >= 1, without NaN")
    count = checks.integer("made", made, 1, s.size, advice="One guess a canary at most")
    correct = max(_correct(way * s, coins, count) for way in DIRECTIONS[named])
    return Guesses(s.size, count, correct, named)


def _correct(s: FloatArray, coins: NDArray[np.bool_], count: int) -> int:
    """Return how many are right of guesses "in" for the highest scores, "out" for the lowest."""
    order = np.argsort(s, kind="stable")
    out, into = order[: count // 2], order[s.size - (count - count // 2) :]
    return int(coins[into].sum()) + int((~coins[out]).sum())


def one_run_p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """Bound the probability of this many right guesses under an (ε, δ)-private mechanism.

    Notes
    -----
    *Guarantee.* An upper bound on P{correct >= guesses.correct} whatever the mechanism and the
    guesser, if adding or removing any one canary is (epsilon, delta)-private (Theorem A7,
    docs/theorems_audit.md); of two guessers the sum of their bounds (A9).

    Examples
    --------
    >>> round(one_run_p_value(Guesses(10, 5, 5), 0.0, 0.0), 6)  # five heads of five
    0.03125
    """
    m, r, v = guesses[:3]
    p = _sigmoid_up(epsilon)
    tail = binomial_tail(v, r, p)
    if not (delta == 0.0 or v <= 0 or tail >= 1.0):
        # A failure of privacy matters only where the guesses to come leave the count one short.
        extra = (1.0 - p) * delta * m * min(1.0, _short_of(v, r, p) / r)
        tail = (tail + extra) * (1.0 + 1e-12)
    return min(1.0, _guessers(guesses) * tail)


def _short_of(v: int, r: int, p: float) -> float:
    """Bound the sum over k < r of the largest P{Bin(k, p) = j}, j < v and k - j <= r - v."""
    first, sizes = _blocks(r)
    # The terms fall with k: each number of trials in a block counts as the first.
    total = float(sizes @ binomial_modes(first, p, v - 1, r - v))
    return total * (1.0 + 1e-12)


@lru_cache(maxsize=8)
def _blocks(r: int) -> tuple[FloatArray, FloatArray]:
    """Cut 0 … r - 1 into blocks: return the first of each, and how many it has."""
    first = [0]
    while (following := first[-1] + 1 + first[-1] // BLOCK) < r:
        first.append(following)
    edges = np.array([*first, r], dtype=np.float64)
    return edges[:-1], np.diff(edges)


def one_run_epsilon(guesses: Guesses, *, delta: float, confidence: float = 0.95) -> float:
    """Return a lower confidence bound on ε at ``delta`` from one run, for any mechanism.

    Notes
    -----
    *Guarantee.* If adding or removing a canary is (ε, delta)-private the bound exceeds ε with
    probability at most 1 - confidence (Theorem A7). Nothing is assumed about the mechanism; scores
    may depend on one another.

    Examples
    --------
    >>> one_run_epsilon(Guesses(1000, 100, 95), delta=1e-5) > 1.5
    True
    """
    target = checks.number(checks.DELTA, delta)
    error = 1.0 - checks.number(CONFIDENCE, confidence)
    _require(guesses)

    def refuted(epsilon: float) -> bool:
        return one_run_p_value(guesses, epsilon, target) <= error

    return _largest(refuted, 60.0)


def refutes_curve(guesses: Guesses, curve: Curve, error: float) -> bool:
    """Tell whether this many right guesses refute a trade-off curve at probability ``error``.

    Parameters
    ----------
    guesses : Guesses
        Counts.
    curve : callable
        A lower bound on the false-negative rate at a false-positive rate, valid in both directions.
    error : float
        In (0, 1).

    Returns
    -------
    bool
        True only if P{correct >= guesses.correct} < ``error`` under every mechanism whose canaries
        obey the curve.

    Notes
    -----
    *Guarantee.* Theorem A8 of docs/theorems_audit.md: the least total probability of an outcome
    law in which the observed tail has probability ``error`` is above one. *Algorithm.* One pass
    over the counts from the observed one down.
    """
    m, k, v = guesses[:3]
    error /= _guessers(guesses)
    # Masses times m: right guesses weighed by the count, wrong ones by what is left of it.
    right, wrong, total = v * error, (k - v) * error, error
    for count in range(v, 0, -1):
        # At least this much weight of wrong guesses must lie on the counts from count - 1 on.
        # The argument is rounded up: the curve falls.
        needed = m * curve(min(1.0, 1.0 - right / m + 1e-14)) * (1.0 - 1e-12)
        if needed > wrong:
            # One guess at least is wrong at count - 1, so this does not divide by zero.
            mass = (needed - wrong) / (k - count + 1)
            total += mass
            right += (count - 1) * mass
            wrong = needed
        if total > 1.0 + 1e-9:
            return True
    return False


def one_run_mu(guesses: Guesses, *, confidence: float = 0.95, independent: bool = False) -> float:
    """Return a lower confidence bound on μ from one run, for a mechanism said to be μ-GDP.

    Parameters
    ----------
    guesses : Guesses
        Counts.
    confidence : float
        In [0.5, 1).
    independent : bool
        Whether the claim says as well that canaries are released independently of one another
        given the coins, as gradients on coordinates of their own with independent noise are
        (Theorem A10). The bound is sharper then, and refutes the two claims together.

    Notes
    -----
    *Guarantee.* If adding or removing a canary is μ-GDP the bound exceeds μ with probability at
    most 1 - confidence: Theorem A8, which cannot be much improved (A13); with ``independent``
    Theorem A14, whose law is exact.

    Examples
    --------
    >>> 0.7 < one_run_mu(Guesses(1000, 100, 95)) < 0.8
    True
    >>> 0.9 < one_run_mu(Guesses(1000, 100, 95), independent=True) < 1.0
    True
    """
    error = 1.0 - checks.number(CONFIDENCE, confidence)
    _require(guesses)
    if checks.flag("independent", independent):
        share = error / _guessers(guesses)
        return _largest(lambda mu: independent_tail(*guesses[:3], mu) <= share, 20.0)
    return _largest(lambda mu: refutes_curve(guesses, _gaussian_curve(mu), error), 20.0)


def best_of(counts: Sequence[int], bound: Callable[[int, float], float], confidence: float) -> Any:
    """Return the largest of bounds at several numbers of guesses, each at its share of the error.

    Notes
    -----
    *Guarantee.* A union bound: the shares add up to 1 - confidence (Theorem A9).
    """
    share = 1.0 - (1.0 - confidence) / len(counts)
    return max((bound(made, share), made) for made in counts)


def _gaussian_curve(mu: float) -> Curve:
    def curve(fpr: float) -> float:
        if fpr <= 0.0:
            return 1.0
        # Down by far more than the error of the normal distribution function.
        value = float(special.ndtr(-float(special.ndtri(fpr)) - mu))
        return max(0.0, value * (1.0 - 1e-11) - 1e-15)

    return curve


def _sigmoid_up(epsilon: float) -> float:
    return min(1.0, float(special.expit(epsilon)) * (1.0 + 1e-14))


def _largest(refuted: Callable[[float], bool], top: float) -> float:
    """Return a number that is refuted, or 0: everything below it is refuted as well."""
    if not refuted(0.0):
        return 0.0
    return narrow(refuted, 0.0, top, BISECTIONS)[0]


def _guessers(guesses: Guesses) -> int:
    """Return how many guessers share the error."""
    return len(DIRECTIONS[guesses.direction])


def _require(guesses: Guesses) -> None:
    m, r, v = guesses[:3]
    if not (0 <= v <= r <= m <= MOST_TRIALS and r >= 1):
        raise DomainError(
            "guesses must satisfy 0 <= correct <= made <= canaries <= 2**40, made >= 1;"
            f" got {guesses!r}"
        )


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
