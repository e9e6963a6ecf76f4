"""Balls in bins for matrix mechanisms: a record draws one bin, and keeps it in every epoch.

Conditioned on the record's own bin the bound is sharp where one bin decides
(docs/theorems_matrix.md, Theorem X6 (iii) and (iv)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U, ratio_down, up
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.matrix import BandedToeplitz
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.stated_guarantees import DominatedBy
from accountant.pairs.excess import cells
from accountant.relations import ADD_OR_REMOVE, ZERO_OUT, NeighbouringRelation
from accountant.sampling.random_allocation import Allocated
from accountant.sampling.sampler import Indices, Sampler, Seed, WorstCaseInstance, generator
from accountant.search import narrow

# Cells of the own log-ratio's normal score: more make the bound hardly narrower.
_CELLS = 16_384
# The last score: what is beyond has a mass below 1e-38, and counts in full.
_REACH = 13.0
# Powers of Markov's inequality that are tried; all of them are valid.
_POWERS = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
# Halvings in the searches for both ends; every ε that they try is certified by itself.
_ROUNDS = 24
# The largest exponent whose exponential is a double, with a margin.
_LARGEST = 600.0
# The largest ε: the square of its exponential is a double, and below what is cut.
_LARGEST_EPSILON = 300.0


class Circle(NamedTuple):
    """Bins on a circle, some of which come round once more than the others.

    Attributes
    ----------
    bins : int
        Number of bins B.
    lags : tuple of float
        Covariances r_0, r_1, …, r_{b-1} of the log-ratios of bins so far apart, on a circle of at
        least 2b - 1 bins; of two bins that both come round once more, if some do.
    fewer : tuple of float
        Those of two bins of which one comes round once less; ``lags`` if there is none.
    often : int
        How many bins come round once more; B if all do.
    """

    bins: int
    lags: tuple[float, ...]
    fewer: tuple[float, ...]
    often: int

    @classmethod
    def whole(cls, bins: int, lags: tuple[float, ...]) -> Circle:
        """Return a circle all of whose bins come round equally often."""
        return cls(bins, lags, lags, bins)


def conditional_delta(circle: Circle, epsilon: float) -> float:
    """Bound δ(epsilon) of removing a record, ``epsilon`` in nats."""
    if epsilon > _LARGEST_EPSILON:
        return 1.0
    share = circle.often / circle.bins * (1.0 + 1e-15)
    total = share * _given(circle, epsilon, more=True)
    if share < 1.0:
        total += (1.0 - share + 1e-15) * _given(circle, epsilon, more=False)
    return min(total * (1.0 + 1e-14), 1.0)


def _given(circle: Circle, epsilon: float, *, more: bool) -> float:
    """Bound δ(epsilon), given whether the record's bin comes round once more."""
    masses, error, own, parts = _moments(circle, more)
    others = parts[0]
    gamma = math.exp(epsilon) * (1.0 - 1e-13)
    with np.errstate(all="ignore"):
        # The least concave function of the others' part that is above (1 - γ / (own + others))₊.
        beyond = np.maximum(1.0 - gamma / (own + others), 0.0)
        touch = _touch(own, gamma, 1.0)
        line = gamma / touch**2 * others
        bound = np.where((own >= gamma) | (others >= touch - own), beyond, line)
        # Markov's inequality for higher powers, where the others' part is rarely large.
        for power, norm in zip(_POWERS, parts, strict=True):
            touch = _touch(own, gamma, power)
            most = (1.0 - gamma / touch) * (norm / (touch - own)) ** power
            bound = np.where((own < gamma) & (most < bound), most, bound)
    # In positive form: what overflowed counts in full.
    bound = np.where(bound < 1.0, bound, 1.0) * (1.0 + 1e-9)
    total = float(np.dot(masses, np.concatenate([bound, [1.0]])))
    return min(total * (1.0 + error + 1e-9) + 1e-290, 1.0)


def conditional_epsilon(circle: Circle, delta: float, high: float) -> float:
    """Bound ε(delta) of removing a record; ``high`` where nothing below it is certified."""
    if not conditional_delta(circle, high) <= delta:
        return high
    return narrow(
        lambda at: conditional_delta(circle, at) <= delta, high, 0.0, _ROUNDS, width=1e-5 * high
    )[0]


def _touch(own: FloatArray, gamma: float, power: float) -> FloatArray:
    """Return s = own + y where (1 - γ/s)₊ / y^power is largest, for own < γ."""
    half = (power + 1.0) * gamma
    root = np.sqrt(np.maximum(half**2 - 4.0 * power * gamma * own, 0.0))
    return np.asarray((half + root) / (2.0 * power), dtype=np.float64)


