"""Calibration by the algebra: any unknown of any mix, for any target.

The unknown is found where the certified cost meets the target. The search is loose: a bracket in
the logarithm of the unknown, shrunk by the method of Illinois with bisection behind it. What is
returned was itself evaluated and met the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from accountant import checks
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.errors import ArgumentTypeError, DomainError, PrecisionError
from accountant.mechanisms import _arguments as arguments
from accountant.mechanisms.base import Mechanism

__all__ = ["calibrate"]

MOST = 20  # evaluations
TARGET_EPSILON = checks.TARGET_EPS._replace(name="epsilon")
ADVANTAGE = Argument(
    "advantage", "a number in (0, 1)", lambda x: (x > 0.0) & (x < 1.0), "It bounds tpr - fpr"
)
RATE = Argument("tpr", "a number in (0, 1)", lambda x: (x > 0.0) & (x < 1.0), "It is a rate")
START = Argument(
    "start", "a finite number > 0", lambda x: (x > 0.0) & (x < math.inf), "It is a guess"
)
PRECISION = Argument(
    "precision", "a number in [1e-15, 0.1]", lambda x: (x >= 1e-15) & (x <= 0.1), "It is relative"
)


class _Point(NamedTuple):
    x: float  # the logarithm of the unknown, or an integer
    y: float  # log(cost / target): met when <= 0


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
    precision: float = 1e-9,
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
        Whether x is a count; then the next integer does not meet the target, if 20 evaluations
        suffice to tell.
    precision : float, optional
        The relative width of the bracket at which the search ends.

    Returns
    -------
    float or int
        The value on the safe side.

    Raises
    ------
    DomainError
        Not exactly one target; or no x with a cost below the target, or none above it, was found.

    Notes
    -----
    *Guarantee.* The certified cost of ``build(x)`` is at most the target at the x returned: it was
    evaluated there. *Algorithm.* At most 20 evaluations.

    Examples
    --------
    >>> import accountant as ac
    >>> sigma = ac.calibrate(lambda s: 10 * ac.Gaussian(s) + ac.Laplace(5.0), epsilon=2, delta=1e-6)
    >>> (10 * ac.Gaussian(sigma) + ac.Laplace(5.0)).epsilon(1e-6) <= 2.0
    True
    """
    if not callable(build):
        raise ArgumentTypeError(f"build must be a function of the unknown; got {build!r}")
    if not isinstance(integer, bool):
        raise ArgumentTypeError(f"integer must be True or False; got {integer!r}")
    cost, target = _question(epsilon, delta, advantage, tpr, fpr)
    width = arguments.scalar(PRECISION, precision)
    guess = arguments.scalar(START, start)
    search = _Search(build, cost, target, integer)
    return search.run(float(max(round(guess), 1)) if integer else math.log(guess), width)


