"""Write data/exchange.jsonl: profiles of Poisson-sampled Gaussian steps under replace-one.

    PYTHONPATH=tests python -m support.oracle.generate_exchange START STOP

appends one line per problem id in [START, STOP) that is not in the file yet. Problem `id` is drawn
from a generator seeded by the id alone; the parameters stored are authoritative. A problem whose
two computations disagree is left out. Line: {id, distance, q, steps, epsilon, lower, upper}.
"""

import math
import random
import sys

from support.oracle import stored
from support.oracle.exchange import _moments, profile
from support.oracle.stored import log_uniform


def draw(number):
    rng = random.Random(f"exchange {number}")
    distance, q = log_uniform(rng, 0.1, 3.0), log_uniform(rng, 1e-3, 0.95)
    steps = int(log_uniform(rng, 2.0, 1e6))
    _, mean, variance = _moments(distance, q, 1.0 + log_uniform(rng, 0.03, 10.0))
    epsilon = float(max(steps * mean - rng.random() * math.sqrt(steps * variance), 0.0))
    return dict(distance=distance, q=q, steps=steps, epsilon=epsilon)


def solve(number):
    problem = draw(number)
    found = profile(*problem.values())
    if not 1e-250 < float(found.mid()) < 0.9:
        raise ValueError("outside the range of delta")
    return stored.line(number, problem, ball=found)


if __name__ == "__main__":
    stored.extend("exchange.jsonl", solve, *sys.argv[1:])
