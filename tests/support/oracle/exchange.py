"""Reference privacy profile of composed Poisson-sampled Gaussian steps under replace-one.

P = (1-q) N(0, 1) + q N(m, 1) against Q = (1-q) N(0, 1) + q N(-m, 1), n steps. A(z) = E_Q[(dP/dQ)^z]
and the line are trapezoid sums in ball arithmetic, computed twice with different lines, steps and
cut-offs, which have to agree to 14 digits; the enclosure is widened to the larger of 10^-13 and
1000 times the disagreement. `transform` is A(z) by Arb's integrator, `lattice` brute force for a
few steps.
"""

import itertools
import math

import mpmath
import numpy as np
from flint import acb, arb, ctx
from scipy.special import erfc

DIGITS = 13


class NotConverged(ArithmeticError):
    pass


def _moments(m, q, c):
    """(log A, mean, variance) of the tilted loss, in floating point: no result depends on it."""
    x = np.linspace(-14.0 - m, c * m + 14.0, 20001)
    log_q = math.log(q) - 0.5 * m * m
    up, down = (np.logaddexp(math.log1p(-q), log_q + m * side) for side in (x, -x))
    e = c * up + (1.0 - c) * down - 0.5 * x * x
    w = np.exp(e - e.max())
    log_a = e.max() + math.log(w.sum() * (x[1] - x[0]) / math.sqrt(2.0 * math.pi))
    mean = (w * (up - down)).sum() / w.sum()
    return log_a, mean, (w * (up - down - mean) ** 2).sum() / w.sum()


def _saddle(m, q, n, epsilon):
    """(order, deviation) near the saddle."""
    best = None
    for t in np.arange(-7.0, 5.0, 0.1):
        c = 1.0 + math.exp(t)
        log_a, _, variance = _moments(m, q, c)
        value = n * log_a - epsilon * (c - 1.0) - math.log(c * (c - 1.0))
        if best is None or value < best[0]:
            best = value, c, math.sqrt(n * variance + 1.0 / c**2 + 1.0 / (c - 1.0) ** 2)
    return best[1:]


def transform(m, q, z, reach):
    M, Q = arb(m), arb(q)
    half, rest = M * M / 2, 1 - Q
    front = 1 / (2 * arb.pi()).sqrt()

    def integrand(x, _):
        up = rest + Q * (M * x - half).exp()
        down = rest + Q * (-M * x - half).exp()
        if not (up.real > 0 and down.real > 0):
            return acb(float("nan"))
        return (z * up.log() + (1 - z) * down.log() - x * x / 2).exp() * front

    low, high = -reach - m, float(z.real) * m + reach
    pieces = math.ceil((high - low) / 4.0)
    cuts = [low + (high - low) * i / pieces for i in range(pieces + 1)]
    tight = arb(2) ** (15 - ctx.prec)
    return sum(
        (
            acb.integral(integrand, a, b, rel_tol=tight, abs_tol=tight)
            for a, b in itertools.pairwise(cuts)
        ),
        acb(0),
    )


def _nodes(m, q, c, spacing, reach):
    """U and W - x^2/2 at the nodes, with P = N e^U and Q = N e^W."""
    M, Q, h = arb(m), arb(q), arb(spacing)
    nodes = []
    for k in range(math.floor((-reach - m) / spacing), math.ceil((c * m + reach) / spacing)):
        x = h * k
        up = (1 - Q + Q * (M * x - M * M / 2).exp()).log()
        down = (1 - Q + Q * (-M * x - M * M / 2).exp()).log()
        nodes.append((up - down, down - x * x / 2))
    return nodes


def _sum(m, q, n, epsilon, c, step, spacing, reach, digits):
    """The trapezoid sum over the line at c, until its terms are below 10^-digits of the first."""
    C, E, total, first = arb(c), arb(epsilon), arb(0), None
    front = arb(spacing) / (2 * arb.pi()).sqrt()
    nodes = [
        (loss, (C * loss + rest).exp() * front) for loss, rest in _nodes(m, q, c, spacing, reach)
    ]
    # e^{i step L}, whose powers are the phases.
    turns = [acb(0, arb(step) * loss).exp() for loss, _ in nodes]
    now = [acb(weight) for _, weight in nodes]
    for k in range(4000):
        s = acb(C, arb(step) * k)
        term = sum(now, acb(0)) ** n * (-E * (s - 1)).exp() / (s * (s - 1))
        now = [value * turn for value, turn in zip(now, turns, strict=True)]
        if first is None:
            first = float(abs(term).mid())
            term = term / 2
        total += term.real
        if float(abs(term).mid()) < first * 10.0**-digits:
            return total * arb(step) / arb.pi()
    raise NotConverged


