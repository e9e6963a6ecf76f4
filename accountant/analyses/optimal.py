"""Optimal composition of (ε, δ)-differentially private mechanisms.

When nothing is known of k mechanisms but that each is (ε, δ)-differentially private, the best
possible guarantee of their composition is that of randomised response with a mass δ at infinity
(Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016): its pairs are composed like any others. A
relation is whatever relation the parts share: one, not several.

Theorem numbers refer to docs/theorems_conversions.md.
"""

from __future__ import annotations

from functools import lru_cache

from accountant import checks
from accountant.analyses.classical import Part, merged_parts
from accountant.analyses.profile import Profile
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.pairs.atoms import ResponsePair

__all__ = ["optimal_delta", "optimal_delta_bounds", "optimal_epsilon", "optimal_epsilon_bounds"]


@to_nearest
def optimal_epsilon(parts: object, delta: object) -> float:
    """Return the smallest ε that (ε, δ) parts can promise at ``delta``, rounded up.

    Parameters
    ----------
    parts : iterable of tuple
        ``(epsilon, delta)`` or ``(epsilon, delta, count)`` of each group of mechanisms; ε finite
        and >= 0 in nats, δ in [0, 1), counts integers >= 0.
    delta : float
        The δ of the composition, in [0, 1).

    Returns
    -------
    float
        ε in nats; infinite when the parts' own δ already exceed ``delta``.

    Notes
    -----
    *Guarantee.* Every (also adaptive) composition of mechanisms with these guarantees under one
    relation is (ε, delta)-differentially private under it, and no smaller ε holds for all of them
    up to the width of :func:`optimal_epsilon_bounds` (Theorem C4).

    Examples
    --------
    >>> optimal_epsilon([(0.1, 0.0, 100)], 1e-6) < 100 * 0.1
    True
    """
    return _profile(merged_parts(parts)).epsilon(checks.number(checks.DELTA, delta))


@to_nearest
def optimal_epsilon_bounds(parts: object, delta: object) -> Bounds:
    """Bracket the smallest ε that (ε, δ) parts can promise at ``delta``.

    Parameters
    ----------
    parts, delta
        As in :func:`optimal_epsilon`.

    Returns
    -------
    Bounds
        ``lower <= ε <= upper``; a few units of round-off apart where the ε of all parts are
        multiples of one number.

    Notes
    -----
    *Guarantee.* The optimal ε lies in the bracket (Theorem C4).

    Examples
    --------
    >>> lower, upper = optimal_epsilon_bounds([(1.0, 0.0, 3), (0.5, 1e-7, 2)], 1e-6)
    >>> upper - lower < 1e-6
    True
    """
    return _profile(merged_parts(parts)).epsilon_bounds(checks.number(checks.DELTA, delta))


@to_nearest
def optimal_delta(parts: object, epsilon: object) -> float:
    """Return the smallest δ that (ε, δ) parts can promise at ``epsilon``, rounded up.

    Parameters
    ----------
    parts
        As in :func:`optimal_epsilon`.
    epsilon : float
        The ε of the composition, in nats, >= 0; may be infinite.

    Returns
    -------
    float
        δ in [0, 1].

    Notes
    -----
    *Guarantee.* Every composition of such mechanisms under one relation is (epsilon, δ)-private
    under it (Theorem C4).

    Examples
    --------
    >>> optimal_delta([(0.1, 0.0, 100)], 10.0) < 1e-15
    True
    """
    return _profile(merged_parts(parts)).delta(checks.number(checks.EPSILON, epsilon))


@to_nearest
def optimal_delta_bounds(parts: object, epsilon: object) -> Bounds:
    """Bracket the smallest δ that (ε, δ) parts can promise at ``epsilon``.

    Parameters
    ----------
    parts, epsilon
        As in :func:`optimal_delta`.

    Returns
    -------
    Bounds
        ``lower <= δ <= upper``.

    Notes
    -----
    *Guarantee.* The optimal δ lies in the bracket (Theorem C4).

    Examples
    --------
    >>> import math
    >>> lower, upper = optimal_delta_bounds([(1.0, 0.0)], 0.0)
    >>> lower <= math.tanh(0.5) <= upper
    True
    """
    return _profile(merged_parts(parts)).delta_bounds(checks.number(checks.EPSILON, epsilon))


@lru_cache(maxsize=4)
def _profile(parts: tuple[Part, ...]) -> Profile:
    """Return the profile of the responses, the masses at infinity of all parts apart."""
    counts: dict[tuple[float, float], int] = {}
    for part in parts:
        # (ε, δ) is the product of a pure response and of a failure: equal ε then count together.
        for pure, failing in ((part.epsilon, 0.0), (0.0, part.delta)):
            if pure or failing:
                counts[pure, failing] = counts.get((pure, failing), 0) + part.count
    pairs = {ResponsePair(pure, infinite=failing): n for (pure, failing), n in counts.items()}
    return Profile((tuple(pairs.items()),))
