"""Writes the questions and answers on which all languages must agree: ``make_cases.py FILE``.

The questions are drawn from a fixed seed. The answers are those of this machine's Python package.
A line holds the name of a function of accountant.h without its prefix, its arguments, ``=``, the
status and the answer. Numbers are hexadecimal doubles; an array follows its length.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from accountant._core import answers as core
from accountant.analyses import mixed
from accountant.errors import DomainError, PrecisionError

SEED = 20
OK, DOMAIN, PRECISION, UNBOUNDED = 0, -1, -3, -4
Numbers = list[float]


def log_uniform(draw: Random, low: float, high: float) -> float:
    """Draw a number between the two, its logarithm uniform."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


class Question:
    """Arguments of any of the functions, drawn at random; some are at an end of their domain."""

    def __init__(self, draw: Random) -> None:
        rare = draw.random() < 0.1
        self.q = draw.choice([0.0, 1.0, 1e-300]) if rare else log_uniform(draw, 1e-6, 1.0)
        self.sigma = draw.choice([0.02, 1e6, math.inf]) if rare else log_uniform(draw, 0.4, 20.0)
        self.steps = float(draw.choice([0, 1, 2, 10**9])) if rare else self._count(draw, 1e5)
        self.delta = draw.choice([1e-300, 0.5, 1e-5, log_uniform(draw, 1e-12, 1e-2)])
        self.epsilon = draw.choice([0.0, 1.0, log_uniform(draw, 1e-3, 50.0)])
        self.order = 1.0 + log_uniform(draw, 1e-3, 300.0)
        self.target = log_uniform(draw, 0.05, 20.0)
        # Extreme ones take a second each to calibrate for.
        self.target_delta = self.delta if rare else log_uniform(draw, 1e-12, 1e-2)
        self.direction = draw.randrange(3)
        if draw.random() < 0.03:
            self.delta = self.target_delta = draw.choice([0.0, 1.0, -1.0, math.nan])
            self.epsilon = self.target = draw.choice([-1.0, math.inf, math.nan])
            self.order = draw.choice([1.0, 0.5, math.inf])

    @staticmethod
    def _count(draw: Random, most: float) -> float:
        return float(round(log_uniform(draw, 1.0, most)))


def shifts(draw: Random) -> tuple[np.ndarray, np.ndarray]:
    """Draw shifts and weights; exactly a power of two less than the weights' total is left."""
    count = draw.randint(1, 6)
    steps = [draw.choice([1.0, 0.5, log_uniform(draw, 0.1, 2.0)]) for _ in range(count)]
    weights = [draw.randint(1, 2**16) * 2.0**-20 for _ in range(count)]
    return np.cumsum(steps), np.array(weights)


def answered(question: Callable[[], object], single: bool = False) -> Numbers:
    """Return the status and the numbers of an answer."""
    try:
        found = question()
    except DomainError:
        return [DOMAIN]
    except PrecisionError:
        return [PRECISION]
    if found is None:
        return [UNBOUNDED]
    return [OK, float(found)] if single else [OK, *found]  # type: ignore[arg-type,misc]


def either(question: Callable[[int], tuple[float, float]], direction: int) -> tuple[float, float]:
    """Return a bracket for a direction; the larger of two for either."""
    if direction != core.EITHER:
        return question(direction)
    (low, high), (other_low, other_high) = question(core.REMOVE), question(core.ADD)
    return max(low, other_low), max(high, other_high)


