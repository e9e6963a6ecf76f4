"""The base class of strategies: sensitivity, errors, and their noise, step by step.

A stream of noise takes the memory that its strategy needs (docs/theorems_matrix.md, Theorem X5).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.display import Described
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.mechanisms.gaussian import Gaussian
from accountant.relations import REPLACE_ONE, ZERO_OUT, NeighbouringRelation


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

    kept: ClassVar[str]

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
    def state(self) -> dict[str, FloatArray]:
        """A copy of the vectors that the next steps need, by their name."""
        return {self.kept: getattr(self, f"_{self.kept}").copy()}

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


class WindowStream(NoiseStream):
    """y_t = z_t - Σ_i c_i y_{t-i}: banded strategies, in the memory of their bands.

    With ``inverse`` y_t = z_t + Σ_i c_i z_{t-i}, for those with a banded inverse. The last vectors
    are in a ring: row ``step % rows`` is overwritten next.
    """

    kept = "recent"

    def __init__(
        self,
        factors: Sequence[float],
        size: int,
        steps: int,
        *,
        whole: bool = False,
        inverse: bool = False,
    ) -> None:
        super().__init__(size, steps, whole=whole)
        self._inverse = inverse
        self._factors = np.asarray(factors, dtype=np.float64) * (1.0 if inverse else -1.0)
        self._recent = np.zeros((self._factors.size, size))

    def _earlier(self) -> FloatArray:
        rows = self._factors.size
        # The factor of i steps ago meets the row of i steps ago; rows not yet written are zero.
        ages = (self.step - 1 - np.arange(rows)) % rows if rows else np.arange(0)
        return np.asarray(self._factors[ages] @ self._recent, dtype=np.float64)

    def _remember(self, fresh: FloatArray, noise: FloatArray) -> None:
        if self._factors.size:
            self._recent[self.step % self._factors.size] = fresh if self._inverse else noise


class BufferStream(NoiseStream):
    """y_t = z_t - Σ_j ω_j s_j, and s_j becomes θ_j s_j + y_t: a vector for every buffer."""

    kept = "buffers"

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

    def _earlier(self) -> FloatArray:
        return np.asarray(-(self._weights @ self._buffers), dtype=np.float64)

    def _remember(self, fresh: FloatArray, noise: FloatArray) -> None:
        self._buffers *= self._decays[:, None]
        self._buffers += noise


class TreeStream(NoiseStream):
    """The node that ends here, minus the nodes that it takes the place of: integers stay whole."""

    kept = "levels"

    def __init__(self, size: int, steps: int, *, whole: bool = False) -> None:
        super().__init__(size, steps, whole=whole)
        self._levels = np.zeros((steps.bit_length(), size))

    def _level(self) -> int:
        end = self.step + 1
        return (end & -end).bit_length() - 1

    def _earlier(self) -> FloatArray:
        return np.asarray(-self._levels[: self._level()].sum(axis=0), dtype=np.float64)

    def _remember(self, fresh: FloatArray, noise: FloatArray) -> None:
        level = self._level()
        self._levels[:level] = 0.0
        self._levels[level] = fresh


_RELATIONS = (ZERO_OUT, REPLACE_ONE)


class Participation(NamedTuple):
    """When a record takes part: checked numbers.

    Attributes
    ----------
    separation : int
        Steps between two participations, at least, or exactly where ``cyclic``.
    most : int
        Participations, at most.
    cyclic : bool
        Whether the distance is always the same.
    """

    separation: int
    most: int
    cyclic: bool


class Strategy(Described, ABC):
    """A lower-triangular matrix C with ones on the diagonal, known by its structure.

    Subclasses are frozen dataclasses with a field ``steps``. Contributions have norm at most one.
    """

    steps: int

    @property
    @abstractmethod
    def bands(self) -> int:
        """The number of diagonals that are not zero; columns ``bands`` apart do not overlap."""

    @abstractmethod
    def rms_error_bounds(self) -> Bounds:
        """Bracket the root mean square error of the prefix sums, over all steps.

        For noise of standard deviation one on the encoding: multiply by noise multiplier and
        sensitivity. Certified (docs/theorems_matrix.md, Theorem X3).
        """

    @abstractmethod
    def max_error_bounds(self) -> Bounds:
        """Bracket the standard deviation of the worst prefix sum, in the same unit."""

    @abstractmethod
    def stream(self, size: int, *, whole: bool = False) -> NoiseStream:
        """Return the stream of this strategy's noise, of ``size`` entries a step.

        With ``whole`` integers give integers (Theorem X5).
        """

    @abstractmethod
    def _noise_growth(self) -> float:
        """Bound the standard deviation of a step's noise, for fresh noise of deviation one."""

    @abstractmethod
    def _sensitivity(self, participation: Participation) -> tuple[float, float]:
        """Bracket the sensitivity for checked numbers."""

    @abstractmethod
    def _drift(self, scale: float, participation: Participation | None) -> float:
        """Bound the effect of rounding in whole streams, in grid steps for one coordinate.

        ``scale`` is the standard deviation of the fresh noise in grid steps. The effect is over the
        whole run, or, for None, over the ``bands`` steps that one participation reaches.
        """

    @to_nearest
    def rounded_shift(
        self, scale: float, *, min_separation: int | None = None, block: bool = False
    ) -> float:
        """Bound what the rounding of a whole stream adds to the sensitivity, for one coordinate.

        Parameters
        ----------
        scale : float
            Standard deviation of the fresh noise, in steps of the grid.
        min_separation : int, optional
            As in :meth:`sensitivity_bounds`, cyclic.
        block : bool
            Of one participation and the steps that it reaches, in place of the whole run.

        Returns
        -------
        float
            In steps of the grid; of d coordinates √d times as much (Theorem X5). Infinite where
            round-off has no bound.
        """
        whole = _participation(self.steps, min_separation, None, True)
        return self._drift(scale, None if block else whole)

    @to_nearest
    def sensitivity_bounds(
        self,
        *,
        min_separation: int | None = None,
        max_participations: int | None = None,
        cyclic: bool = False,
    ) -> Bounds:
        """Bracket the ℓ2 sensitivity of the encoding.

        Parameters
        ----------
        min_separation : int, optional
            A record takes part at steps at least this far apart. By default it takes part once.
        max_participations : int, optional
            And at most so often; by default as often as the separation allows.
        cyclic : bool
            Whether participations are exactly ``min_separation`` apart.

        Returns
        -------
        Bounds
            The upper end holds for contributions that are chosen adaptively; the lower end is
            reached by equal or by alternating contributions. They agree up to rounding where
            coefficients are non-negative and fall, and where columns that far apart do not overlap.

        Notes
        -----
        *Guarantee.* docs/theorems_matrix.md, Theorems X1 and X2.
        """
        when = _participation(self.steps, min_separation, max_participations, cyclic)
        return Bounds(*self._sensitivity(when))

    @to_nearest
    def mechanism(
        self,
        noise_multiplier: float,
        *,
        min_separation: int | None = None,
        max_participations: int | None = None,
        cyclic: bool = False,
        relation: NeighbouringRelation = ZERO_OUT,
    ) -> Gaussian:
        """Return the Gaussian mechanism of the whole run, without amplification by sampling.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise on every coordinate of the encoding, over the bound on
            one contribution.
        min_separation, max_participations, cyclic
            As in :meth:`sensitivity_bounds`; they must not depend on the data.
        relation : NeighbouringRelation, keyword only
            Zero-out or replace-one.

        Notes
        -----
        *Guarantee.* Theorem S14, with contributions that may depend on what was released before
        (Denisov, McMahan, Rush, Smith, Thakurta 2022, Theorem 2.1).
        """
        sensitivity = self.sensitivity_bounds(
            min_separation=min_separation, max_participations=max_participations, cyclic=cyclic
        ).upper
        return Gaussian(
            checks.number(checks.NOISE_MULTIPLIER, noise_multiplier),
            sensitivity=float(sensitivity),
            relation=checks.supported_relation("correlated noise", relation, _RELATIONS),
        )


def _participation(
    steps: int, min_separation: object, max_participations: object, cyclic: object
) -> Participation:
    separation = steps
    if min_separation is not None:
        separation = checks.integer("min_separation", min_separation, 1, advice="It counts steps")
    most = -(-steps // separation)
    if max_participations is not None:
        most = min(most, checks.integer("max_participations", max_participations, 1))
    return Participation(separation, most, checks.flag("cyclic", cyclic))
