"""The pair of random allocation of any mechanism, by sums of ratios on an even lattice.

A record takes part in one of T runs, picked uniformly; S is the mean of T likelihood ratios of one
run. Its puts and calls are those of a law on an even lattice (docs/theorems_sampling.md, Theorem
S23), and at the knots of losses they give two laws for compositions (Theorem S17).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.bounds import Bounds
from accountant.errors import PrecisionError
from accountant.pairs.atoms import AtomicPair, Atoms
from accountant.pairs.base import DominatingPair, offers
from accountant.sampling.allocation_pair import atoms_of
from accountant.sampling.allocation_table import (
    Table,
    chord_law,
    places,
    shared_spacing,
    tangent_law,
)
from accountant.sampling.ratio_jumps import MOST_JUMPS, JumpSums, Parts, is_cramped, parts_of
from accountant.sampling.ratio_sums import RatioSums, ratio_lattice
from accountant.search import narrow

# None of these numbers is part of a proof: they were chosen by trial, and move widths and times.
# Logarithms of the probabilities at which a table's law is tilted.
_TABLE = (-1.0, -6.0, -16.0)
# The same for a single question; smaller values have a tilt of their own.
_FIRST = (-1.0, -9.0)
# Values within this factor, as a logarithm, share such a tilt.
_GRAIN = 4.0
# The most rounds of a search for an ε.
_ROUNDS = 60
# Such a search ends when its two sides are this close, relatively.
_CLOSE = 1e-12
# The lower end is looked for first this near to the upper one, relatively.
_NEAR = 1e-8
# A δ above it may be beyond the window of few runs, and is also bounded by that of one run.
_LARGE = 0.2
# A law whose masses have a larger relative error is not used.
_MOST_ERROR = 1e-3
# Knots of a table in one width of the law.
_FINE = 200.0
# Widths of the law within which a table has every knot.
_DENSE = 7.0
# Widths of the law at which a table ends.
_MOST = 40.0
# The largest loss of a table: ratios of neighbours must keep their differences.
_LONGEST = 20.0
# The largest loss that is asked for: its exponential is a double.
FARTHEST = 700.0


_lattice = functools.lru_cache(maxsize=16)(ratio_lattice)


def is_resolved(pair: DominatingPair, steps: int) -> bool:
    """Tell whether the ratio of one run fits a lattice of its values, and the sum a transform."""
    if _lattice(pair, steps) is None:
        return False
    return float(_bounds(pair, steps, False, _TABLE[:1], np.ones(1))[1][0]) < 1.0


@functools.lru_cache(maxsize=16)
def _sums(pair: DominatingPair, steps: int, put: bool, log_target: float) -> RatioSums | JumpSums:
    one = _lattice(pair, steps)
    if one is None:  # pragma: no cover (asked before)
        raise PrecisionError(f"the likelihood ratio of {pair!r} fits no lattice of its values")
    parts = _parts(pair, steps)
    if put or parts is None or not is_cramped(one, steps, log_target):
        return RatioSums(one, steps, put, log_target)
    return JumpSums(one, parts, steps, functools.partial(_common, pair, steps), log_target)


@functools.lru_cache(maxsize=16)
def _parts(pair: DominatingPair, steps: int) -> Parts | None:
    one = _lattice(pair, steps)
    return None if one is None or steps <= MOST_JUMPS else parts_of(one, steps)


@functools.lru_cache(maxsize=16)
def _common(pair: DominatingPair, steps: int, runs: int, log_target: float) -> RatioSums:
    """Return the sums of the common ratios of ``runs`` of the steps."""
    parts = _parts(pair, steps)
    assert parts is not None
    return RatioSums(parts.common, runs, False, log_target)


def _bounds(
    pair: DominatingPair, steps: int, put: bool, tilts: tuple[float, ...], strikes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bracket options by the best of several tilts."""
    found = [_sums(pair, steps, put, tilt).bounds(strikes) for tilt in tilts]
    return np.max([low for low, _ in found], axis=0), np.min([high for _, high in found], axis=0)


