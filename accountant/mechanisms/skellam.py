"""Skellam noise on an integer: the difference of two Poisson counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from accountant import checks
from accountant._basics.rounding import U, up
from accountant.errors import UnsupportedError
from accountant.mechanisms.discrete import IntegerNoise, IntegerPair
from accountant.pairs.atoms import Atoms
from accountant.pairs.base import DominatingPair
from accountant.relations import NeighbouringRelation

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
VARIANCE = checks.positive(
    "variance", "It is that of all the noise in the sum: survivors times the variance of each"
)
MOST_VARIANCE = 1e9
LEAST_VARIANCE = 1e-300  # below it noise that is not 0 has a mass that is negligible
FARTHEST = 4096  # sensitivities that are listed though the noise does not reach so far
LEAST_LOG = -760.0  # of the masses that are listed; all others together are below the doubles
BITS = 128  # of the fixed-point ratios


@dataclass(frozen=True, repr=False)
class Skellam(IntegerNoise):
    """Skellam noise on one integer: the difference of two Poisson counts of equal means.

    Parameters
    ----------
    variance : float
        Of the noise, > 0: twice the mean of each count. Skellam noises add up to Skellam noise, so
        for a secure sum this is the sum of the variances of those who surely add theirs.
    sensitivity : int, optional
        How far one record (or one client) can move the integer, >= 0.
    relation : NeighbouringRelation, keyword only
        As in :class:`~accountant.mechanisms.gaussian.Gaussian`.

    Notes
    -----
    *Guarantee.* The pair of two integers ``sensitivity`` apart, attained
    (docs/theorems_mechanisms.md, Theorem M21).

    *Source.* Agarwal, Kairouz, Liu 2021, who bound its Rényi divergence.

    Examples
    --------
    A hundred clients of whom at least eighty stay, each with noise of variance 2.

    >>> import accountant as ac
    >>> round_of_a_federation = ac.Skellam(80 * 2.0)
    >>> f"{(1000 * round_of_a_federation).epsilon(1e-6):.3f}"
    '14.450'
    """

    theorems = ("M21",)
    about = "Skellam noise on one integer: the difference of two Poisson counts of equal means."

    # The ratios I_{k+1}/I_k of successive masses are below one: unimodal (Theorem M21).
    numbers = (VARIANCE,)

    variance: float
    sensitivity: int = field(default=1, kw_only=True)
    relation: NeighbouringRelation = field(default=ADD_OR_REMOVE, kw_only=True)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the one pair, which is its own reverse by reflection."""
        return (SkellamPair(self.variance, int(self.distance)),)


@dataclass(frozen=True)
class SkellamPair(IntegerPair):
    """Skellam laws around ``shift`` and around 0."""

    variance: float
    shift: int

    def _from(self, further: int) -> Atoms:
        variance, shift = self.variance, self.shift
        if variance < LEAST_VARIANCE:
            return _without_noise(variance, shift, further > 0)
        reach = _reach(variance)
        if not (variance <= MOST_VARIANCE and shift <= max(reach, FARTHEST)):
            raise UnsupportedError(
                f"Skellam must have a variance of at most {MOST_VARIANCE:g} and a sensitivity"
                f" within reach of the noise; got variance = {variance!r} and sensitivity"
                f" {shift}"
            )
        log_mass, error = _log_masses(variance, reach + shift + further)
        x = np.arange(-reach - further, reach + shift + 1)
        log_p, log_q = log_mass[np.abs(x - shift)], log_mass[np.abs(x)]
        # The ratio of a log-concave law and its shift increases: so does its running maximum, which
        # is as close to the truth as the ratios are.
        loss = np.maximum.accumulate(log_p - log_q).astype(np.float64)
        p, q = (np.exp(log.astype(np.float64)) for log in (log_p, log_q))
        largest = float(np.abs(log_mass[-1]))
        return Atoms(
            loss, p, q, 0.0, 0.0, error + (2.0 * largest + 8.0) * U,
            2.0 * error + 2.0 * U * float(np.abs(loss).max()), 4e-323,
        )  # fmt: skip

    def finite_rdp(self, order: float) -> float:
        """Return the divergence, rounded up; of high orders the bound by one Poisson count."""
        if self.shift == 0 or _is_listed(self.variance, self.shift, order):
            return super().finite_rdp(order)
        return _poisson_rdp(0.5 * self.variance, self.shift, order)