@lru_cache(maxsize=8)
def _moments(
    circle: Circle, more: bool
) -> tuple[FloatArray, float, FloatArray, tuple[FloatArray, ...]]:
    """Return masses of cells of the own log-ratio, and at their ends its part and the rest's."""
    edges = np.linspace(-_REACH, _REACH, _CELLS)
    masses, error = cells(edges, 0.0)
    variance = (circle.lags if more else circle.fewer)[0]
    x = variance + math.sqrt(variance) * edges
    # Round-off of an exponent is far below this part of its size.
    slack = 1.0 + 1e-9 * (1.0 + np.abs(x) + circle.lags[0])
    own = np.exp(np.minimum(x - 0.5 * variance, _LARGEST)) / circle.bins * slack
    own[x - 0.5 * variance >= _LARGEST] = math.inf
    return masses, error, own, tuple(_norm(circle, more, x, power) * slack for power in _POWERS)


def _norm(circle: Circle, more: bool, x: FloatArray, power: float) -> FloatArray:
    """Return the norm in L^power of the other bins' part, given the own log-ratio (Minkowski)."""
    bins, lags, fewer, often = circle
    own, largest = (lags if more else fewer)[0], lags[0]
    away = bins - 2 * len(lags) + 1
    total = np.zeros(x.size)
    for count, variance in ((min(often, away), largest), (max(away - often, 0), fewer[0])):
        total += count * math.exp(min(0.5 * (power - 1.0) * variance, _LARGEST))
    # A neighbour may come round once more or not: the larger of both for the record's own bin.
    for pair in zip(lags[1:], fewer[1:], strict=True):
        options = []
        for lag in pair if more else pair[1:]:
            rest = max(largest - lag * lag / own, 0.0)
            options.append(lag / own * (x - 0.5 * lag) + 0.5 * (power - 1.0) * rest)
        total += 2.0 * np.exp(np.minimum(np.max(options, axis=0), _LARGEST))
    return total / bins


_RELATIONS = (ADD_OR_REMOVE, ZERO_OUT)


class _Reached(NamedTuple):
    """A pair that is reached: with probability ``share`` one of ``bins`` bins of one shift."""

    share: float
    bins: int
    shift: float

    def score(self, noise: float) -> float:
        """Return the variance of the likelihood ratio, which the search goes by."""
        return self.share**2 / self.bins * math.expm1(min((self.shift / noise) ** 2, 600.0))

    def _moved(self, epsilon: float) -> float:
        """Return log(1 + (e^ε - 1) / share)."""
        if epsilon > 500.0:
            return epsilon - math.log(self.share) + 1e-12
        return math.log1p(math.expm1(epsilon) / self.share)

    def delta(self, noise: float, epsilon: float) -> float:
        """Bound δ(epsilon) of removing a record from below (Theorem X6 (ii))."""
        moved = self._moved(epsilon) * (1.0 + 16.0 * U)
        at = noise / self.shift * (1.0 + 4.0 * U)
        pair = Allocated(at, steps=self.bins).pairs()[0]
        return self.share * float(pair.profile(moved).lower) * (1.0 - 4.0 * U)


