"""Correlated noise, one step at a time, in the memory that the strategy needs.

Docs: docs/theorems_matrix.md, Theorem X5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from accountant import checks
from accountant._typing import FloatArray
from accountant.errors import DomainError


class NoiseStream(ABC):
    """The rows of C⁻¹ z, one after another, for the rows of z as they are drawn.

    Parameters
    ----------
    size : int
        Entries of one step's noise.
    steps : int
        Steps of the run; there is no noise beyond them.
    whole : bool
        Round what earlier steps add to integers, so that integers give integers: what a release on
        a grid needs (Theorem X5).

    Notes
    -----
    The state is as secret as the data: with the releases of the last steps it tells the sums that
    their noise hid.
    """

    def __init__(self, size: int, steps: int, *, whole: bool = False) -> None:
        self.size = checks.integer("size", size, 0)
        self.steps, self.whole, self.step = steps, checks.flag("whole", whole), 0

    def next(self, fresh: FloatArray) -> FloatArray:
        """Return this step's noise, made from ``fresh`` independent noise of shape (size,)."""
        if self.step >= self.steps:
            raise DomainError(f"the strategy has {self.steps} steps, and their noise was drawn")
        drawn = np.asarray(fresh, dtype=np.float64)
        if drawn.shape != (self.size,):
            raise DomainError(f"fresh must have shape ({self.size},); got {drawn.shape}")
        earlier = self._earlier()
        if self.whole:
            earlier = np.rint(earlier)
        noise = drawn + earlier
        self._remember(drawn, noise)
        self.step += 1
        return noise

    @property
    @abstractmethod
    def state(self) -> dict[str, FloatArray]:
        """Copies of the arrays that the next steps need."""

    def restore(self, step: int, state: Mapping[str, FloatArray]) -> None:
        """Go on after ``step`` steps with a :attr:`state` saved then."""
        mine = self.state
        if set(state) != set(mine) or any(
            np.shape(state[name]) != mine[name].shape for name in mine
        ):
            raise DomainError("state must hold the arrays of this strategy's stream")
        self.step = checks.integer("step", step, 0, self.steps)
        for name, value in state.items():
            kept = np.array(value, dtype=np.float64)
            if not bool(np.isfinite(kept).all()):
                raise DomainError("state must be finite")
            setattr(self, f"_{name}", kept)

    @abstractmethod
    def _earlier(self) -> FloatArray:
        """Return what earlier steps add to this one's fresh noise."""

    @abstractmethod
    def _remember(self, fresh: FloatArray, noise: FloatArray) -> None:
        """Take the step's noise into the state."""


class _Window(NoiseStream):
    """Streams that keep the last vectors in a ring: row ``step % rows`` is overwritten next."""

    def __init__(
        self, factors: Sequence[float], size: int, steps: int, *, whole: bool = False
    ) -> None:
        super().__init__(size, steps, whole=whole)
        self._factors = np.asarray(factors, dtype=np.float64)
        self._recent = np.zeros((self._factors.size, size))

    @property
    def state(self) -> dict[str, FloatArray]:
        """The vectors of the last steps."""
        return {"recent": self._recent.copy()}

    def _earlier(self) -> FloatArray:
        rows = self._factors.size
        # The factor of i steps ago meets the row of i steps ago; rows not yet written are zero.
        ages = (self.step - 1 - np.arange(rows)) % rows if rows else np.arange(0)
        return np.asarray(-(self._factors[ages] @ self._recent), dtype=np.float64)

    def _keep(self, vector: FloatArray) -> None:
        if self._factors.size:
            self._recent[self.step % self._factors.size] = vector


class FeedbackStream(_Window):
    """y_t = z_t - Σ_i c_i y_{t-i}: banded strategies, in the memory of their bands."""

    def _remember(self, fresh: FloatArray, noise: FloatArray) -> None:
        self._keep(noise)


class InverseStream(_Window):
    """y_t = z_t + Σ_i h_i z_{t-i}: strategies with a banded inverse."""

    def __init__(
        self, factors: Sequence[float], size: int, steps: int, *, whole: bool = False
    ) -> None:
        super().__init__([-factor for factor in factors], size, steps, whole=whole)

    def _remember(self, fresh: FloatArray, noise: FloatArray) -> None:
        self._keep(fresh)


class BufferStream(NoiseStream):
    """y_t = z_t - Σ_j ω_j s_j, and s_j becomes θ_j s_j + y_t: a vector for every buffer."""

    def __init__(
        self,
        weights: Sequence[float],
        decays: Sequence[float],
        size: int,
        steps: int,
        *,
        whole: bool = False,
    ) -> None:
        super().__init__(size, steps, whole=whole)
        self._weights = np.asarray(weights, dtype=np.float64)
        self._decays = np.asarray(decays, dtype=np.float64)
        self._buffers = np.zeros((self._weights.size, size))

    @property
    def state(self) -> dict[str, FloatArray]:
        """The buffers."""
        return {"buffers": self._buffers.copy()}

    def _earlier(self) -> FloatArray:
        return np.asarray(-(self._weights @ self._buffers), dtype=np.float64)

    def _remember(self, fresh: FloatArray, noise: FloatArray) -> None:
        self._buffers *= self._decays[:, None]
        self._buffers += noise


class TreeStream(NoiseStream):
    """The node that ends here, minus the nodes that it takes the place of: integers stay whole."""

    def __init__(self, size: int, steps: int, *, whole: bool = False) -> None:
        super().__init__(size, steps, whole=whole)
        self._levels = np.zeros((steps.bit_length(), size))

    @property
    def state(self) -> dict[str, FloatArray]:
        """The noise of the nodes of the present prefix, by level."""
        return {"levels": self._levels.copy()}

    def _level(self) -> int:
        end = self.step + 1
        return (end & -end).bit_length() - 1

    def _earlier(self) -> FloatArray:
        return np.asarray(-self._levels[: self._level()].sum(axis=0), dtype=np.float64)

    def _remember(self, fresh: FloatArray, noise: FloatArray) -> None:
        level = self._level()
        self._levels[:level] = 0.0
        self._levels[level] = fresh
