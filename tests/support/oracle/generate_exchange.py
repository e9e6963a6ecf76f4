"""Write data/exchange.jsonl: profiles of Poisson-sampled Gaussian steps under replace-one.

    PYTHONPATH=tests python -m support.oracle.generate_exchange START STOP

appends one line per problem id in [START, STOP) that is not in the file yet. Problem `id` is drawn
from a generator seeded by the id alone; the parameters stored are authoritative. A problem whose
two computations disagree is left out. Line: {id, distance, q, steps, epsilon, lower, upper}.
"""

import json
import math
import pathlib
import random
import sys

from support.oracle.exchange import NotConverged, _moments, profile
from support.oracle.moments import enclosing_decimals

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "exchange.jsonl"


def log_uniform(rng, a, b):
    return math.exp(rng.uniform(math.log(a), math.log(b)))


def draw(number):
    rng = random.Random(f"exchange {number}")
    distance, q = log_uniform(rng, 0.1, 3.0), log_uniform(rng, 1e-3, 0.95)
    steps = int(log_uniform(rng, 2.0, 1e6))
    _, mean, variance = _moments(distance, q, 1.0 + log_uniform(rng, 0.03, 10.0))
    epsilon = float(max(steps * mean - rng.random() * math.sqrt(steps * variance), 0.0))
    return distance, q, steps, epsilon


def main(start, stop):
    known = set()
    if OUT.exists():
        known = {json.loads(line)["id"] for line in OUT.read_text().splitlines()}
    for number in range(start, stop):
        if number in known:
            continue
        distance, q, steps, epsilon = draw(number)
        try:
            found = profile(distance, q, steps, epsilon)
        except (NotConverged, OverflowError, ZeroDivisionError):
            print("left out", number, draw(number), file=sys.stderr)
            continue
        lower, upper = enclosing_decimals(found)
        if not 1e-250 < float(found.mid()) < 0.9:
            continue
        row = {
            "id": number, "distance": distance, "q": q, "steps": steps, "epsilon": epsilon,
            "lower": lower, "upper": upper,
        }  # fmt: skip
        with OUT.open("a") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
