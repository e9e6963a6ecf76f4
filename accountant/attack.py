"""Bounds on an attacker against DP-SGD, that is, the subsampled Gaussian mechanism.

Poisson sampling, add-or-remove, as in :func:`accountant.get_epsilon`. Each answer is read off the
exact profile (:mod:`accountant.analyses.tradeoff`), in the worse of the two directions: attacks on
the presence of a record and on its absence.
"""

from __future__ import annotations

from collections.abc import Callable

from accountant import checks
from accountant.analyses import contour, tradeoff
from accountant.environment import to_nearest
from accountant.errors import PrecisionError

__all__ = ["attack_tpr", "bayes_accuracy", "membership_advantage", "positive_predictive_value"]


@to_nearest
def attack_tpr(q: float, sigma: float, steps: int, fpr: float) -> float:
    """Return the largest true-positive rate of any membership attack on DP-SGD.

    Parameters
    ----------
    q, sigma, steps
        Scalars, as in :func:`accountant.get_epsilon`.
    fpr : float
        False-positive rate, in [0, 1].

    Returns
    -------
    float
        An upper bound, in [0, 1].

    Notes
    -----
    *Guarantee.* No attack with this false-positive rate, whatever it knows of the other records,
    finds the record more often (Theorem C16 of docs/theorems_conversions.md, with the profile of
    docs/theorems.md).

    Examples
    --------
    >>> 1e-3 < attack_tpr(0.01, 1.0, 1000, 1e-3) < 0.02
    True
    """
    return tradeoff.attack_tpr(fpr, _profile(q, sigma, steps))


@to_nearest
def membership_advantage(q: float, sigma: float, steps: int) -> float:
    """Return the largest TPR - FPR of any membership attack on DP-SGD.

    Parameters
    ----------
    q, sigma, steps
        Scalars, as in :func:`accountant.get_epsilon`.

    Returns
    -------
    float
        An upper bound, in [0, 1].

    Notes
    -----
    *Guarantee.* Theorem C19.

    Examples
    --------
    >>> 0.1 < membership_advantage(0.01, 1.0, 1000) < 0.2
    True
    """
    return tradeoff.membership_advantage(_profile(q, sigma, steps))


@to_nearest
def bayes_accuracy(q: float, sigma: float, steps: int, prior: float) -> float:
    """Return the largest probability of guessing right whether a record was used.

    Parameters
    ----------
    q, sigma, steps
        Scalars, as in :func:`accountant.get_epsilon`.
    prior : float
        Probability that the record was used, before the release; in (0, 1).

    Returns
    -------
    float
        An upper bound, at least max(prior, 1 - prior).

    Notes
    -----
    *Guarantee.* Theorem C19.

    Examples
    --------
    >>> 0.5 < bayes_accuracy(0.01, 1.0, 1000, 0.5) < 0.6
    True
    """
    return tradeoff.bayes_accuracy(prior, _profile(q, sigma, steps))


@to_nearest
def positive_predictive_value(
    q: float, sigma: float, steps: int, prior: float, fpr: float
) -> float:
    """Return the largest share of right accusations among those of any attack on DP-SGD.

    Parameters
    ----------
    q, sigma, steps
        Scalars, as in :func:`accountant.get_epsilon`.
    prior : float
        Share of the candidates that were used; in (0, 1).
    fpr : float
        False-positive rate, in [0, 1].

    Returns
    -------
    float
        An upper bound, in [prior, 1].

    Notes
    -----
    *Guarantee.* Theorem C16.

    Examples
    --------
    >>> 0.5 < positive_predictive_value(0.01, 1.0, 1000, 0.5, 0.01) < 0.9
    True
    """
    return tradeoff.positive_predictive_value(prior, fpr, _profile(q, sigma, steps))


def _profile(q: object, sigma: object, steps: object) -> Callable[[float], float]:
    probability, noise = checks.number(checks.Q, q), checks.number(checks.SIGMA, sigma)
    count = float(checks.whole(checks.STEPS, steps))

    def profile(epsilon: float) -> float:
        try:
            return contour.delta_bounds(probability, noise, count, epsilon)[1]
        except PrecisionError:
            return 1.0

    return profile
