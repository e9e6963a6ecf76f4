"""Shared by the analyses: native loops over arrays, and the limit delta = 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from accountant._core import subsampled_gaussian as core
from accountant.broadcasting import flatten, in_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from accountant.checks import Checked

__all__ = ["FloatArray", "at_zero_delta", "evaluate"]

FloatArray: TypeAlias = "NDArray[np.float64]"


def evaluate(
    fill: Callable[..., None],
    shape: tuple[int, ...],
    values: tuple[Checked, ...],
    workers: int,
    *options: int,
) -> tuple[FloatArray, FloatArray]:
    """Return the two outputs of a native ``fill_`` loop over values broadcast to ``shape``."""
    rows = flatten(shape, values)
    size = math.prod(shape)
    first, second, statuses = np.empty(size), np.empty(size), np.empty(size, dtype=np.intc)

    def loop(part: slice) -> None:
        fill(*(row[part] for row in rows), *options, first[part], second[part], statuses[part])

    in_chunks(loop, size, workers)
    core.check_statuses(statuses)
    return first.reshape(shape), second.reshape(shape)


def at_zero_delta(q: Checked, sigma: Checked, steps: Checked) -> FloatArray:
    """Return ε(0), which is infinite for Gaussian noise unless nothing is released."""
    trivial = np.equal(q, 0.0) | np.equal(steps, 0.0) | np.equal(sigma, np.inf)
    return np.where(trivial, 0.0, np.inf)
