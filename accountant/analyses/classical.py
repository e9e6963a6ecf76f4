"""Basic and advanced composition, which use the (ε, δ) of the parts alone.

They serve for comparison with the literature: :mod:`accountant.analyses.optimal`
gives the smallest ε the same information allows, and an analysis of the mechanisms themselves is
sharper still. Theorem numbers refer to docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from accountant import checks
from accountant._basics import intervals as iv
from accountant._basics.intervals import Interval
from accountant.environment import to_nearest
from accountant.errors import ArgumentTypeError, DomainError

__all__ = ["advanced_epsilon", "basic_epsilon"]


@dataclass(frozen=True)
class Part:
    """``count`` runs of (ε, δ)-differentially private mechanisms."""

    epsilon: float
    delta: float = 0.0
    count: int = 1


def merged_parts(values: object) -> tuple[Part, ...]:
    """Check the parts of a composition: tuples (ε, δ) or (ε, δ, count).

    Parts of equal (ε, δ) are merged, and parts that are never run dropped: the composition of
    mechanisms known by (ε, δ) alone does not depend on the order.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise _no_parts(values)
    merged: dict[tuple[float, float], int] = {}
    for value in values:
        if not isinstance(value, tuple) or not 1 <= len(value) <= 3:
            raise _no_parts(value)
        part = Part(*value)
        key = (
            checks.number(checks.FINITE_EPSILON, part.epsilon),
            checks.number(checks.DELTA, part.delta),
        )
        merged[key] = merged.get(key, 0) + checks.whole(checks.COUNT, part.count)
    if not sum(merged.values()) <= checks.MAX_COUNT:
        raise DomainError(f"the counts of all parts must add up to at most 2**53; got {values!r}")
    return tuple(Part(*key, count) for key, count in merged.items() if count > 0)