def _without_noise(variance: float, shift: int, centred: bool) -> Atoms:
    """Return the two outcomes that are left when the noise is all but surely 0, or -Δ, 0 and Δ."""
    # P{X = Δ} = (V/2)^Δ/Δ!·(1 + O(V²)): almost nothing, but not nothing.
    loss = shift * (math.log(2.0) - math.log(variance)) + math.lgamma(shift + 1.0)
    least = math.exp(-loss)
    losses, p, q = [-loss, loss], [least, 1.0], [1.0, least]
    if centred:
        losses, p, q = [-loss, *losses], [0.0, *p], [least, *q]
    return Atoms(
        np.array(losses), np.array(p), np.array(q),
        0.0, 0.0, 8.0 * U + 64.0 * U * min(loss, 1e3), 64.0 * U * loss,
    )  # fmt: skip


def _log_tail(variance: float, k: float) -> float:
    """Bound log P{X >= k} (Chernoff)."""
    ratio = k / variance
    # √(1 + r²) - 1 without cancellation.
    return k * (ratio / (1.0 + math.hypot(1.0, ratio))) - k * math.asinh(ratio)


def _is_listed(variance: float, shift: int, order: float) -> bool:
    """Whether outcomes that are in no atom add less than e^-100 to E[e^{αL}] (Theorem M21)."""
    if variance < LEAST_VARIANCE:
        return False
    k, power = _reach(variance), (order - 1.0) * shift
    most = 1.0 + 2.0 * (k + shift) / variance  # P/Q to the power 1/Δ, k beyond the centre
    return (
        power * (2.0 / variance) / most <= 0.99 * math.asinh(k / variance)
        and power * math.log(most) + _log_tail(variance, float(k)) <= -101.0
    )


def _poisson_rdp(mean: float, shift: int, order: float) -> float:
    """Bound the divergence by that of one of the two counts, moved by ``shift`` (Theorem M21)."""
    power = (order - 1.0) * shift
    if not power < 1e300:
        return math.inf
    low, high = -60.0, math.log(700.0)
    for _ in range(60):  # a mere choice
        middle = 0.5 * (low + high)
        s = math.exp(middle)
        low, high = (middle, high) if s * (shift + mean * math.exp(s)) < power else (low, middle)
    s = math.exp(low)
    # Logarithms one by one: the mean may be below all quotients.
    logs = shift * (math.log(power) - math.log(s) - math.log(mean) - 1.0)
    rest = (s * shift + mean * math.expm1(s)) / (order - 1.0)
    size = shift * (abs(math.log(power)) + abs(math.log(s)) + abs(math.log(mean)) + 1.0) + rest
    return max(up(logs + rest + 32.0 * U * size), 0.0)


def _reach(variance: float) -> int:
    """Return an integer beyond which all masses are below e^LEAST_LOG (Chernoff's bound)."""
    high = 1.0
    while _log_tail(variance, high) > LEAST_LOG - 1.0:  # a unit for the rounding of the bound
        high *= 1.1
    return math.ceil(high)


def _log_masses(variance: float, largest: int) -> tuple[np.ndarray, float]:
    """Return log P(k) for k = 0..largest, and a bound on the errors.

    The ratios r_k = I_{k+1}/I_k of successive masses satisfy r_k = 1 / (r_{k+1} + 2(k+1)/V)
    (V the variance). Backwards the recursion forgets where it starts: an error at k + 1 is
    multiplied by at most r_k² < 1 up to second order. It runs in integers, in units of 2^-bits.
    """
    bits = BITS + 2 * max(0, math.ceil(-math.log2(variance)))
    one = 1 << bits
    numerator, denominator = variance.as_integer_ratio()
    start = largest + 64 + math.ceil(math.sqrt(max(1600.0, 4.0 * variance)))
    ratio, forgotten = one >> 1, 1.0  # the true one is in (0, 1)
    ratios = np.empty(largest)
    for k in range(start, -1, -1):
        ratio = (one << bits) // (ratio + 2 * (k + 1) * denominator * one // numerator)
        if k >= largest:
            forgotten *= (ratio / one) ** 2
        else:
            ratios[k] = ratio / one
    # Two quotients are cut by less than a unit each, the first times r_k² < 1: less than 2·start
    # units in all. The start is off by less than 1/2, and 1/(r + c) moves by at most twice what its
    # derivative says while r is off by so little.
    steps = np.log(ratios.astype(np.longdouble))
    log = np.concatenate([np.zeros(1, np.longdouble), np.cumsum(steps)])
    total = np.longdouble(1.0) + 2.0 * np.exp(log[1:]).sum()
    log -= np.log(total)
    unit = float(np.finfo(np.longdouble).eps)
    least = float(ratios.min(initial=1.0))
    in_ratio = (forgotten + 8.0 * start * 2.0**-bits) / least + 2.0 * U
    size = float(np.abs(log[-1])) + 1.0
    error = largest * (in_ratio + 2.0 * unit * size) + 8.0 * unit * size
    # The total's error is at most that of the masses in it.
    return log, 2.0 * error
