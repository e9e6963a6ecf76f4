"""ε after every release of a history: Rényi divergences at a few orders, exact where Gaussian.

What holds mechanisms other than Gaussian noise is bounded in further ways by ``mixes``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from accountant.analyses import contour, mixed, rdp, renyi_conversion
from accountant.composition.problems import symmetrised_pairs
from accountant.errors import AccountantError, DomainError
from accountant.ledger import evaluation
from accountant.mechanisms.base import Mechanism
from accountant.pairs.base import DominatingPair

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from accountant.ledger.history import Entry

__all__ = [
    "MAX_STEPS",
    "ORDERS",
    "bounds",
    "divergences",
    "gaussian_setting",
    "infinite_masses",
    "largest_losses",
    "monotone",
    "over_steps",
    "pointwise",
    "sharpen",
    "spread",
    "total",
]

FloatArray: TypeAlias = "NDArray[np.float64]"

# One row of doubles for each release: the answer itself has this size.
MAX_STEPS = 10**7

ORDERS = tuple(1.0 + 2.0 ** (k / 2.0) for k in range(-2, 15))

# Beyond so many different steps their parameters are rounded (Theorem L8) to keep the work bounded.
_MAX_DISTINCT = 200
_COARSE = 40

# Readings of the exact odometer, a quarter of a millisecond each, and pieces of repetitions.
_MAX_EXACT = 50_000
_MAX_PIECES = 2_000

# A relative width beyond which Rényi divergences are asked as well.
_GAP = 1e-3

# Of a curve at an order, some twenty microseconds each.
_EVALUATIONS = 7_200
_FEW = 2_400
_WORKERS = 2


def pointwise(
    history: Sequence[Entry], delta: float, evaluations: int = _EVALUATIONS
) -> FloatArray:
    """Bound ε(delta) of every prefix by Rényi divergences, and by adding up the largest losses.

    A coarse pass finds which orders matter to some prefix; the answer is from a fine grid of those.
    Infinite losses are kept apart, at the price of their probability in ``delta`` (Theorem L8).
    """
    _check_length(history)
    masses = infinite_masses(history)
    left = None if masses is None else np.nextafter(delta - masses, -np.inf)

    def convert(order: float, spent: FloatArray) -> FloatArray:
        # One more rounding, of the sum.
        if left is None:
            return np.nextafter(spent + renyi_conversion.excess_upper(order, delta), np.inf)
        return np.nextafter(spent + renyi_conversion.excesses_upper(order, left), np.inf)

    coarse = _converted(history, ORDERS, convert, _COARSE, finite=True)
    if not coarse:
        return np.zeros(0)
    winners = np.unique(np.argmin([np.maximum(*rows) for rows in coarse], axis=0))
    low = ORDERS[max(int(winners[0]) - 1, 0)] - 1.0
    high = ORDERS[min(int(winners[-1]) + 1, len(ORDERS) - 1)] - 1.0
    distinct = min(len({item.mechanism for item in history}), _MAX_DISTINCT)
    orders = 1.0 + np.geomspace(low, high, min(max(evaluations // distinct, 12), 96))
    curve = over_steps(history, orders.tolist(), convert, finite=True)
    added = largest_losses(history)
    if masses is not None:
        added[masses > delta] = math.inf
    return np.minimum(curve, added)


def infinite_masses(history: Sequence[Entry]) -> FloatArray | None:
    """Bound the probability of an infinite loss in each prefix; None where there is none."""
    each = _by_mechanism(history, lambda pairs: max(pair.infinite_mass for pair in pairs), 0.0)
    if not each.any():
        return None
    with np.errstate(divide="ignore"):
        rates = -np.log1p(-np.minimum(each, 1.0)) * (1.0 + 2.0**-48)
    spent = _running(rates, [item.count for item in history])
    return np.asarray(np.minimum(-np.expm1(-spent) * (1.0 + 2.0**-48), 1.0))


def largest_losses(history: Sequence[Entry]) -> FloatArray:
    """Bound the largest finite loss of each prefix, infinite for Gaussian noise."""
    each = _by_mechanism(
        history, lambda pairs: max(0.0, *(pair.support[1] for pair in pairs)), math.inf
    )
    return _running(each, [item.count for item in history])


def _by_mechanism(
    history: Sequence[Entry],
    measure: Callable[[Sequence[DominatingPair]], float],
    gaussian: float,
) -> FloatArray:
    """Return what ``measure`` says of each entry's pairs, and ``gaussian`` for Gaussian steps."""
    known: dict[Mechanism, float] = {}
    for item in history:
        if item.mechanism not in known:
            plain = gaussian_setting(item.mechanism) is not None
            known[item.mechanism] = (
                gaussian if plain else measure(symmetrised_pairs(item.mechanism))
            )
    return np.array([known[item.mechanism] for item in history])


