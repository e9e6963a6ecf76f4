"""Audits of one release, by many calls with and without a canary."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.audit.confidence import CONFIDENCE, whole
from accountant.audit.family import NoiseFamily, TradeoffCurve
from accountant.audit.one_run import Curve
from accountant.audit.report import AuditReport, Observations
from accountant.audit.two_sample import Threshold, epsilon_from_rates, error_rates
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms.base import Mechanism

METHODS = ("auto", "clopper-pearson", "gaussian")


def audit_mechanism(
    release: Callable[[Any], Any],
    canary: object,
    *,
    claimed: Mechanism | float,
    delta: float,
    baseline: object = None,
    observations: int = 10_000,
    confidence: float = 0.95,
    threshold: Threshold | None = None,
    method: str = "auto",
    score: Callable[[FloatArray], float] | None = None,
    direction: str = "both",
    vectorized: bool = False,
    name: str = "mechanism",
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
    confidence : float
        As in :func:`~accountant.audit.error_rates`.
    threshold : {"split", "ranks"}, float, or several of them, optional
        As there; by default ``"split"`` and, without a ``score``, the middle between the two
        inputs' scores, which share the error.
    method : {"auto", "clopper-pearson", "gaussian"}
        Clopper-Pearson holds for every mechanism, but cannot exceed the logarithm of the number of
        observations. ``"gaussian"`` tests a Gaussian claim and comes close to its ε. ``"auto"``
        uses it if the claim is Gaussian.
    score : callable, optional
        A function of one output; by default its inner product with canary minus baseline.
    direction : {"both", "higher", "lower"}
        As in :func:`~accountant.audit.error_rates`: which scores indicate the canary.
    vectorized : bool
        Whether ``release`` takes an array of many values along the first axis and releases each
        with noise of its own.
    name : str
        For the report.

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
    n = whole("observations", observations, 2, 10**9, "It counts calls in each world")
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
    draw = _scores_at_once if vectorized else _scores
    worlds = [draw(release, value, n, along, score) for value in (without, with_record)]
    return audit_observations(
        *worlds,
        claimed=claimed,
        delta=delta,
        confidence=confidence,
        threshold=threshold,
        method=method,
        direction=direction,
        name=name,
    )


def _scores(
    release: Callable[[Any], Any],
    value: FloatArray,
    n: int,
    along: FloatArray,
    score: Callable[[FloatArray], float] | None,
) -> FloatArray:
    """Return the scores of n releases of one value, by default along a vector."""

    def projected(output: FloatArray) -> float:
        return float(along @ np.asarray(output, dtype=np.float64).ravel())

    measure = score or projected
    return np.array([measure(release(value.copy())) for _ in range(n)])


def _scores_at_once(
    release: Callable[[Any], Any],
    value: FloatArray,
    n: int,
    along: FloatArray,
    score: Callable[[FloatArray], float] | None,
) -> FloatArray:
    """Return the same scores by one call of the release."""
    outputs = np.asarray(release(np.broadcast_to(value, (n, *value.shape)).copy()))
    if len(outputs) != n:
        raise DomainError("a vectorized release must return one output for each value")
    if score is None:
        found: FloatArray = outputs.reshape(n, -1).astype(np.float64) @ along
        return found
    return np.array([score(outputs[i]) for i in range(n)])


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
    claimed, delta, confidence, threshold, method, direction, name
        As in :func:`audit_mechanism`.

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
    gaussian = family is not None and kind != "clopper-pearson"
    rates = error_rates(
        without,
        with_canary,
        confidence=sure,
        threshold=threshold,
        objective=None if gaussian else partial(epsilon_from_rates, delta=target),
        direction=direction,
    )
    if gaussian and family is not None:
        lower, how = family.epsilon_lower(rates, target), "trade-off curve, Theorem A6"
    else:
        lower = max(epsilon_from_rates(r.fpr, r.fnr, target) for r in rates)
        how = "Clopper-Pearson, Theorem A5"
    return AuditReport(
        name=name,
        epsilon_lower=lower,
        epsilon_claimed=_claimed_epsilon(claimed, target),
        delta=target,
        confidence=sure,
        method=how,
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
