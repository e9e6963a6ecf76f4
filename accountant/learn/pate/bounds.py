"""Rényi bounds on one noisy vote that use how clear the vote was.

What these functions return depends on the votes, that is, on private data. It is no guarantee for a
ledger, and must not be published as it stands: see :mod:`accountant.learn.pate.sensitivity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.checks import Argument
from accountant.errors import DomainError
from accountant.learn.validation import private_count

VOTES = Argument("votes", "integers >= 0", lambda x: x >= 0, "They count teachers, by class")
LOG_Q = Argument("log_q", "a number <= 0", lambda x: x <= 0.0, "It is the logarithm of q")
SIGMA = checks.SCALE.renamed("sigma")
# A log q below this one is replaced by it, which is on the safe side.
LEAST_LOG = -700.0
SLACK = 1e-12  # The library functions and the few dozen operations below lose a smaller share.
# The grid of the noise is no coarser: of Gaussian noise in units of sigma, of Laplace in votes.
STEP = 2.0**-30
LAPLACE_STEP = 2.0**-20


def vote_table(votes: object) -> FloatArray:
    """Return counts as a float64 matrix of shape (queries, classes), checked."""
    counts = np.asarray(private_count(VOTES, votes), dtype=np.float64)
    if counts.ndim not in (1, 2) or counts.shape[-1] < 2:
        raise DomainError(
            f"votes must have shape (classes,) or (queries, classes), classes >= 2;"
            f" got {counts.shape}"
        )
    return counts.reshape(-1, counts.shape[-1])


def log_probability_of_another(
    votes: object, scale: float, *, noise: str = "gaussian"
) -> FloatArray:
    """Return log q for every query: q bounds the chance that the noisy winner is not the true one.

    Parameters
    ----------
    votes : array_like of int, shape (queries, classes) or (classes,)
        Counts.
    scale : float
        Standard deviation of Gaussian noise, or scale of Laplace noise.
    noise : {"gaussian", "laplace"}
        The noise.

    Returns
    -------
    ndarray of shape (queries,)
        Rounded up; hardly above log(1 - 1/classes).

    Notes
    -----
    *Guarantee.* The union bound over the other classes (docs/theorems_selection.md, Theorem P10).
    """
    counts = vote_table(votes)
    b = checks.number(checks.SCALE, scale)
    checks.choice("noise", noise, ("gaussian", "laplace"))
    ordered = np.sort(counts, axis=1)
    # Noise is rounded to a grid, ties go to the first class: the gap may shrink by a step.
    step = STEP * b if noise == "gaussian" else LAPLACE_STEP
    gaps = (ordered[:, -1:] - ordered[:, :-1] - step) / b
    if noise == "gaussian":
        terms = special.log_ndtr(-gaps / math.sqrt(2.0))
    else:
        # P(Lap - Lap >= g) = (2 + g) e^-g / 4 for scale 1.
        terms = np.minimum(np.log((2.0 + np.maximum(gaps, 0.0)) / 4.0) - gaps, 0.0)
    total = special.logsumexp(terms, axis=1)
    raised = total + SLACK * (1.0 + np.abs(total))
    return np.minimum(raised, log_of_the_rest(counts.shape[1]))


def log_of_the_rest(classes: int) -> float:
    """Return log(1 - 1/k), which bounds log q for any vote, with a margin for ties."""
    return min(math.log1p(-1.0 / classes + classes * LAPLACE_STEP) + SLACK, 0.0)


def data_dependent_rdp(
    log_q: float, order: float, curve: Callable[[float], float], upper: float, lower: float
) -> float:
    """Bound D_order(M(D)‖M(D')) for a D whose likeliest outcome fails with probability q at most.

    Parameters
    ----------
    log_q : float
        log q or an upper bound on it.
    order : float
        α > 1.
    curve : callable
        A bound on the mechanism's Rényi divergence at any order, for all neighbours.
    upper, lower : float
        The orders μ₁ >= α and μ₂ > 1 of the theorem; any are valid.

    Returns
    -------
    float
        In nats, rounded up; the data-independent ``curve(order)`` where the theorem's conditions do
        not hold or it gives no less.

    Notes
    -----
    *Guarantee.* Papernot et al. 2018, Theorem 6 (docs/theorems_selection.md, Theorem P10), for D_α
    of the data set with this q against every neighbour.
    """
    alpha = checks.number(checks.ORDER, order)
    plain = curve(alpha)
    logq = max(checks.number(LOG_Q, log_q), LEAST_LOG)
    if not (upper >= alpha and lower > 1.0):
        return plain
    e1, e2 = curve(upper), curve(lower)
    limit = (lower - 1.0) * e2
    limit -= lower * (math.log(upper / (upper - 1.0)) + math.log(lower / (lower - 1.0)))
    # The conditions have a margin: where they hold barely, the plain bound is as good.
    if not (logq <= limit - 1e-9 * (1.0 + abs(limit)) and -logq > e2 * (1.0 + 1e-9)):
        return plain
    q = math.exp(logq)
    power = math.exp((logq + e2) * (1.0 - 1.0 / lower))
    if not (power < 1.0 - 1e-9):
        return plain
    first = alpha * math.log1p(-q) - (alpha - 1.0) * math.log1p(-power)
    exponent = logq + (alpha - 1.0) * (e1 - logq / (upper - 1.0))
    if max(first, exponent) > 600.0:
        return plain
    second = math.exp(exponent)
    excess = math.expm1(first) + second
    # Errors: of the exponents, of the two logarithms, and of the sum.
    error = 64.0 * U * alpha * (q + power) / (1.0 - power) * math.exp(max(first, 0.0))
    error += 64.0 * U * second * (1.0 + abs(logq) + (alpha - 1.0) * (e1 + abs(logq)))
    error += 64.0 * U * alpha * power * (abs(logq) + e2) / (1.0 - power)
    bound = math.log1p(max(excess, 0.0) + error) / (alpha - 1.0) * (1.0 + SLACK)
    return min(bound, plain)


def gaussian_data_dependent_rdp(log_q: float, sigma: float, order: float) -> float:
    """Bound the divergence of one GNMax answer with Gaussian noise of ``sigma`` on every count.

    Notes
    -----
    *Guarantee.* :func:`data_dependent_rdp` with the curve α/σ², μ₂ = σ√(-log q), μ₁ = μ₂ + 1, never
    above α/σ² (Papernot et al. 2018, Propositions 8 and 10).

    Examples
    --------
    >>> log_q = log_probability_of_another([200, 30, 20], 40.0)[0]
    >>> round(float(log_q), 5)
    -6.18584
    >>> [float(f"{gaussian_data_dependent_rdp(log_q, 40.0, a):.4e}") for a in (2, 10)]
    [0.00054506, 0.00074463]
    """
    s = checks.number(SIGMA, sigma)
    logq = max(checks.number(LOG_Q, log_q), LEAST_LOG)

    def curve(alpha: float) -> float:
        return alpha / s / s * (1.0 + 8.0 * U)

    lower = s * math.sqrt(-logq)
    # Where -log q is tiny the orders are too, and the plain bound is returned.
    return data_dependent_rdp(logq, order, curve, lower + 1.0, lower)


def laplace_data_dependent_rdp(log_q: float, scale: float, order: float) -> float:
    """Bound the divergence of one LNMax answer with Laplace noise of ``scale`` on every count.

    Notes
    -----
    *Guarantee.* With ε = 2/scale: the least of the pure mechanism's curve and of
    log((1-q)((1-q)/(1-e^ε q))^{α-1} + q e^{ε(α-1)})/(α-1), valid for q < (e^ε - 1)/(e^{2ε} - 1)
    (Papernot et al. 2017, Theorem 3; docs/theorems_selection.md, Theorem P10).
    """
    b = checks.number(checks.SCALE, scale)
    alpha = checks.number(checks.ORDER, order)
    logq = max(checks.number(LOG_Q, log_q), LEAST_LOG)
    epsilon = 2.0 / b * (1.0 + 8.0 * U)
    from accountant.mechanisms import PureDP

    plain = min(PureDP(epsilon).rdp(alpha), epsilon)
    if epsilon > 300.0 or not (logq + math.log1p(math.exp(epsilon)) < -1e-9):
        return plain
    q, grown = math.exp(logq), math.exp(logq + epsilon)
    if not (grown < 1.0 - 1e-9):
        return plain
    first = alpha * math.log1p(-q) - (alpha - 1.0) * math.log1p(-grown)
    exponent = logq + epsilon * (alpha - 1.0)
    if max(first, exponent) > 600.0:
        return plain
    second = math.exp(exponent)
    error = 64.0 * U * alpha * (q + grown) / (1.0 - grown) * math.exp(max(first, 0.0))
    error += 64.0 * U * second * (1.0 + abs(logq) + epsilon * alpha)
    bound = math.log1p(max(math.expm1(first) + second, 0.0) + error) / (alpha - 1.0)
    return min(bound * (1.0 + SLACK), plain)
