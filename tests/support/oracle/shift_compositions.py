"""Reference privacy profile of different steps, each with one shift or a random one.

A part is (sigma, shifts, weights, steps): P = w_0 N(0, s^2) + sum of w_j N(d_j, s^2) against
Q = N(0, s^2), w_0 what the weights leave of one. Without shifts it is plain noise, N(1, s^2)
against N(0, s^2).

The contour integral of shift_mixture.py with the product of the parts' transforms, in ball
arithmetic: a trapezoid sum on a vertical line, each transform by a trapezoid sum over real noise,
the plain one in closed form. Discretisation and truncation are judged by a second computation with
another line, other steps and cut-offs, which has to agree to 18 digits; the enclosure is widened to
the larger of 10^-17 and 1000 times the disagreement.
"""

import contextlib
import math
import random
from fractions import Fraction

import numpy as np
from flint import acb, arb, ctx

from support.draws import between
from support.oracle.composed import ball

DIGITS = 18
NATS = 48.0
# Balls of complex numbers that are turned grow at every turn: they are made anew so often.
TURNS = 16
MOST_POINTS = 60_001
# Shares of the first step along a line: the losses of rare large shifts reach far.
CLOSER = (1.0, 0.45, 0.2)


class NotConverged(ArithmeticError):
    pass


class Disagreed(NotConverged):
    """Two lines do not agree, which shorter steps may mend."""


def _noise(s, shifts, weights, c=1.0):
    """(losses, logarithms of the density of Q) at points of the noise, in floating point.

    Up to where e^{c loss} has its weight; None where that is too far.
    """
    weights = [float(w) for w in weights]
    always = math.fsum(weights) >= 1.0  # losses without a lower end
    first = -14 * s - (max(-c, 0.0) * shifts[-1] if always else 0.0)
    last = max(c, 1.0) * shifts[-1] + 14 * s
    points = max(8001, int((last - first) / s / 0.1))
    if points > MOST_POINTS:
        return None
    x = np.linspace(first, last, points)
    e = [np.log(w) + d * (2 * x - d) / (2 * s * s) for d, w in zip(shifts, weights, strict=True)]
    e.append(np.full_like(x, math.log(max(1.0 - math.fsum(weights), 1e-300))))
    base = math.log((x[1] - x[0]) / (s * math.sqrt(2 * math.pi))) - x * x / (2 * s * s)
    return np.logaddexp.reduce(np.array(e), axis=0), base


class Saddle:
    """Cumulants of the total loss, in floating point: no result depends on them."""

    def __init__(self, parts, remove):
        self.remove = remove
        self.parts = [(s, n, _noise(s, d, w) if len(d) else None) for s, d, w, n in parts]
        self.given = parts

    def _parts(self, c):
        """The parts, with as much of the noise as matters at c."""
        for (s, n, noise), (_, d, w, _) in zip(self.parts, self.given, strict=True):
            far = noise is not None and max(c - 1.0, -c) * d[-1] > 4.0 * s
            yield s, n, _noise(s, d, w, c) if far else noise, noise is not None

    def at(self, t):
        """(c, log A, mean, variance) at the distance e^t from the poles."""
        c = 1 + math.exp(t) if self.remove else -math.exp(t)
        log_a = mean = var = 0.0
        for s, n, noise, shifted in self._parts(c):
            if shifted and noise is None:
                return c, math.inf, math.inf, math.inf
            if noise is None:
                log_a += n * c * (c - 1) / (2 * s * s)
                mean += n * (2 * c - 1) / (2 * s * s)
                var += n / (s * s)
                continue
            loss, base = noise
            e = base + c * loss
            w = np.exp(e - e.max())
            total = w.sum()
            one = (w * loss).sum() / total
            log_a += n * (e.max() + math.log(total))
            mean += n * one
            var += n * (w * (loss - one) ** 2).sum() / total
        return c, log_a, mean, var

    def epsilon(self, t):
        """(epsilon, rough log of the profile) of the saddle point there."""
        c, log_a, mean, var = self.at(t)
        poles = 1 / c + 1 / (c - 1)
        eps = mean - poles if self.remove else poles - mean
        lead = -eps * (c - 1) if self.remove else eps * c
        spread = var + 1 / c**2 + 1 / (c - 1) ** 2
        return eps, log_a + lead - math.log(abs(c * (c - 1))) - 0.5 * math.log(2 * math.pi * spread)

    def find(self, eps):
        """(rough log of the profile, c, spread) at eps: a coarse search, then a fine one."""
        coarse = np.arange(min(-9.0, -math.log(max(abs(eps), 1.0))), 9.0, 0.5)
        *_, t = self._least(eps, coarse)
        return self._least(eps, t + np.arange(-0.5, 0.55, 0.05))[:3]

    def _least(self, eps, exponents):
        # Convex along the line, but where the orders are too high to tell.
        best = None
        for t in exponents:
            c, log_a, _, var = self.at(t)
            lead = -eps * (c - 1) if self.remove else eps * c
            value = log_a + lead - math.log(abs(c * (c - 1)))
            if best is None or value < best[0]:
                best = value, c, math.sqrt(var + 1 / c**2 + 1 / (c - 1) ** 2), t
        return best


