"""Write data/shift_compositions.jsonl: profiles of compositions of different steps.

    PYTHONPATH=tests python -m support.oracle.generate_shift_compositions START STOP

appends one line per problem id in [START, STOP) that is not in the file yet. Problem `id` is drawn
from a generator seeded by the id alone; the parameters stored are authoritative. A problem whose
two computations disagree is left out. Line: {id, family, parts, epsilon, direction, lower, upper},
a part [sigma, shifts, weights, steps], plain noise without shifts; numbers are shortest round-trip
decimals, lower and upper decimal strings with lower <= H(epsilon) <= upper.
"""

import math
import random
import sys

from flint import ctx

from support.oracle import stored
from support.oracle.generate_shift_mixture import binomial
from support.oracle.shift_compositions import Saddle, line
from support.oracle.stored import log_uniform

FAMILIES = ("users", "users", "plain", "sampled", "free", "several", "few", "one", "far")


def user(rng, steps, most=8, q=(1e-5, 0.2), sigma=(0.5, 8.0)):
    records, chance = rng.randint(2, most), log_uniform(rng, *q)
    if records > 4:
        chance = min(chance, 0.95 - 1e-8 ** (1.0 / records))
    return [log_uniform(rng, *sigma), *binomial(chance, records, 1e-18), steps]


def sampled(rng, steps):
    return [log_uniform(rng, 0.5, 8.0), [1.0], [log_uniform(rng, 1e-4, 0.6)], steps]


def plain(rng, least):
    return [log_uniform(rng, least, 40.0), [], [], rng.randint(1, 6)]


def free(rng, steps):
    size, q = rng.randint(1, 5), log_uniform(rng, 1e-3, 0.9)
    shifts = sorted({round(log_uniform(rng, 0.1, 5.0), 3) for _ in range(size)})
    chances = [rng.random() ** 3 + 1e-6 for _ in shifts]
    return [
        log_uniform(rng, 0.5, 20.0), shifts, [q * c / math.fsum(chances) for c in chances], steps
    ]  # fmt: skip


def draw(number):
    rng = random.Random(f"shift composition {number}")
    family = "rare" if 400 <= number < 600 else FAMILIES[number % len(FAMILIES)]
    direction = rng.choice(["remove", "add"])
    many = lambda most=1e5: int(log_uniform(rng, 10, most))
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
    lo, hi = -9.0, 9.0
    for _ in range(40):
        t = 0.5 * (lo + hi)
        eps, log_delta = saddle.epsilon(t)
        lo, hi = (t, hi) if log_delta > goal else (lo, t)
    return eps


def solve(number):
    ctx.prec = 200
    family, direction, parts, rng = draw(number)
    remove = direction == "remove"
    goal, at_zero = -log_uniform(rng, 1.5, 32.0), rng.random() < 0.06
    eps = 0.0 if at_zero else epsilon_for(Saddle(parts, remove), goal)
    if not 0.0 <= eps < 1e4:
        raise ValueError(f"epsilon {eps:.3g}")
    problem = dict(family=family, parts=parts, epsilon=eps, direction=direction)
    return stored.line(number, problem, ball=line(parts, eps, remove))


if __name__ == "__main__":
    stored.extend("shift_compositions.jsonl", solve, *sys.argv[1:], seconds=30)
