"""The grid beside dp-accounting's privacy loss distribution, at equal width, in one run.

    python benchmarks/grid.py

The peer's width is that between its pessimistic and its optimistic estimate of ε; its interval is
halved until that is at most the width asked for, or until one run takes 20 seconds. Times (s) are
the best of three, of building and asking for one ε(δ), both estimates for the peer.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from accountant.analyses import pld
from support.grid_pairs import Gaussian, Laplace

try:
    from dp_accounting.pld import privacy_loss_distribution as peer
except ImportError:
    peer = None

logging.disable(logging.WARNING)  # the peer warns at every optimistic estimate

DELTA = 1e-6
LIMIT = 20.0  # seconds for one run of the peer


def best(run: Callable[[], tuple[float, float]]) -> tuple[float, float, float]:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        lower, upper = run()
        times.append(time.perf_counter() - start)
        if times[-1] > 3.0:
            break
    return lower, upper, min(times)


def ours(pair: object, count: int, width: float) -> tuple[float, float, float]:
    return best(lambda: tuple(pld.epsilon_bounds([(pair, count)], DELTA, tolerance=width)))


def theirs(build: Callable[..., object], count: int, width: float) -> tuple[float, float, float]:
    interval = 1e-2
    while True:

        def run(step: float = interval) -> tuple[float, float]:
            ends = []
            for pessimistic in (False, True):
                one = build(pessimistic_estimate=pessimistic, value_discretization_interval=step)
                ends.append(one.self_compose(count).get_epsilon_for_delta(DELTA))
            return ends[0], ends[1]

        start = time.perf_counter()
        lower, upper = run()
        spent = time.perf_counter() - start
        if upper - lower <= width * upper or spent > LIMIT:
            return (lower, upper, spent) if spent > 1.0 else best(run)
        interval *= 0.5


def main() -> None:
    problems = [
        ("Laplace(10)", Laplace(10.0), lambda **k: peer.from_laplace_mechanism(10.0, **k)),
        ("Gaussian(10)", Gaussian(0.1), lambda **k: peer.from_gaussian_mechanism(10.0, **k)),
    ]
    for name, pair, build in problems:
        for count in (10, 1000):
            for width in (1e-2, 1e-3, 1e-4, 1e-6):
                lower, upper, spent = ours(pair, count, width)
                print(f"{name} x {count}, width {width:g}")
                print(
                    f"  accountant    {lower:.9g} {upper:.9g} {1 - lower / upper:.1e} {spent:.4f}"
                )
                if peer is None or width < 1e-4:
                    continue
                low, high, other = theirs(build, count, width)
                reached = (high - low) / high if high > 0 else math.nan
                print(
                    f"  dp-accounting {low:.9g} {high:.9g} {reached:.1e} {other:.4f} s", flush=True
                )


if __name__ == "__main__":
    main()
