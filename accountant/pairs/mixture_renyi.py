"""The Rényi divergence of Gaussian noise with a random shift, from above.

The trapezoid sum of Theorem D20 of docs/theorems_mixtures.md, and the closed forms beside it. With
u_j = d_j (2x - d_j) / 2σ², S = Σ w_j e^{u_j} = e^L and N the density of the noise, A(c) is the
integral of N S^c: log A(α)/(α - 1) is the divergence of the shifted noise from the noise, and
log A(1 - α)/(α - 1) the reverse. Both σ and the shifts are in units of a power of two.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import TINY, U, up
from accountant.pairs.base import GaussianMixture
from accountant.pairs.excess import exps_minus_linear

# What one call of a function of NumPy is trusted to, with a reserve: tests/test_intervals.py.
CALL = 16.0 * U
# Relative error of a term of second order but for that of the loss: a difference of two functions
# enlarges their errors at most nine times.
SECOND = 40.0 * CALL
# The log of 1 over the relative error that a sum is planned for. Its true error is always added.
DIGITS = 36.0
# Above this log A a sum of N e^{cL} has enough digits; below, its part of second order is summed.
LARGE = 0.5
# A sum takes at most this many exponentials, some 0.1 s; beyond, the closed forms answer.
MOST_WORK = 2_000_000
# The weight of no shift is what the others leave, if that is more.
LEAST_REST = 1e-9
# The least weight that is summed, and the largest relative error of weights.
LEAST_WEIGHT = 2e-280
MOST_ERROR = 9e-7
# Orders, and shifts and noise relative to each other, for which nothing overflows on the way.
MOST_ORDER = 1e140
RANGE = 1e60
# Exponents up to it are not taken out of e^L, so that e^L - 1 does not cancel where L is tiny.
FAR = 300.0
# Turns of the terms against each other at the edge of the strip, tried for the reversed pair.
TURNS = (3.1, 2.4, 1.4, 1.0, 0.6, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)


class Mixture(NamedTuple):
    """Shifts, increasing and ≥ 0, with weights; relative errors of the first one and the others."""

    sigma: float
    shifts: FloatArray
    weights: FloatArray
    first_error: float
    weight_error: float


@lru_cache(maxsize=1024)
def mixture_rdp(part: GaussianMixture, order: float) -> float:
    """Return an upper bound on D_order of the pair; infinite where none is known.

    Parameters
    ----------
    part : GaussianMixture
        The pair (P, Q), or its reverse. Without ``remainder``; what it stands for is infinite loss
        in P against Q, and left out.
    order : float
        > 1.

    Notes
    -----
    *Guarantee.* Theorems D8(a) and D20: weights and shifts are rounded up, the quadrature's error
    and all round-off are inside. About 1e-12 above the divergence where the sum is computed.
    """
    law = _law(part)
    if law is None:
        return math.inf
    upper = divergence_upper(law[0], order, reverse=part.add)
    return up(upper + law[1], 2.0) if part.add and law[1] else upper


@lru_cache(maxsize=64)
def _law(part: GaussianMixture) -> tuple[Mixture, float] | None:
    """Return a law at least as far from Q, and what unlisted weight adds in the reversed pair."""
    wide = part.weight_error + 4.0 * U if part.weight_error or part.remainder else 0.0
    slip = part.shift_error + 2.0 * U if part.shift_error else 0.0
    shifts = [shift * (1.0 + slip) for shift in part.shifts]
    weights = [max(weight * (1.0 + wide), LEAST_WEIGHT) for weight in part.weights]
    rest = math.fsum([1.0, *(-weight for weight in weights)])
    if rest > LEAST_REST:
        # The rest is the weight of no shift, with what is not listed.
        shifts, weights = [0.0, *shifts], [rest, *weights]
        first_error, error, base = 2.0 * U, 0.0, rest
    elif part.no_shift > LEAST_WEIGHT:
        base = max(part.no_shift, *part.weights)
        error = first_error = wide + 4.0 * U + 1.01 * part.remainder / base
        shifts, weights = [0.0, *shifts], [part.no_shift, *part.weights]
    else:
        # No weight is left for no shift; what may be is moved to the least one (Theorem D8).
        weights, base = list(part.weights), part.weights[0]
        error = wide + 4.0 * U
        doubt = max(math.fsum([1.0, *(-weight * (1.0 - error) for weight in weights)]), 0.0)
        first_error = error + 1.01 * doubt / base
    if not (max(first_error, error) <= MOST_ERROR and part.remainder <= 1e-3 * base):
        return None
    unlisted = up(part.remainder / (base - part.remainder))
    columns = np.array(shifts), np.array(weights)
    return Mixture(part.noise_multiplier, *columns, first_error, error), unlisted


def divergence_upper(mixture: Mixture, order: float, *, reverse: bool) -> float:
    """Return an upper bound on D_order(P‖Q), Q the noise alone, or with ``reverse`` on D(Q‖P).

    Parameters
    ----------
    mixture : Mixture
        The law of the shift. The exact weights add up to one.
    order : float
        > 1.
    reverse : bool
        Whether the pair is reversed.

    Notes
    -----
    *Guarantee.* Theorem D20, with all round-off inside: about 1e-12 above the divergence where the
    sum is computed, and infinite where an argument is outside the domain.
    """
    if not (_is_lawful(mixture) and 1.0 < order < MOST_ORDER):
        return math.inf
    mantissa, exponent = math.frexp(mixture.sigma)
    law = mixture._replace(sigma=mantissa, shifts=np.ldexp(mixture.shifts, -exponent))
    if law.shifts[-1] == 0.0:
        return 0.0
    c = 1.0 - order if reverse else order
    known = _closed_form(law, c, order - 1.0)
    if len(law.shifts) > 1 and known < math.inf:
        second, size = known < LARGE, known
        for _ in range(3):  # once more where the sum is smaller than was known
            digits = DIGITS - math.log(max(min(size, 1.0), TINY))
            found = _by_sum(law, c, second=second, digits=digits)
            known, size = min(known, found.log_mgf), found.sum
            if not second and known < LARGE:
                second, size = True, known
            elif found.is_fine or not second:
                break
    return math.nextafter(known / (order - 1.0) * (1.0 + 8.0 * U), math.inf)


def _is_lawful(mixture: Mixture) -> bool:
    """Tell whether all numbers are within their domain, and weights add up to one."""
    sigma, shifts, weights, first, other = mixture
    errors = 0.0 <= first <= 1e-6 and 0.0 <= other <= 1e-6
    if not (1e-100 < sigma < 1e100 and errors and len(shifts) == len(weights) >= 1):
        return False
    relative = (shifts if shifts[0] else shifts[1:]) / sigma
    ordered = bool(np.all(np.diff(shifts) > 0.0) and np.all(relative > 1 / RANGE))
    if not (ordered and np.all(relative < RANGE) and np.all((weights > 1e-280) & (weights <= 1.0))):
        return False
    total = math.fsum(weights)
    return abs(total - 1.0) <= 1.01 * ((2.0 + len(weights)) * U + max(first, other)) * total


def _errors(law: Mixture) -> float:
    return max(law.first_error, law.weight_error) + (len(law.shifts) + 64.0) * U


def _closed_form(law: Mixture, c: float, t: float) -> float:
    """Bound log A without a sum: by Minkowski's inequality, or convexity and single shifts."""
    power = t if c > 1.0 else t * (1.0 + t)
    with np.errstate(over="ignore"):
        exponents = power * (0.5 * (law.shifts / law.sigma) ** 2)
    top = float(exponents[-1])
    if not top < math.inf:
        return math.inf
    rest = math.log(math.fsum(law.weights * np.exp(exponents - top)))
    if top + rest < 1.0:  # a logarithm next to 0 that does not cancel
        excess = math.fsum(law.weights * np.expm1(exponents))
        # The weights' errors are those of what remains beside the first.
        convex = math.log1p(excess * (1.0 + 2.0 * _errors(law) + 4.0 * CALL))
    else:
        convex = top + rest + _errors(law) + 4.0 * CALL * (1.0 + top - rest)
    if c > 1.0:
        return c * convex * (1.0 + CALL)
    single = -t * np.log(law.weights) * (1.0 + CALL) + exponents * (1.0 + CALL) + t * _errors(law)
    return min(convex * (1.0 + CALL), float(single.min()))


