"""Shared by the generators: a table that is drawn on request, and its ε."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.learn.account import Released
from accountant.learn.generation.networks import Generator
from accountant.mechanisms.base import Mechanism


@dataclass(frozen=True, eq=False, kw_only=True)
class Synthesis(Released, ABC):
    """A source of synthetic records with a guarantee.

    Attributes
    ----------
    mechanism : Mechanism
        What the run released.
    ledger : Accountant
        The ledger given, or the run's own, with the mechanism charged.
    epsilon, delta : float
        The guarantee of everything in the ledger when the run ended.
    run_epsilon : float
        The ε of this run alone, at ``delta``.
    private : bool
        False when noise came from a known seed.
    """

    mechanism: Mechanism

    @abstractmethod
    def sample(self, n: int, *, seed: int | None = None) -> dict[str, NDArray[Any]]:
        """Draw a table of ``n`` records; post-processing, as often as one likes.

        Parameters
        ----------
        n : int
            The number of records, which must not be the private one unless that is public.
        seed : int, optional
            For the same table again; it has no part in the guarantee.
        """


@dataclass(frozen=True, eq=False)
class GeneratorSynthesis(Synthesis):
    """A trained network that turns noise into records: a function of released values."""

    generator: Generator

    def sample(self, n: int, *, seed: int | None = None) -> dict[str, NDArray[Any]]:
        """Draw a table of ``n`` records; post-processing, as often as one likes."""
        count, random = public_generator(n, seed)
        return self.generator.sample(count, random)


def public_generator(n: int, seed: int | None) -> tuple[int, np.random.Generator]:
    """Check a number of records, and return it with a generator for post-processing."""
    count = checks.integer("n", n, 0, 10**8)
    if seed is not None:
        checks.integer("seed", seed, 0)
    return count, np.random.default_rng(seed)