@dataclass(frozen=True, repr=False, kw_only=True)
class BallsInBins(Sampler):
    """Each record draws one of ``bins`` bins, and takes part whenever its bin comes round.

    Step t uses bin t modulo ``bins``, in every epoch the same records: what a loader does that
    assigns records to batches once. The noise is correlated by a banded strategy. The noise
    multiplier is the standard deviation of the noise on the encoding over
    ``strategy.sensitivity_bounds().upper``, the sensitivity of one participation.

    Parameters
    ----------
    dataset_size : int
        Number of records, for :meth:`batches`; the guarantee does not depend on it.
    bins : int
        Batches of an epoch, at least twice the bands of the strategy.
    strategy : BandedToeplitz
        With non-negative coefficients.
    relation : NeighbouringRelation, keyword only
        Add-or-remove or zero-out.

    Notes
    -----
    *Guarantee.* Theorem X6 (docs/theorems_matrix.md). :meth:`mechanism`, for composition, is random
    allocation to ⌊bins / bands⌋ bins of the norm of all participations of one bin; :meth:`epsilon`
    also knows a bound that is sharp where one bin decides. The lower end of :meth:`epsilon_bounds`
    is reached by data.
    """

    name: ClassVar[str] = "balls in bins"
    theorem: ClassVar[str] = "X6"
    relations: ClassVar[tuple[NeighbouringRelation, ...]] = _RELATIONS

    dataset_size: int
    bins: int
    strategy: BandedToeplitz
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.instance("strategy", self.strategy, BandedToeplitz, "a BandedToeplitz")
        if min(self.strategy.column) < 0.0:
            raise DomainError(
                "strategy must have coefficients >= 0; got a negative one. The lower end needs it"
            )
        least = 2 * self.strategy.bands if self.strategy.bands > 1 else 1
        object.__setattr__(
            self, "bins", checks.integer("bins", self.bins, least, advice="Take fewer bands")
        )

    @property
    def steps(self) -> int:
        """The number of batches of one run."""
        return self.strategy.steps

    def batches(self, seed: Seed = None) -> Iterator[Indices]:
        """Draw a bin for every record, then go through the bins in order."""
        rng = generator(seed)
        picks = rng.integers(self.bins, size=self.dataset_size)
        order = np.argsort(picks, kind="stable").astype(np.int64, copy=False)
        bounds = np.cumsum(np.bincount(picks, minlength=self.bins))
        members = np.split(order, bounds[:-1])
        for step in range(self.steps):
            yield members[step % self.bins]

    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return one allocation of all participations to ⌊bins / bands⌋ bins."""
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        whole = self.strategy.sensitivity_bounds(min_separation=self.bins, cyclic=True).upper
        one = self.strategy.sensitivity_bounds().lower
        relative = up(float(whole) / float(one), 4.0)
        at = ratio_down(noise, relative) if noise < math.inf else noise
        bins = self.bins // self.strategy.bands
        return DominatedBy(Allocated(at, steps=bins, relation=self.relation))

    def worst_case_instances(self, noise_multiplier: float) -> tuple[WorstCaseInstance, ...]:
        """Return none: :meth:`epsilon_bounds` has lower ends of its own."""
        return ()

    @to_nearest
    def epsilon(self, noise_multiplier: float, delta: float) -> float:
        """Return the ε spent at ``delta``, certified: the better of two bounds (Theorem X6)."""
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        budget = checks.number(checks.DELTA, delta)
        allocation = self.mechanism(noise)
        upper = float(allocation.epsilon(budget))
        if budget == 0.0 or not 0.0 < upper < math.inf:
            return upper
        lags = self._lags(noise)
        if not (lags and 1e-6 < lags[0] < 1e4):
            return upper
        found = conditional_epsilon(self._circle(noise), budget, upper)
        add = allocation.pairs()[-1]
        # The other direction is bounded by the allocation, which nearly always is far below.
        return found if float(add.profile(found).upper) <= budget else upper

    def _circle(self, noise: float) -> Circle:
        """Return the bins on a circle; those of an unfinished epoch come round once more."""
        epochs, often = divmod(self.steps, self.bins)
        lags = self._lags(noise)
        if not (epochs and often):
            return Circle.whole(self.bins, lags)
        return Circle(self.bins, lags, self._lags(noise, epochs), often)

    def _lags(self, noise: float, times: int = 0) -> tuple[float, ...]:
        """Return the covariances of bins on a circle, none too small; none for too few bins.

        Bins that come round ``times`` times; 0 is the most that a bin does.
        """
        column = self.strategy.column
        if self.bins < 2 * len(column) - 1:
            return ()
        epochs = times or -(-self.steps // self.bins)
        unit = noise * float(self.strategy.sensitivity_bounds().lower)
        scale = epochs / unit / unit * (1.0 + 1e-12)
        return tuple(
            scale * math.fsum(a * b for a, b in zip(column, column[d:], strict=False))
            for d in range(len(column))
        )

    @to_nearest
    def epsilon_bounds(self, noise_multiplier: float, delta: float) -> Bounds:
        """Bracket the ε(delta) of the sampler with its strategy, in nats (Theorem X6)."""
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        budget = checks.number(checks.TARGET_DELTA, delta)
        upper = self.epsilon(noise, budget)
        # In units of one column's norm, with the norm rounded up: the shifts are too small.
        unit = float(self.strategy.sensitivity_bounds().upper) * noise
        found = sorted(self._reached(), key=lambda each: -each.score(unit))[:2]
        lower = 0.0
        for each in found if unit < math.inf else ():
            lower = max(lower, _epsilon(each, unit, budget, lower, upper))
        return Bounds(min(lower, upper), upper)

    def _reached(self) -> list[_Reached]:
        """Return pairs that constant contributions reach (Theorem X6 (ii))."""
        column = np.array(self.strategy.column)
        bands, epochs = column.size, self.steps // self.bins
        if epochs == 0:
            return []
        rough = 1.0 - 64.0 * U * (bands + epochs)
        times = math.sqrt(epochs) * rough
        # Correlations dropped: bins whose columns end before the run does.
        whole = self.bins - (bands - 1 if self.steps % self.bins < bands - 1 else 0)
        norm = times * float(np.linalg.norm(column))
        found = [_Reached(whole / self.bins * rough, whole, norm)]
        # Projections of blocks of rows on one direction each.
        for length in sorted({int(1.3**i) for i in range(40)}):
            if not bands < length <= self.bins // 2:
                continue
            # The rows' sums of the block of the strategy, and its columns' products with them.
            direction = np.cumsum(np.pad(column, (0, length - bands)))
            direction /= float(np.linalg.norm(direction)) * (1.0 + 64.0 * U * length)
            reach = np.sort(np.convolve(direction, column[::-1])[bands - 1 :])[::-1]
            blocks = self.bins // length
            for kept in range(1, length + 1):
                share = kept * blocks / self.bins * rough
                found.append(_Reached(share, blocks, times * float(reach[kept - 1])))
        return found


def _epsilon(each: _Reached, noise: float, delta: float, low: float, high: float) -> float:
    """Return an ε at which a reached pair has more than ``delta``."""
    if not each.delta(noise, low) > delta:
        return 0.0
    return narrow(lambda at: each.delta(noise, at) > delta, low, high, _ROUNDS, width=1e-4 * high)[
        0
    ]
