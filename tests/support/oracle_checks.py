"""What a core answers wrongly: against the stored oracle problems, in decimal arithmetic with zero
tolerance, and against itself.

The functions take the core to judge, so that test_core_mutants.py can hand them broken ones.
"""

import json
import math
import random
from decimal import Decimal
from pathlib import Path

from accountant._core import answers

DATA = Path(__file__).parent / "data"
DIRECTION = {"remove": answers.REMOVE, "add": answers.ADD}


def stored(name):
    with (DATA / name).open() as lines:
        return [json.loads(line) for line in lines]


PROFILE = stored("psg_profile.jsonl")
RENYI = stored("psg_renyi.jsonl")


def largest_double_below(x):
    value = float(x)
    return value if Decimal(value) <= x else math.nextafter(value, -math.inf)


def smallest_double_above(x):
    value = float(x)
    return value if Decimal(value) >= x else math.nextafter(value, math.inf)


def problem(row):
    return row["q"], row["sigma"], float(row["steps"])


def deltas_around(row):
    """Doubles just below and just above the profile, within an ulp of its enclosure."""
    below = largest_double_below(Decimal(row["lower"]))
    return below, smallest_double_above(Decimal(row["upper"]))


def disjoint(bracket, row):
    """Whether the bracket misses the stored enclosure, or is no bracket at all."""
    lower, upper = map(Decimal, bracket)
    return not (lower <= Decimal(row["upper"]) and upper >= Decimal(row["lower"]))


def wrong_deltas(core, rows):
    """Rows whose bracket on delta misses the enclosure of the truth."""
    for row in rows:
        direction = DIRECTION[row["direction"]]
        if disjoint(core.delta_bounds(*problem(row), row["epsilon"], direction), row):
            yield row


def wrong_epsilons(core, rows):
    """Rows where epsilon just below the profile's delta is too small, or just above it too large.

    epsilon(delta) does not increase, so at ``below`` it is at least the stored epsilon and at
    ``above`` at most.
    """
    for row in rows:
        direction = DIRECTION[row["direction"]]
        below, above = deltas_around(row)
        if (
            below > 0.0
            and not (core.epsilon_bounds(*problem(row), below, direction)[1] >= row["epsilon"])
        ) or (
            above < 1.0
            and not (core.epsilon_bounds(*problem(row), above, direction)[0] <= row["epsilon"])
        ):
            yield row


def wrong_divergences(core, rows):
    """Rows whose bracket on the Rényi divergence misses the enclosure of the truth."""
    for row in rows:
        direction = DIRECTION[row["direction"]]
        if disjoint(core.renyi_bounds(row["q"], row["sigma"], row["alpha"], direction), row):
            yield row


def claimed_tight(q, sigma, steps, delta, epsilon):
    """The domain where docs/accuracy.md claims a relative width in epsilon of at most 1e-9.

    Either participation is not rare at all, or the run is a typical one.
    """
    wanted = q >= 1e-6 and epsilon >= 1e-3 and delta <= 0.1 and steps >= 50
    frequent = steps * q >= 300.0 and steps * q * q >= 0.3
    typical = q >= 1e-3 and sigma >= 0.4 and steps * q >= 30.0 and delta >= 1e-15
    return wanted and (frequent or typical)


Problem = tuple[float, float, float, float]  # q, sigma, steps, delta


def random_problems(seed, n):
    """Problems over the whole range; half of them with a power of ten of steps."""
    draw = random.Random(seed)

    def log_uniform(low, high):
        return min(max(math.exp(draw.uniform(math.log(low), math.log(high))), low), high)

    for i in range(n):
        steps = float(10 ** draw.randint(0, 12)) if i % 2 else float(round(log_uniform(1.0, 1e12)))
        q = draw.choice([1.0 - 1e-12, 1.0, 0.5]) if i % 20 == 0 else log_uniform(1e-9, 1.0)
        yield q, log_uniform(0.2, 100.0), steps, log_uniform(1e-30, 0.9)


def contradictions(core, problems):
    """What no bracket of the truth can do, problem by problem."""
    remove, add, either = core.REMOVE, core.ADD, core.EITHER
    for q, sigma, steps, delta in problems:
        problem = q, sigma, steps, delta
        lower, upper = core.epsilon_bounds(q, sigma, steps, delta, either)
        if not 0.0 <= lower <= upper < math.inf:
            yield f"no bracket: {lower}, {upper}", problem
            continue
        # The profile does not increase: beyond the upper end of epsilon it is at most delta.
        at_upper = core.delta_bounds(q, sigma, steps, upper, either)
        at_lower = core.delta_bounds(q, sigma, steps, lower, either)
        for low, high in (at_upper, at_lower):
            if not 0.0 <= low <= high <= 1.0:
                yield f"no bracket on delta: {low}, {high}", problem
        if not at_upper[0] <= delta:
            yield "delta(upper end of epsilon) is above delta", problem
        if not (lower == 0.0 or at_lower[1] >= delta):
            yield "delta(lower end of epsilon) is below delta", problem
        # Either direction alone is at most both, and one of them attains it.
        ways = [core.epsilon_bounds(q, sigma, steps, delta, way) for way in (remove, add)]
        if not (max(low for low, _ in ways) <= upper and lower <= max(high for _, high in ways)):
            yield f"either is {lower}, {upper}, the directions are {ways}", problem
        ways = [core.delta_bounds(q, sigma, steps, upper, way) for way in (remove, add)]
        if at_upper != (max(low for low, _ in ways), max(high for _, high in ways)):
            yield "delta of either is not the larger of the directions", problem
