"""Turns a mechanism into the counted pairs of every direction and alternative."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from accountant.environment import to_nearest
from accountant.mechanisms.base import Counted, Mechanism
from accountant.mechanisms.gaussian import Gaussian
from accountant.pairs.base import DominatingPair, Parts, Problems
from accountant.pairs.product import WorstPair
from accountant.relations import NeighbouringRelation
from accountant.sampling.poisson import PoissonSampled

T = TypeVar("T")
MOST_ALTERNATIVES = 64
ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE


# Whether a part releases anything is asked of its pair, which may build its table for it.
@to_nearest
def problems_of(mechanism: Mechanism) -> Problems:
    """Return every direction of every alternative; the worst answer is the result."""
    return _problems(counted_alternatives(mechanism))


@to_nearest
def reached_problems(mechanism: Mechanism) -> Problems:
    """Return the problems of the first alternatives, each of which data sets meet.

    None of their parts where a part alone has too many: that of releasing nothing.
    """
    try:
        rows = [_in_order(_merged(r)) for r in islice(mechanism.alternatives(), MOST_ALTERNATIVES)]
    except _TooManyError:
        return ((),)
    return tuple(dict.fromkeys(_problems(rows)))


@to_nearest
def problems_or_none(mechanism: Mechanism) -> Problems:
    """Return the problems, or none if there are too many alternatives."""
    try:
        return _problems(_alternatives(mechanism))
    except _TooManyError:
        return ()


def _problems(alternatives: Iterable[Counted]) -> Problems:
    return tuple(parts for alternative in alternatives for parts in directions(alternative))


def _pruned(parts: Iterable[tuple[DominatingPair, int]]) -> Parts:
    """Merge equal pairs and drop pairs that release nothing."""
    return _merged(tuple([part for part in parts if part[1] and part[0].pure_epsilon > 0.0]))


def counted_alternatives(mechanism: Mechanism) -> tuple[Counted, ...]:
    """Return the alternatives: each a list of counted mechanisms without branches.

    Where branches can be met in too many ways, each release has the worst of them: the price of
    sets that depend on outputs, which is no smaller (Theorem M18).
    """
    try:
        return _alternatives(mechanism)
    except _TooManyError:
        return _alternatives(mechanism.adaptively())


class _TooManyError(Exception):
    """There are more alternatives than are tried."""


def _alternatives(mechanism: Mechanism) -> tuple[Counted, ...]:
    rows = [_in_order(_merged(each)) for each in limited(mechanism.alternatives())]
    if len(rows) == 1:
        return tuple(rows)
    found = tuple(dict.fromkeys(rows))
    if len(found) > MOST_ALTERNATIVES:
        raise _TooManyError
    return found


def directions(parts: Counted) -> tuple[Parts, ...]:
    """Return the counted pairs of each direction; one when they coincide."""
    lone = sum([n for _, n in parts]) == 1
    pairs = [(m.pairs() if lone else symmetrised_pairs(m), n) for m, n in parts]
    remove = _pruned([(found[0], n) for found, n in pairs])
    if max([len(found) for found, _ in pairs]) == 1:
        return (remove,)
    add = _pruned([(found[-1], n) for found, n in pairs])
    return (remove,) if remove == add else (remove, add)


def symmetrised_pairs(mechanism: Mechanism) -> tuple[DominatingPair, ...]:
    """Return the pairs as they compose with others: one for both orders under replace-one.

    Under replace-one the two neighbours are interchangeable, so each release may have a different
    worse order; composition needs a pair that dominates both (Theorem M1).
    """
    pairs = mechanism.pairs()
    if mechanism.relation is not NeighbouringRelation.REPLACE_ONE or pairs[0] == pairs[-1]:
        return pairs
    problems = (((pairs[0], 1),), ((pairs[-1], 1),))
    return (WorstPair((pairs[0], pairs[-1]), problems),)


def limited(rows: Iterator[Counted]) -> Iterator[Counted]:
    """Yield the alternatives, and stop with an error where they are too many."""
    for index, row in enumerate(rows):
        if index > 4 * MOST_ALTERNATIVES:
            raise _TooManyError
        yield row


def _in_order(parts: Counted) -> Counted:
    return tuple(sorted(parts, key=_place)) if len(parts) > 1 else parts


def _place(part: tuple[Mechanism, int]) -> tuple[float, float, str]:
    """Return a key that differs between different mechanisms; steps of training need no text."""
    mechanism = part[0]
    if type(mechanism) is PoissonSampled:
        inner = mechanism.mechanism
        if type(inner) is Gaussian and inner.sensitivity == 1.0 and inner.relation is ADD_OR_REMOVE:
            return inner.noise_multiplier, mechanism.sampling_probability, ""
    return math.inf, 0.0, repr(mechanism)


def _merged(parts: tuple[tuple[T, int], ...]) -> tuple[tuple[T, int], ...]:
    if len(parts) < 2 or len(dict(parts)) == len(parts):
        return parts
    counts: dict[T, int] = {}
    for part, n in parts:
        counts[part] = counts.get(part, 0) + n
    return tuple(counts.items())
