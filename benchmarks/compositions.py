"""Time compositions of steps that differ: a noise schedule, its odometer, and a peer's grid.

``python benchmarks/compositions.py [--peer-steps N]``. Wall-clock times on a machine that should be
idle; every question is asked of a composition that was not seen before.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING

import accountant as ac
from accountant.report import statement

if TYPE_CHECKING:
    from collections.abc import Callable

Q, DELTA, REPEATS = 0.01, 1e-5, 5


def schedule(steps: int, seed: int) -> list[float]:
    """Return noise multipliers in [1, 2), all different."""
    generator = random.Random(seed)
    return [1.0 + generator.random() for _ in range(steps)]


def composition(steps: int, seed: int) -> ac.Composition:
    """Return one subsampled Gaussian for each noise multiplier."""
    return ac.Composition(
        tuple((ac.PoissonSampled(ac.Gaussian(s), Q), 1) for s in schedule(steps, seed))
    )


def mixed_ledger(kinds: int) -> ac.Accountant:
    """Record different releases of four families."""
    filled = ac.Accountant()
    for k in range(kinds):
        one = (
            ac.Gaussian(500.0 + k),
            ac.Laplace(5000.0 + k),
            ac.PoissonSampled(ac.Gaussian(1.0 + k / (4.0 * kinds)), 1e-4),
            ac.PureDP(1e-4 + k * 1e-9),
        )
        filled.compose(one[k % 4])
    return filled


def ledger(sigmas: list[float]) -> ac.Accountant:
    """Record one step for each noise multiplier."""
    filled = ac.Accountant()
    for sigma in sigmas:
        filled.step(noise_multiplier=sigma, sampling_probability=Q)
    return filled


def timed(make: Callable[[int], object], ask: Callable[[object], object]) -> str:
    """Describe the first and the median time of one question, each of a new object."""
    seconds = []
    for seed in range(REPEATS):
        made = make(seed)
        start = time.perf_counter()
        ask(made)
        seconds.append(time.perf_counter() - start)
    return f"first {seconds[0]:.3f} s, median {median(seconds):.3f} s"


def peer(steps: int) -> None:
    """Time dp-accounting's loss distributions of a few different steps."""
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    start = time.perf_counter()
    accountant = PLDAccountant()
    for sigma in schedule(steps, 0):
        accountant.compose(dp_event.PoissonSampledDpEvent(Q, dp_event.GaussianDpEvent(sigma)))
    found = accountant.get_epsilon(DELTA)
    took = time.perf_counter() - start
    ours = composition(steps, 0)
    start = time.perf_counter()
    bounds = ours.epsilon_bounds(DELTA)
    again = time.perf_counter() - start
    print(
        f"{steps} different steps: dp-accounting {found:.7f} in {took:.2f} s,"
        f" here [{bounds.lower:.7f}, {bounds.upper:.7f}] in {again:.3f} s, {took / again:.0f}x"
    )


def main() -> None:
    """Print one line for each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-steps", type=int, default=50)
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")

    def epsilon(asked: object) -> object:
        return asked.epsilon_bounds(DELTA)  # type: ignore[attr-defined]

    def odometer(asked: object) -> object:
        return asked.epsilon_over_steps(DELTA)  # type: ignore[attr-defined]

    print("epsilon of 1,000 different steps:", timed(lambda k: composition(1000, k), epsilon))
    print(
        "odometer of 10,000 different steps:",
        timed(lambda k: ledger(schedule(10_000, k)), odometer),
    )
    print(
        "odometer of 10,000 equal steps:",
        timed(lambda k: ledger([1.0 + k / 10] * 10_000), odometer),
    )
    beside = ac.Laplace(5.0)
    print(
        "epsilon of 1,000 equal steps beside five Laplace releases:",
        timed(lambda k: 1000 * ac.PoissonSampled(ac.Gaussian(1 + k / 10), Q) + 5 * beside, epsilon),
    )
    print(
        "report of 10,000 different releases of four families:",
        timed(
            lambda k: mixed_ledger(10_000 + k),
            lambda made: statement(made, certificate=False).html(),
        ),
    )
    if find_spec("dp_accounting"):
        peer(given.peer_steps)


if __name__ == "__main__":
    main()