class Transform:
    """A(c + i k ht), k = 0, 1, ..., of the part's steps, over A(c)."""

    def __init__(self, part, c, ht, fine, steps):
        s, shifts, weights, self.n = part
        self.plain = not len(shifts)
        self.s, self.c, self.ht = ball(s), arb(c), arb(ht)
        if self.plain:
            self.log_a = self.c * (self.c - 1) / (2 * self.s**2)
            return
        hx = fine * s * 0.11 * min(1.0, 3 * s / shifts[-1] + 0.25)
        z = math.sqrt(2 * (NATS + 40 + math.log(steps)))
        low, far = z * s + max(-c, 0.0) * shifts[-1], max(c, 1.0) * shifts[-1] + z * s
        step, two = arb(hx), 2 * self.s**2
        pairs = [(ball(d), ball(w)) for d, w in zip(shifts, weights, strict=True)]
        rest = 1 - sum((w for _, w in pairs), arb(0))
        self.weight, self.turn, self.losses = [], [], []
        for j in range(math.floor(-low / hx), math.ceil(far / hx) + 1):
            x = step * j
            loss = sum((w * ((2 * x - d) * d / two).exp() for d, w in pairs), rest).log()
            self.weight.append(acb((self.c * loss - x * x / two).exp()))
            self.losses.append(loss)
            self.turn.append(acb(0, self.ht * loss).exp())
        self.start = self.weight
        self.whole = sum(self.weight, acb(0))
        self.log_a = (self.whole.real * step / (self.s * (2 * arb.pi()).sqrt())).log()

    def next(self, k):
        """The value at k, asked for in order from 1."""
        if self.plain:
            y = self.ht * k
            return (self.n * acb(-y * y, y * (2 * self.c - 1)) / (2 * self.s**2)).exp()
        if k % TURNS:
            self.weight = [a * b for a, b in zip(self.weight, self.turn, strict=True)]
        else:
            turns = (acb(0, self.ht * k * loss).exp() for loss in self.losses)
            self.weight = [a * b for a, b in zip(self.start, turns, strict=True)]
        return (sum(self.weight, acb(0)) / self.whole) ** self.n


def _sum(parts, eps, remove, c, ht, fine, most):
    transforms = [Transform(part, c, ht, fine, sum(p[3] for p in parts)) for part in parts]
    E, C, HT = arb(eps), arb(c), arb(ht)
    sign, lead = (-E, E) if remove else (E, arb(0))
    front = (sum((t.n * t.log_a for t in transforms), arb(0)) + sign * C + lead).exp()
    total = 1 / (C * (C - 1)) / 2
    first, quiet = abs(float(total)), 0
    for k in range(1, most):
        z = acb(C, HT * k)
        value = acb(0, sign * HT * k).exp()
        for transform in transforms:
            value *= transform.next(k)
        term = value / (z * (z - 1))
        total += term.real
        quiet = quiet + 1 if float(term.abs_upper()) < math.exp(-NATS) * first else 0
        if quiet == 6:
            return front * total * HT / arb.pi()
    raise NotConverged("slow decay")


def line(parts, eps, remove, most=8000):
    """An enclosure of H(eps), as a ball."""
    value, c, spread = Saddle(parts, remove).find(eps)
    b = abs(c - 1) if remove else abs(c)
    # Aliases fall as e^{-2 pi d/h} within distance d < b of the line.
    step = min(2 * math.pi * 0.6 * b / (NATS + 20), math.pi / (spread * math.sqrt(2 * NATS)) * 0.55)
    with ctx.workprec(160 + int(1.5 * abs(value))):
        for closer in CLOSER[:-1]:
            with contextlib.suppress(Disagreed):
                return _agreed(parts, eps, remove, b, closer * step, most)
        return _agreed(parts, eps, remove, b, CLOSER[-1] * step, most)