class _Sum(NamedTuple):
    log_mgf: float
    sum: float  # A - 1, or A in units of its largest term
    is_fine: bool  # whether all errors but those of the terms are negligible


NO_SUM = _Sum(math.inf, math.nan, is_fine=True)


def _by_sum(law: Mixture, c: float, *, second: bool, digits: float) -> _Sum:
    """Bound log A by the trapezoid rule over nodes k h: the sum, and all that it may lack."""
    h, log_lattice = _strip(law, c, digits, second=second)
    nodes, log_left_out = _nodes(law, c, h, digits, second=second)
    if nodes is None or not log_lattice < -2.0:
        return NO_SUM
    x = nodes * h
    loss, doubt = _losses(law, x)
    still = x * x * (0.5 / law.sigma**2)
    unit = h / (law.sigma * math.sqrt(2.0 * math.pi))
    shift = 0.0 if second else float((c * loss - still).max())
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite says nothing
        terms, errors = (_of_second_order if second else _powers)(c, loss, doubt, still, shift)
    total, doubtful = unit * math.fsum(terms), unit * math.fsum(errors)
    error = 8.0 * CALL * total + math.exp(min(log_left_out - shift, 700.0))
    if second:
        # N (c - 1 - c e^L), which is entire, has an error of its own.
        ratio = math.pi * law.sigma / h
        error += 2.1 * (1.0 + 2.0 * abs(c)) * math.exp(-2.0 * ratio * ratio)
    share = math.exp(log_lattice)
    error += share / (1.0 - share) * (total + error + doubtful + (1.0 if second else 0.0))
    most = total + 1.01 * (error + doubtful)
    if not TINY < total <= most < math.inf:
        return NO_SUM
    if second:
        return _Sum(math.log1p(most) * (1.0 + CALL), total, error <= 1e-12 * total)
    value = shift + math.log(most)
    return _Sum(value + CALL * (abs(shift) + abs(value)), total, error <= 1e-12 * total)


