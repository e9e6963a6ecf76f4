"""Write data/shift_mixture_renyi.jsonl: Rényi divergences of noise that a record shifts at random.

    PYTHONPATH=tests python -m support.oracle.generate_shift_mixture_renyi START STOP

appends one line per problem id in [START, STOP) that is not in the file yet. Problem `id` is drawn
from a generator seeded by the id alone; the parameters stored are authoritative. A problem that the
integrator does not enclose to 18 digits within 20 seconds is left out. Line: {id, sigma, shifts,
weights, order, direction, lower, upper, family}; the first weight is what the others leave of one,
and stored as the nearest double; lower and upper are decimal strings.
"""

import itertools
import math
import random
import sys
from fractions import Fraction

from support.oracle import stored
from support.oracle.shift_mixture_renyi import divergence
from support.oracle.stored import log_uniform

FAMILIES = ("user", "user", "free", "free", "present", "present", "far", "wide", "tiny")


def draw_order(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return 1.0 + log_uniform(rng, 1e-12, 0.1)
    if kind == 1:
        return float(rng.randint(2, 64))
    if kind == 2:
        return log_uniform(rng, 1e3, 1e9)
    return 1.0 + log_uniform(rng, 0.1, 100.0)


def draw(number):
    rng = random.Random(f"shift mixture renyi {number}")
    family = FAMILIES[number % len(FAMILIES)]
    add, order, sigma = rng.random() < 0.5, draw_order(rng), log_uniform(rng, 0.3, 30.0)
    if family == "user":
        records, q = rng.randint(2, 30), Fraction(log_uniform(rng, 1e-6, 0.5))
        chances = [
            math.comb(records, k) * q**k * (1 - q) ** (records - k) for k in range(records + 1)
        ]
        weights = [float(w) for w in chances if w > 1e-40]
        shifts = [float(k) for k in range(len(weights))]
    else:
        size = rng.randint(1, 5)
        gaps = [round(log_uniform(rng, 0.05, 3.0), 3) for _ in range(size)]
        shifts = list(itertools.accumulate(gaps, initial=0.0))
        parts = [log_uniform(rng, 1e-9, 1.0) for _ in shifts]
        if family == "present":
            shifts = [d + gaps[0] for d in shifts]
        if family == "far":
            sigma = log_uniform(rng, 1e-3, 0.3)
        if family == "wide":
            sigma = log_uniform(rng, 30.0, 1e4)
        if family == "tiny":
            parts = [1.0, *(part * 10.0 ** -rng.randint(20, 130) for part in parts[1:])]
        weights = [part / math.fsum(parts) for part in parts]
    weights[0] = float(1 - sum(map(Fraction, weights[1:])))
    return family, add, sigma, shifts, weights, order


def solve(number):
    family, add, sigma, shifts, weights, order = draw(number)
    found = divergence(sigma, shifts, weights, order, add)
    if not (found.is_finite() and found.rad() < abs(found.mid()) * 1e-18):
        raise ValueError("not enclosed")
    problem = dict(sigma=sigma, shifts=shifts, weights=weights, order=order)
    problem["direction"] = "add" if add else "remove"
    return stored.line(number, problem, ball=found, family=family)


if __name__ == "__main__":
    stored.extend("shift_mixture_renyi.jsonl", solve, *sys.argv[1:], seconds=20)