def equal_steps(x: Question) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Yield name, arguments and answer of the functions for equal steps."""
    for name, question, given in (
        ("epsilon_bounds", core.epsilon_bounds, x.delta),
        ("delta_bounds", core.delta_bounds, x.epsilon),
    ):
        arguments = [x.q, x.sigma, x.steps, given, x.direction]
        yield name, arguments, answered(partial(question, *arguments))
    arguments = [x.q, x.sigma, x.order, x.direction]
    yield "renyi_bounds", arguments, answered(partial(core.renyi_bounds, *arguments))
    arguments = [x.q, x.sigma, x.steps, x.delta]
    yield "epsilon_renyi_upper", arguments, answered(partial(core.epsilon_renyi_upper, *arguments))
    whole = [1.0, x.sigma, 1.0]
    found = answered(partial(core.epsilon_bounds, *whole, x.delta, core.EITHER))
    yield "gaussian_epsilon_bounds", [x.sigma, x.delta], found
    found = answered(partial(core.delta_bounds, *whole, x.epsilon, core.EITHER))
    yield "gaussian_delta_bounds", [x.sigma, x.epsilon], found


def calibrations(x: Question) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Yield name, arguments and answer of the calibrations."""
    for name, rest in (
        ("sigma", [x.q, x.steps]),
        ("steps", [x.q, x.sigma]),
        ("q", [x.sigma, x.steps]),
    ):
        arguments = [x.target, x.target_delta, *rest]
        question = partial(getattr(core, f"calibrate_{name}"), *arguments)
        yield f"calibrate_{name}", arguments, answered(question, single=True)


def random_shifts(x: Question, draw: Random) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Yield name, arguments and answer of the functions for random shifts."""
    at, weights = shifts(draw)
    law = [float(len(at)), 0.0, 0.0, *at, *weights]
    steps, sigma = max(x.steps, 1.0), min(max(x.sigma, 0.5), 100.0)
    for name, question, given in (
        ("epsilon", core.mixture_epsilon_bounds, x.delta),
        ("delta", core.mixture_delta_bounds, x.epsilon),
    ):
        ask = partial(question, sigma, at, weights, steps, given)
        found = answered(partial(either, ask, x.direction))
        yield f"mixture_{name}_bounds", [sigma, steps, given, x.direction, *law], found


def different_steps(x: Question, draw: Random) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Yield name, arguments and answer of the functions for different steps."""
    columns: Numbers = []
    parts, mixtures = [], []
    for _ in range(draw.randint(0, 5)):
        other = Question(draw)
        parts.append(mixed.Part(other.q, other.sigma, int(other.steps)))
        columns += [*map(float, parts[-1]), 0.0]
    count = float(len(parts))
    if draw.random() < 0.3:
        at, weights = shifts(draw)
        mixtures.append(mixed.Mixture(2.0, at, weights, 10.0))
        columns += [0.0, 2.0, 10.0, float(len(at)), 0.0, 0.0, *at, *weights]
        count += 1.0
    for name, question, given in (
        ("epsilon", mixed.epsilon_bounds, x.delta),
        ("delta", mixed.delta_bounds, x.epsilon),
    ):
        # Python answers some questions before the core is asked, and has checked what is given.
        if not (0.0 < given < 1.0 if name == "epsilon" else 0.0 <= given < math.inf):
            continue
        found = answered(partial(question, parts, given, x.direction, tuple(mixtures)))
        yield f"composition_{name}_bounds", [given, x.direction, count, *columns], found


def cases(count: int, seed: int = SEED) -> Iterator[str]:
    """Yield so many lines."""
    draw = Random(seed)
    made = 0
    while True:
        x = Question(draw)
        for questions in (
            equal_steps(x),
            calibrations(x),
            random_shifts(x, draw),
            different_steps(x, draw),
        ):
            for name, arguments, answer in questions:
                yield " ".join([name, *map(shown, arguments), "=", *map(shown, answer)])
                made += 1
                if made == count:
                    return


def shown(value: float) -> str:
    """Return a number as C's ``%a`` writes it; small integers in digits."""
    if value == math.floor(value) and abs(value) < 1e6 if math.isfinite(value) else False:
        return str(int(value))
    return value.hex() if math.isfinite(value) else str(value)


if __name__ == "__main__":
    head = ["# " + line for line in (__doc__ or "").splitlines()[3:5]]
    Path(sys.argv[1]).write_text("\n".join([*head, *cases(1000), ""]))