def _strip(law: Mixture, c: float, digits: float, *, second: bool) -> tuple[float, float]:
    """Return the spacing, and the log of the lattice's error relative to A (D20(a), (b))."""
    sigma, spread = law.sigma, float(law.shifts[-1] - law.shifts[0]) * (1.0 + 4.0 * U)
    choices = [(math.inf if c == math.floor(c) else 0.999 * math.pi, 0.0)]
    if c < 0.0:
        choices = [(turn, c * math.log(math.cos(0.5 * turn * (1.0 + 1e-12)))) for turn in TURNS]
    best = (0.0, math.inf)
    for turn, factor in choices:
        height = min(turn * sigma**2 / spread, sigma * math.sqrt(2.0 * digits))
        rise = 0.5 * (height / sigma) ** 2 + factor + math.log(2.0)
        h = 2.0 * math.pi * height / (digits + rise)
        if second:
            h = min(h, math.pi * sigma * math.sqrt(2.0 / (digits + math.log(2.0 + 4.0 * abs(c)))))
        mantissa, exponent = math.frexp(h)  # with four digits, so that nodes are exact
        h = math.ldexp(math.floor(mantissa * 16.0) / 16.0, exponent)
        if h > best[0]:
            fall = 2.0 * math.pi * height / h * (1.0 - 1e-12)
            best = h, rise - fall - math.log1p(-math.exp(-fall)) + 1e-9 if fall > 1.0 else math.inf
    return best


