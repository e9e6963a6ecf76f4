"""A history: its prefixes, and the divergences of its mechanisms at many orders.

Gaussian steps are evaluated together, by the native loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant.analyses import contour
from accountant.composition import composed
from accountant.composition.problems import symmetrised_pairs
from accountant.errors import AccountantError, DomainError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.gaussian import Gaussian
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation
from accountant.sampling.poisson import PoissonSampled

# One row of doubles for each release: the answer itself has this size.
MAX_STEPS = 10**7


class Step(Protocol):
    """A mechanism, and how often in a row it was released."""

    @property
    def mechanism(self) -> Mechanism:
        """What was released."""

    @property
    def count(self) -> int:
        """How many times in a row, >= 1."""


@dataclass(frozen=True, slots=True)
class Part:
    """The plainest step."""

    mechanism: Mechanism
    count: int


Steps: TypeAlias = "Sequence[Step]"
Counts: TypeAlias = "tuple[tuple[Mechanism, int], ...]"


def check_length(history: Steps) -> None:
    """Refuse histories whose curve would not fit into memory."""
    steps = sum(item.count for item in history)
    if not steps <= MAX_STEPS:
        raise DomainError(
            f"one number for each release is given for at most {MAX_STEPS} releases;"
            f" this ledger has {steps}"
        )


def evenly(length: int, points: int) -> list[int]:
    """Return about ``points`` lengths up to ``length``, evenly spaced."""
    return sorted({-(-length * k // points) for k in range(1, points + 1)} - {0})


def spread(steps: int, growth: float = 1.07) -> list[int]:
    """Return counts up to ``steps``, each at most ``growth`` times the one before, or one more."""
    counts, n = [], 1
    while n < steps:
        counts.append(n)
        n = max(n + 1, math.floor(growth * n))
    return [*counts, steps]


def counts_at(history: Steps, lengths: Iterable[int]) -> Iterator[tuple[int, Counts]]:
    """Yield each of the increasing ``lengths``, >= 1, with the merged counts up to there."""
    wanted = iter(lengths)
    upcoming = next(wanted, None)
    # By identity first: a ledger that was loaded holds one object of each mechanism, and hashing a
    # million of them would take longer than all the rest.
    same: dict[int, Mechanism] = {}
    known: dict[Mechanism, Mechanism] = {}
    done, counts = 0, dict[int, int]()
    for item in history:
        mechanism = same.get(id(item.mechanism))
        if mechanism is None:
            mechanism = known.setdefault(item.mechanism, item.mechanism)
            same[id(item.mechanism)] = mechanism
        key = id(mechanism)
        before = counts.get(key, 0)
        while upcoming is not None and upcoming <= done + item.count:
            counts[key] = before + upcoming - done
            yield upcoming, tuple((same[k], n) for k, n in counts.items())
            upcoming = next(wanted, None)
        if upcoming is None:
            return
        counts[key] = before + item.count
        done += item.count


def counts_after(history: Steps, length: int) -> Counts:
    """Return the merged counts of the first ``length`` releases, >= 1."""
    return next((counts for _, counts in counts_at(history, [length])), ())


def first(history: Steps, length: int) -> list[Part]:
    """Return the first ``length`` releases."""
    kept = []
    for item in history:
        if length <= 0:
            break
        kept.append(Part(item.mechanism, min(item.count, length)))
        length -= item.count
    return kept


def composed_bounds(counts: Counts, delta: float) -> tuple[float, float]:
    """Bracket ε(delta) of the composition, from 0 to infinity where none can be certified."""
    try:
        found = composed(counts).epsilon_bounds(delta)
    except AccountantError:
        # Too dear or unknown: what else is known of the prefix stands.
        return 0.0, math.inf
    return float(found.lower), float(found.upper)


def monotone(curve: FloatArray) -> None:
    """Lower each bound to the next one, in place: the truth grows with the number of releases."""
    np.copyto(curve, np.minimum.accumulate(curve[::-1])[::-1])


# Beyond this many different steps their parameters are rounded (Theorem L8): less work, wider.
MAX_DISTINCT = 200
WORKERS = 2


def total(counts: Sequence[tuple[Mechanism, int]], orders: Sequence[float]) -> FloatArray:
    """Return the divergences of everything, of shape (orders, 2 directions), rounded up."""
    table = divergences([mechanism for mechanism, _ in counts], orders, MAX_DISTINCT)
    return weighted(table, np.array([float(count) for _, count in counts]))


def weighted(table: FloatArray, repeats: FloatArray) -> FloatArray:
    """Return the sums over mechanisms of divergences times ``repeats``, rounded up."""
    # Each term is rounded once for its product and at most len(repeats) times for the sum.
    with np.errstate(over="ignore"):
        spent = (table * repeats[:, None, None]).sum(axis=0)
        return np.asarray(spent * (1.0 + (len(repeats) + 4.0) * 2.0**-52))


def divergences(
    mechanisms: Sequence[Mechanism], orders: Sequence[float], limit: int, finite: bool = False
) -> FloatArray:
    """Return upper bounds on the divergences, of shape (mechanisms, orders, 2 directions).

    Beyond about ``limit`` different Gaussian steps their parameters are rounded. With ``finite``
    they are those of the finite losses, and infinite where a mechanism has no Rényi curve.
    """
    distinct = list(dict.fromkeys(mechanisms))
    rows = dict(zip(distinct, _distinct(distinct, orders, limit, finite), strict=True))
    return np.array([rows[m] for m in mechanisms]).reshape(len(mechanisms), len(orders), 2)


def _distinct(
    mechanisms: Sequence[Mechanism], orders: Sequence[float], limit: int, finite: bool
) -> list[FloatArray]:
    """Evaluate each mechanism once; Gaussian steps by the native loop, all together."""
    settings = [gaussian_setting(m) for m in mechanisms]
    keys = _rounded([s for s in settings if s is not None], limit)
    curves = _native(list(dict.fromkeys(keys.values())), orders)
    result = []
    for mechanism, setting in zip(mechanisms, settings, strict=True):
        if setting is not None:
            result.append(curves[keys[setting]])
        else:
            pairs = symmetrised_pairs(mechanism)
            curve = _finite_divergence if finite else _divergence
            values = [[curve(p, a) for p in (pairs[0], pairs[-1])] for a in orders]
            result.append(np.array(values))
    return result


def _divergence(pair: DominatingPair, order: float) -> float:
    return pair.rdp(order)


def _finite_divergence(pair: DominatingPair, order: float) -> float:
    """Return a bound >= 0 for the finite losses, infinite where none is known."""
    try:
        found = pair.finite_rdp(order)
    except AccountantError:
        return math.inf
    if found >= 0.0:
        return found
    # The finite losses of a pair with mass at infinity are less than a probability.
    return 0.0 if found < 0.0 else math.inf


def gaussian_setting(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return q and σ, if both directions are those of one subsampled Gaussian."""
    if type(mechanism) is PoissonSampled and type(mechanism.mechanism) is Gaussian:
        # The usual kind, of which a history may hold thousands: without its own two pairs.
        inner, q = mechanism.mechanism, mechanism.sampling_probability
        plain = inner.sensitivity == 1.0 and inner.relation is NeighbouringRelation.ADD_OR_REMOVE
        if plain and 0.0 < q < 1.0:
            sigma = inner.noise_multiplier
            if sigma < math.inf:
                return q, sigma
    found: tuple[float, float] | None = None
    for pair in mechanism.pairs():
        part = pair.gaussian_part
        if part is None or found not in (None, part[:2]):
            return None
        found = part[:2]
    return found


