"""Sparse histograms in ball arithmetic, and by the laws of explicit data sets.

Shares no code with the package. ``delta`` evaluates the formulas with python-flint's balls;
``brute_force`` lists every outcome of a histogram on two data sets and sums the hockey-stick.
"""

import itertools
import math
from fractions import Fraction
from functools import cache, lru_cache

import flint
import numpy as np
from flint import acb, arb

from support.oracle import compositions as laws

PRECISION = 220


def _normal_above(z):
    return (z / arb(2).sqrt()).erfc() / 2


@lru_cache(maxsize=512)
def _normaliser(sigma):
    s = arb(sigma)
    reach = math.ceil(24 * sigma) + 2
    total = arb(1)
    for x in range(1, reach):
        total += 2 * (-((arb(x) / s) ** 2) / 2).exp()
    return total


def hidden(kind, scale, threshold, count):
    """Return Pr[count + noise < threshold]."""
    s, gap = arb(scale), arb(threshold) - arb(count)
    if kind == "gaussian":
        return 1 - _normal_above(gap / s)
    if kind == "laplace":
        half = (-abs(gap) / s).exp() / 2
        return 1 - half if gap >= 0 else half
    k = math.ceil(threshold) - round(count)
    if kind == "discrete laplace":
        # Pr[Z >= k] = e^{-k/b} / (1 + e^{-1/b}) for k >= 1, by symmetry below.
        n = k if k >= 1 else 1 - k
        tail = (-arb(n) / s).exp() / (1 + (-1 / s).exp())
        return 1 - tail if k >= 1 else tail
    n = k if k >= 1 else 1 - k
    tail = sum(
        ((-((arb(x) / s) ** 2) / 2).exp() for x in range(n, n + math.ceil(24 * scale) + 2)), arb(0)
    ) / _normaliser(scale)
    return 1 - tail if k >= 1 else tail


@lru_cache(maxsize=4096)
def _law(kind, scale, moved, k):
    """Return the k-fold law of the integers that decide the loss."""
    law = laws.discrete_laplace(scale, moved)
    if kind == "discrete gaussian":
        law = laws.discrete_gaussian(scale, moved, math.ceil(16 * scale) + moved + 1)
    return laws.on_lattice(law, k)


def _positive(value):
    return value.max(arb(0)) if hasattr(value, "max") else max(value, arb(0))


def old_profile(kind, scale, moved, k, x):
    """Return the profile of k noisy counts that move by ``moved``, at any real x."""
    x = arb(x)
    if k == 0:
        return _positive(1 - x.exp())
    if kind == "gaussian":
        mu = arb(k).sqrt() * arb(moved) / arb(scale)
        return _normal_above(x / mu - mu / 2) - x.exp() * _normal_above(x / mu + mu / 2)
    if kind == "laplace":
        return _laplace(arb(moved) / arb(scale), k, x)
    return laws.profile(_law(kind, scale, moved, k), x)


def _laplace(a, k, x):
    if k == 1:
        if x >= a:
            return arb(0)
        return 1 - x.exp() if x <= -a else 1 - ((x - a) / 2).exp()
    assert k == 2
    # One loss is given, the other has the closed form: h(x) = E[h_1(x - L)].
    found = _laplace(a, 1, x - a) / 2 + (-a).exp() / 2 * _laplace(a, 1, x + a)
    # Between -a and a the law has the density e^{(t-a)/2}/4; h_1(x - t) bends at t = x -+ a.
    marks = sorted([-a, a, *(m for m in (x - a, x + a) if -a < m < a)], key=float)
    for low, high in itertools.pairwise(marks):
        middle = x - (low + high) / 2
        if middle >= a:
            continue
        if middle <= -a:
            integrand = lambda t, _: ((t - acb(a)) / 2).exp() / 4 * (1 - (acb(x) - t).exp())
        else:
            integrand = lambda t, _: (
                ((t - acb(a)) / 2).exp() / 4 * (1 - ((acb(x) - t - acb(a)) / 2).exp())
            )
        found += acb.integral(integrand, acb(low), acb(high)).real
    return found


def _worst(values):
    """Return an enclosure of the largest: the largest of the lower and of the upper ends."""
    lows, highs = zip(*((v.lower(), v.upper()) for v in values), strict=True)
    return max(lows), max(highs)


