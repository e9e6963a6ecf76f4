"""Freezes the global random numbers of a run, and says whether two runs drew as many."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from accountant.audit.replay.sameness import is_same


class FrozenRandomness:
    """The states of the global generators at the end of a run.

    Attributes
    ----------
    states : dict
        By the name of the generator.
    """

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}

    def differences(self, other: FrozenRandomness) -> list[str]:
        """Return the names of the generators that ended in another state."""
        return [
            name for name, state in self.states.items() if not is_same(state, other.states[name])
        ]


@contextmanager
def frozen(seed: int) -> Iterator[FrozenRandomness]:
    """Seed ``random``, ``numpy.random`` and, where it is loaded, ``torch``; restore them after."""
    torch = sys.modules.get("torch")
    python, legacy = random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
    tensors = torch.get_rng_state() if torch is not None else None
    result = FrozenRandomness()
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield result
        result.states = {
            "random": random.getstate(),
            "numpy.random": np.random.get_state(legacy=False),  # noqa: NPY002
        }
        if torch is not None:
            result.states["torch"] = torch.get_rng_state()
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(tensors)