def gaussian_settings(history: Steps) -> list[tuple[float, float] | None]:
    """Return the same for each entry of a history."""
    # By identity: a history holds its mechanisms, and to hash one takes as long as to ask it.
    found: dict[int, tuple[float, float] | None] = {}
    for item in history:
        key = id(item.mechanism)
        if key not in found:
            found[key] = gaussian_setting(item.mechanism)
    return [found[id(item.mechanism)] for item in history]


def _rounded(
    settings: Sequence[tuple[float, float]], limit: int
) -> dict[tuple[float, float], tuple[float, float]]:
    """Map each (q, σ) to one that costs no less, so that about ``limit`` different ones remain."""
    rounded = {s: s for s in settings}
    bits = 16
    if len(rounded) <= limit:
        return rounded
    q, sigma = np.array(list(rounded)).T
    while len(set(rounded.values())) > limit and bits > 2:
        # Rounding is exact: probabilities up, and noise towards zero.
        most = np.minimum(_to_bits(q, bits, np.ceil), 1.0)
        least = _to_bits(sigma, bits, np.floor)
        rounded = dict(zip(rounded, zip(most.tolist(), least.tolist(), strict=True), strict=True))
        bits -= 1
    return rounded


def _to_bits(values: FloatArray, bits: int, whole: np.ufunc) -> FloatArray:
    """Return ``values`` with ``bits`` bits, made whole there by floor or ceil."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(whole(np.ldexp(mantissa, bits)), exponent - bits))


def _native(
    settings: Sequence[tuple[float, float]], orders: Sequence[float]
) -> dict[tuple[float, float], FloatArray]:
    if not settings:
        return {}
    q, sigma = np.array(settings).T[:, :, None]
    shape = (len(settings), len(orders))
    values = contour.each_divergence_upper(shape, q, sigma, 1.0, np.array(orders), WORKERS)
    # Both directions have the same bound.
    return dict(zip(settings, np.stack([values, values], axis=2), strict=True))
