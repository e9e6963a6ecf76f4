"""Correlated noise: tree aggregation, DP-FTRL and other matrix mechanisms.

The contributions x_1, …, x_T of the steps are encoded by a strategy matrix, C x, and Gaussian noise
is added to the encoding; prefix sums and the like are decoded from it. No sampling is assumed: the
account is that of one Gaussian release whose sensitivity depends on when a record takes part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.errors import ArgumentTypeError, DomainError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.fields import set_fields
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.stated_guarantees import DominatedBy
from accountant.relations import REPLACE_ONE, ZERO_OUT, NeighbouringRelation

_RELATIONS = (ZERO_OUT, REPLACE_ONE)
# The most participation patterns that are tried one by one.
_PATTERNS = 20_000
# The largest binary exponent: entries up to it have squares that neither overflow nor vanish.
_SAFE_EXPONENT = 300


@to_nearest
def tree_strategy(steps: int) -> FloatArray:
    """Return the strategy of binary tree aggregation: one row for every complete dyadic interval.

    Parameters
    ----------
    steps : int
        Number of steps T; the tree is the smallest that holds them.

    Returns
    -------
    float64 array of shape (nodes, steps)
        Rows ordered by the step at which their interval ends, so that noise can be added as the
        contributions arrive. Intervals that would end after the last step are never released.
    """
    steps = checks.integer("steps", steps, 1)
    nodes = []
    size = 1
    while size <= steps:
        nodes += [(start + size, size, start) for start in range(0, steps - size + 1, size)]
        size *= 2
    strategy = np.zeros((len(nodes), steps))
    for row, (end, _, start) in enumerate(sorted(nodes)):
        strategy[row, start:end] = 1.0
    return strategy


@to_nearest
def square_root_strategy(steps: int) -> FloatArray:
    """Return the lower-triangular square root of the prefix-sum matrix (Toeplitz).

    Its coefficients are binom(2j, j) / 4^j.
    """
    steps = checks.integer("steps", steps, 1)
    j = np.arange(1, steps)
    column = np.concatenate([[1.0], np.cumprod((2.0 * j - 1.0) / (2.0 * j))])
    strategy = np.zeros((steps, steps))
    for k in range(steps):
        strategy[k:, k] = column[: steps - k]
    return strategy


@dataclass(frozen=True, eq=False)
class MatrixMechanism:
    """Gaussian noise on a linear encoding of the steps' contributions.

    Parameters
    ----------
    strategy : array_like of shape (rows, steps)
        The encoding C; row by row it may use the contributions that have arrived (a square C is
        lower-triangular), so contributions may depend on what was released before.
    min_separation : int
        A record takes part at steps that are at least this far apart. By default it takes part
        once.
    max_participations : int, optional
        And at most so often; by default as often as the separation allows.
    relation : NeighbouringRelation, keyword only
        Zero-out or replace-one: when records take part must not depend on the data.

    Notes
    -----
    *Guarantee.* Exactly sensitivity/σ-GDP (twice that under replace-one): Theorem S14. Batches in a
    fixed cyclic order have ``min_separation`` equal to the batches of an epoch and as many
    participations as epochs.

    Examples
    --------
    >>> from accountant.sampling import MatrixMechanism, tree_strategy
    >>> MatrixMechanism(tree_strategy(8)).sensitivity_bounds().upper  # four levels
    2.0
    """

    strategy: FloatArray
    _: KW_ONLY
    min_separation: int | None = None
    max_participations: int | None = None
    relation: NeighbouringRelation = field(default=ZERO_OUT, kw_only=True)

    @to_nearest
    def __post_init__(self) -> None:
        matrix = _matrix(self.strategy)
        steps = matrix.shape[1]
        separation = steps if self.min_separation is None else self.min_separation
        separation = checks.integer("min_separation", separation, 1, advice="It counts steps")
        most = -(-steps // separation)
        if self.max_participations is not None:
            most = min(most, checks.integer("max_participations", self.max_participations, 1))
        set_fields(
            self,
            strategy=matrix,
            min_separation=separation,
            max_participations=most,
            relation=checks.supported_relation("correlated noise", self.relation, _RELATIONS),
        )

    @to_nearest
    def sensitivity_bounds(self) -> Bounds:
        """Bracket the ℓ2 sensitivity of the encoding when contributions have norm at most one.

        Returns
        -------
        Bounds
            Equal up to rounding where the maximum over patterns is known: one participation, a
            matrix whose columns do not overlap beyond the separation, one whose column products
            fall with distance and time (prefix sums, their square root, trees at powers of two),
            or few patterns. Else an enclosure.
        """
        # A power of two is taken out where products would leave the range of doubles.
        exponent = math.frexp(float(np.abs(self.strategy).max()))[1]
        exponent = exponent if abs(exponent) > _SAFE_EXPONENT else 0
        strategy = np.ldexp(self.strategy, -exponent)
        gram = strategy.T @ strategy
        lower, upper = _largest(gram, self.min_separation or 1, self.max_participations or 1)
        rounding = 4.0 * (strategy.shape[0] + gram.shape[0] + 16) * U
        # The products' errors are relative to those of the absolute values.
        size = float(np.abs(strategy).sum(axis=0).max()) if (strategy < 0).any() else 0.0
        slack = rounding * max(upper, size * size)
        low = math.sqrt(max(lower - slack, 0.0)) * (1.0 - 2.0**-52)
        high = math.sqrt(upper + slack) * (1.0 + 2.0**-52)
        if exponent:
            return _scaled(low, high, exponent)
        if self._is_integral() and low <= math.sqrt(round(upper)) <= high and lower == upper:
            # Integer matrices have integer products, without rounding.
            low = high = math.sqrt(round(upper))
            if high * high != round(upper):
                low, high = math.nextafter(low, 0.0), math.nextafter(high, math.inf)
        return Bounds(low, high)

    def _is_integral(self) -> bool:
        whole = bool((self.strategy == np.round(self.strategy)).all())
        return whole and float(np.abs(self.strategy).sum()) ** 2 < 2.0**52

    @to_nearest
    def mechanism(self, noise_multiplier: float) -> Mechanism:
        """Return the Gaussian mechanism of the whole run, or what dominates it.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise on every coordinate of the encoding, over the bound on
            one contribution.
        """
        lower, upper = self.sensitivity_bounds()
        found = self._moved_by(noise_multiplier, float(upper))
        return found if lower == upper else DominatedBy(found)

    def _moved_by(self, noise_multiplier: float, sensitivity: float) -> Mechanism:
        noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        return Gaussian(noise, sensitivity=sensitivity, relation=self.relation)

    @to_nearest
    def epsilon_bounds(self, noise_multiplier: float, delta: float) -> Bounds:
        """Bracket ε(delta) of the whole run, in nats."""
        below = self._moved_by(noise_multiplier, float(self.sensitivity_bounds().lower))
        upper = float(self.mechanism(noise_multiplier).epsilon(delta))
        return Bounds(min(float(below.epsilon_bounds(delta).lower), upper), upper)


def _scaled(low: float, high: float, exponent: int) -> Bounds:
    """Return low·2^exponent and high·2^exponent, rounded outward where doubles end."""
    with np.errstate(over="ignore"):
        below, above = (float(np.ldexp(end, exponent)) for end in (low, high))
    return Bounds(
        max(math.nextafter(below, 0.0), 0.0),
        math.nextafter(above, math.inf) if above > 0.0 else 0.0,
    )


def _matrix(value: ArrayLike) -> FloatArray:
    try:
        matrix = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError("strategy must be a matrix of real numbers") from None
    if matrix.ndim != 2 or not matrix.size:
        raise DomainError(
            f"strategy must have shape (rows, steps), not empty; got shape {matrix.shape}."
            " Give the encoding matrix C, one column a step"
        )
    if not bool(np.isfinite(matrix).all()):
        raise DomainError("strategy must be finite; got infinities or NaN")
    if matrix.shape[0] == matrix.shape[1] and bool(np.triu(matrix, 1).any()):
        raise DomainError(
            "strategy must be lower-triangular when square; got entries above the diagonal, which"
            " would use contributions before they arrive"
        )
    matrix.flags.writeable = False
    return matrix


def _largest(gram: FloatArray, separation: int, most: int) -> tuple[float, float]:
    """Bracket the largest Σ_{i,j} |G_ij| over patterns; the lower end is attained by one."""
    size = np.abs(gram)
    steps = gram.shape[0]
    if most == 1:
        value = float(np.diag(size).max())
        return value, value
    packed = np.arange(most) * separation
    packed = packed[packed < steps]
    if _falls(gram, separation):
        value = float(gram[np.ix_(packed, packed)].sum())
        return value, value
    if not np.triu(size, separation).any():
        value = _best_path(np.diag(size), separation, most)
        return value, value
    attained = max(_reached(gram, offset, separation, most) for offset in range(steps))
    if _count(steps, separation, most) <= _PATTERNS:
        patterns = [list(pattern) for pattern in _patterns(steps, separation, most)]
        upper = max(float(size[np.ix_(p, p)].sum()) for p in patterns)
        lower = max(float(gram[np.ix_(p, p)].sum()) for p in patterns)
        return max(lower, attained), upper
    # Every row at its best, then the best pattern of rows.
    rows = np.array([_row(size[i], i, separation, most) for i in range(steps)])
    return attained, _best_path(rows, separation, most)


def _falls(gram: FloatArray, separation: int) -> bool:
    """Tell whether G_ij >= 0 falls with the distance and along the diagonal (Theorem S14)."""
    wide = np.triu(gram, separation) + np.diag(np.diag(gram))
    if (wide < 0.0).any():
        return False
    upper = np.triu(np.ones_like(gram, dtype=bool), separation)
    upper |= np.eye(gram.shape[0], dtype=bool)
    down = gram[1:, 1:] <= gram[:-1, :-1]
    across = gram[:, 1:] <= gram[:, :-1]
    both = upper[:, 1:] & upper[:, :-1]
    return bool(down[upper[:-1, :-1]].all() and across[both].all())


def _reached(gram: FloatArray, offset: int, separation: int, most: int) -> float:
    pattern = np.arange(offset, gram.shape[0], separation)[:most]
    return float(gram[np.ix_(pattern, pattern)].sum())


def _best_path(values: FloatArray, separation: int, most: int) -> float:
    """Return the largest sum of at most ``most`` entries that are ``separation`` apart."""
    steps = values.size
    best = np.zeros(steps + 1)  # best[i]: using entries before i
    for _ in range(most):
        taken = np.zeros(steps + 1)
        earlier = best[np.maximum(np.arange(steps) - separation + 1, 0)]
        taken[1:] = np.maximum.accumulate(values + earlier)
        best = np.maximum(best, taken)
    return float(best[-1])


def _row(row: FloatArray, i: int, separation: int, most: int) -> float:
    left = row[: max(i - separation + 1, 0)][::-1]
    right = row[i + separation :]
    value = float(row[i])
    for side in (left, right):
        if side.size:
            value += _best_path(side, separation, most - 1)
    return value


def _count(steps: int, separation: int, most: int) -> int:
    free = (steps - (k - 1) * (separation - 1) for k in range(1, most + 1))
    return sum(math.comb(n, k) for k, n in enumerate(free, 1) if n >= k)


def _patterns(steps: int, separation: int, most: int) -> Iterator[tuple[int, ...]]:
    def extend(pattern: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if pattern:
            yield pattern
        if len(pattern) < most:
            start = pattern[-1] + separation if pattern else 0
            for step in range(start, steps):
                yield from extend((*pattern, step))

    return extend(())