def over_steps(
    history: Sequence[Entry],
    orders: Sequence[float],
    convert: Callable[[float, FloatArray], FloatArray],
    finite: bool = False,
) -> FloatArray:
    """Return the least converted divergence over orders, the worse direction, after each release.

    ``convert(order, spent)`` turns divergences spent at an order into ε. ``finite`` ones are those
    of finite losses alone.
    """
    best: list[FloatArray] | None = None
    for rows in _converted(history, orders, convert, _MAX_DISTINCT, finite):
        best = rows if best is None else [np.minimum(a, b) for a, b in zip(best, rows, strict=True)]
    return np.zeros(0) if best is None else np.maximum(np.maximum(*best), 0.0)


def _converted(
    history: Sequence[Entry],
    orders: Sequence[float],
    convert: Callable[[float, FloatArray], FloatArray],
    distinct: int,
    finite: bool = False,
) -> list[list[FloatArray]]:
    """Return, for each order and direction, what ``convert`` makes of the running sums."""
    _check_length(history)
    counts = [item.count for item in history]
    if not counts:
        return []
    table = divergences([item.mechanism for item in history], orders, distinct, finite)
    return [
        [convert(a, _running(table[:, j, d], counts)) for d in (0, 1)] for j, a in enumerate(orders)
    ]


def _check_length(history: Sequence[Entry]) -> None:
    steps = sum(item.count for item in history)
    if not steps <= MAX_STEPS:
        raise DomainError(
            f"one number for each release is given for at most {MAX_STEPS} releases;"
            f" this ledger has {steps}"
        )


def spread(steps: int, growth: float = 1.07) -> list[int]:
    """Return counts up to ``steps``, each at most ``growth`` times the one before, or one more."""
    counts, n = [], 1
    while n < steps:
        counts.append(n)
        n = max(n + 1, math.floor(growth * n))
    return [*counts, steps]


def sharpen(
    curve: FloatArray, history: Sequence[Entry], delta: float, checkpoints: Sequence[int]
) -> None:
    """Lower ``curve`` to the exact compositions of some prefixes, in place.

    A prefix costs no more than a longer one, so each is bounded by the next one evaluated.
    ``checkpoints`` are increasing lengths.
    """
    done, wanted = 0, iter(checkpoints)
    upcoming = next(wanted, None)
    length, counts = 0, dict[Mechanism, int]()
    for item in history:
        while upcoming is not None and upcoming <= length + item.count:
            part = counts.get(item.mechanism, 0) + upcoming - length
            exact = _composed(counts | {item.mechanism: part}, delta)
            np.minimum(curve[done:upcoming], exact, out=curve[done:upcoming])
            done, upcoming = upcoming, next(wanted, None)
        length += item.count
        counts[item.mechanism] = counts.get(item.mechanism, 0) + item.count
    monotone(curve)


def bounds(history: Sequence[Entry], delta: float) -> FloatArray:
    """Bound ε(delta) of every prefix of Gaussian releases, exactly where digits suffice."""
    _check_length(history)
    exact = _exactly(history, delta)
    if exact is None:
        return pointwise(history, delta)
    lower, curve = exact
    with np.errstate(invalid="ignore"):
        rough = np.flatnonzero(~((curve < np.inf) & (lower >= (1.0 - _GAP) * curve)))
    if rough.size:
        # Short schedules, where the transform of the loss decays slowly, in two more ways.
        entries = int(np.searchsorted(np.cumsum([item.count for item in history]), rough[-1] + 1))
        first = history[: entries + 1]
        for other in (pointwise(first, delta, _FEW), _as_equal_steps(first, delta)):
            np.minimum(curve[: other.size], other, out=curve[: other.size])
        monotone(curve)
    return curve


def _as_equal_steps(history: Sequence[Entry], delta: float) -> FloatArray:
    """Bound ε of every prefix of subsampled Gaussians by as many of its worst step (Theorem L8).

    That is, of the largest q and the least σ so far; for numbers of steps not far apart.
    """
    settings = [gaussian_setting(item.mechanism) or (1.0, 0.0) for item in history]
    counts = [item.count for item in history]
    q = np.repeat(np.maximum.accumulate([q for q, _ in settings]), counts)
    sigma = np.repeat(np.minimum.accumulate([sigma for _, sigma in settings]), counts)
    lengths = np.array(spread(q.size, 1.4))
    found = np.full(lengths.size, math.inf)
    known = sigma[lengths - 1] > 0.0
    at = lengths[known]
    _, found[known] = contour.each_epsilon_bounds(
        at.shape, q[at - 1], sigma[at - 1], at.astype(float), np.array(delta), _WORKERS
    )
    # Each prefix costs no more than the next one asked about.
    return np.repeat(found, np.diff(lengths, prepend=0))