@dataclass(frozen=True)
class MechanismPair(AtomicPair):
    """One of ``steps`` runs of a release with the pair ``one``; ``add`` is the reversed pair.

    Parameters
    ----------
    one, reverse : DominatingPair
        The pair of one run, with a loss distribution, and the pair of the other direction.
    steps : int
        T >= 2.
    add : bool
        The reversed pair.
    upper : bool
        Whether the atoms bound the profile from above (else from below).
    """

    one: DominatingPair
    reverse: DominatingPair
    steps: int
    add: bool = False
    upper: bool = True

    def atoms(self) -> Atoms:
        """Return the atoms of the bounding law, losses moved to the safe side."""
        table = _table(self.one, self.steps)
        law = (chord_law if self.upper else tangent_law)(table)
        if not law.mass_error < _MOST_ERROR:
            # From above everything is told, from below nothing.
            everything = 1.0 if self.upper else 0.0
            rest = np.array([1.0 - everything])
            return Atoms(np.zeros(1), rest, rest, everything, everything, 0.0, 0.0)
        shift = (2.0 * law.value_error + 8.0 * U) * (1.0 if self.upper else -1.0)
        return atoms_of(law, table.spacing, shift, add=self.add)

    @property
    def pure_epsilon(self) -> float:
        """That of one run: a mean of ratios lies between the least and the largest (S23)."""
        return self.one.pure_epsilon

    def profile(self, epsilon: float) -> Bounds:
        """Bracket H(ε) of the pair itself."""
        found = self._at(epsilon, _FIRST)
        single = self.reverse if self.add else self.one
        if found.upper > _LARGE and offers(single, "profile"):
            # Few runs: not telling which it was only hides (joint convexity).
            upper = min(float(found.upper), float(single.profile(epsilon).upper))
            found = Bounds(min(float(found.lower), upper), upper)
        if 0.0 < found.upper < math.exp(_FIRST[-1] - _GRAIN):
            own = _GRAIN * round(max(math.log(found.upper), -600.0) / _GRAIN)
            return found.intersection(self._at(epsilon, (own,)))
        return found

    def _at(self, epsilon: float, tilts: tuple[float, ...]) -> Bounds:
        if epsilon >= self.pure_epsilon:
            return Bounds(0.0, 0.0)
        return self._bracket(epsilon, tilts)

    def _bracket(self, epsilon: float, tilts: tuple[float, ...]) -> Bounds:
        # Strikes beyond the doubles: the profile falls, and is 1 - e^ε at least.
        if epsilon > FARTHEST:
            return Bounds(0.0, float(self._at(FARTHEST, tilts).upper))
        if epsilon < -FARTHEST:
            return Bounds(math.nextafter(1.0, 0.0), 1.0)
        loss = -epsilon if self.add else epsilon
        strike = np.exp(loss) * np.array([1.0 - 4.0 * U, 1.0 + 4.0 * U])
        put = loss < 0.0
        low, high = _bounds(self.one, self.steps, put, tilts, strike)
        # Puts grow with the strike, calls fall; by parity both differ by 1 - K.
        lower, upper = float(low.min()), float(high.max())
        if put != self.add:
            other = -math.expm1(loss) * (1.0 if put else -1.0)
            doubt = 32.0 * U * (1.0 + abs(other)) + float(self.one.infinite_mass)
            lower, upper = lower + other - doubt, upper + other + doubt
        factor = math.exp(epsilon) if self.add else 1.0
        upper = min(max(upper * factor * (1.0 + 4.0 * U), 0.0), 1.0)
        return Bounds(min(max(lower * factor * (1.0 - 4.0 * U), 0.0), upper), upper)

    def inverse_profile(self, delta: float) -> Bounds | None:
        """Bracket ε where H(ε) is ``delta``."""
        tilts = (min(_GRAIN / 4.0 * round(math.log(delta) / (_GRAIN / 4.0)), -1.0),)
        farthest = min(1e-3, self.pure_epsilon)
        while self._at(farthest, tilts).upper > delta:
            if farthest == FARTHEST:
                return None
            farthest = min(2.0 * farthest, FARTHEST)
        found = self._crossing(delta, tilts, 0.0, farthest, upper=True)
        # The lower end is near: it is searched for from there.
        low, beyond = found, found
        for k in range(_ROUNDS):
            low, beyond = max(found * (1.0 - _NEAR * 8.0**k), 0.0), low
            if low == 0.0 or self._at(low, tilts).lower > delta:
                break
        return Bounds(self._crossing(delta, tilts, low, beyond, upper=False), found)

    def _crossing(
        self, delta: float, tilts: tuple[float, ...], low: float, high: float, *, upper: bool
    ) -> float:
        """Return an ε with an upper bound of at most ``delta``, or a lower one above it.

        ``high`` has the first property; ``low`` has the second, or is 0.
        """

        def holds(epsilon: float) -> bool:
            bounds = self._at(epsilon, tilts)
            return float(bounds.upper) <= delta if upper else float(bounds.lower) > delta

        good, bad = (high, low) if upper else (low, high)
        return narrow(holds, good, bad, _ROUNDS, width=_CLOSE * high)[0]

    @property
    def lattice(self) -> tuple[float, float] | None:
        """The lattice of the table, moved to the safe side."""
        loss = self._table.loss
        return float(loss[0]), _table(self.one, self.steps).spacing

    @property
    def _unhidden(self) -> DominatingPair:
        """One run: not telling which it was only hides (Theorem S2)."""
        return self.reverse if self.add else self.one

    def rdp(self, order: float) -> float:
        """Return the divergence of one run: joint convexity."""
        return self._unhidden.rdp(order)


@functools.lru_cache(maxsize=16)
def _table(pair: DominatingPair, steps: int) -> Table:
    """Return brackets of puts and calls at the knots of a lattice of losses."""
    centre = _bounds(pair, steps, False, _TABLE[:1], np.ones(1))[1]
    width = max(2.5 * float(centre[0]), 1e-13)
    spacing = shared_spacing(width / _FINE)
    index = places(round(_DENSE * width / spacing), _MOST * width / spacing)
    # Up to a knot that is no middle of a cell.
    index = index[: (int(np.count_nonzero(0.5 * spacing * index <= _LONGEST)) - 1) // 2 * 2 + 1]
    parts = []
    for put in (True, False):
        side = -index[1:] if put else index
        strikes = np.exp(0.5 * spacing * side)
        lower, upper = _bounds(pair, steps, put, _TABLE, strikes)
        # Options fall away from the money, and cannot be more than one.
        parts.append((side, lower, np.minimum.accumulate(np.minimum(upper, 1.0))))
    (left, low_put, high_put), (right, low_call, high_call) = parts
    return Table(
        spacing,
        np.concatenate([left[::-1], right]),
        np.concatenate([low_put[::-1], low_call]),
        np.concatenate([high_put[::-1], high_call]),
    )
