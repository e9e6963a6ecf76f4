"""Write tests/support/data/psg_renyi.jsonl: enclosures of one-step Renyi divergences.

    PYTHONPATH=tests python -m support.oracle.generate_renyi START STOP

Every line is an object {id, q, sigma, alpha, direction, lower, upper}; q, sigma
and alpha are exact doubles (shortest round-trip decimals), lower <= D_alpha <=
upper are decimal strings from a ball-arithmetic enclosure (see moments.py), of
relative width below 1e-27.  The draw is seeded by the line number.
"""

import math
import random
import sys

from support.oracle import stored
from support.oracle.moments import renyi


def draw(i):
    rng = random.Random(f"renyi-{i}")
    q = 10 ** rng.uniform(-9, 0)
    s = 10 ** rng.uniform(math.log10(0.2), 2)
    alpha = 1 + 10 ** rng.uniform(-6, 4)
    kind = i % 16
    if kind == 0:
        q = rng.choice([1.0, 1 - 1e-6, 0.5, 0.9, 0.25, 1 - 1e-12])
    elif kind == 1:
        alpha = float(rng.choice([2, 3, 4, 8, 16, 32, 64, 128, 256, 1024]))
    elif kind == 2:
        s = 10 ** rng.uniform(math.log10(0.2), math.log10(0.5))
    elif kind == 3:  # both bumps of the integrand count: alpha near 2 s^2 log(1/q)
        alpha = max(1.001, 1 + 2 * s * s * math.log(1 / q) * rng.uniform(0.7, 1.3))
    elif kind == 4:
        alpha = 1 + 10 ** rng.uniform(2, 4)
    alpha = min(alpha, 1e4)
    direction = "add" if rng.random() < 0.4 else "remove"
    return dict(q=q, sigma=s, alpha=alpha, direction=direction)


def solve(number):
    problem = draw(number)
    return stored.line(number, problem, ball=renyi(*problem.values()))


if __name__ == "__main__":
    stored.extend("psg_renyi.jsonl", solve, *sys.argv[1:])