class _Search:
    """A bracket that shrinks, and the count of what it cost."""

    def __init__(
        self,
        build: Callable[..., Mechanism],
        cost: Callable[[Mechanism], float],
        target: float,
        integer: bool,
    ) -> None:
        self._build, self._cost, self._target = build, cost, target
        self._integer = integer
        self._left = MOST

    def run(self, start: float, width: float) -> float | int:
        """Bracket the crossing, then close in."""
        good, bad = self._bracket(start)
        weights, last = [1.0, 1.0], 0
        while self._left and not self._narrow(good, bad, width):
            point = self._at(self._between(good, bad, weights))
            side = 0 if point.y <= 0.0 else 1
            old = (good, bad)[side]
            # An end that stays put twice counts less (Anderson and Björck), so both ends close in.
            shrink = 1.0 - point.y / old.y if math.isfinite(old.y) and old.y else 0.5
            kept = weights[1 - side] * (shrink if 0.0 < shrink < 1.0 else 0.5)
            weights[1 - side] = kept if last == side + 1 else 1.0
            weights[side], last = 1.0, side + 1
            good, bad = (point, bad) if side == 0 else (good, point)
        return int(good.x) if self._integer else self._value(good.x)

    def _at(self, x: float) -> _Point:
        self._left -= 1
        value = int(x) if self._integer else self._value(x)
        try:
            spent = self._cost(self._build(value))
        except (DomainError, PrecisionError):
            spent = math.inf
        # A NaN is too dear. The sign is decided without rounding.
        met = spent <= self._target
        y = math.log(spent / self._target) if 0.0 < spent < math.inf else math.inf
        if met:
            return _Point(x, min(y, 0.0) if spent > 0.0 else -math.inf)
        return _Point(x, max(y, 5e-324))

    def _value(self, x: float) -> float:
        return math.exp(x)

    def _bracket(self, start: float) -> tuple[_Point, _Point]:
        """Walk outwards from ``start``, downhill or uphill as the cost says."""
        here = self._at(start)
        step, sign = self._step(start), self._direction(here)
        for _ in range(2):
            point = here
            while self._left > 6:
                x = self._moved(point.x, sign * step)
                if x == point.x:
                    break
                beyond = self._at(x)
                if (beyond.y <= 0.0) != (here.y <= 0.0):
                    return (beyond, point) if beyond.y <= 0.0 else (point, beyond)
                if math.isfinite(beyond.y) and math.isfinite(point.y):
                    # Cost rising on the way to meet it: the other way, then.
                    if abs(beyond.y) > abs(point.y) * (1.0 + 1e-9):
                        break
                    rate = (point.y - beyond.y) / (beyond.x - point.x)
                    step = self._leap(beyond, rate, step)
                else:
                    step *= 2.0
                point = beyond
            sign, step = -sign, self._step(start)
        raise DomainError(
            "calibrate found no crossing: every value tried"
            f" {'meets' if here.y <= 0.0 else 'misses'} the target {self._target!r}. Give another"
            " start, or check that the cost depends on the unknown"
        )

    def _direction(self, here: _Point) -> float:
        # Noise is the commonest unknown: more of it costs less. Counts cost more.
        wanted = 1.0 if here.y > 0.0 else -1.0
        return -wanted if self._integer else wanted

    def _step(self, start: float) -> float:
        return max(1.0, start) if self._integer else 0.7

    def _leap(self, point: _Point, rate: float, step: float) -> float:
        """Step to where the cost would cross at this rate, and a little beyond."""
        if rate == 0.0 or not math.isfinite(rate):
            return 2.0 * step
        return min(max(1.2 * abs(point.y / rate), 0.1 * step), 8.0 * step)

    def _moved(self, x: float, step: float) -> float:
        if not self._integer:
            return min(max(x + step, -600.0), 600.0)
        moved = float(round(x + step))
        if moved == x:
            moved = x + math.copysign(1.0, step)
        return min(max(moved, 0.0), float(checks.MAX_COUNT))

    def _narrow(self, good: _Point, bad: _Point, width: float) -> bool:
        gap = abs(good.x - bad.x)
        return gap <= 1.0 if self._integer else gap <= width or good.x == bad.x

    def _between(self, good: _Point, bad: _Point, weights: list[float]) -> float:
        a, b = weights[0] * good.y, weights[1] * bad.y
        share = 0.5
        if math.isfinite(a) and math.isfinite(b) and b - a > 0.0:
            share = min(max(-a / (b - a), 1e-3), 1.0 - 1e-3)
        x = good.x + share * (bad.x - good.x)
        if not self._integer:
            return x
        low, high = min(good.x, bad.x), max(good.x, bad.x)
        return min(max(float(round(x)), low + 1.0), high - 1.0)


def _question(
    epsilon: float | None,
    delta: float | None,
    advantage: float | None,
    tpr: float | None,
    fpr: float | None,
) -> tuple[Callable[[Mechanism], float], float]:
    """Return the cost to compare and the target."""
    given = (epsilon is not None, delta is not None, advantage is not None, tpr is not None)
    if (*given, fpr is not None) == (True, True, False, False, False):
        bound = arguments.scalar(TARGET_EPSILON, epsilon)
        level = arguments.scalar(checks.DELTA, delta)
        return (lambda mechanism: mechanism.epsilon(level)), bound
    if (*given, fpr is not None) == (False, False, True, False, False):
        # The advantage is the total variation: δ at ε = 0.
        most = arguments.scalar(ADVANTAGE, advantage)
        return (lambda mechanism: mechanism.delta(0.0)), most
    if (*given, fpr is not None) == (False, False, False, True, True):
        rate = arguments.scalar(RATE, tpr)
        at = arguments.scalar(arguments.named(RATE, "fpr"), fpr)
        if not (rate > at):
            raise DomainError(f"tpr must exceed fpr, which guessing reaches; got {rate} and {at}")
        return (lambda mechanism: math.nextafter(1.0 - mechanism.tradeoff(at), 1.0)), rate
    raise DomainError(
        "calibrate needs exactly one target: epsilon and delta, or advantage, or tpr and fpr"
    )
