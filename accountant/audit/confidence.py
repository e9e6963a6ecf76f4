"""Exact confidence bounds for proportions, and exact tails, rounded to the safe side."""

from __future__ import annotations

import numpy as np
from scipy import special

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.checks import Argument

CONFIDENCE = Argument(
    "confidence",
    "a probability in [0.5, 1)",
    lambda x: (x >= 0.5) & (x < 1.0),
    "An honest mechanism is flagged with probability at most 1 - confidence",
)
ERROR = Argument(
    "error",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "It is the probability with which the bound may fail",
)
# The incomplete beta function and its quantile lose far less than this share: a test measures them
# against 50 digits.
OUTWARD = 1e-9
# More than were ever observed; far above, the incomplete beta function loses those digits.
MOST_TRIALS = 2**40


def whole(name: str, value: object, least: int, most: int, advice: str) -> int:
    """Return a count in ``[least, most]``, or raise."""
    argument = Argument(
        name, f"an integer in [{least}, {most}]", lambda x: (x >= least) & (x <= most), advice
    )
    return checks.whole(argument, value)


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
    n = whole("trials", trials, 1, MOST_TRIALS, "It counts observations")
    k = whole("successes", successes, 0, n, "It counts observations on one side")
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