@flint.ctx.workprec(PRECISION)
def delta(kind, scale, threshold, epsilon, *, keys=1, moved=1, minimum=1, replace=False):
    """Return an enclosure of the δ of one sparse histogram (two numbers)."""
    p = hidden(kind, scale, threshold, minimum * moved)
    log_p, e = p.log(), arb(epsilon)
    found = []
    if replace:
        for u, v in itertools.product(range(keys + 1), repeat=2):
            h = old_profile(kind, scale, moved, 2 * keys - u - v, e + (v - u) * log_p)
            found.append(1 - p**u + p**u * h)
        return _worst(found)
    for j in range(keys + 1):
        found.append(1 - p**j + p**j * old_profile(kind, scale, moved, keys - j, e - j * log_p))
        found.append(old_profile(kind, scale, moved, keys - j, e + j * log_p))
    return _worst(found)


@flint.ctx.workprec(PRECISION)
def gaussian_plan(histograms, other_mu2, epsilon):
    """Return an enclosure of the δ of a plan fixed in advance.

    ``histograms`` has rows (releases, keys, moved, scale, threshold), ``other_mu2`` the sum of the
    squared μ of all other Gaussian noise.
    """
    found, e = [], arb(epsilon)
    rows = [
        (t * keys, moved, s, hidden("gaussian", s, tau, moved))
        for t, keys, moved, s, tau in histograms
    ]
    for new in itertools.product(*(range(slots + 1) for slots, *_ in rows)):
        log_p = sum((j * p.log() for j, (_, _, _, p) in zip(new, rows, strict=True)), arb(0))
        mu2 = arb(other_mu2) + sum(
            (
                (slots - j) * arb(moved) ** 2 / arb(s) ** 2
                for j, (slots, moved, s, _) in zip(new, rows, strict=True)
            ),
            arb(0),
        )
        for sign in (-1, 1):
            x = e + sign * log_p
            if mu2 > 0:
                mu = mu2.sqrt()
                h = _normal_above(x / mu - mu / 2) - x.exp() * _normal_above(x / mu + mu / 2)
            else:
                h = _positive(1 - x.exp())
            found.append(1 - log_p.exp() + log_p.exp() * h if sign < 0 else h)
    return _worst(found)


# By the laws of explicit data sets.


def _noise_mass(kind, scale):
    if kind == "discrete laplace":
        lone = math.tanh(0.5 / scale)
        return lambda x: lone * math.exp(-abs(x) / scale)
    total = math.fsum(math.exp(-0.5 * (x / scale) ** 2) for x in range(-400, 401))
    return lambda x: math.exp(-0.5 * (x / scale) ** 2) / total


def key_law(kind, scale, threshold, count, top, minimum=1):
    """Return the law of what is released of one key: hidden, or its value up to ``top``."""
    if count < minimum or count == 0:
        return np.array([1.0] + [0.0] * (top - threshold + 1))
    mass = _noise_mass(kind, scale)
    shown = [mass(x - count) for x in range(threshold, top + 1)]
    return np.array([max(1.0 - math.fsum(shown), 0.0), *shown])


def brute_force(kind, scale, threshold, epsilon, first, second, top, minimum=1):
    """Return the hockey-stick divergence of the histograms of two data sets, given as counts."""
    p, q = np.ones(1), np.ones(1)
    for a, b in zip(first, second, strict=True):
        p = np.multiply.outer(p, key_law(kind, scale, threshold, a, top, minimum)).ravel()
        q = np.multiply.outer(q, key_law(kind, scale, threshold, b, top, minimum)).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


# Plans that depend on outputs.


def adaptive_value(rounds, epsilon, log_p, keys, old, direction):
    """Return the worst δ of a strategy that chooses the number of new keys by the loss so far.

    ``old`` lists the losses of one key that others have, and their probabilities.
    """

    @cache
    def value(left, at):
        if left == 0:
            return max(1.0 - math.exp(at), 0.0)
        best = 0.0
        for j in range(keys + 1):
            stay = math.exp(j * log_p) if direction == 0 else 1.0
            moved = at - j * log_p if direction == 0 else at + j * log_p
            total = 1.0 - stay
            for combination in itertools.product(old, repeat=keys - j):
                chance = math.prod(p for _, p in combination)
                loss = math.fsum(loss for loss, _ in combination)
                total += stay * chance * value(left - 1, round(moved - loss, 12))
            best = max(best, total)
        return best

    return value(rounds, epsilon)


def as_fraction(ball_end):
    """Return an end of an enclosure as an exact number."""
    mantissa, exponent = ball_end.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
