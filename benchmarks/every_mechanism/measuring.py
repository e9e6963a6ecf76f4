"""One line of the table: our bracket, an attained lower end, and the peer at equal width."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import accountant as ac
from accountant.analyses import dispatch
from accountant.pairs import atoms
from every_mechanism import peer
from every_mechanism.cases import Case

__all__ = ["DELTAS", "LONGEST", "REPEATS", "TIMES", "WIDE", "Line", "Peer", "measure"]

DELTAS = (1e-5, 1e-10)
FIRST, FINER = 1e-2, 0.25  # the peer's intervals
REPEATS, PATIENCE = 10, 0.05  # of one question, while all of them take fewer seconds
WIDE = 1e-5
# The peer is refined until it took so many times as long as we did, or so many seconds.
TIMES, LONGEST = 20.0, 3.0


class Peer(NamedTuple):
    """The peer at the coarsest interval that is as narrow as our bracket, or at its finest one."""

    lower: float
    upper: float
    seconds: float  # of both estimates, composed and asked once
    reached: bool
    upper_seconds: float  # until the pessimistic estimate alone is as near to the truth; or inf


class Line(NamedTuple):
    name: str
    rate: float
    releases: int
    delta: float
    lower: float
    upper: float
    attained: float | None  # the largest ε that a strategy is certain to reach
    seconds: float
    peer: Peer | None

    @property
    def width(self) -> float:
        return 1.0 - self.lower / self.upper if 0.0 < self.upper < math.inf else 0.0

    @property
    def gap(self) -> float:
        return 1.0 - (self.attained or 0.0) / self.upper if self.upper > 0.0 else 0.0

    @property
    def ratio(self) -> float | None:
        return self.peer and self.peer.seconds / self.seconds


def best(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return what it returns and the least processor time of a few."""
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < PATIENCE:
        start = time.process_time()
        found = run()
        times.append(time.process_time() - start)
    return found, min(times)


def ours(release: Callable[[], ac.Mechanism], n: int, delta: float) -> tuple[ac.Bounds, float]:
    """Ask a question that no cache of the package answers, of a mechanism made anew."""

    def ask() -> ac.Bounds:
        dispatch._remembered.cache_clear()
        atoms._tables.clear()
        return (n * release()).epsilon_bounds(delta)

    return best(ask)


def reached(case: Case, rate: float, n: int, delta: float) -> float | None:
    """Return the largest ε that one of the attained strategies certainly has."""
    if case.attained is None:
        return None
    return max(float((n * one).epsilon_bounds(delta).lower) for one in case.attained(rate))


def theirs(
    build: Callable[..., Any], n: int, interval: float, deltas: Sequence[float]
) -> tuple[list[float], list[float], float, float]:
    """Return pessimistic and optimistic estimates at every δ, and the seconds each took for one."""
    ends, seconds = [], []
    for pessimistic in (True, False):

        def run(pessimistic: bool = pessimistic) -> tuple[Any, float]:
            one = build(
                pessimistic_estimate=pessimistic, value_discretization_interval=interval
            ).self_compose(n)
            return one, float(one.get_epsilon_for_delta(deltas[0]))

        (composed, first), spent = best(run)
        rest = [float(composed.get_epsilon_for_delta(delta)) for delta in deltas[1:]]
        ends.append([first, *rest])
        seconds.append(spent)
    return ends[0], ends[1], seconds[0], seconds[1]


def peers(
    case: Case, rate: float, n: int, wanted: list[ac.Bounds], limit: float
) -> list[Peer | None]:
    """Refine the peer's interval until it is as narrow as each of the brackets ``wanted``."""
    found: list[Peer | None] = [None] * len(wanted)
    above = [math.inf] * len(wanted)
    interval, spent = FIRST, 0.0
    while not all(one is not None and one.reached for one in found) and spent < limit:
        try:
            high, low, one_way, other_way = theirs(
                lambda **grid: case.peer(rate, **grid), n, interval, DELTAS
            )
        except (ArithmeticError, ValueError):  # losses beyond its doubles
            break
        spent = one_way + other_way
        for i, bracket in enumerate(wanted):
            width = max(float(bracket.upper - bracket.lower), 4e-16 * float(bracket.upper))
            if high[i] - float(bracket.lower) <= width and above[i] == math.inf:
                above[i] = one_way
            if found[i] is None or not found[i].reached:
                narrow = high[i] - low[i] <= width
                found[i] = Peer(low[i], high[i], spent, narrow, math.inf)
        interval *= FINER
    return [one and one._replace(upper_seconds=a) for one, a in zip(found, above, strict=True)]


def measure(case: Case, rate: float, n: int, limit: float) -> list[Line]:
    """Return one line for each δ; the peer composes once for all of them."""
    answers = [ours(lambda: case.release(rate), n, delta) for delta in DELTAS]
    wanted = [bracket for bracket, _ in answers]
    limit = max(limit, min(TIMES * max(seconds for _, seconds in answers), LONGEST))
    others: Sequence[Peer | None] = [None] * len(DELTAS)
    if case.peer is not None and peer.is_installed():
        others = peers(case, rate, n, wanted, limit)
    lines = []
    for delta, (bracket, seconds), other in zip(DELTAS, answers, others, strict=True):
        lower, upper = float(bracket.lower), float(bracket.upper)
        low = reached(case, rate, n, delta)
        lines.append(Line(case.name, rate, n, delta, lower, upper, low, seconds, other))
    return lines
