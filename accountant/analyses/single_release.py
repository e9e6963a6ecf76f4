"""The privacy profile of one release and its inverse, without a grid.

Theorem G9 of docs/theorems_grid.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from accountant._rounding import TINY, U
from accountant.analyses.optimal.certified_inverse import certified_epsilon
from accountant.bounds import Bounds
from accountant.errors import PrecisionError, UnsupportedError
from accountant.pairs.atoms import (
    LOOPED,
    AtomicPair,
    Atoms,
    Losses,
    Rows,
    ends_of_profile,
    ends_of_rows,
    rows_of,
)
from accountant.pairs.base import DominatingPair, Parts, has_profile

FARTHEST = 600.0  # nats: e^ε·1e-300 is negligible below
# Of the search for a first guess: rounds, edges in each, the ends, and when to stop.
ROUNDS, EDGES, NEAREST, CLOSE = 4, 96, 1e-12, 1e-7
FAR = 2.0**-20  # relative step that measures a slope
# How far below the largest loss, in nats, the formula between two losses is of use, and how many
# steps from its root are tried.
DEEP, TRIES = 700.0, 3


def is_one_of_losses(parts: Parts) -> bool:
    """Tell whether the parts are one release of finitely many losses and nothing sharper is known.

    Its profile is a sum over them, and no other analysis is to be looked for.
    """
    if len(parts) != 1 or parts[0][1] != 1:
        return False
    pair = parts[0][0]
    if not isinstance(pair, AtomicPair) or pair.sharper_rdp:
        return False
    # The mass asks for the losses, which a pair that inverts its own profile need not have.
    if type(pair).inverse_profile is not DominatingPair.inverse_profile:
        return False
    return not pair.infinite_mass > 0.0 or pair.support != (0.0, 0.0)


def profile_of_one(pair: DominatingPair, epsilon: float) -> Bounds | None:
    """Bracket δ(epsilon), epsilon >= 0, of a pair with masses; None if they do not decide it."""
    if has_profile(pair):
        try:
            return pair.profile(epsilon)
        except UnsupportedError:  # a blend has one only where its parts do
            pass
    moved = pair.loss_error
    if not (epsilon < FARTHEST and moved < 1.0):
        return None
    # The given first edge also has an error of `moved`. It is asked for apart: differences of given
    # functions have no digits between edges that are neighbours.
    before = math.nextafter(epsilon - 2.0 * moved * (1.0 + 1e-9), -math.inf)
    try:
        found = pair.masses(np.array([epsilon]))
        around = pair.masses(np.array([before])) if moved > 0.0 else found
    except PrecisionError:
        return None
    p, q, near = float(found.p[-1]), float(found.q[-1]), float(around.p[-1])
    grown = math.exp(epsilon)
    error = (found.relative_error + 16.0 * U) * (p + grown * q) + TINY * (2.0 + 2.0 * grown)
    nearby = near * (1.0 + 2.0 * around.relative_error) + TINY
    error += math.expm1(moved) * nearby * (1.0 + 1e-9)
    upper = min(max(p - grown * q + error, 0.0), 1.0)
    return Bounds(min(max(p - grown * q - error, 0.0), upper), upper)


def epsilon_of_one(pair: DominatingPair, delta: float) -> Bounds | None:
    """Bracket ε(delta), 0 < delta < 1; None where the profile does not decide it."""

    def profile(epsilon: float) -> Bounds:
        found = profile_of_one(pair, epsilon)
        return Bounds(0.0, 1.0) if found is None else found

    table = pair.loss_atoms
    if table is not None and type(pair).profile is AtomicPair.profile:
        if table.loss.size <= LOOPED and table.loss_error < 1.0:
            return _epsilon_of_few(table, delta)
        return epsilon_between_losses(table, partial(ends_of_profile, table), delta)
    if table is not None:
        return epsilon_between_losses(table, ends_of(profile), delta)
    guess = _crossing(pair, delta)
    if guess is None:
        return None
    # The two ends are about this far from each other.
    near, far = profile(guess), guess * (1.0 + FAR) + TINY
    lower, upper = float(near.lower), float(near.upper)
    slope = (0.5 * (lower + upper) - float(profile(far).lower)) / (far - guess)
    step = (upper - lower) / slope if slope > 0.0 else 0.0
    return Bounds(*certified_epsilon(ends_of(profile), delta, guess, FARTHEST, step))


def epsilon_between_losses(
    table: Atoms | Losses, ends: Callable[[float], tuple[float, float]], delta: float
) -> Bounds | None:
    """Bracket ε(delta), near the root of the profile between two of the losses of a table."""
    # There δ = A - e^ε·B, with A and B the masses above.
    rest = delta - table.infinite_p
    if not rest > 0.0:
        return None
    top = float(table.loss[-1])
    return _near_root(table, ends, delta, rest, top, _above(table, top, rest))


def _epsilon_of_few(table: Atoms, delta: float) -> Bounds | None:
    """Return :func:`epsilon_between_losses` by loops over the losses."""
    rest = delta - table.infinite_p
    if not rest > 0.0:
        return None
    rows = rows_of(table)
    ends, top = partial(ends_of_rows, table, rows), rows[0][0]
    return _near_root(table, ends, delta, rest, top, _above_few(rows, top, rest))


def _near_root(
    table: Atoms | Losses,
    ends: Callable[[float], tuple[float, float]],
    delta: float,
    rest: float,
    top: float,
    root: tuple[float, float, float],
) -> Bounds | None:
    """Bracket the root of a profile between the two losses that ``root`` tells."""
    depth, above, other = root
    # Masses that underflowed decide nothing.
    if not depth < DEEP or not other > 0.0:
        return None
    slope = max(above - rest, U * rest)  # e^ε·B
    ratio = slope / other
    if above == other and ratio > 0.5:  # one loss above: a small logarithm keeps its digits
        log_ratio = math.log1p(-rest / above)
    else:
        log_ratio = math.log(ratio) if ratio > 0.0 else math.log(slope) - math.log(other)
    guess = max(top + log_ratio, 0.0)
    error = (4.0 * table.relative_error + (table.p.size + 16) * U) * delta / slope
    step = 1.1 * (error + table.loss_error) + 4.0 * U * (guess + abs(top))
    for _ in range(TRIES):
        low, high = guess - step, guess + step
        if low > 0.0 and ends(low)[0] > delta and ends(high)[1] <= delta:
            return Bounds(low, high)
        step *= 4.0
    return Bounds(*certified_epsilon(ends, delta, guess, FARTHEST, step))


def _above(table: Atoms | Losses, top: float, rest: float) -> tuple[float, float, float]:
    """Return A and e^top·B above the root of a profile at ``rest``, and how deep the last loss is.

    The depth is infinite where there is no loss above the root.
    """
    if table.loss.size <= LOOPED:
        return _above_few(rows_of(table), top, rest)
    depths = np.minimum(top - table.loss[::-1], DEEP)
    masses = table.p[::-1]
    sums, others = masses.cumsum(), (masses * np.exp(depths)).cumsum()
    place = int((sums - np.exp(-depths) * others).searchsorted(rest)) - 1
    if place < 0:
        return math.inf, 0.0, 0.0
    return float(depths[place]), float(sums[place]), float(others[place])


def _above_few(rows: Rows, top: float, rest: float) -> tuple[float, float, float]:
    """Return :func:`_above` by a loop."""
    found, above, other = (math.inf, 0.0, 0.0), 0.0, 0.0
    for loss, p in rows:
        depth = min(top - loss, DEEP)
        grown = math.exp(depth)
        above, other = above + p, other + p * grown
        if above - other / grown >= rest:
            break
        found = depth, above, other
    return found


def ends_of(profile: Callable[[float], Bounds]) -> Callable[[float], tuple[float, float]]:
    """Return the function of the two ends of a profile's brackets."""

    def ends(epsilon: float) -> tuple[float, float]:
        found = profile(epsilon)
        return float(found.lower), float(found.upper)

    return ends


def _crossing(pair: DominatingPair, delta: float) -> float | None:
    """Return roughly where the profile crosses ``delta``, many edges at a time."""
    edges = np.concatenate([[0.0], np.geomspace(NEAREST, FARTHEST, EDGES)])
    for _ in range(ROUNDS):
        try:
            p, q, _ = pair.masses(edges)
        except PrecisionError:
            return None
        above, other = (np.cumsum(np.asarray(m)[::-1])[::-1][1:] for m in (p, q))
        profile = above - np.exp(edges) * other
        place = int(np.count_nonzero(profile > delta))
        if place in (0, edges.size):
            return 0.0 if place == 0 else None
        low, high = float(edges[place - 1]), float(edges[place])
        left, right = (
            math.log(max(float(profile[i]), TINY)) - math.log(delta) for i in (place - 1, place)
        )
        if high - low <= CLOSE * high:
            break
        edges = np.linspace(low, high, EDGES)
    return low + (high - low) * left / (left - right) if left > right else low
