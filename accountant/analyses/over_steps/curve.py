"""Upper bounds on ε after every release, with as many exact compositions as are wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accountant._typing import FloatArray
from accountant.analyses.over_steps import by_renyi, mixes
from accountant.analyses.over_steps.prefixes import (
    Steps,
    composed_bounds,
    counts_at,
    evenly,
    monotone,
    spread,
)


def upper_curve(history: Steps, delta: float, checkpoints: int | None = None) -> FloatArray:
    """Bound ε(delta) after each release; element k holds for the first k + 1 alone.

    ``checkpoints`` is the number of prefixes, evenly spaced, that are composed exactly as well; 0
    for Rényi bounds alone, None for as many as are worth it.
    """
    one = all(item.mechanism == history[0].mechanism for item in history)
    if one or checkpoints == 0:
        curve = by_renyi.pointwise(history, delta)
    else:
        curve = (mixes.bounds if checkpoints is None else mixes.known)(history, delta)
    if checkpoints:
        _sharpen(curve, history, delta, evenly(len(curve), checkpoints))
    elif checkpoints is None and one and len(curve):
        _sharpen(curve, history, delta, spread(len(curve)))
    return curve


def _sharpen(curve: FloatArray, history: Steps, delta: float, lengths: Sequence[int]) -> None:
    """Lower ``curve`` to the exact compositions of some prefixes, in place.

    A prefix costs no more than a longer one, so each is bounded by the next one evaluated.
    """
    done = 0
    for length, counts in counts_at(history, lengths):
        _, exact = composed_bounds(counts, delta)
        np.minimum(curve[done:length], exact, out=curve[done:length])
        done = length
    monotone(curve)
