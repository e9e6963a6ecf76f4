"""Broadcasting and threads: evaluates a flat loop or a question over arrays of any shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.bounds import Bounds
from accountant.checks import Argument, Checked
from accountant.errors import DomainError

# Between chunks Python sees signals, so an interrupt does not wait for the whole array.
CHUNK = 64

T = TypeVar("T")


def each_number(argument: Argument, value: object, ask: Callable[[float], float]) -> Checked:
    """Return ``ask(value)``, or for an array a new float64 array of the answers, in its shape."""
    checked = checks.real(argument, value)
    if isinstance(checked, float):
        return ask(checked)
    answers = [ask(number) for number in checked.reshape(-1).tolist()]
    return np.array(answers, dtype=np.float64).reshape(checked.shape)


def each_bounds(argument: Argument, value: object, ask: Callable[[float], Bounds]) -> Bounds:
    """Return the bracket ``ask(value)``, or for an array one whose ends have its shape."""
    checked = checks.real(argument, value)
    if isinstance(checked, float):
        return ask(checked)
    brackets = [ask(number) for number in checked.reshape(-1).tolist()]
    ends = np.array([tuple(each) for each in brackets], dtype=np.float64).reshape(-1, 2)
    return Bounds(ends[:, 0].reshape(checked.shape), ends[:, 1].reshape(checked.shape))


def common_shape(names: Sequence[str], values: Sequence[Checked]) -> tuple[int, ...]:
    """Return the shape to which the values broadcast; ``()`` when all are scalars."""
    shapes = [np.shape(value) for value in values]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listing = ", ".join(f"{name} {shape}" for name, shape in zip(names, shapes, strict=True))
        raise DomainError(f"arguments must broadcast to one shape; got {listing}") from None


def workers(value: object) -> int:
    """Check a number of threads; None means one, the calling thread."""
    return 1 if value is None else checks.whole(_WORKERS, value)


_WORKERS = Argument("workers", "None or an integer >= 1", lambda x: x >= 1, "They are threads")


def flatten(shape: tuple[int, ...], values: Sequence[Checked]) -> list[NDArray[np.float64]]:
    """Broadcast to ``shape`` and lay each out as one contiguous row."""
    return [np.ascontiguousarray(np.broadcast_to(value, shape)).reshape(-1) for value in values]


def in_chunks(loop: Callable[[slice], Any], size: int, workers: int) -> None:
    """Call ``loop`` on slices that cover ``range(size)``, on ``workers`` threads.

    Elements are independent of one another, so neither the chunks nor the threads change a result.
    """
    chunk = min(CHUNK, max(1, size // (4 * workers)))
    run_tasks(loop, [slice(i, min(i + chunk, size)) for i in range(0, size, chunk)], workers)


def run_tasks(function: Callable[[Any], T], tasks: Sequence[Any], workers: int) -> list[T]:
    """Return ``[function(task) for task in tasks]``, on ``workers`` threads."""
    if workers == 1 or len(tasks) <= 1:
        return [function(task) for task in tasks]
    # Imported where used: it pulls in logging and queues, which no scalar call needs.
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(min(workers, len(tasks)))
    try:
        return list(pool.map(function, tasks))
    finally:
        pool.shutdown(cancel_futures=True)
