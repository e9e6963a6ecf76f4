"""Noisy votes, GNMax, Confident-GNMax and LNMax, and bounds on them that use how clear a vote was.

What the data-dependent bounds return depends on the votes, that is, on private data. It is no
guarantee for a ledger, and must not be published as it stands: see
:func:`~accountant.learn.pate.release_data_dependent_epsilon`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.checks import Argument
from accountant.errors import DomainError
from accountant.learn.validation import private
from accountant.mechanisms import Gaussian, PureDP, ReportNoisyMax
from accountant.mechanisms.base import Described, Mechanism
from accountant.mechanisms.fields import set_fields
from accountant.noise import Grid, SecureGenerator
from accountant.noise.exact_samplers import rounded_laplace
from accountant.relations import NeighbouringRelation

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
ROOT_2_UP = math.nextafter(math.sqrt(2.0), 2.0)


VOTES = Argument("votes", "integers >= 0", lambda x: x >= 0, "They count teachers, by class")
LOG_Q = Argument("log_q", "a number <= 0", lambda x: x <= 0.0, "It is the logarithm of q")
SIGMA = checks.SCALE.renamed("sigma")
# A log q below this one is replaced by it, which is on the safe side.
LEAST_LOG = -700.0
LARGEST_LOG = 600.0  # Nor is a bound of use whose exponentials are larger than e to this.
SLACK = 1e-12  # The library functions and the few dozen operations below lose a smaller share.
# The grid of the noise is no coarser: of Gaussian noise in units of sigma, of Laplace in votes.
STEP = 2.0**-30
LAPLACE_STEP = 2.0**-20


def vote_table(votes: object) -> FloatArray:
    """Return counts as a float64 matrix of shape (queries, classes), checked."""
    counts = np.asarray(private(checks.count, VOTES, votes), dtype=np.float64)
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
    if max(first, exponent) > LARGEST_LOG:
        return plain
    second = math.exp(exponent)
    # Errors of the exponents, and of the power.
    error = second * (1.0 + abs(logq) + (alpha - 1.0) * (e1 + abs(logq)))
    error += alpha * power * (abs(logq) + e2) / (1.0 - power)
    return min(_combined(first, second, alpha, (q + power) / (1.0 - power), error), plain)


def _combined(first: float, second: float, alpha: float, share: float, error: float) -> float:
    """Return log(e^first + second)/(alpha - 1), rounded up by errors in units of 64 roundings.

    ``share`` is how much the two logarithms in ``first`` round, ``error`` how much all else.
    """
    error += alpha * share * math.exp(max(first, 0.0))
    excess = math.expm1(first) + second
    return math.log1p(max(excess, 0.0) + 64.0 * U * error) / (alpha - 1.0) * (1.0 + SLACK)


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
    plain = min(PureDP(epsilon).rdp(alpha), epsilon)
    if epsilon > 300.0 or not (logq + math.log1p(math.exp(epsilon)) < -1e-9):
        return plain
    q, grown = math.exp(logq), math.exp(logq + epsilon)
    if not (grown < 1.0 - 1e-9):
        return plain
    first = alpha * math.log1p(-q) - (alpha - 1.0) * math.log1p(-grown)
    exponent = logq + epsilon * (alpha - 1.0)
    if max(first, exponent) > LARGEST_LOG:
        return plain
    second = math.exp(exponent)
    error = second * (1.0 + abs(logq) + epsilon * alpha)
    return min(_combined(first, second, alpha, (q + grown) / (1.0 - grown), error), plain)


class _Aggregator(Described):
    """What aggregators share: here, of those that answer every query."""

    relation: NeighbouringRelation

    @property
    def _share(self) -> float:
        # The mechanism doubles its sensitivity under replace-one; one vote moves all the same.
        return 0.5 if self.relation is NeighbouringRelation.REPLACE_ONE else 1.0

    @property
    def test_mechanism(self) -> Mechanism | None:
        """The cost of one threshold test; None without a threshold."""
        return None

    def is_clear(
        self, counts: FloatArray, generator: SecureGenerator, offset: FloatArray | float = 0.0
    ) -> bool:
        """Test whether the largest count, less a public ``offset``, reaches the threshold."""
        return True


@dataclass(frozen=True, repr=False)
class GNMax(_Aggregator):
    """The class with the largest count after Gaussian noise; with a threshold, Confident-GNMax.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise on every count.
    threshold : int, optional
        Answer only if the largest count, with noise of its own, reaches it.
    threshold_sigma : float, optional
        Standard deviation of that noise; needed with a threshold.
    relation : NeighbouringRelation, keyword only
        Under which one record reaches one teacher: add-or-remove (or zero-out), and replace-one if
        a record's replacement stays with its teacher, as it does in shards by position.

    Notes
    -----
    *Guarantee.* One record moves one vote, hence two counts by one: a Gaussian mechanism of
    sensitivity √2, whatever else the records do to that teacher; the threshold test has sensitivity
    1 (docs/theorems_selection.md, Theorem P9).
    """

    sigma: float
    threshold: int | None = None
    threshold_sigma: float | None = None
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        set_fields(self, sigma=checks.number(SIGMA, self.sigma))
        if (self.threshold is None) != (self.threshold_sigma is None):
            raise DomainError("threshold and threshold_sigma must be given together")
        if self.threshold is not None:
            checks.integer("threshold", self.threshold, 0)
            name = SIGMA.renamed("threshold_sigma")
            set_fields(self, threshold_sigma=checks.number(name, self.threshold_sigma))

    @property
    def answer_mechanism(self) -> Mechanism:
        """The cost of one answer."""
        return Gaussian(self.sigma, sensitivity=ROOT_2_UP * self._share, relation=self.relation)

    @property
    def test_mechanism(self) -> Mechanism | None:
        """The cost of one threshold test; None without a threshold."""
        if self.threshold_sigma is None:
            return None
        return Gaussian(self.threshold_sigma, sensitivity=self._share, relation=self.relation)

    def winner(self, counts: FloatArray, generator: SecureGenerator) -> int:
        """Return the noisy winner of one vote."""
        return int(np.argmax(_gaussian(counts, self.sigma, generator)))

    def is_clear(
        self, counts: FloatArray, generator: SecureGenerator, offset: FloatArray | float = 0.0
    ) -> bool:
        """Test whether the largest count, less a public ``offset``, reaches the threshold."""
        if self.threshold is None or self.threshold_sigma is None:
            return True
        largest = np.array([np.max(counts - offset)])
        return bool(_gaussian(largest, self.threshold_sigma, generator)[0] >= self.threshold)

    def data_dependent_rdp(self, counts: NDArray[np.int64], order: float) -> float:
        """Bound the divergence of one answer, given the votes: private, see the module's bounds."""
        log_q = float(log_probability_of_another(counts, self.sigma)[0])
        return gaussian_data_dependent_rdp(log_q, self.sigma, order)