def _nodes(
    law: Mixture, c: float, h: float, digits: float, *, second: bool
) -> tuple[FloatArray | None, float]:
    """Return the k of the nodes k h to sum over, and the log of a bound on all other terms.

    N e^{cL} is at most a sum of normal densities about c d_j or, for c < 0, log-concave about its
    mode. What a term of second order has besides is at most densities about 0, or about the shifts.
    """
    sigma, reach = law.sigma, math.sqrt(2.0 * digits) + 1.0
    if c > 1.0:
        exponents = (c - 1.0) * (0.5 * (law.shifts / sigma) ** 2)
        powers = exponents + np.log(law.weights)
        top = float(powers.max())
        height = c * (top + math.log(math.fsum(np.exp(powers - top))))
        least = max(0.0, float((c * powers).max()))  # a single shift's part of log A
        reach = math.sqrt(2.0 * (digits + max(height - least, 0.0))) + 1.0
        centres, more, besides = c * law.shifts, np.zeros(1), math.log(c)
    else:
        mode, slope, height = _mode(law, c)
        if not slope < 0.1:
            return None, math.inf
        centres, more, besides = np.array([mode]), law.shifts, math.log(1.0 - c)
    height += abs(c) * _errors(law) + 1e-6 + 1e-10 * abs(height)
    if second:
        centres, height = np.append(centres, more), math.log(math.exp(height) + math.exp(besides))
    first = np.floor((centres - reach * sigma) / h)
    last = np.ceil((centres + reach * sigma) / h)
    place = np.argsort(first)
    first, last = first[place], np.maximum.accumulate(last[place])
    first[1:] = np.maximum(first[1:], last[:-1] + 1.0)
    count = float(np.maximum(last - first + 1.0, 0.0).sum())
    exact = max(abs(float(first[0])), abs(float(last[-1]))) < 2.0**48
    if not (exact and count * len(law.shifts) <= MOST_WORK and h <= sigma):
        return None, math.inf
    nodes = np.concatenate([np.arange(a, b + 1.0) for a, b in zip(first, last, strict=True)])
    # The nodes beyond r deviations add at most twice e^{-r^2/2} of a normal density.
    return nodes, height + math.log(2.0) - 0.5 * (reach - 0.5) ** 2


def _mode(law: Mixture, c: float) -> tuple[float, float, float]:
    """Return about the mode of N e^{cL}, c < 0, and there the slope in deviations and the log."""

    def at(x: float) -> tuple[float, float]:
        u = law.shifts * (2.0 * x - law.shifts) * (0.5 / law.sigma**2) + np.log(law.weights)
        top = float(u.max())
        shares = np.exp(u - top)
        whole = float(shares.sum())
        return top + math.log(whole), float(shares @ law.shifts) / whole

    low, high = c * float(law.shifts[-1]), 0.0
    for _ in range(100):
        x = 0.5 * (low + high)
        if x > c * at(x)[1]:
            high = x
        else:
            low = x
    loss, shift = at(x)
    slope = (abs(c * shift - x) + 1e-10 * abs(x)) / law.sigma
    return x, slope, c * loss - 0.5 * (x / law.sigma) ** 2 + 0.5 * slope**2


