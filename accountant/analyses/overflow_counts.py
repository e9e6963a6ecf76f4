"""Poisson samples with a cap, by the number of steps in which the others fill the batch.

Whether they do is public, and rare: given the number of those steps, and of those that do not tell
whether the record was drawn, all losses are those of Gaussian noise on Poisson samples, moved by a
constant. So δ is a short sum of values of the native contour (docs/theorems_sampling.md, Theorem
S25).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from accountant._basics.rounding import U
from accountant._core import answers as core
from accountant.analyses import mixed
from accountant.analyses.solver import bracket_crossing
from accountant.analyses.solvers import BesideGrid
from accountant.bounds import Bounds
from accountant.errors import UnsupportedError
from accountant.pairs.base import DominatingPair, Parts
from accountant.pairs.product import BlendPair
from accountant.sampling.truncated_poisson import DoubtfulGaussian, OverflowPair

# The most full batches that are expected: then few terms matter.
_MOST_EXPECTED = 0.01
# The most full batches of a term.
_MOST_FULL = 6
# The sum ends where the rest may add this share of it.
_NEGLIGIBLE = 1e-8
# The relative error of a product of binomial weights, many times what rounding leaves.
_WEIGHT_ERROR = 1e-12


class _Full(NamedTuple):
    """A step in which the others fill the batch.

    With probability ``told`` its loss is that of ``noise`` on a Poisson sample, and ``moved``; with
    probability ``untold``, which may be too small for ``1 - told``, it is the constant ``silent``.
    """

    q: float
    noise: float
    most_noise: float  # for lower ends
    told: float = 1.0
    untold: float = 0.0
    moved: float = 0.0
    silent: float = 0.0
    error: float = 0.0  # relative, of q, ``moved`` and ``silent``


def _full(pair: DominatingPair) -> _Full | None:
    part = pair.gaussian_part
    if part is not None:
        return _Full(part.sampling_probability, part.noise_multiplier, part.most_noise)
    if not (isinstance(pair, OverflowPair) and isinstance(pair.inner, DoubtfulGaussian)):
        return None
    q, doubt, noise = pair.q, pair.inner.doubt, pair.inner.noise_multiplier
    # P* but for its outcome of its own has the mass m; it is a sample with probability q/m.
    m, sign = (1.0 - doubt) + q * doubt, -1.0 if pair.add else 1.0
    told, untold = (1.0 - doubt, doubt) if pair.add else (m, doubt * (1.0 - q))
    moved = sign * math.log1p(q * doubt / (1.0 - doubt))
    return _Full(q / m, noise, noise, told, untold, moved, sign * math.log1p(-q), 16.0 * U)


def has_few_overflows(parts: Parts) -> bool:
    """Tell whether all steps are equal, and the batch is seldom full."""
    ((pair, count),) = parts
    if not isinstance(pair, BlendPair) or not count * pair.weight <= _MOST_EXPECTED:
        return False
    usual, rare = pair.usual.gaussian_part, pair.worse.gaussian_part
    if usual is None or not 0.0 < usual.sampling_probability < 1.0:
        return False
    if rare is not None:
        return rare.add == usual.add and 0.0 < rare.sampling_probability < 1.0
    full = _full(pair.worse)
    return full is not None and 0.0 < full.q < 1.0 and getattr(pair.worse, "add", 0) == usual.add


class OverflowContour(BesideGrid):
    """Equal truncated Poisson samples whose batch is seldom full."""

    name = "overflow contour"
    reason = "Poisson samples with a cap: the contour, summed over the number of full batches"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        ((pair, self._count),) = parts
        full = _full(pair.worse) if isinstance(pair, BlendPair) else None
        usual = pair.usual.gaussian_part if isinstance(pair, BlendPair) else None
        if not isinstance(pair, BlendPair) or full is None or usual is None:  # pragma: no cover
            raise UnsupportedError(f"{pair!r} is not the pair of Theorem S13 or S21")
        self._pair, self._full, self._usual = pair, full, usual
        self._direction = core.ADD if usual.add else core.REMOVE
        self._noises = {
            1: (usual.noise_multiplier, full.noise),
            0: (usual.most_noise, full.most_noise),
        }

    def _least(self) -> float:
        return 0.0 if self._usual.add else math.inf

    def _delta(self, epsilon: float) -> Bounds:
        lower, upper = (self._sum(epsilon, side) for side in (0, 1))
        return self._narrowed(Bounds(min(lower, upper), upper), epsilon=epsilon)

    def _epsilon(self, delta: float) -> Bounds:
        usual = self._usual
        start = core.epsilon_bounds(
            usual.sampling_probability, usual.noise_multiplier, self._count, delta, self._direction
        )[1]
        if not 0.0 < start < math.inf:
            return self._beside().epsilon_bounds(delta)
        found = bracket_crossing(self._sum, delta, float(start), 2.0 * float(start))
        if found is None:
            return self._beside().epsilon_bounds(delta)
        return self._narrowed(found, delta=delta)

    def _sum(self, epsilon: float, side: int) -> float:
        """Bound δ(epsilon) from below (side 0) or above (side 1).

        The sum is over numbers of full batches, and of those of them that tell nothing.
        """
        weight, count, step = self._pair.weight, self._count, self._full
        chance = math.exp(count * math.log1p(-weight))
        odds, total = weight / (1.0 - weight), 0.0
        for full in range(min(_MOST_FULL, count) + 1):
            for silent in range(full + 1):
                share = math.comb(full, silent) * step.told ** (full - silent) * step.untold**silent
                if share > 0.0:
                    total += chance * share * self._term(epsilon, full, silent, side)
            chance *= (count - full) / (full + 1) * odds
            # The chances of more full batches fall by a hundred each.
            if chance <= _NEGLIGIBLE * total:
                break
        if not side:
            return total * (1.0 - _WEIGHT_ERROR)
        return min((total + 1.02 * chance) * (1.0 + _WEIGHT_ERROR), 1.0)

    def _term(self, epsilon: float, full: int, silent: int, side: int) -> float:
        """Bound δ given how many batches are full, and how many of these tell nothing."""
        step, sign = self._full, 2.0 * side - 1.0
        drawn = full - silent
        moved, constant = drawn * step.moved, silent * step.silent
        slack = (abs(moved) + abs(constant)) * (step.error + 8.0 * U) + 4.0 * U * epsilon
        at = epsilon - moved - constant - (sign * slack if full else 0.0)
        usual, noises = self._usual, self._noises[side]
        rows = [mixed.Part(usual.sampling_probability, noises[0], self._count - full)]
        if drawn:
            rows.append(mixed.Part(step.q * (1.0 + sign * step.error), noises[1], drawn))
        plain = max(at, 0.0)
        found = mixed.bracket("delta", rows, plain, self._direction)
        if at >= 0.0:
            return float(found[side])
        # H falls in e^ε, by no more than that rises, and is at least 1 - e^ε.
        rest = -math.expm1(at) * (1.0 + sign * 4.0 * U)
        return float(found[1]) + rest if side else max(float(found[0]), rest)
