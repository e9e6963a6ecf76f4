"""Write data/shift_mixture.jsonl: profiles of steps whose record shifts the noise at random.

    PYTHONPATH=tests python -m support.oracle.generate_shift_mixture START STOP

appends one line per problem id in [START, STOP) that is not in the file yet. Problem `id` is drawn
from a generator seeded by the id alone; the parameters stored are authoritative. A problem whose
two computations disagree is left out. Line: {id, sigma, shifts, weights, steps, epsilon, direction,
lower, upper, family}; numbers are shortest round-trip decimals, lower and upper decimal strings
with lower <= H(epsilon) <= upper.
"""

import math
import random
import sys
from fractions import Fraction

import mpmath
import numpy as np
from flint import ctx

from support.oracle import stored
from support.oracle.shift_mixture import _loss, line, two_steps
from support.oracle.stored import log_uniform

FAMILIES = ("user", "user", "user", "many", "free", "free", "small-sigma", "rare", "two")


def binomial(q, records, least):
    p = Fraction(q)
    chances = [
        float(math.comb(records, k) * p**k * (1 - p) ** (records - k))
        for k in range(1, records + 1)
    ]
    while len(chances) > 1 and chances[-1] < least:
        chances.pop()
    return [float(k + 1) for k in range(len(chances))], chances


def draw(number):
    rng = random.Random(f"shift mixture {number}")
    family = FAMILIES[number % len(FAMILIES)]
    direction = rng.choice(["remove", "add"])
    if family == "two":
        sigma, n, least = log_uniform(rng, 0.3, 3.0), 2, 1e-12
        shifts, weights = binomial(log_uniform(rng, 1e-4, 0.2), rng.randint(1, 6), least)
    elif family == "free":
        sigma, n = log_uniform(rng, 0.4, 30.0), int(log_uniform(rng, 20, 1e6))
        size, q = rng.randint(1, 7), log_uniform(rng, 1e-3, 0.9)
        shifts = sorted({round(log_uniform(rng, 0.1, 5.0), 3) for _ in range(size)})
        parts = [rng.random() ** 3 + 1e-6 for _ in shifts]
        weights = [q * part / math.fsum(parts) for part in parts]
    else:
        records = rng.randint(2, 100 if family == "many" else 12)
        low, high = {"small-sigma": (0.2, 0.7), "rare": (0.3, 1.5)}.get(family, (0.6, 50.0))
        sigma = log_uniform(rng, low, high)
        n = int(log_uniform(rng, 10, 1e6))
        q = log_uniform(rng, 1e-5, 0.3)
        if family == "rare":
            n, q = int(log_uniform(rng, 5, 1e4)), log_uniform(rng, 1e-7, 1e-4)
        q = min(q, 0.95 - 1e-8 ** (1.0 / records)) if records > 4 else q
        shifts, weights = binomial(q, records, 1e-18)
    return family, direction, sigma, shifts, weights, n, rng.uniform(-4.0, 3.0), rng


def epsilon_at(s, shifts, weights, n, remove, t):
    """(epsilon, rough log of the profile) where the saddle is e^t away from the poles."""
    x = np.linspace(-14 * s, shifts[-1] + 14 * s, 20001)
    loss, base = _loss(s, shifts, weights, x), -x * x / (2 * s * s)
    c = 1 + math.exp(t) if remove else -math.exp(t)
    e = base + c * loss
    w = np.exp(e - e.max())
    log_a = e.max() + math.log(w.sum() * (x[1] - x[0]) / (s * math.sqrt(2 * math.pi)))
    mean, poles = n * (w * loss).sum() / w.sum(), 1 / c + 1 / (c - 1)
    eps = mean - poles if remove else poles - mean
    return eps, n * log_a + (-eps * (c - 1) if remove else eps * c) - math.log(abs(c * (c - 1)))


def solve(number):
    ctx.prec = 200
    family, direction, s, shifts, weights, n, t, rng = draw(number)
    remove, eps = direction == "remove", 0.0
    if rng.random() >= 0.06:
        lo, hi, goal = -9.0, 9.0, -log_uniform(rng, 1.5, 32.0)
        for _ in range(30):
            t = 0.5 * (lo + hi)
            eps, log_delta = epsilon_at(s, shifts, weights, n, remove, t)
            lo, hi = (t, hi) if log_delta > goal else (lo, t)
    if not 0.0 <= eps < 1e4:
        raise ValueError(f"epsilon {eps:.3g}")
    problem = dict(
        sigma=s, shifts=shifts, weights=weights, steps=n, epsilon=eps, direction=direction
    )
    if family != "two":
        ball = line(s, shifts, weights, n, eps, remove, 6000 if family == "rare" else 1500)
        return stored.line(number, problem, ball=ball, family=family)
    low, high = two_steps(s, shifts, weights, eps, remove, 18)
    with mpmath.workdps(40):
        slack = mpmath.mpf(10) ** -20
        ends = mpmath.nstr(low * (1 - slack), 24), mpmath.nstr(high * (1 + slack), 24)
    return stored.line(number, problem, *ends, family=family)


if __name__ == "__main__":
    stored.extend("shift_mixture.jsonl", solve, *sys.argv[1:], seconds=40)