def _exactly(history: Sequence[Entry], delta: float) -> tuple[FloatArray, FloatArray] | None:
    """Bracket every prefix of (Poisson-subsampled) Gaussian releases; None for others, or many."""
    parts: list[mixed.Part] = []
    for item in history:
        setting = gaussian_setting(item.mechanism)
        if setting is None:
            return None
        parts.extend(mixed.Part(*setting, steps) for steps in _pieces(item.count, len(history)))
    if len(parts) > _MAX_EXACT:
        return None
    # A step within a piece costs no more than the whole piece, and no less than those before.
    lower, upper = mixed.odometer(parts, delta)
    steps = [part.steps for part in parts]
    least = np.repeat(np.concatenate([[0.0], lower])[:-1], steps)
    least[np.cumsum(steps, dtype=np.int64) - 1] = lower
    return least, np.repeat(upper, steps)


def monotone(curve: FloatArray) -> None:
    """Bounds from two analyses need not grow together; the truth does."""
    np.copyto(curve, np.minimum.accumulate(curve[::-1])[::-1])


def _pieces(count: int, entries: int) -> list[int]:
    """Divide a repetition into a number of pieces that keeps all entries' within reason."""
    pieces = min(count, max(_MAX_PIECES // entries, 1))
    return [count * (k + 1) // pieces - count * k // pieces for k in range(pieces)]


def _composed(counts: dict[Mechanism, int], delta: float) -> float:
    try:
        return evaluation.epsilon(tuple(counts.items()), delta)
    except AccountantError:
        # Too dear or unknown: what else is known of the prefix stands.
        return math.inf


def total(counts: Sequence[tuple[Mechanism, int]], orders: Sequence[float]) -> FloatArray:
    """Return the divergences of everything, of shape (orders, 2 directions), rounded up."""
    table = divergences([mechanism for mechanism, _ in counts], orders, _MAX_DISTINCT)
    repeats = np.array([float(count) for _, count in counts])
    # Each term is rounded once for its product and at most len(counts) times for the sum.
    with np.errstate(over="ignore"):
        spent = (table * repeats[:, None, None]).sum(axis=0)
        return np.asarray(spent * (1.0 + (len(counts) + 4.0) * 2.0**-52))


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
            row = curves[keys[setting]]
            result.append(np.stack([row, row], axis=1))
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
    found: tuple[float, float] | None = None
    for pair in mechanism.pairs():
        part = pair.gaussian_part
        if part is None or found not in (None, part[:2]):
            return None
        found = part[:2]
    return found


def _rounded(
    settings: Sequence[tuple[float, float]], limit: int
) -> dict[tuple[float, float], tuple[float, float]]:
    """Map each (q, σ) to one that costs no less, so that about ``limit`` different ones remain."""
    rounded = {s: s for s in settings}
    bits = 16
    while len(set(rounded.values())) > limit and bits > 2:
        rounded = {(q, s): (_up(q, bits), _down(s, bits)) for q, s in settings}
        bits -= 1
    return rounded


def _down(value: float, bits: int) -> float:
    """Round towards zero to ``bits`` bits, exactly."""
    if not math.isfinite(value):
        return value
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.floor(math.ldexp(mantissa, bits)), exponent - bits)


def _up(value: float, bits: int) -> float:
    """Round a probability up to ``bits`` bits, exactly."""
    mantissa, exponent = math.frexp(value)
    return min(math.ldexp(math.ceil(math.ldexp(mantissa, bits)), exponent - bits), 1.0)


def _native(
    settings: Sequence[tuple[float, float]], orders: Sequence[float]
) -> dict[tuple[float, float], FloatArray]:
    if not settings:
        return {}
    q, sigma = np.array(settings).T[:, :, None]
    shape = (len(settings), len(orders))
    values = rdp.each_divergence_upper(shape, q, sigma, 1.0, np.array(orders), _WORKERS)
    return dict(zip(settings, values, strict=True))


def _running(each: FloatArray, counts: Sequence[int]) -> FloatArray:
    """Return running sums of ``each`` repeated ``counts`` times, rounded up."""
    steps = np.repeat(each, counts)
    # n additions of terms >= 0, each off by at most 2**-53 of the sum.
    with np.errstate(over="ignore"):
        return np.cumsum(steps) * (1.0 + (len(steps) + 2.0) * 2.0**-52)
