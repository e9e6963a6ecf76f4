"""The numbers of a statement: certified brackets, points of the profile, ε over steps.

For a ledger with very many different Gaussian steps, the parameters are first rounded, once to each
side (Theorem R2 of docs/theorems_report.md), so that the work is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from accountant._rounding import up
from accountant._typing import FloatArray
from accountant.analyses.gdp import compose_gdp
from accountant.bounds import Bounds
from accountant.composition import Composition, composed
from accountant.mechanisms import Gaussian, Mechanism
from accountant.report.gaussian_summary import Point
from accountant.sampling import PoissonSampled

Counts: TypeAlias = Sequence[tuple[Mechanism, int]]

# The table of a statement: 1 and 3 times powers of ten.
DELTAS = tuple(float(f"{m}e-{k}") for k in range(2, 11) for m in (3, 1))
# The same if an answer takes longer: powers of ten.
FEW_DELTAS = DELTAS[1::2]
# Further points of the profile, for the bounds on attackers.
MANY_EPSILONS = tuple(k / 8.0 for k in range(64))
EPSILONS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
# Pieces up to the ε of the statement, for the summary μ; the same if an answer takes longer.
MANY_PIECES, FEW_PIECES = 96, 24
# Limits on the number of different Gaussian steps for one answer, and for many answers.
MOST, MOST_OFTEN = 520, 70


@dataclass(frozen=True)
class Spending:
    """The ε and δ of a list of counted mechanisms.

    Attributes
    ----------
    counts : sequence of (Mechanism, int)
        At least one.
    most : int
        More different Gaussian steps than this are rounded to at most as many.
    """

    counts: tuple[tuple[Mechanism, int], ...]
    most: int = MOST

    @property
    def rounded(self) -> bool:
        """Whether parameters are rounded."""
        return self.above is not self.below

    @property
    def above(self) -> Composition:
        """A composition whose profile is nowhere smaller."""
        return self._sides[0]

    @property
    def below(self) -> Composition:
        """A composition whose profile is nowhere larger."""
        return self._sides[1]

    @cached_property
    def _sides(self) -> tuple[Composition, Composition]:
        if len(self.counts) <= self.most:
            whole = composed(self.counts)
            return whole, whole
        mechanisms = [mechanism for mechanism, _ in self.counts]
        sides = []
        for costly in (True, False):
            # Merged by identity before hashing, because there are many records of few mechanisms.
            merged: dict[int, int] = {}
            other = rounded(mechanisms, self.most, costly)
            for mechanism, (_, count) in zip(other, self.counts, strict=True):
                merged[id(mechanism)] = merged.get(id(mechanism), 0) + count
            known = {id(mechanism): mechanism for mechanism in other}
            sides.append(composed(tuple((known[key], n) for key, n in merged.items())))
        return sides[0], sides[1]

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bracket ε(delta)."""
        bounds = self.above.epsilon_bounds(delta)
        if not self.rounded:
            return bounds
        lower = float(self.below.epsilon_bounds(delta).lower)
        return Bounds(min(lower, float(bounds.upper)), bounds.upper)

    def epsilon(self, delta: float) -> float:
        """Bound ε(delta) from above."""
        return float(self.above.epsilon_bounds(delta).upper)

    @property
    def deltas(self) -> tuple[float, ...]:
        """The δ of the table."""
        return DELTAS if self._is_quick else FEW_DELTAS

    @property
    def _is_quick(self) -> bool:
        """Whether an answer takes less than a few milliseconds."""
        return self.is_gaussian and len(self.above.parts) <= 8

    def points(self, most: float) -> list[Point]:
        """Bracket the profile at many ε, a part of them evenly spaced up to ``most``."""
        epsilons = set(MANY_EPSILONS if self._is_quick else EPSILONS)
        if 0.0 < most < math.inf:
            pieces = MANY_PIECES if self._is_quick else FEW_PIECES
            epsilons.update(most * k / pieces for k in range(1, pieces + 1))
        return [self._point(epsilon) for epsilon in sorted(epsilons)]

    def _point(self, epsilon: float) -> Point:
        bounds = self.above.delta_bounds(epsilon)
        lower, upper = float(bounds.lower), float(bounds.upper)
        if self.rounded:
            lower = min(float(self.below.delta_bounds(epsilon).lower), upper)
        return Point(epsilon, lower, upper)

    @cached_property
    def gaussian_mu(self) -> float | None:
        """The exact μ, rounded up, where every part is Gaussian noise without a sample."""
        total: list[tuple[float, int]] = []
        for mechanism, count in self.above.parts:
            (pair, *others) = mechanism.pairs()
            part = pair.gaussian_part
            if others or part is None or part.sampling_probability != 1.0:
                return None
            total.append((up(1.0 / part.noise_multiplier), count))
        return compose_gdp(total)

    @property
    def analysis(self) -> tuple[str, str]:
        """The name of the analysis, and why it was chosen."""
        first = self.above.profile().solvers()[0]
        return first.name, first.reason

    @cached_property
    def is_gaussian(self) -> bool:
        """Whether every part is Gaussian noise, subsampled or not, so that answers are fast."""
        return all(
            pair.gaussian_part is not None
            for mechanism, _ in self.above.parts
            for pair in mechanism.pairs()
        )


def rounded(mechanisms: Sequence[Mechanism], most: int, costly: bool) -> list[Mechanism]:
    """Return mechanisms whose profiles are nowhere smaller (``costly``) or larger (Theorem R2).

    Gaussian steps are rounded to at most ``most`` different ones; all else stays as it is.
    """
    settings = [_setting(mechanism) for mechanism in mechanisms]
    q, sigma = np.array([s for s in settings if s is not None]).reshape(-1, 2).T
    bits = 24
    while bits > 1:
        # Pairs as complex numbers: NumPy sorts these much faster than rows.
        pairs = _rounded(q, bits, costly) + 1j * _rounded(sigma, bits, not costly)
        if len(np.unique(pairs)) <= most:
            break
        bits -= 1
    q, sigma = np.minimum(_rounded(q, bits, costly), 1.0), _rounded(sigma, bits, not costly)
    found = iter(zip(q.tolist(), sigma.tolist(), strict=True))
    made: dict[tuple[Any, ...], Mechanism] = {}
    result = []
    for mechanism, setting in zip(mechanisms, settings, strict=True):
        if setting is None:
            result.append(mechanism)
            continue
        key = (*next(found), mechanism.relation)
        if key not in made:
            made[key] = PoissonSampled(Gaussian(key[1], relation=key[2]), key[0])
        result.append(made[key])
    return result


def _setting(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return q and σ of a subsampled Gaussian step."""
    if type(mechanism) is not PoissonSampled:
        return None
    inner = mechanism.mechanism
    if type(inner) is not Gaussian or inner.sensitivity != 1.0:
        return None
    return mechanism.sampling_probability, inner.noise_multiplier


def _rounded(values: FloatArray, bits: int, upwards: bool) -> FloatArray:
    """Round values >= 0 to ``bits`` bits, exactly."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, bits)
    return np.asarray(np.ldexp(np.ceil(whole) if upwards else np.floor(whole), exponent - bits))
