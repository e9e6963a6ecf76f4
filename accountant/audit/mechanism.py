"""Audits of one release, by many calls with and without a canary, or by exact masses of cells.

Telling in which cell the output lies is post-processing, so the privacy profile of the cells is a
lower bound on the mechanism's own for every grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.audit.one_run import Curve
from accountant.audit.report import (
    AuditReport,
    NoiseFamily,
    Observations,
    TradeoffCurve,
    two_sample_bound,
)
from accountant.audit.two_sample import CONFIDENCE, Threshold
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.search import narrow

METHODS = ("auto", "clopper-pearson", "gaussian")


def audit_mechanism(
    release: Callable[[Any], Any],
    canary: object,
    *,
    claimed: Mechanism | float,
    delta: float,
    baseline: object = None,
    observations: int = 10_000,
    threshold: Threshold | None = None,
    score: Callable[[FloatArray], float] | None = None,
    vectorized: bool = False,
    name: str = "mechanism",
    **given: Any,
) -> AuditReport:
    """Audit one release by calling it with and without a canary.

    Parameters
    ----------
    release : callable
        ``release(value)`` draws fresh noise and returns what is published: a number or an array.
    canary : array_like
        What is released when the canary's record is present: baseline plus one record's largest
        contribution.
    claimed : Mechanism or float
        The claim: a mechanism, or ε at ``delta``.
    delta : float
        At which ε is compared.
    baseline : array_like, optional
        What is released without the record; zeros.
    observations : int
        The number under each of the two data sets.
    threshold : {"split", "ranks"}, float, or several of them, optional
        As in :func:`~accountant.audit.error_rates`; by default ``"split"`` and, without a
        ``score``, the middle between the two inputs' scores, which share the error.
    score : callable, optional
        A function of one output; by default its inner product with canary minus baseline.
    vectorized : bool
        Whether ``release`` takes an array of many values along the first axis and releases each
        with noise of its own.
    name : str
        For the report.
    **given
        ``confidence``, ``method`` and ``direction`` of :func:`audit_observations`.

    Returns
    -------
    AuditReport

    Notes
    -----
    *Guarantee.* If the claim is true, the report flags it with probability at most
    1 - confidence (docs/theorems_audit.md, Theorems A5 and A6). The converse needs a canary that is
    the worst record.

    Examples
    --------
    >>> import numpy as np
    >>> import accountant as ac
    >>> noise = np.random.default_rng(0)
    >>> report = audit_mechanism(
    ...     lambda v: v + 0.5 * noise.standard_normal(v.shape), np.ones(()),
    ...     claimed=ac.Gaussian(1.0), delta=1e-5, vectorized=True,
    ... )
    >>> report.flagged  # half of the noise that was claimed
    True
    """
    n = checks.integer("observations", observations, 2, 10**9, advice="In each world")
    with_record = np.asarray(canary, dtype=np.float64)
    without = (
        np.zeros_like(with_record) if baseline is None else np.asarray(baseline, dtype=np.float64)
    )
    if without.shape != with_record.shape or np.array_equal(without, with_record):
        raise DomainError("canary and baseline must have one shape and differ")
    along = (with_record - without).ravel()
    if threshold is None:
        middle = 0.5 * float(along @ (with_record + without).ravel())
        threshold = "split" if score else ("split", middle)

    def scores(value: FloatArray) -> FloatArray:
        outputs: Any = (release(value.copy()) for _ in range(n))
        if vectorized:
            outputs = np.asarray(release(np.broadcast_to(value, (n, *value.shape)).copy()))
            if len(outputs) != n:
                raise DomainError("a vectorized release must return one output for each value")
            if score is None:
                return np.asarray(outputs.reshape(n, -1).astype(np.float64) @ along)
        measure = score or (lambda x: float(along @ np.asarray(x, dtype=np.float64).ravel()))
        return np.array([measure(output) for output in outputs])

    worlds = [scores(value) for value in (without, with_record)]
    return audit_observations(
        *worlds, claimed=claimed, delta=delta, threshold=threshold, name=name, **given
    )


def audit_observations(
    without: object,
    with_canary: object,
    *,
    claimed: Mechanism | float,
    delta: float,
    confidence: float = 0.95,
    threshold: Threshold = "split",
    method: str = "auto",
    direction: str = "both",
    name: str = "observations",
) -> AuditReport:
    """Audit a claim by scores from paired runs, independent within and between the two samples.

    Parameters
    ----------
    without, with_canary : array_like
        Scores of runs under two neighbouring data sets.
    claimed, delta, name
        As in :func:`audit_mechanism`.
    confidence, threshold, direction
        As in :func:`~accountant.audit.error_rates`: ``direction`` says which scores indicate the
        canary.
    method : {"auto", "clopper-pearson", "gaussian"}
        Clopper-Pearson holds for every mechanism, but cannot exceed the logarithm of the number of
        observations. ``"gaussian"`` tests a Gaussian claim and comes close to its ε. ``"auto"``
        uses it if the claim is Gaussian.

    Returns
    -------
    AuditReport

    Notes
    -----
    *Guarantee.* As :func:`audit_mechanism`.
    """
    kind = checks.choice("method", method, METHODS)
    target = checks.number(checks.DELTA, delta)
    sure = checks.number(CONFIDENCE, confidence)
    family = noise_family(claimed)
    if kind == "gaussian" and family is None:
        raise UnsupportedError(
            "method='gaussian' needs a claim that is Gaussian, subsampled or not;"
            f" got {claimed!r}. Use method='clopper-pearson'"
        )
    tested = None if kind == "clopper-pearson" else family
    lower, rates = two_sample_bound(
        without, with_canary, tested, target, confidence=sure, threshold=threshold,
        direction=direction,
    )  # fmt: skip
    return AuditReport(
        name=name,
        epsilon_lower=lower,
        epsilon_claimed=_claimed_epsilon(claimed, target),
        delta=target,
        confidence=sure,
        method="Clopper-Pearson, Theorem A5" if tested is None else "trade-off curve, Theorem A6",
        observations=Observations(np.asarray(without, float), np.asarray(with_canary, float)),
        rates=rates,
        curve=_curve(claimed, target, family),
        direction=direction,
    )


def noise_family(claimed: object) -> NoiseFamily | None:
    """Return the noise family of a claim: one Poisson-subsampled Gaussian, repeated or not."""
    if not isinstance(claimed, Mechanism):
        return None
    parts = getattr(claimed, "parts", ((claimed, 1),))
    if len(parts) != 1:
        return None
    mechanism, count = parts[0]
    kinds = set()
    for pair in mechanism.pairs():
        part = pair.gaussian_part
        kinds.add(None if part is None else (part.sampling_probability, part.noise_multiplier))
    if len(kinds) != 1 or None in kinds:
        return None
    (kind,) = kinds
    q, sigma = kind  # type: ignore[misc]
    return NoiseFamily(q, int(count), sigma)


def _claimed_epsilon(claimed: Mechanism | float, delta: float) -> float:
    if isinstance(claimed, Mechanism):
        return claimed.epsilon(delta)
    return checks.number(checks.EPSILON, claimed)


def _curve(claimed: Mechanism | float, delta: float, family: NoiseFamily | None) -> Curve | None:
    if family is not None:
        return family
    if isinstance(claimed, Mechanism):
        return TradeoffCurve.of(claimed)
    return TradeoffCurve([claimed], [delta])


Tails: TypeAlias = Callable[[FloatArray], tuple[Any, Any]]

# A cell's mass is off by a few units in the last place of two values of a distribution function up
# to 1/2.
ROUND_OFF = 2.0**-50


def cell_masses(tails: Tails, edges: object) -> FloatArray:
    """Return the masses of the cells between edges, and beyond the outer two.

    Parameters
    ----------
    tails : callable
        ``tails(x)`` returns P{output <= x} and P{output > x}, each accurate where it is small.
    edges : array_like of shape (k,)
        Ascending.

    Returns
    -------
    ndarray of shape (k + 1,)
    """
    x = np.asarray(edges, dtype=np.float64)
    if x.ndim != 1 or not x.size or not (np.diff(x) > 0.0).all():
        raise DomainError("edges must be ascending")
    below, above = (np.asarray(v, dtype=np.float64) for v in tails(x))
    # Differences in the tail where they do not cancel.
    inner = np.where(below[:-1] < 0.5, below[1:] - below[:-1], above[:-1] - above[1:])
    return np.concatenate(([below[0]], np.maximum(inner, 0.0), [above[-1]]))


def profile_of_masses(p: FloatArray, q: FloatArray, epsilon: float, error: float = 0.0) -> float:
    """Return a lower bound on δ(ε) from cell masses that are within ``error`` in total variation.

    Notes
    -----
    *Guarantee.* Theorem A11 of docs/theorems_audit.md.
    """
    factor = math.exp(min(epsilon, 700.0))
    with np.errstate(over="ignore"):
        excess = np.maximum(p - factor * q, 0.0)
    return max(0.0, math.fsum(excess.tolist()) - error - (factor * error if error else 0.0))


def epsilon_of_masses(p: FloatArray, q: FloatArray, delta: float, error: float = 0.0) -> float:
    """Return an ε at which the profile of the cells is above ``delta``, or 0."""

    def above(epsilon: float) -> bool:
        # The round-off of masses of about one; p and q are used as given beyond it.
        return profile_of_masses(p, q, epsilon, error) > delta * (1.0 + 1e-12) + 1e-15

    if not above(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while above(high):
        low, high = high, 2.0 * high
        if high > 600.0:
            return low
    return narrow(above, low, high, 60)[0]


def audit_masses(
    p: object,
    q: object,
    *,
    claimed: Mechanism | float,
    delta: float,
    error: float = 0.0,
    name: str = "output",
) -> AuditReport:
    """Audit a claim by the exact probabilities of output cells under two neighbouring data sets.

    Parameters
    ----------
    p, q : array_like of one shape
        Masses of the same cells under the two data sets; one or two dimensions, or any outcomes.
    claimed : Mechanism or float
        A mechanism, or ε at ``delta``.
    delta : float
        In [0, 1).
    error : float
        By how much, in all, the masses of either may be wrong (quadrature of densities); the
        round-off of the cells, and what is missing to a sum of 1, are added to it.
    name : str
        For the report.

    Returns
    -------
    AuditReport
        With confidence 1: there is no chance in it.

    Notes
    -----
    *Guarantee.* An honest mechanism is never flagged (docs/theorems_audit.md, Theorem A11).

    Examples
    --------
    >>> report = audit_masses([0.75, 0.25], [0.25, 0.75], claimed=1.0, delta=0.0)
    >>> report.flagged, round(report.epsilon_lower, 6)  # log 3
    (True, 1.098612)
    """
    left, right = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    good = left.shape == right.shape and left.size > 0
    if not (good and bool((left >= 0.0).all()) and bool((right >= 0.0).all())):
        raise DomainError("p and q must be masses of the same cells, all >= 0")
    # Differences of distribution functions carry their round-off, whatever the mass of the cell.
    doubt = error + ROUND_OFF * left.size
    for name_of, mass in (("p", left), ("q", right)):
        surplus = abs(math.fsum(mass.ravel().tolist()) - 1.0)
        if not (surplus <= error + 1e-9):
            raise DomainError(f"the masses {name_of} must add up to 1 within error")
        doubt += surplus
    target = checks.number(checks.DELTA, delta)
    left, right = left.ravel(), right.ravel()
    lower = max(
        epsilon_of_masses(left, right, target, doubt), epsilon_of_masses(right, left, target, doubt)
    )
    how = "cells, Theorem A11"
    epsilon = _claimed_epsilon(claimed, target)
    return AuditReport(name, lower * (1.0 - 1e-12), epsilon, target, 1.0, how)
