"""Lower bounds on ε from observations under two neighbouring data sets, and exact tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import special

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.analyses.gdp import gdp_epsilon_bounds
from accountant.checks import Argument
from accountant.errors import ArgumentTypeError, DomainError

CONFIDENCE = Argument(
    "confidence",
    "a probability in [0.5, 1)",
    lambda x: (x >= 0.5) & (x < 1.0),
    "An honest mechanism is flagged with probability at most 1 - confidence",
)
ERROR = checks.TARGET_DELTA.renamed("error", "It is the probability that the bound fails")
# The incomplete beta function and its quantile lose far less than this share: a test measures them
# against 50 digits.
OUTWARD = 1e-9
# More than were ever observed; far above, the incomplete beta function loses those digits.
MOST_TRIALS = 2**40


def clopper_pearson_upper(successes: int, trials: int, error: float) -> float:
    """Return an upper confidence bound on a probability (Clopper and Pearson 1934).

    Parameters
    ----------
    successes, trials : int
        ``successes`` of ``trials`` independent trials.
    error : float
        In (0, 1).

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    *Guarantee.* The bound is below the true probability with probability at most ``error``, for
    every true probability (docs/theorems_audit.md, Theorem A1).

    Examples
    --------
    >>> clopper_pearson_upper(0, 100, 0.05) >= 1 - 0.05 ** (1 / 100)
    True
    """
    n = checks.integer("trials", trials, 1, MOST_TRIALS)
    k = checks.integer("successes", successes, 0, n)
    share = checks.number(ERROR, error)
    if k == n:
        return 1.0
    return min(1.0, float(special.betainccinv(k + 1.0, float(n - k), share)) * (1.0 + OUTWARD))


def binomial_tail(at_least: int, trials: int, probability: float) -> float:
    """Return an upper bound on P{Bin(trials, probability) >= at_least}."""
    if at_least <= 0:
        return 1.0
    if at_least > trials or probability <= 0.0:
        return 0.0
    tail = float(special.betainc(float(at_least), trials - at_least + 1.0, min(1.0, probability)))
    return min(1.0, tail * (1.0 + OUTWARD) + 1e-300)


def binomial_mode(trials: int, probability: float) -> float:
    """Return an upper bound on the largest probability of one outcome of a binomial variable."""
    return float(binomial_modes(np.array([float(trials)]), probability, trials, trials)[0])


def binomial_modes(
    trials: FloatArray, probability: float, most: int, most_failures: int
) -> FloatArray:
    """Bound the largest probability of an outcome, with ``most`` successes at most, or failures.

    For each number of ``trials``, none of them above the sum of the two.
    """
    # Probabilities rise up to the mode and fall beyond it.
    mode = np.minimum(np.floor((trials + 1.0) * probability), trials)
    j = np.maximum(np.minimum(mode, most), trials - most_failures)
    terms = np.array(
        [
            special.gammaln(trials + 1.0),
            -special.gammaln(j + 1.0),
            -special.gammaln(trials - j + 1.0),
            special.xlogy(j, probability),
            special.xlog1py(trials - j, -probability),
        ]
    )
    # Trusted to 8 roundings each; as much again for where rounding moved j beside the mode.
    error = 16.0 * U * np.abs(terms).sum(axis=0)
    bounds = np.exp(terms.sum(axis=0) + error) * (1.0 + OUTWARD)
    return np.asarray(np.minimum(bounds, 1.0))


Objective: TypeAlias = Callable[[float, float], float]
Threshold: TypeAlias = "str | float | tuple[str | float, ...]"

DOWN = 1e-9  # Logarithms and normal quantiles lose far less than this share.
CANDIDATES = 160  # Thresholds that are tried on the half that is for choosing: any number is sound.
RANKS = 12  # Order statistics that share the error of the union bound.
# Scores are multiplied by these, so that a high one indicates the canary.
DIRECTIONS = {"both": (1.0, -1.0), "higher": (1.0,), "lower": (-1.0,)}


class ErrorRates(NamedTuple):
    """Upper confidence bounds on the error rates of one test.

    Attributes
    ----------
    fpr, fnr : float
        Upper bounds on the false-positive and false-negative rate; all rates of one call
        hold together with the stated confidence.
    threshold : float
        Of the test.
    direction : {"higher", "lower"}
        Whether the test accuses scores above the threshold, or below it.
    """

    fpr: float
    fnr: float
    threshold: float
    direction: str = "higher"


def error_rates(
    without: object,
    with_canary: object,
    *,
    confidence: float = 0.95,
    threshold: Threshold = "split",
    objective: Objective | None = None,
    direction: str = "both",
) -> tuple[ErrorRates, ...]:
    """Bound the error rates of threshold tests; the choice of the threshold is accounted for.

    Parameters
    ----------
    without, with_canary : array_like of shape (n,), (m,)
        Independent scores under the two data sets.
    confidence : float
        With which all rates returned hold together.
    threshold : {"split", "ranks"}, float, or several of them
        ``"split"`` chooses it on the first halves of the samples and counts on the second;
        ``"ranks"`` takes order statistics of ``without`` at ranks fixed in advance, with a union
        bound; a number must not come from these scores. Several share the error.
    objective : callable, optional
        What ``"split"`` maximises, a function of the two rates; Gaussian separation by default.
    direction : {"both", "higher", "lower"}
        Which scores indicate the canary; a loss is lower with it. Of both ``"split"`` chooses one
        with the threshold, at no cost; other thresholds test both, which share the error.

    Returns
    -------
    tuple of ErrorRates

    Notes
    -----
    *Guarantee.* Theorems A1 (a given threshold), A2 (split) and A3 (ranks) of
    docs/theorems_audit.md: exact for every distribution, ties included.
    """
    named = checks.choice("direction", direction, tuple(DIRECTIONS))
    x, y = _scores("without", without), _scores("with_canary", with_canary)
    cuts = threshold if isinstance(threshold, tuple) else (threshold,)
    if not cuts:
        raise DomainError("threshold must name at least one")
    error = 0.5 * (1.0 - checks.number(CONFIDENCE, confidence)) / len(cuts)
    goal = objective or mu_from_rates
    ways = DIRECTIONS[named]
    return tuple(rate for cut in cuts for rate in _rates(x, y, error, cut, goal, ways))


def _rates(
    x: FloatArray,
    y: FloatArray,
    error: float,
    threshold: str | float,
    objective: Objective,
    ways: tuple[float, ...],
) -> tuple[ErrorRates, ...]:
    if isinstance(threshold, str):
        kind = checks.choice("threshold", threshold, ("split", "ranks"))
        if kind == "ranks":
            share = error / len(ways)
            return tuple(rate for way in ways for rate in _by_ranks(x, y, share, way))
        if min(x.size, y.size) < 2:
            raise DomainError("splitting needs two observations on each side; give more")
        a, b = x.size // 2, y.size // 2
        best = [_best(way * x[:a], way * y[:b], error, objective) for way in ways]
        way, (_, _, cut) = max(zip(ways, best, strict=True), key=lambda found: found[1][:2])
        # The observations that chose the direction are not those that are counted (A2).
        return (_counted(x[a:], y[b:], way * cut, error, way),)
    cut = float(threshold)
    if math.isnan(cut):
        raise DomainError("threshold must be a number; got nan")
    return tuple(_counted(x, y, cut, error / len(ways), way) for way in ways)


def epsilon_from_rates(fpr: float, fnr: float, delta: float) -> float:
    """Return the ε that the error rates of one test refute, rounded down.

    Notes
    -----
    *Guarantee.* A mechanism that is (ε', delta)-private in both directions with ε' below it has no
    test with these rates (Theorem A5).
    """
    best = 0.0
    for miss, alarm in ((fnr, fpr), (fpr, fnr)):
        power = 1.0 - miss - delta - 1e-15
        if power > alarm:
            best = max(best, math.log(power / alarm) * (1.0 - DOWN) - 1e-14)
    return best


def mu_from_rates(fpr: float, fnr: float) -> float:
    """Return the μ that the error rates of one test refute, rounded down.

    Notes
    -----
    *Guarantee.* A μ'-GDP mechanism with μ' below it has no test with these rates (Theorem A6).
    """
    mu = -float(special.ndtri(fpr)) - float(special.ndtri(fnr))
    # At rate 1 the quantile is infinite and no μ is refuted.
    return max(0.0, mu * (1.0 - DOWN) - 1e-12) if math.isfinite(mu) else 0.0


def epsilon_lower_bound(
    without: object, with_canary: object, *, delta: float, **given: Any
) -> float:
    """Return a lower confidence bound on ε at ``delta``, for any mechanism (Clopper-Pearson).

    Parameters
    ----------
    without, with_canary : array_like
        As in :func:`error_rates`.
    delta : float
        In [0, 1).
    **given
        ``confidence``, ``threshold`` and ``direction`` of :func:`error_rates`.

    Returns
    -------
    float
        In nats, >= 0. It cannot exceed about the logarithm of the number of observations.

    Notes
    -----
    *Guarantee.* If the mechanism is (ε, delta)-private the bound exceeds ε with probability at
    most 1 - confidence (Theorem A5 with A1 to A3).

    Examples
    --------
    >>> epsilon_lower_bound([0] * 500, [1] * 500, delta=0.0, threshold=0.5) > 4.7
    True
    """
    target = checks.number(checks.DELTA, delta)
    goal = partial(epsilon_from_rates, delta=target)
    rates = error_rates(without, with_canary, objective=goal, **given)
    return max(epsilon_from_rates(r.fpr, r.fnr, target) for r in rates)


def mu_lower_bound(without: object, with_canary: object, **given: Any) -> float:
    """Return a lower confidence bound on μ, for a mechanism said to be μ-GDP.

    Arguments are those of :func:`error_rates`.

    Notes
    -----
    *Guarantee.* If the mechanism is μ-GDP the bound exceeds μ with probability at most
    1 - confidence (Theorem A6 with A1 to A3). ``gdp_epsilon_bounds(mu, delta)`` turns it into an ε
    that bounds the mechanism's own from below only if the mechanism *is* Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((2, 20_000))
    >>> 0.85 < mu_lower_bound(x[0], x[1] + 1.0) < 1.0
    True
    """
    return max(mu_from_rates(r.fpr, r.fnr) for r in error_rates(without, with_canary, **given))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the ε of a μ-GDP Gaussian mechanism, rounded down."""
    return float(gdp_epsilon_bounds(mu, delta).lower) if mu > 0.0 else 0.0


def _scores(name: str, value: object) -> FloatArray:
    scores = np.asarray(value)
    if scores.ndim != 1 or scores.dtype.kind not in "fiub":
        raise ArgumentTypeError(f"{name} must be a one-dimensional array of numbers")
    scores = scores.astype(np.float64)
    if not scores.size or np.isnan(scores).any():
        raise DomainError(f"{name} must hold observations, none of them NaN")
    return scores


def _counted(x: FloatArray, y: FloatArray, cut: float, error: float, way: float) -> ErrorRates:
    alarms = int((way * x > way * cut).sum())
    return _bounded(alarms, x.size, way * y, cut, error, way)


def _bounded(
    alarms: int, n: int, y: FloatArray, cut: float, error: float, way: float
) -> ErrorRates:
    """Bound the rates of a test with ``alarms`` of ``n``; ``y`` is multiplied by ``way``."""
    misses = int((y <= way * cut).sum())
    fpr = clopper_pearson_upper(alarms, n, error)
    fnr = clopper_pearson_upper(misses, y.size, error)
    return ErrorRates(fpr, fnr, cut, "higher" if way > 0.0 else "lower")


def _candidates(n: int, count: int) -> list[int]:
    """Return ranks 1 <= k <= n, dense at both ends."""
    half = np.geomspace(1, max(1.0, n / 2), count // 2)
    return sorted({int(k) for k in np.rint(np.concatenate([half, n + 1 - half]))})


def best_threshold(x: FloatArray, y: FloatArray, error: float, objective: Objective) -> float:
    """Return the threshold of two samples at which ``objective`` of the bounded rates is best."""
    return _best(x, y, error, objective)[2]


def _best(
    x: FloatArray, y: FloatArray, error: float, objective: Objective
) -> tuple[bool, float, float]:
    """Return whether a hundredth of the error is enough, the best value, and its threshold."""
    # Both samples give thresholds: the best test may cut in a tail where the other has nothing.
    cuts = np.unique(
        np.concatenate([np.sort(v)[np.array(_candidates(v.size, CANDIDATES)) - 1] for v in (x, y)])
    )
    low, high = np.sort(x), np.sort(y)
    alarms = x.size - np.searchsorted(low, cuts, side="right")
    misses = np.searchsorted(high, cuts, side="right")
    # Bounds at a hundredth of the error shy away from thresholds that a few lucky scores favour;
    # where they see nothing, the error itself may.
    for share in (0.01 * error, error):
        best, chosen = 0.0, float(cuts[len(cuts) // 2])
        for cut, fp, fn in zip(cuts.tolist(), alarms.tolist(), misses.tolist(), strict=True):
            value = objective(
                clopper_pearson_upper(fp, x.size, share), clopper_pearson_upper(fn, y.size, share)
            )
            if value > best:
                best, chosen = value, cut
        if best > 0.0:
            break
    return best > 0.0 and share < error, best, chosen


def _by_ranks(x: FloatArray, y: FloatArray, error: float, way: float) -> tuple[ErrorRates, ...]:
    """Cut at the k-th most suspect of ``x``: its rate has a beta law, whatever that of x (A3)."""
    ranks = _candidates(x.size, RANKS)
    share, rising = error / len(ranks), np.sort(way * x)
    return tuple(
        _bounded(k - 1, x.size, way * y, way * float(rising[-k]), share, way) for k in ranks
    )
