"""The numbers of a statement: certified brackets, points of the profile, ε over steps.

For a ledger with very many different releases, the parameters are first rounded, once to each side
(Theorem R2 of docs/theorems_report.md), so that the work is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np

from accountant import mechanisms as noises
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import up
from accountant.analyses.gdp import compose_gdp
from accountant.analyses.over_steps.curve import brackets
from accountant.analyses.over_steps.history import Part, Steps
from accountant.bounds import Bounds
from accountant.composition import Composition, composed
from accountant.ledger.basic import basic_epsilon
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
# How far beyond the ε of the statement points are of use.
FARTHEST = 2.0
# The profile is known at this many evenly spaced ε up to that of the statement: with more, the μ of
# the summary and its regret become smaller.
MANY_PIECES = 96
# The same where an answer takes longer.
FEW_PIECES = 24
# More different releases than this are rounded for one answer; only speed depends on it.
MOST = 520
# More than this are rounded for many answers.
MOST_OFTEN = 70
# An answer about one more kind of release takes so much longer where some are not Gaussian.
SLOWER = 12
# The relative width of brackets where parameters are rounded, which costs more than that.
ROUGHLY = 1e-4
# Families that are rounded by the scale of their noise, and by their ε.
SCALED = noises.Laplace, noises.DiscreteLaplace
STATED = noises.PureDP, noises.RandomizedResponse


@dataclass(frozen=True)
class Spending:
    """The ε and δ of a list of counted mechanisms.

    Attributes
    ----------
    counts : sequence of (Mechanism, int)
        At least one.
    most : int
        More different releases than this are rounded to about as many.
    kept : bool
        Whether plain Gaussian noise stays as it is: together it is one release (Theorem E1).
    """

    counts: tuple[tuple[Mechanism, int], ...]
    most: int = MOST
    kept: bool = False

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
        releases = [mechanism for mechanism, _ in self.counts]
        if sum(not (self.kept and _is_plain(one)) for one in releases) <= self.most:
            whole = composed(self.counts)
            return whole, whole
        sides = []
        for costly in (True, False):
            other = rounded(releases, self.most, costly, self.kept)
            # Merged by identity before hashing, because there are many records of few mechanisms.
            merged: dict[int, int] = {}
            for mechanism, (_, count) in zip(other, self.counts, strict=True):
                merged[id(mechanism)] = merged.get(id(mechanism), 0) + count
            known = {id(mechanism): mechanism for mechanism in other}
            sides.append(composed(tuple((known[key], n) for key, n in merged.items())))
        return sides[0], sides[1]

    def epsilon_bounds(self, delta: float) -> Bounds:
        """Bracket ε(delta)."""
        if self.rounded:
            lower = float(self.below.profile().roughly("epsilon", delta, ROUGHLY).lower)
            upper = float(self.above.profile().roughly("epsilon", delta, ROUGHLY).upper)
        else:
            known = self.above.epsilon_bounds(delta)
            lower, upper = float(known.lower), float(known.upper)
        if delta == 0.0:
            upper = min(upper, basic_epsilon(self.counts))  # decimals, rounded once
        return Bounds(min(lower, upper), upper)

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
        # Where an answer takes long, no far tails, which bound no attack of the tables.
        fixed = MANY_EPSILONS if self._is_quick else [e for e in EPSILONS if e <= FARTHEST * most]
        epsilons = {0.0, *fixed}
        if 0.0 < most < math.inf:
            pieces = MANY_PIECES if self._is_quick else FEW_PIECES
            epsilons.update(most * k / pieces for k in range(1, pieces + 1))
        return [self._point(epsilon) for epsilon in sorted(epsilons)]

    def _point(self, epsilon: float) -> Point:
        if not self.rounded:
            bounds = self.above.delta_bounds(epsilon)
            return Point(epsilon, float(bounds.lower), float(bounds.upper))
        upper = float(self.above.profile().roughly("delta", epsilon, ROUGHLY).upper)
        lower = float(self.below.profile().roughly("delta", epsilon, ROUGHLY).lower)
        return Point(epsilon, min(lower, upper), upper)

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


def rounded(
    mechanisms: Sequence[Mechanism], most: int, costly: bool, kept: bool = False
) -> list[Mechanism]:
    """Return mechanisms whose profiles are nowhere smaller (``costly``) or larger (Theorem R2).

    Of each family at most a part of ``most`` different ones are left; what belongs to none stays,
    and so does plain Gaussian noise where it is ``kept``. Fewer are left where some are not
    Gaussian.
    """
    groups: dict[type[Mechanism], list[int]] = {}
    for place, mechanism in enumerate(mechanisms):
        if _setting(mechanism) is not None and not (kept and _is_plain(mechanism)):
            groups.setdefault(type(mechanism), []).append(place)
    result = list(mechanisms)
    gaussian = all(kind in (Gaussian, PoissonSampled) for kind in map(type, mechanisms))
    each = max(most // (1 if gaussian else SLOWER) // max(len(groups), 1), 1)
    for kind, places in groups.items():
        settings = [_setting(mechanisms[place]) for place in places]
        rate, noise = np.array([s for s in settings if s is not None]).T
        rate, noise = _few(rate, noise, each, costly)
        made: dict[tuple[Any, ...], Mechanism] = {}
        for place, *values in zip(places, rate.tolist(), noise.tolist(), strict=True):
            key = (*values, mechanisms[place].relation)
            if key not in made:
                made[key] = _with(kind, *key)
            result[place] = made[key]
    return result


def _few(
    rate: FloatArray, noise: FloatArray, most: int, costly: bool
) -> tuple[FloatArray, FloatArray]:
    """Round rates to the one side and noise to the other, to at most ``most`` different pairs."""
    bits = 24
    while bits > 1:
        # Pairs as complex numbers: NumPy sorts these much faster than rows.
        pairs = _rounded(rate, bits, costly) + 1j * _rounded(noise, bits, not costly)
        if len(np.unique(pairs)) <= most:
            break
        bits -= 1
    return _rounded(rate, bits, costly), _rounded(noise, bits, not costly)


def _setting(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return a rate, with which a profile grows, and the noise, with which it falls."""
    kind, one = type(mechanism), cast("Any", mechanism)
    if kind is PoissonSampled and _is_plain(one.mechanism):
        return one.sampling_probability, one.mechanism.noise_multiplier
    if _is_plain(mechanism):
        return 1.0, mechanism.noise_multiplier
    if kind in SCALED and one.sensitivity == 1:
        return (1.0, one.scale) if one.scale < math.inf else None
    if kind in STATED and (kind is noises.PureDP or one.k == 2):
        return one.epsilon0, 1.0
    return None


