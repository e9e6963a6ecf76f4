"""How long this library takes, commit by commit: a slower one shows.

    python benchmarks/history.py             # measures; beside the last line of this machine
    python benchmarks/history.py --write     # also adds a line to benchmarks/history.jsonl

Processor time, the best of a few repeats, of 200 random problems nobody tuned for (log-uniform: q
from 1e-5 to 0.95, sigma 0.4 to 16, steps 3 to 1e7, epsilon 0.03 to 20, delta 1e-14 to 0.3):
medians, 99th percentiles and the worst, and of arrays and compositions. Exits with 1 when a number
is more than 1.3 times the last one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import platform
import random
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import accountant as ac

HISTORY = Path(__file__).parent / "history.jsonl"
PROBLEMS, SEED, REPEATS = 200, 7, 3
SLOWER = 1.3

Problem = tuple[float, float, int, float, float]


def problems() -> list[Problem]:
    """Return q, sigma, steps, epsilon and delta of the random problems."""
    generator = random.Random(SEED)

    def log_uniform(low: float, high: float) -> float:
        return math.exp(generator.uniform(math.log(low), math.log(high)))

    return [
        (
            log_uniform(1e-5, 0.95),
            log_uniform(0.4, 16.0),
            int(log_uniform(3, 1e7)),
            log_uniform(0.03, 20.0),
            log_uniform(1e-14, 0.3),
        )
        for _ in range(PROBLEMS)
    ]


def seconds(ask: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the least processor time of a few calls; a refusal takes time as well."""
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        with contextlib.suppress(ac.AccountantError):
            ask()
        best = min(best, time.process_time() - start)
    return best


def scalars() -> dict[str, float]:
    """Return microseconds of single questions: median, 99th percentile, worst."""
    questions: dict[str, Callable[..., object]] = {
        "epsilon": lambda q, s, n, _, d: ac.get_epsilon(q, s, n, d),
        "epsilon by rdp": lambda q, s, n, _, d: ac.get_epsilon(q, s, n, d, method="rdp"),
        "calibrate_sigma": lambda q, _, n, e, d: ac.calibrate_sigma(e, d, q, n),
        "calibrate_steps": lambda q, s, _, e, d: ac.calibrate_steps(e, d, q=q, sigma=s),
        "calibrate_q": lambda _, s, n, e, d: ac.calibrate_q(e, d, sigma=s, steps=n),
    }
    found = {}
    for name, ask in questions.items():
        each = [seconds(partial(ask, *problem)) for problem in problems()]
        for label, share in (("median", 50), ("p99", 99), ("worst", 100)):
            found[f"{name}, {label}"] = float(np.percentile(each, share)) * 1e6
    return found


def arrays() -> dict[str, float]:
    """Return microseconds of many questions at once, and of compositions seen first."""
    sigma = np.linspace(0.5, 4.0, 100)[:, None]
    steps = np.logspace(2, 5, 100).astype(int)
    generator = random.Random(SEED)

    def different(count: int, each: int) -> Callable[[], object]:
        return lambda: ac.Composition(
            tuple(
                (ac.PoissonSampled(ac.Gaussian(1.0 + generator.random()), 0.01), each)
                for _ in range(count)
            )
        ).epsilon(1e-5)

    asked: dict[str, Callable[[], object]] = {
        "1,000 deltas": lambda: ac.get_epsilon(0.01, 1.0, 1000, np.logspace(-12, -1, 1000)),
        "1,000 steps": lambda: ac.get_epsilon(0.01, 1.0, np.arange(1, 1001) * 10, 1e-5),
        "map of 100 sigmas by 100 steps": lambda: ac.get_epsilon(0.01, sigma, steps, 1e-5),
        "two kinds of 100 steps": different(2, 100),
        "1,000 different steps": different(1000, 1),
    }
    return {name: seconds(ask) * 1e6 for name, ask in asked.items()}


def environment() -> dict[str, str]:
    """Say what was measured where."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    machine = f"{platform.machine()} {platform.system()}, Python {platform.python_version()}"
    return {"commit": commit, "date": time.strftime("%Y-%m-%d"), "machine": machine}


def last(machine: str) -> dict[str, float]:
    """Return the last numbers of such a machine, if any."""
    lines = HISTORY.read_text().splitlines() if HISTORY.exists() else []
    known = [row for row in map(json.loads, lines) if row["machine"] == machine]
    return dict(known[-1]["microseconds"]) if known else {}


def main() -> int:
    """Measure, print and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="add a line to history.jsonl")
    options = parser.parse_args()
    where = environment()
    before, now = last(where["machine"]), {**scalars(), **arrays()}
    slower = [name for name in now if now[name] > SLOWER * before.get(name, math.inf)]
    for name, took in now.items():
        earlier = f"{before[name]:12.1f}" if name in before else " " * 12
        print(f"{name:36}{took:12.1f} µs{earlier}{'  slower' if name in slower else ''}")
    if options.write:
        row = {**where, "microseconds": {name: round(took, 1) for name, took in now.items()}}
        with HISTORY.open("a") as file:
            file.write(json.dumps(row) + "\n")
    return 1 if slower else 0


if __name__ == "__main__":
    raise SystemExit(main())
