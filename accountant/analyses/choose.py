"""Which analysis answers: the tightest that is valid for the mix.

==========================================  ==================================================
all parts Gaussian, plain                   closed form: they merge into one (``gaussian``)
all parts Gaussian, subsampled or not       the native contour (``contour``)
all parts with a loss distribution          the privacy loss distribution on a grid (``grid``)
several releases on one sample              the same, on the hull of their joint profile, and the
                                            curve where it is lower
some part known by its Rényi curve alone    Rényi divergences at the best order (``renyi``)
==========================================  ==================================================

Every direction of every alternative (the branches of a parallel composition) is solved on its own,
and the worst is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from accountant import checks
from accountant.analyses.dispatch import solver
from accountant.analyses.solvers import Contour, Solver
from accountant.bounds import Bounds
from accountant.composition import Composition, Parallel, both_ways, root_of_squares, total
from accountant.errors import UnsupportedError
from accountant.mechanisms import _arguments as arguments
from accountant.mechanisms.base import DominatingPair, Mechanism, offers

if TYPE_CHECKING:
    from accountant.analyses.explanation import Explanation

__all__ = [
    "delta_bounds",
    "directions",
    "epsilon_bounds",
    "explain",
    "gdp",
    "leaves",
    "rdp",
    "tradeoff",
    "zcdp",
]

Leaves: TypeAlias = tuple[tuple[Mechanism, int], ...]
Parts: TypeAlias = tuple[tuple[DominatingPair, int], ...]

MOST_ALTERNATIVES = 64
# Different parts from which on a contour is worth a thread of its own.
MANY_PARTS = 100


def epsilon_bounds(mechanism: Mechanism, delta: object) -> Bounds:
    """Bracket ε(delta), the largest over directions and alternatives."""
    value = arguments.scalar(checks.DELTA, delta)
    return _worst(mechanism, delta=value)


def delta_bounds(mechanism: Mechanism, epsilon: object) -> Bounds:
    """Bracket δ(epsilon), the largest over directions and alternatives."""
    value = arguments.scalar(checks.EPSILON, epsilon)
    return _worst(mechanism, epsilon=value)


def rdp(mechanism: Mechanism, order: object) -> float:
    """Bound the Rényi divergence from above, the largest over directions and alternatives."""
    value = arguments.order(order)
    return _largest(
        mechanism, lambda parts: total((pair.rdp(value), n) for pair, n in parts), "rdp"
    )


def zcdp(mechanism: Mechanism) -> float:
    """Return the ρ of zero-concentrated differential privacy."""
    found = _largest(mechanism, lambda parts: total((pair.rho, n) for pair, n in parts))
    if found < math.inf:
        return found
    raise UnsupportedError(
        f"no ρ is known for {mechanism!r}: it must be concentrated at every order (Gaussian noise,"
        " pure ε, ZCDP); rdp(order) may still be finite at some orders"
    )


def gdp(mechanism: Mechanism) -> float:
    """Return the μ of a Gaussian mechanism that dominates."""
    found = _largest(
        mechanism,
        lambda parts: root_of_squares((pair.mu, n) for pair, n in parts),
    )
    if found < math.inf:
        return found
    raise UnsupportedError(
        f"no Gaussian mechanism is known to dominate {mechanism!r}: only Gaussian noise, GDP and"
        " pure ε convert; tradeoff(fpr) gives the exact trade-off function"
    )


def tradeoff(mechanism: Mechanism, fpr: object) -> float:
    """Bound the false negative rate at ``fpr`` from below."""
    from accountant.analyses import tradeoff as attacks

    found = list(solvers(mechanism))

    def delta(epsilon: float) -> float:
        return max(float(one.delta_bounds(epsilon).upper) for one in found)

    return attacks.tradeoff(fpr, delta)


def explain(mechanism: Mechanism, delta: object) -> Explanation:
    """Say which analysis answers, why, and what each part contributes."""
    from accountant.analyses.explanation import explanation

    return explanation(mechanism, arguments.scalar(checks.DELTA, delta))


def solvers(mechanism: Mechanism) -> Iterator[Solver]:
    """Yield a solver for every direction of every alternative."""
    for parts in _problems(mechanism):
        yield _cached(parts)


def leaves(mechanism: Mechanism) -> tuple[Leaves, ...]:
    """Return the alternatives: each a flat list of counted mechanisms without branches."""
    found = dict.fromkeys(tuple(sorted(_merged(each), key=repr)) for each in _expand(mechanism, 1))
    if len(found) > MOST_ALTERNATIVES:
        raise UnsupportedError(
            f"{mechanism!r} has more than {MOST_ALTERNATIVES} ways to meet its branches. When the"
            " disjoint sets are the same each time, write parallel(n * a, n * b)"
        )
    return tuple(found)


def directions(parts: Leaves) -> tuple[Parts, ...]:
    """Return the counted pairs of each direction; one when they coincide."""
    lone = sum(n for _, n in parts) == 1
    pairs = [(mechanism.pairs() if lone else both_ways(mechanism), n) for mechanism, n in parts]
    remove = _pruned((found[0], n) for found, n in pairs)
    add = _pruned((found[-1], n) for found, n in pairs)
    return (remove,) if remove == add else (remove, add)


def _problems(mechanism: Mechanism) -> Iterator[Parts]:
    for alternative in leaves(mechanism):
        yield from directions(alternative)


def _pruned(parts: Iterable[tuple[DominatingPair, int]]) -> Parts:
    """Merge equal pairs and drop what releases nothing."""
    merged: dict[DominatingPair, int] = {}
    for pair, count in parts:
        if count and pair.pure_epsilon > 0.0:
            merged[pair] = merged.get(pair, 0) + count
    return tuple(merged.items())


def _expand(mechanism: Mechanism, count: int) -> Iterator[Leaves]:
    if isinstance(mechanism, Composition):
        rows = [list(_limited(_expand(part, n * count))) for part, n in mechanism.parts]
        for row in product(*rows):
            yield tuple(leaf for leaf_list in row for leaf in leaf_list)
    elif isinstance(mechanism, Parallel):
        branches = mechanism.branches
        for split in _splits(count, len(branches)):
            used = tuple((b, n) for b, n in zip(branches, split, strict=True) if n)
            if used:
                yield from _expand(Composition(used), 1)
            else:
                yield ((branches[0], 0),)
    else:
        yield ((mechanism, count),)


def _splits(count: int, ways: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write ``count`` as an ordered sum."""
    if ways == 1:
        yield (count,)
        return
    for first in range(count, -1, -1):
        for rest in _splits(count - first, ways - 1):
            yield (first, *rest)