def _with(kind: type[Mechanism], rate: float, noise: float, relation: Any) -> Mechanism:
    """Return the mechanism of a family with a rate and noise."""
    if kind in STATED:
        return kind(rate, relation=relation)
    if kind in SCALED:
        return kind(noise, relation=relation)
    plain = Gaussian(noise, relation=relation)
    return plain if kind is Gaussian else PoissonSampled(plain, min(rate, 1.0))


def _is_plain(mechanism: Mechanism) -> TypeGuard[Gaussian]:
    return (
        type(mechanism) is Gaussian
        and mechanism.sensitivity == 1.0
        and mechanism.noise_multiplier < math.inf
    )


def _rounded(values: FloatArray, bits: int, upwards: bool) -> FloatArray:
    """Round values >= 0 to ``bits`` bits, exactly."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, bits)
    return np.asarray(np.ldexp(np.ceil(whole) if upwards else np.floor(whole), exponent - bits))


def over_steps(
    history: Steps, counts: Counts, headline: Bounds, delta: float
) -> list[tuple[int, float, float]]:
    """Bracket ε(delta) of some prefixes: their numbers of releases, lower and upper bounds.

    Each bracket holds by itself, for parameters fixed in advance (Theorem L8). The ends agree where
    the composition is exact. Elsewhere the lower end shows how loose the upper end may be. The
    last bracket is ``headline``.
    """
    costly = coarser(history, counts, MOST_OFTEN, True)
    if costly is history:
        found = lower = brackets(history, delta)
    else:
        found = brackets(costly, delta, ROUGHLY)
        lower = brackets(coarser(history, counts, MOST_OFTEN, False), delta, ROUGHLY)
    steps = [length for length, _, _ in found]
    low = np.minimum([one for _, one, _ in lower], float(headline.lower))
    high = np.minimum([one for _, _, one in found], float(headline.upper))
    low[-1], high[-1] = float(headline.lower), float(headline.upper)
    # The ε of a prefix is at most that of a longer one, and at least that of a shorter one.
    high = np.minimum.accumulate(high[::-1])[::-1]
    low = np.minimum(np.maximum.accumulate(low), high)
    return list(zip(steps, low.tolist(), high.tolist(), strict=True))


def coarser(history: Steps, counts: Counts, most: int, costly: bool) -> Steps:
    """Return a history of few different mechanisms that costs no less, or no more, at each step."""
    if len(counts) <= most:
        return history
    mechanisms = [mechanism for mechanism, _ in counts]
    other = dict(zip(mechanisms, rounded(mechanisms, most, costly), strict=True))
    seen: dict[int, Mechanism] = {}
    result = []
    for item in history:
        key = id(item.mechanism)
        if key not in seen:
            seen[key] = other[item.mechanism]
        result.append(Part(seen[key], item.count))
    return result