@dataclass(frozen=True, repr=False)
class LNMax(_Aggregator):
    """The class with the largest count after Laplace noise.

    Parameters
    ----------
    scale : float
        Scale of the noise on every count.
    relation : NeighbouringRelation, keyword only
        As in :class:`GNMax`.

    Notes
    -----
    *Guarantee.* 2/scale-differential privacy for each answer (Papernot et al. 2017), by noise on
    the integers' own grid, which is finer (docs/theorems_selection.md, Theorems P3 and P9).
    """

    scale: float
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)
    threshold: ClassVar[None] = None

    def __post_init__(self) -> None:
        set_fields(self, scale=checks.number(checks.SCALE, self.scale))

    @property
    def answer_mechanism(self) -> Mechanism:
        """The cost of one answer."""
        return ReportNoisyMax(
            self.scale, "laplace", sensitivity=self._share, relation=self.relation
        )

    def winner(self, counts: FloatArray, generator: SecureGenerator) -> int:
        """Return the noisy winner of one vote."""
        steps = 1.0 / LAPLACE_STEP
        noise = rounded_laplace(generator, counts.size, self.scale * steps)
        return int(np.argmax(counts * steps + noise))

    def data_dependent_rdp(self, counts: NDArray[np.int64], order: float) -> float:
        """Bound the divergence of one answer, given the votes: private, see the module's bounds."""
        log_q = float(log_probability_of_another(counts, self.scale, noise="laplace")[0])
        return laplace_data_dependent_rdp(log_q, self.scale, order)


def _gaussian(counts: FloatArray, sigma: float, generator: SecureGenerator) -> FloatArray:
    # Counts are integers, and the step divides one: they are on the grid as they are.
    grid = Grid.at_most(min(sigma * STEP, 1.0))
    return grid.release_gaussian(counts, sigma, generator)