def _limited(rows: Iterator[Leaves]) -> Iterator[Leaves]:
    for index, row in enumerate(rows):
        if index > 4 * MOST_ALTERNATIVES:
            raise UnsupportedError(
                "a parallel composition is repeated in more ways than can be tried. When the"
                " disjoint sets are the same each time, write parallel(n * a, n * b)"
            )
        yield row


def _merged(parts: Leaves) -> Leaves:
    counts: dict[Mechanism, int] = {}
    for mechanism, n in parts:
        counts[mechanism] = counts.get(mechanism, 0) + n
    return tuple(counts.items())


def _largest(
    mechanism: Mechanism, measure: Callable[[Parts], float], capability: str | None = None
) -> float:
    worst = 0.0
    for parts in _problems(mechanism):
        for pair, _ in parts:
            if capability is not None and not offers(pair, capability):
                raise UnsupportedError(
                    f"{type(pair).__name__} has no Rényi curve; its loss distribution answers"
                    " epsilon(delta) and delta(epsilon)"
                )
        worst = max(worst, measure(parts))
    return worst


def _worst(
    mechanism: Mechanism, *, delta: float | None = None, epsilon: float | None = None
) -> Bounds:
    """Bracket ε(delta) or δ(epsilon), the largest over directions and alternatives."""

    def ask(one: Solver) -> Bounds:
        if delta is not None:
            return one.epsilon_bounds(delta)
        return one.delta_bounds(epsilon if epsilon is not None else math.inf)

    found = list(solvers(mechanism))
    if len(found) > 1 and all(
        isinstance(one, Contour) and len(one.parts) >= MANY_PARTS for one in found
    ):
        # The native lines release the interpreter: both directions at once.
        with ThreadPoolExecutor(min(len(found), 4)) as pool:
            brackets = list(pool.map(ask, found))
        return Bounds(
            max(float(each.lower) for each in brackets), max(float(each.upper) for each in brackets)
        )
    lower = upper = 0.0
    for one in found:
        # What cannot exceed the worst so far needs no more digits.
        if lower > 0.0 and one.glance(delta=delta, epsilon=epsilon) <= lower:
            continue
        bounds = ask(one)
        lower, upper = max(lower, float(bounds.lower)), max(upper, float(bounds.upper))
    return Bounds(lower, upper)


def _cached(parts: Parts) -> Solver:
    try:
        return _remembered(parts)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return solver(parts)


# A solver holds its grids: keep the last few problems only.
@lru_cache(maxsize=8)
def _remembered(parts: Parts) -> Solver:
    return solver(parts)
