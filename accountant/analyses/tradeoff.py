"""Bounds on attackers who decide between two neighbouring data sets, by the privacy profile.

The attacker sees the release and decides whether a record was used. Every function uses the whole
profile δ(ε) and not one (ε, δ), and bounds all attacks from above. Every ε gives a valid bound, so
the search for the best ε needs no proof.

Each function takes ``profile``: a function of ε >= 0, in nats, that returns an upper bound on
H(ε) = sup over events S of P(S) - e^ε Q(S). *P is the release with the record, Q without* (remove).
``reverse`` is the profile of (Q, P) (add); without it, ``profile`` must bound both directions, as
the larger of the two does, and the answer holds for both. Theorem numbers refer to
docs/theorems_conversions.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from accountant import checks
from accountant._basics import intervals as iv
from accountant.analyses.tradeoff_upper import bounded_above
from accountant.bounds import Bounds
from accountant.checks import Argument
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.search import golden

__all__ = [
    "attack_tpr",
    "bayes_accuracy",
    "membership_advantage",
    "positive_predictive_value",
    "posterior_bound",
    "tradeoff",
    "tradeoff_bounds",
]

Profile: TypeAlias = Callable[[float], float]

FAILURE = Argument(
    "failure",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "It is the share of releases whose posterior may be higher",
)
# The scan of ε that locates the best one, and the golden section that refines it.
SCAN = (0.0, *(2.0**i for i in range(-10, 11)))
REFINEMENTS = 24


@to_nearest
def tradeoff(fpr: object, profile: Profile, *, reverse: Profile | None = None) -> float:
    """Return the trade-off function at ``fpr``: the least false-negative rate of any attack.

    Parameters
    ----------
    fpr : float
        False-positive rate, in [0, 1]: how often the attack accuses a record that was not used.
    profile, reverse : callable
        Upper bounds on the privacy profiles, as in the module's description.

    Returns
    -------
    float
        A lower bound on the false-negative rate, in [0, 1].

    Notes
    -----
    *Guarantee.* No attack with this false-positive rate misses less often (Theorem C16). With
    ``profile`` alone also for attacks that look for the absence of the record.

    *Algorithm.* The largest, over ε found by a scan and a golden section, of 1 - δ(ε) - e^ε fpr and
    e^-ε (1 - δ(ε) - fpr), each rounded down. Some 100 evaluations of the profile.

    Examples
    --------
    >>> perfect = lambda epsilon: 0.0
    >>> tradeoff(0.25, perfect)
    0.75
    """
    return _best(checks.number(checks.FPR, fpr), *_directions(profile, reverse))[0]


@to_nearest
def attack_tpr(fpr: object, profile: Profile, *, reverse: Profile | None = None) -> float:
    """Return the largest true-positive rate of any attack at a false-positive rate.

    Parameters
    ----------
    fpr, profile, reverse
        As in :func:`tradeoff`.

    Returns
    -------
    float
        An upper bound on the true-positive rate, in [0, 1], also accurate if the rate is tiny.

    Notes
    -----
    *Guarantee.* As :func:`tradeoff`: one minus the false-negative rate.

    Examples
    --------
    >>> 1e-6 <= attack_tpr(1e-6, lambda epsilon: 0.0) < 1.0000001e-6
    True
    """
    return _best(checks.number(checks.FPR, fpr), *_directions(profile, reverse))[1]


@to_nearest
def tradeoff_bounds(
    fpr: object,
    profile: Profile,
    profile_lower: Profile,
    *,
    reverse: Profile | None = None,
    reverse_lower: Profile | None = None,
) -> Bounds:
    """Bracket the trade-off function at ``fpr``.

    Parameters
    ----------
    fpr, profile, reverse
        As in :func:`tradeoff`.
    profile_lower, reverse_lower : callable
        Lower bounds on the same exact profiles, as tight as possible.

    Returns
    -------
    Bounds
        ``lower`` is :func:`tradeoff`; some attack misses at most ``upper``.

    Notes
    -----
    *Guarantee.* The trade-off function whose exact profile lies between the callables lies in the
    bracket (Theorems C16 and C18): the lower profile, convex in e^ε, bounds the supremum by the
    secants of four points.

    Examples
    --------
    >>> tradeoff_bounds(0.25, lambda epsilon: 0.0, lambda epsilon: 0.0).lower
    0.75
    """
    x = checks.number(checks.FPR, fpr)
    up, up_back = _directions(profile, reverse)
    down, down_back = _directions(profile_lower, reverse_lower)
    lower, _, best = _best(x, up, up_back)
    return Bounds(lower, max(lower, bounded_above(x, best, (up, up_back), (down, down_back))))


@to_nearest
def membership_advantage(profile: Profile, *, reverse: Profile | None = None) -> float:
    """Return the largest difference of true- and false-positive rate of any attack.

    Parameters
    ----------
    profile, reverse
        As in :func:`tradeoff`.

    Returns
    -------
    float
        An upper bound on the advantage, in [0, 1]: the total variation distance δ(0).

    Notes
    -----
    *Guarantee.* Theorem C19. At ε = 0 both directions have one profile, so the smaller bound holds.

    Examples
    --------
    >>> membership_advantage(lambda epsilon: 0.125)
    0.125
    """
    return min(_checked(profile)(0.0), _checked(reverse or profile)(0.0))


@to_nearest
def bayes_accuracy(prior: object, profile: Profile, *, reverse: Profile | None = None) -> float:
    """Return the largest probability of guessing membership right, given a prior.

    Parameters
    ----------
    prior : float
        Probability that the record was used, before the release; in (0, 1).
    profile, reverse
        As in :func:`tradeoff`.

    Returns
    -------
    float
        An upper bound on the accuracy of the Bayes-optimal guess, which is also the mean over
        releases of the larger posterior. At least max(prior, 1 - prior), the value without release.

    Notes
    -----
    *Guarantee.* No attack guesses better (Theorem C19).

    Examples
    --------
    >>> bayes_accuracy(0.5, lambda epsilon: 0.25)
    0.625
    """
    pi = checks.number(checks.PRIOR, prior)
    likely = iv.of(max(pi, 1.0 - pi)) if pi >= 0.5 else iv.of(1.0) - pi
    unlikely = iv.of(1.0) - likely
    # Only a larger likelihood ratio changes the guess that the prior alone makes.
    log_odds = (iv.log(likely) - iv.log(unlikely)).down()
    way = _checked(profile) if pi < 0.5 else _checked(reverse or profile)
    return min((likely + unlikely * way(max(log_odds, 0.0))).up(), 1.0)


@to_nearest
def posterior_bound(prior: object, failure: object, profile: Profile) -> float:
    """Return a posterior of membership that a release exceeds with probability at most ``failure``.

    Parameters
    ----------
    prior : float
        Probability that the record was used, before the release; in (0, 1).
    failure : float
        In (0, 1): a share of the releases when the record was used.
    profile : callable
        As in :func:`tradeoff`; only this direction matters.

    Returns
    -------
    float
        An upper bound on the posterior probability that the record was used, in [prior, 1].

    Notes
    -----
    *Guarantee.* Of a record that was used, the release gives a Bayesian with this prior a higher
    posterior with probability at most ``failure`` (Theorem C20).

    Examples
    --------
    >>> import math
    >>> pure = lambda epsilon: max(0.0, math.tanh(0.5) - epsilon)
    >>> 0.6 < posterior_bound(0.5, 0.01, pure) < 0.75
    True
    """
    pi, eta = checks.number(checks.PRIOR, prior), checks.number(FAILURE, failure)
    checked = _checked(profile)

    def loose(epsilon: float) -> float:
        share = checked(epsilon) / eta
        return epsilon - math.log1p(-share) if share < 1.0 else math.inf

    best = _search(loose, lambda epsilon: epsilon)
    share = iv.of(checked(best)) / eta
    if not share.upper < 1:
        return 1.0
    # Odds π/(1-π) e^t with t = ε - log(1 - δ/η).
    odds = iv.exp(best) / (1.0 - share) * pi / (iv.of(1.0) - pi)
    return min((1.0 - 1.0 / (odds + 1.0)).up(), 1.0)


@to_nearest
def positive_predictive_value(
    prior: object, fpr: object, profile: Profile, *, reverse: Profile | None = None
) -> float:
    """Return the largest share of right accusations among an attack's accusations.

    Parameters
    ----------
    prior : float
        Probability that a record was used, before the release; in (0, 1).
    fpr, profile, reverse
        As in :func:`tradeoff`.

    Returns
    -------
    float
        An upper bound on π TPR / (π TPR + (1 - π) FPR), in [prior, 1]. At fpr = 0 it is 1, or the
        prior if no attack has a true positive there.

    Notes
    -----
    *Guarantee.* Theorem C16; the value increases with the true-positive rate.

    Examples
    --------
    >>> positive_predictive_value(0.25, 0.5, lambda epsilon: 0.0)
    0.25
    """
    pi, x = checks.number(checks.PRIOR, prior), checks.number(checks.FPR, fpr)
    rate = attack_tpr(x, profile, reverse=reverse)
    if x == 0.0:
        return 1.0 if rate > 0.0 else pi
    # With a = π TPR and b = (1 - π) FPR > 0: 1 - b/(a + b).
    wrong = (iv.of(1.0) - pi) * x
    right = iv.of(pi) * rate
    return min(max((right / (right + wrong)).up(), pi), 1.0)


def _best(x: float, profile: Profile, reverse: Profile) -> tuple[float, float, float]:
    """Return bounds on the false-negative and true-positive rate, and the best ε with a sign.

    The two branches are one concave function of e^ε on all of ℝ: at -ε the profile of (P, Q) is
    1 - e^-ε (1 - H_{Q,P}(ε)).
    """

    def steep(epsilon: float) -> float:
        return _exp(epsilon) * x + profile(epsilon)

    def flat(epsilon: float) -> float:
        return -math.exp(-epsilon) * (1.0 - reverse(epsilon) - x)

    right = _search(steep, lambda epsilon: _exp(epsilon) * x)
    left = _search(flat, lambda epsilon: -math.exp(-epsilon) * (1.0 - x))
    candidates = []
    kept = iv.of(1.0) - profile(right)
    power = iv.exp(right) * x
    candidates.append(((kept - power).down(), (power + profile(right)).up(), right))
    kept = iv.exp(-left) * (iv.of(1.0) - reverse(left) - x)
    candidates.append((kept.down(), (1.0 - kept).up(), -left))
    missed = max(each[0] for each in candidates)
    caught = min(each[1] for each in candidates)
    # Both are equally good where the false-negative rate is not tiny: then the rate decides.
    best = min(candidates, key=lambda each: (each[1], -each[0]))[2]
    return min(max(missed, 0.0), 1.0), min(max(caught, 0.0), 1.0), best


def _search(cost: Callable[[float], float], least: Callable[[float], float]) -> float:
    """Return an ε >= 0 at which ``cost``, unimodal, is nearly least.

    ``least`` increases, and no cost at or beyond an ε is below its value there.
    """
    values = [cost(SCAN[0])]
    for epsilon in SCAN[1:]:
        if least(epsilon) >= min(values):
            break
        values.append(cost(epsilon))
    best = min(range(len(values)), key=values.__getitem__)
    low, high = SCAN[max(best - 1, 0)], SCAN[min(best + 1, len(SCAN) - 1)]
    return min((values[best], SCAN[best]), golden(cost, low, high, REFINEMENTS))[1]


def _exp(x: float) -> float:
    return math.exp(x) if x < 709.0 else math.inf if x == math.inf else 1e308


def _directions(profile: Profile, reverse: Profile | None) -> tuple[Profile, Profile]:
    one = _checked(profile)
    return one, _checked(reverse) if reverse is not None else one


def _checked(profile: Profile) -> Profile:
    checks.function("profile", profile, "ε")
    seen: dict[float, float] = {}

    def checked(epsilon: float) -> float:
        if epsilon in seen:
            return seen[epsilon]
        value = float(profile(epsilon))
        if not 0.0 <= value <= 1.0:
            raise DomainError(
                f"a profile must return probabilities in [0, 1]; got {value!r} at epsilon ="
                f" {epsilon!r}"
            )
        seen[epsilon] = value
        return value

    return checked
