"""How one call is measured: its answer, then the time of repeats on nudged arguments."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

NOT_INSTALLED = "not installed"
NUDGE = 1e-12


@dataclass
class Outcome:
    """What became of one call.

    Parameters
    ----------
    status : str
        "ok", "inf", "nan", "timeout", "not installed" or "error: ...".
    value : float, list of float or None
        The answer if it is finite.
    seconds : float or None
        Median time of one call.
    times : list of float
        Mean time of a call in each batch.
    warnings : list of str
        Distinct warnings that the library gave.
    at_least_seconds : float or None
        The limit at which the call was ended.
    peak_mb : float or None
        Growth of the resident set over all calls of the job.
    """

    status: str
    value: Any = None
    seconds: float | None = None
    times: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    at_least_seconds: float | None = None
    peak_mb: float | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a finite answer."""
        return self.status == "ok"

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary without empty entries."""
        return {key: value for key, value in asdict(self).items() if value not in (None, [])}


@dataclass(frozen=True)
class Effort:
    """How much repetition a measurement gets.

    Parameters
    ----------
    batches : int
        Largest number of timed batches; the median over them is reported.
    batch_seconds : float
        Calls are repeated within a batch until it lasts about this long.
    budget_seconds : float
        No further batch starts when it would go beyond this.
    """

    batches: int
    batch_seconds: float
    budget_seconds: float


ONE_CALL = Effort(batches=1, batch_seconds=0.0, budget_seconds=0.0)


def nudged(args: tuple, index: int, count: int) -> tuple:
    """Return `args` with one entry changed by `count` parts in 1e12."""
    changed = list(args)
    changed[index] = changed[index] * (1.0 + count * NUDGE)
    return tuple(changed)


def measure(call: Callable[..., Any], args: tuple, vary: int, effort: Effort) -> Outcome:
    """Call once for the answer, then time repeated calls on nudged arguments."""
    start = time.perf_counter()
    value = call(*args)
    first = time.perf_counter() - start
    spent = first

    # The first call may still meet cold caches: a fast one is repeated to size the batches.
    single, count = first, 0
    if first < effort.batch_seconds:
        count = 1
        start = time.perf_counter()
        call(*nudged(args, vary, count))
        single = time.perf_counter() - start
        times = []
    else:
        times = [first]
    loops = max(1, math.ceil(effort.batch_seconds / max(single, 1e-9)))
    while len(times) < effort.batches:
        if times and spent + loops * single > effort.budget_seconds:
            break
        inputs = [nudged(args, vary, count + i + 1) for i in range(loops)]
        count += loops
        start = time.perf_counter()
        for changed in inputs:
            call(*changed)
        elapsed = time.perf_counter() - start
        spent += elapsed
        times.append(elapsed / loops)
    return _outcome(value, times)


def _outcome(value: Any, times: list[float]) -> Outcome:
    seconds = statistics.median(times)
    numbers = [float(x) for x in value] if isinstance(value, (tuple, list)) else [float(value)]
    if any(math.isnan(x) for x in numbers):
        return Outcome("nan", None, seconds, times)
    if any(math.isinf(x) for x in numbers):
        return Outcome("inf", None, seconds, times)
    plain = numbers if isinstance(value, (tuple, list)) else numbers[0]
    return Outcome("ok", plain, seconds, times)