def _losses(law: Mixture, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return L at the nodes, and bounds on its errors.

    u_j carries 5 units of itself, and one of it and of the largest once that is taken off; sums of
    n terms n units of the sum of their moduli; then the logarithm.
    """
    u = law.shifts * (2.0 * x[:, np.newaxis] - law.shifts) * (0.5 / law.sigma**2)
    top = u.max(axis=1)
    parts = law.weights * np.exp(u - top[:, np.newaxis])
    total, angle = parts.sum(axis=1), (np.abs(u) * parts).sum(axis=1)
    rest, adds = np.log(total), (len(law.shifts) + 8.0) * U + CALL
    errors = max(law.first_error, law.weight_error)
    far = top + rest
    far_error = 1.01 * (adds + errors + 6.5 * U * angle / total) + CALL * np.abs(rest)
    far_error += 3.0 * U * np.abs(top)
    off = law.weights * np.expm1(np.minimum(u, FAR))
    excess = np.maximum(off.sum(axis=1), -0.9)
    near = np.log1p(excess)
    # Where the first shift is 0 its term is: the weight's error is nothing.
    errors = errors if law.shifts[0] else law.weight_error
    whole = np.exp(np.minimum(top, FAR)) * angle
    near_error = 1.01 * ((adds + errors) * np.abs(off).sum(axis=1) + 6.5 * U * whole)
    near_error = near_error / (1.0 + excess) + CALL * np.abs(near)
    is_near = (top < FAR) & (excess > -0.5)
    return np.where(is_near, near, far), np.where(is_near, near_error, far_error)


def _powers(
    c: float, loss: FloatArray, doubt: FloatArray, still: FloatArray, shift: float
) -> tuple[FloatArray, FloatArray]:
    """Return the terms e^{cL - x²/2σ² - shift}, and bounds on their errors."""
    terms = np.exp(c * loss - still - shift)
    relative = abs(c) * doubt + CALL
    relative += U * (16.0 + 8.0 * still + 4.0 * np.abs(c * loss) + 2.0 * abs(shift))
    return terms, terms * np.expm1(1.01 * relative)


def _of_second_order(
    c: float, loss: FloatArray, doubt: FloatArray, still: FloatArray, shift: float
) -> tuple[FloatArray, FloatArray]:
    """Return the terms e^{-x²/2σ²} G, G = e^{cL} - 1 - c (e^L - 1), and bounds on their errors.

    They are sums of positive ones: with E2(z) = e^z - 1 - z and c = 1 + t, G is
    e^L (E2(tL) + t E2(-L)), and E2(cL) - c E2(L) for c < 0. An error of L moves G by what D20 says.
    """
    alone, lifted, tilted = np.exp(-still), np.exp(loss - still), np.exp(c * loss - still)
    if c > 1.0:
        t, z, base = c - 1.0, (c - 1.0) * loss, lifted
        other = np.where(loss > 1.0, lifted * (loss - 1.0) + alone, lifted * _e2(-loss))
        other = np.where(loss < -1.0, alone - lifted * (1.0 - loss), other)
        rate = c * np.where(np.abs(z) > 1.0, np.abs(tilted - lifted), lifted * np.abs(_expm1(z)))
    else:
        t, z, base = -c, c * loss, alone
        other = np.where(loss > 1.0, lifted - (1.0 + loss) * alone, alone * _e2(loss))
        rate = np.where(z > 1.0, tilted, alone * np.abs(_expm1(z)))
        rate = t * (rate + np.where(loss > 1.0, lifted, alone * np.abs(_expm1(loss))))
    main = np.where(z > 1.0, tilted - (1.0 + z) * base, base * _e2(z))
    terms = main + t * other
    twice = doubt * (1.0 + abs(c))
    errors = terms * (SECOND + U * (40.0 * still + 48.0 * (1.0 + abs(c)) * np.abs(loss)))
    errors += doubt * (rate * (1.0 + CALL) + 2.0 * twice * abs(c) * (alone + lifted + tilted))
    errors += 1e-315 * (1.0 + abs(c)) * (1.0 + np.abs(loss))
    # Beyond this the expansion in the error of L says nothing.
    return terms, np.where(twice < 0.01, errors, math.inf)


def _expm1(z: FloatArray) -> FloatArray:
    return np.asarray(np.expm1(np.minimum(z, 1.0)))


def _e2(z: FloatArray) -> FloatArray:
    """Return e^z - 1 - z for z <= 1."""
    return exps_minus_linear(np.minimum(z, 1.0))
