"""Samplers of the trainer, so that the account describes the sampler that ran."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accountant.errors import UnsupportedError
from accountant.noise import SecureGenerator

SAMPLERS = ("poisson", "full", "cyclic")


def require_sampler(name: object) -> str:
    """Return the name of a sampler that has an account here, or raise."""
    if isinstance(name, str) and name in SAMPLERS:
        return name
    raise UnsupportedError(
        f"sampler must be 'poisson', 'full' or, with a strategy, 'cyclic'; got {name!r}. A shuffled"
        " or fixed-size loader is another mechanism: its ε can be larger by far than Poisson"
        " sampling's, and it has no account here"
    )


def draw_batch(
    sampler: str, records: int, probability: float, generator: SecureGenerator
) -> NDArray[np.intp] | None:
    """Return the rows of the next batch, None for all of them."""
    if sampler == "full":
        return None
    return generator.subset(records, probability)
