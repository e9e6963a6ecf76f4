"""Calibration of one unknown of any composition, for any target.

The search is that of :mod:`accountant.search`, as for the quick functions' calibration: what is
returned was evaluated and met the target, and so was a neighbour that did not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from accountant import checks
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.errors import ArgumentTypeError, DomainError, PrecisionError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from accountant.mechanisms.sparse_histogram import LARGEST_THRESHOLD, SparseHistogram
from accountant.search import COUNTS, DOUBLES, bisect, crossing

# Unknowns beyond these are not tried.
ENDS = DOUBLES.rank(1e-260), DOUBLES.rank(1e260)
TARGET_EPSILON = checks.TARGET_EPS.renamed("epsilon")
ADVANTAGE = Argument(
    "advantage", "a number in (0, 1)", lambda x: (x > 0.0) & (x < 1.0), "It bounds tpr - fpr"
)
RATE = Argument("tpr", "a number in (0, 1)", lambda x: (x > 0.0) & (x < 1.0), "It is a rate")
START = Argument(
    "start", "a finite number > 0", lambda x: (x > 0.0) & (x < math.inf), "It is a guess"
)
PRECISION = Argument(
    "precision", "a number in [0, 0.1]", lambda x: (x >= 0.0) & (x <= 0.1), "It is relative"
)


@to_nearest
def calibrate(
    build: Callable[..., Mechanism],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    start: float = 1.0,
    integer: bool = False,
    precision: float = 0.0,
) -> float | int:
    """Return the value of an unknown that just meets a privacy target.

    Parameters
    ----------
    build : callable
        ``build(x)`` is the mechanism at x > 0; its cost must rise or fall with x throughout. Give
        noise, counts, sampling probabilities: anything that goes into a mechanism. A value that
        ``build`` refuses with DomainError is taken to cost too much.
    epsilon, delta : float, optional
        The target (ε, δ): both.
    advantage : float, optional
        The target for the advantage of a membership attack, max (tpr - fpr).
    tpr, fpr : float, optional
        The target for an attack's true positive rate at a false positive rate: both.
    start : float, optional
        Where to start; any order of magnitude will do.
    integer : bool, optional
        Whether x is a count, which may be 0. The answer is then an int.
    precision : float, optional
        By how much, relatively, the answer may be on the safe side of a value that does not meet
        the target; 0, the default, asks for neighbours. With 1e-6 some seven evaluations suffice.
        It does not matter for counts.

    Returns
    -------
    float or int
        The value on the safe side: one that meets the target beside one that does not, the
        adjacent double or the next integer.

    Raises
    ------
    DomainError
        Not exactly one target; or no x with a cost below the target, or none above it, was found.

    Notes
    -----
    *Guarantee.* The certified cost of ``build(x)`` is at most the target at the x returned, and
    above it, or refused, at a neighbour of x: both were evaluated. Certified costs of mixes come
    from grids and jump by about 1e-9 of themselves where the grid changes, so the computed cost may
    cross the target more than once within so much; the answer is at one of the crossings, and
    which one depends on ``start``.

    *Algorithm.* Interpolation on the bit patterns of doubles, and bisection where the cost jumps:
    twelve evaluations are usual, thirty where the answer is at a jump.

    Examples
    --------
    >>> import accountant as ac
    >>> sigma = ac.calibrate(lambda s: 10 * ac.Gaussian(s) + ac.Laplace(5.0), epsilon=2, delta=1e-6)
    >>> (10 * ac.Gaussian(sigma) + ac.Laplace(5.0)).epsilon(1e-6) <= 2.0
    True
    """
    checks.function("build", build, "the unknown")
    checks.flag("integer", integer)
    cost, target = _question(epsilon, delta, advantage, tpr, fpr)
    nearness = checks.number(PRECISION, precision)
    guess = checks.number(START, start)
    met: list[bool] = []

    def spent(value: float) -> float:
        try:
            built: Any = build(int(value) if integer else value)
            if isinstance(built, (int, float)):
                kind = type(built).__name__
                raise ArgumentTypeError(
                    f"build(x) must be a mechanism, and not its epsilon; got a {kind}"
                )
            found = cost(built)
        except (DomainError, PrecisionError):
            found = math.inf
        met.append(found <= target)
        return found

    grid, ends = (COUNTS, (0, checks.MAX_COUNT)) if integer else (DOUBLES, ENDS)
    # Noise is the commonest unknown: more of it costs less. Counts cost more.
    rank = crossing(
        spent, target, grid, guess, ends, falls=not integer, precision=0.0 if integer else nearness
    )
    if rank is None:
        raise DomainError(
            f"calibrate found no crossing: every value tried {'meets' if met[0] else 'misses'} the"
            f" target {target!r}. Give another start, or check that the cost depends on the unknown"
        )
    return rank if integer else DOUBLES.value(rank)


def _question(
    epsilon: float | None,
    delta: float | None,
    advantage: float | None,
    tpr: float | None,
    fpr: float | None,
) -> tuple[Callable[[Mechanism], float], float]:
    """Return the cost to compare and the target."""
    told = {"epsilon": epsilon, "delta": delta, "advantage": advantage, "tpr": tpr, "fpr": fpr}
    given = {name for name, value in told.items() if value is not None}
    if given == {"epsilon", "delta"}:
        bound = checks.number(TARGET_EPSILON, epsilon)
        level = checks.number(checks.DELTA, delta)
        return (lambda mechanism: mechanism.epsilon(level)), bound
    if given == {"advantage"}:
        # The advantage is the total variation: δ at ε = 0.
        most = checks.number(ADVANTAGE, advantage)
        return (lambda mechanism: mechanism.delta(0.0)), most
    if given == {"tpr", "fpr"}:
        rate = checks.number(RATE, tpr)
        at = checks.number(RATE.renamed("fpr"), fpr)
        if not (rate > at):
            raise DomainError(f"tpr must exceed fpr, which guessing reaches; got {rate} and {at}")
        return (lambda mechanism: math.nextafter(1.0 - mechanism.tradeoff(at), 1.0)), rate
    raise DomainError(
        "calibrate needs exactly one target: epsilon and delta, or advantage, or tpr and fpr"
    )


# The least positive threshold that is tried. Only the answer for noise that is far below depends
# on it.
LEAST_THRESHOLD = 2.0**-40


@to_nearest
def smallest_threshold(
    noise: Mechanism,
    *,
    epsilon: float,
    delta: float,
    max_partitions: int = 1,
    minimum: int | None = None,
    beside: Mechanism | None = None,
) -> float:
    """Return the least threshold with which a sparse histogram is (ε, δ)-differentially private.

    Parameters
    ----------
    noise, max_partitions, minimum, beside
        As in :class:`SparseHistogram`.
    epsilon, delta : float
        The target: ε >= 0 and finite, δ in (0, 1).

    Returns
    -------
    float
        An integer for integer noise; else the adjacent double below is not certified.

    Raises
    ------
    DomainError
        The noise of ``max_partitions`` counts alone exceeds the target.

    Notes
    -----
    *Guarantee.* The certified δ at the threshold is at most ``delta`` (Theorem N3: δ falls in the
    threshold). With the noise fixed this is a bisection; there is none in the noise at a fixed
    threshold, at which more noise may cost more.
    """
    target = checks.number(checks.TARGET_DELTA, delta)
    at = checks.number(checks.FINITE_EPSILON, epsilon)

    build = partial(
        SparseHistogram, noise, max_partitions=max_partitions, minimum=minimum, beside=beside
    )

    def meets(threshold: float) -> bool:
        return build(threshold=threshold).delta(at) <= target

    if not meets(LARGEST_THRESHOLD):
        raise DomainError(
            f"no threshold is enough: {noise!r} on {max_partitions} keys alone exceeds"
            f" (epsilon, delta) = ({epsilon!r}, {delta!r})"
        )
    high = 1.0
    while not meets(high):
        high *= 2.0
    if isinstance(noise, (DiscreteGaussian, DiscreteLaplace)):
        return float(bisect(lambda k: meets(float(k)), int(high), 0))
    low = high / 2.0 if high > 1.0 else LEAST_THRESHOLD
    return DOUBLES.value(
        bisect(lambda rank: meets(DOUBLES.value(rank)), DOUBLES.rank(high), DOUBLES.rank(low))
    )