def tuples(values: object, length: int) -> Iterator[tuple[Any, ...]]:
    """Check that ``values`` are tuples of one length, one by one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentTypeError(f"parts must be an iterable of tuples; got {values!r:.60}")
    for value in values:
        if not isinstance(value, tuple) or len(value) != length:
            raise ArgumentTypeError(f"a part must be a tuple of {length}; got {value!r:.60}")
        yield value


def _no_parts(value: object) -> ArgumentTypeError:
    return ArgumentTypeError(
        "parts must be an iterable of tuples (epsilon, delta) or (epsilon, delta, count);"
        f" got {type(value).__name__} {value!r:.60}"
    )


FORMS = ("kairouz", "hyperbolic", "original")


@to_nearest
def basic_epsilon(parts: object, delta: object) -> float:
    """Return the ε of basic composition: the sum, when the δ of the parts fit.

    Parameters
    ----------
    parts : iterable of tuple
        ``(epsilon, delta)`` or ``(epsilon, delta, count)``, as for
        :func:`~accountant.analyses.optimal.optimal_epsilon`.
    delta : float
        The δ of the composition, in [0, 1).

    Returns
    -------
    float
        Σ count · ε in nats, rounded up; infinite where Σ count · δ exceeds ``delta``.

    Notes
    -----
    *Guarantee.* The adaptive composition is (ε, delta)-differentially private under the relation
    of the parts (Theorem C1).

    Examples
    --------
    >>> basic_epsilon([(0.5, 0.0, 4), (0.25, 1e-6)], 1e-5)
    2.25
    """
    checked = merged_parts(parts)
    total = checks.number(checks.DELTA, delta)
    # In exact arithmetic, because users often give δ that add up exactly to `delta`.
    spent = sum(Fraction(part.delta) * part.count for part in checked)
    return largest_loss(checked).up() if spent <= Fraction(total) else math.inf


@to_nearest
def advanced_epsilon(parts: object, delta: object, *, form: str = "kairouz") -> float:
    """Return the ε of advanced composition.

    Parameters
    ----------
    parts, delta
        As in :func:`basic_epsilon`; parts may differ.
    form : {"kairouz", "hyperbolic", "original"}
        With S = Σ ε², and δ' equal to ``delta`` minus the parts' own δ:

        ``"original"``
            Σ ε (e^ε - 1) + √(2 S log(1/δ')) (Dwork, Rothblum, Vadhan 2010).
        ``"hyperbolic"``
            Σ ε (e^ε - 1)/(e^ε + 1) + √(2 S log(1/δ')).
        ``"kairouz"``
            The least of Σ ε, the hyperbolic form, and the same with log(e + √S/δ') (Kairouz, Oh,
            Viswanath 2015, Theorem 3.5).

    Returns
    -------
    float
        ε in nats, rounded up; infinite where no δ' > 0 is left.

    Notes
    -----
    *Guarantee.* The adaptive composition is (ε, delta)-differentially private under the relation
    of the parts (Theorems C2 and C3).

    Examples
    --------
    >>> parts = [(0.01, 0.0, 10_000)]
    >>> old, new, best = (
    ...     advanced_epsilon(parts, 1e-6, form=form)
    ...     for form in ("original", "hyperbolic", "kairouz")
    ... )
    >>> best <= new < old < basic_epsilon(parts, 1e-6)
    True
    """
    checked = merged_parts(parts)
    total = checks.number(checks.DELTA, delta)
    checks.choice("form", form, FORMS)
    if form == "original":
        # Every ε of the mean term grows: the theorem spends Σ δ, not 1 - Π (1 - δ).
        slack = iv.of(total) - _sum_of_deltas(checked)
        if slack.lower > 0:
            return _deviating(checked, slack, _original_mean(checked)).up()
        return math.inf if checked else 0.0
    infinite = infinite_mass(checked)
    slack = (iv.of(total) - infinite) / (iv.of(1.0) - infinite) if infinite.upper < 1 else -infinite
    candidates = [math.inf if checked else 0.0]
    if slack.lower > 0:
        mean = _hyperbolic_mean(checked)
        candidates.append(_deviating(checked, slack, mean).up())
        if form == "kairouz":
            candidates.append(_deviating_less(checked, slack, mean).up())
    if form == "kairouz" and slack.lower >= 0:
        candidates.append(largest_loss(checked).up())
    return min(candidates)


def infinite_mass(parts: tuple[Part, ...]) -> Interval:
    """Enclose 1 - Π (1 - δ)^count."""
    total = iv.of(0.0)
    for part in parts:
        if part.delta > 0.0:
            total = total + iv.log1p(-part.delta) * float(part.count)
    # 0 - x, not -x: no negative zeros.
    return iv.of(0.0) - iv.expm1(total)


def largest_loss(parts: tuple[Part, ...]) -> Interval:
    """Enclose Σ count · ε, the ε of basic composition."""
    total = iv.of(0.0)
    for part in parts:
        total = total + iv.of(part.epsilon) * float(part.count)
    return total


def _sum_of_deltas(parts: tuple[Part, ...]) -> Interval:
    total = iv.of(0.0)
    for part in parts:
        total = total + iv.of(part.delta) * float(part.count)
    return total


def _squares(parts: tuple[Part, ...]) -> Interval:
    total = iv.of(0.0)
    for part in parts:
        total = total + iv.of(part.epsilon) * part.epsilon * float(part.count)
    return total


def _original_mean(parts: tuple[Part, ...]) -> Interval:
    total = iv.of(0.0)
    for part in parts:
        total = total + iv.expm1(part.epsilon) * part.epsilon * float(part.count)
    return total


def _hyperbolic_mean(parts: tuple[Part, ...]) -> Interval:
    """Enclose Σ count · ε tanh(ε/2), the mean loss of randomised response."""
    total = iv.of(0.0)
    for part in parts:
        e = iv.exp(-part.epsilon)
        tanh = -iv.expm1(-part.epsilon) / (e + 1.0)
        total = total + tanh * part.epsilon * float(part.count)
    return total


def _deviating(parts: tuple[Part, ...], slack: Interval, mean: Interval) -> Interval:
    return mean + _root(_squares(parts) * -2.0 * _log_at_most_one(slack))


def _deviating_less(parts: tuple[Part, ...], slack: Interval, mean: Interval) -> Interval:
    squares = _squares(parts)
    return mean + _root(squares * 2.0 * iv.log(iv.exp(1.0) + _root(squares) / slack))


def _log_at_most_one(x: Interval) -> Interval:
    value = iv.log(x)
    return Interval(value.lower, min(value.upper, iv.of(0.0).upper))


def _root(x: Interval) -> Interval:
    return iv.sqrt(Interval(max(x.lower, iv.of(0.0).lower), x.upper))