def _agreed(parts, eps, remove, b, step, most):
    """What two lines agree on."""
    found = []
    for shift, fine in ((1.0, 1.0), (0.9, 0.83)):
        ht = fine * step * min(1.0, shift)
        found.append(
            _sum(parts, eps, remove, 1 + b * shift if remove else -b * shift, ht, fine, most)
        )
    one, two = found
    if not abs(two).lower() > 0:
        raise NotConverged("not above zero")
    apart = float(abs(one - two).upper() / abs(two).lower())
    if not apart < 10.0**-DIGITS:
        raise Disagreed(f"disagreement {apart:.1e}")
    return one + arb(0, (abs(one) * arb(max(1e-17, 1000 * apart))).upper())


# Problems, each drawn from its number alone.


def too_long(*_):
    raise ArithmeticError("took too long")


FAMILIES = ("users", "users", "plain", "sampled", "free", "several", "few", "one", "far")


def binomial(q, records, least):
    p = Fraction(q)
    chances = [
        float(math.comb(records, k) * p**k * (1 - p) ** (records - k))
        for k in range(1, records + 1)
    ]
    while len(chances) > 1 and chances[-1] < least:
        chances.pop()
    return [float(k + 1) for k in range(len(chances))], chances


def user(rng, steps, most=8, q=(1e-5, 0.2), sigma=(0.5, 8.0)):
    records, chance = rng.randint(2, most), between(rng, *q)
    if records > 4:
        chance = min(chance, 0.95 - 1e-8 ** (1.0 / records))
    return [between(rng, *sigma), *binomial(chance, records, 1e-18), steps]


def sampled(rng, steps):
    return [between(rng, 0.5, 8.0), [1.0], [between(rng, 1e-4, 0.6)], steps]


def plain(rng, least):
    return [between(rng, least, 40.0), [], [], rng.randint(1, 6)]


def free(rng, steps):
    size, q = rng.randint(1, 5), between(rng, 1e-3, 0.9)
    shifts = sorted({round(between(rng, 0.1, 5.0), 3) for _ in range(size)})
    chances = [rng.random() ** 3 + 1e-6 for _ in shifts]
    return [
        between(rng, 0.5, 20.0), shifts, [q * c / math.fsum(chances) for c in chances], steps
    ]  # fmt: skip


def draw(number):
    """Problem ``number``: its family, direction and parts, and the coins for the rest."""
    rng = random.Random(f"shift composition {number}")
    family = "rare" if 400 <= number < 600 else FAMILIES[number % len(FAMILIES)]
    direction = rng.choice(["remove", "add"])
    many = lambda most=1e5: int(between(rng, 10, most))
    if family == "users":
        parts = [user(rng, many()), user(rng, many())]
    elif family == "plain":
        parts = [rng.choice([user, free])(rng, many()), plain(rng, 1.0)]
    elif family == "sampled":
        parts = [rng.choice([user, free])(rng, many()), sampled(rng, many())]
    elif family == "free":
        parts = [free(rng, many()), free(rng, many())]
    elif family == "several":
        kinds = [user, free, sampled]
        parts = [rng.choice(kinds)(rng, many(1e4)) for _ in range(rng.randint(3, 5))]
        parts.append(plain(rng, 2.0))
    elif family == "few":
        parts = [rng.choice([user, free])(rng, rng.randint(1, 5)), plain(rng, 0.5)]
    elif family == "rare":
        parts = [user(rng, many(1e4), 8, (1e-7, 1e-3), (0.4, 2.0))]
        parts.append(plain(rng, 1.0) if rng.random() < 0.7 else free(rng, many(1e4)))
        if rng.random() < 0.4:
            parts.append(sampled(rng, many(1e3)))
    elif family == "one":
        parts = [rng.choice([user, free])(rng, 1), sampled(rng, many())]
    else:
        parts = [user(rng, many(1e3), 60, (1e-4, 0.1)), user(rng, many(1e3), 20)]
    return family, direction, parts, rng


def epsilon_for(saddle, goal):
    """Where a saddle's rough profile has the logarithm ``goal``."""
    lo, hi = -9.0, 9.0
    for _ in range(40):
        t = 0.5 * (lo + hi)
        eps, log_delta = saddle.epsilon(t)
        lo, hi = (t, hi) if log_delta > goal else (lo, t)
    return eps