def profile(m, q, n, epsilon):
    """A ball that contains the profile."""
    ctx.prec = 140
    c, deviation = _saddle(m, q, n, epsilon)
    step = min(0.55 / deviation, 2.0 * math.pi * (c - 1.0) / 38.0)
    one = _sum(m, q, n, epsilon, c, step, 0.09 / max(m, 1.0), 11.0, 16)
    other = _sum(
        m, q, n, epsilon, 1.0 + 1.03 * (c - 1.0), 0.93 * step, 0.08 / max(m, 1.0), 12.0, 17
    )
    gap = float(abs(one - other).upper() / abs(one).lower())
    if not gap < 10.0 ** -(DIGITS + 1):
        raise NotConverged(gap)
    return one + abs(one) * arb(0, max(10.0**-DIGITS, 1000.0 * gap))


def two_steps(m, q, epsilon, digits=25):
    """(lower, upper) of the profile of two steps, also where events are rare.

    The profile of one, in closed form, is integrated over the noise of the other with mpmath, twice
    with different panels.
    """
    with mpmath.workdps(digits):
        M, Q, E = mpmath.mpf(m), mpmath.mpf(q), mpmath.mpf(epsilon)
        odds = (1 - Q) / Q * mpmath.exp(M * M / 2)

        def loss(x):
            return mpmath.log1p(Q * mpmath.expm1(M * x - M * M / 2)) - mpmath.log1p(
                Q * mpmath.expm1(-M * x - M * M / 2)
            )

        def tail(x):
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        def integrand(x):
            first = loss(x)
            half = (E - first) / 2
            score = (half + mpmath.asinh(odds * mpmath.sinh(half))) / M
            p, other = ((1 - Q) * tail(score) + Q * tail(score + s * M) for s in (-1, 1))
            density = (1 - Q) * mpmath.npdf(x) + Q * mpmath.npdf(x + M)
            return density * (mpmath.exp(first) * p - mpmath.exp(E) * other)

        # Next to where the first step's loss is all of epsilon the integrand is steep.
        steep = (E / 2 + mpmath.asinh(odds * mpmath.sinh(E / 2))) / M
        low, high = -14 - M, 14 + 2 * M
        found = []
        for parts, ratio in ((11, 4), (14, 5)):
            edges = [low + (high - low) * mpmath.mpf(i) / parts for i in range(parts + 1)]
            near = [mpmath.mpf(ratio) ** -k for k in range(14)]
            edges += [steep, *(steep + side * d for d in near for side in (-1, 1))]
            found.append(mpmath.quad(integrand, sorted(edges), maxdegree=5))
        gap = 100 * abs(found[0] - found[1]) + abs(found[0]) * mpmath.mpf(10) ** -14
        if not gap < abs(found[0]) * mpmath.mpf(10) ** -9:
            raise NotConverged(gap)
        return found[0] - gap, found[0] + gap


def lattice(m, q, n, epsilon, points=1 << 16):
    """(lower, upper) of the profile of n steps.

    All mass of a small cell of the noise is given the loss at its upper end, rounded up to a
    lattice, or that at its lower end, rounded down. Of losses far above all is counted that they
    gain alone and, in full, all that the other steps could gain, or they are lowered; those far
    below are raised, or dropped. The error of the Fourier transforms is far below the slack.
    """
    reach = 6.0 * epsilon
    x = np.linspace(-m - 9.0, m + 9.0, 400_001)
    log_q = math.log(q) - 0.5 * m * m
    up, down = (np.logaddexp(math.log1p(-q), log_q + m * side) for side in (x, -x))
    loss, root = up - down, math.sqrt(2.0)
    below = (1.0 - q) * erfc(-x / root) / 2.0 + q * erfc((m - x) / root) / 2.0
    above = (1.0 - q) * erfc(x / root) / 2.0 + q * erfc((x - m) / root) / 2.0
    mass = np.where(x[1:] < 0.0, np.diff(below), -np.diff(above))
    step = 2.0 * reach / points
    ends = []
    for side in (0, 1):
        at = np.ceil(loss[1:] / step + 1e-6) if side else np.floor(loss[:-1] / step - 1e-6)
        index = np.clip(at, -points // 2, points // 2).astype(np.int64) + points // 2
        kept = np.where(at < points // 2 if side else at >= -points // 2, mass, 0.0)
        law = np.bincount(index, weights=kept, minlength=points + 1)
        size = 1 << math.ceil(math.log2(n * (points + 1)))
        total = np.fft.irfft(np.fft.rfft(law, size) ** n, size)[: n * points + 1]
        losses = (np.arange(len(total)) - n * (points // 2)) * step
        ends.append(float(np.dot(total, -np.expm1(np.minimum(epsilon - losses, 0.0)))))
    others = (n - 1) * float(np.dot(mass, -np.expm1(-np.maximum(loss[1:], 0.0))))
    far = np.ceil(loss[1:] / step + 1e-6) >= points // 2
    gain = float(np.dot(mass[far], others - np.expm1(epsilon - loss[1:][far])))
    slack = 1e-12
    return ends[0] - slack, ends[1] + n * (gain + float(below[0] + above[-1])) + slack
