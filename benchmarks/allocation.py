"""Random allocation beside pld-accounting: brackets of ε, their widths, and processor time.

    python benchmarks/allocation.py

Each line is a first question after a warm-up with other numbers, in processor seconds. The peer's
search for a width does not end within minutes, so that it is given a discretisation of the loss at
which it does: its brackets are wider by many orders of magnitude all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from accountant import sampling

DELTA = 1e-6
# σ, steps, epochs, participations
CASES = [(1.0, 1000, 1, 1), (1.0, 1000, 10, 1), (1.0, 100, 1, 1), (1.0, 10**5, 1, 1)]
CASES += [(1.0, 1000, 1, 10)]
# Of the losses, for the peer. Half of it takes three times as long.
DISCRETISATION = 0.05


def ours(sigma: float, steps: int, epochs: int, picks: int) -> tuple[float, float]:
    """Bracket ε with this library."""
    sampler = sampling.RandomAllocation(
        dataset_size=10, steps_per_epoch=steps, epochs=epochs, participations=picks
    )
    found = sampler.epsilon_bounds(sigma, DELTA)
    return float(found.lower), float(found.upper)


def peers(sigma: float, steps: int, epochs: int, picks: int) -> tuple[float, float]:
    """Bracket ε with pld-accounting."""
    import PLD_accounting as peer

    params = peer.PrivacyParams(
        sigma=sigma, num_steps=steps, num_selected=picks, num_epochs=epochs, delta=DELTA
    )
    config = peer.AllocationSchemeConfig(loss_discretization=DISCRETISATION)
    upper, lower = (
        peer.gaussian_allocation_epsilon_configurable(params=params, config=config, bound_type=side)
        for side in (peer.BoundType.DOMINATES, peer.BoundType.IS_DOMINATED)
    )
    return float(lower), float(upper)


def timed(
    ask: Callable[[float, int, int, int], tuple[float, float]], case: tuple[float, int, int, int]
) -> str:
    """Return a bracket, its relative width and the time, as text."""
    begin = time.process_time()
    lower, upper = ask(*case)
    spent = time.process_time() - begin
    return f"[{lower:.8f}, {upper:.8f}] {upper / lower - 1.0:8.1e} {spent:9.4f} s"


def main() -> None:
    ours(2.0, 50, 2, 1)
    ours(2.0, 50, 1, 2)
    try:
        peers(2.0, 50, 2, 1)
        installed = True
    except ImportError:
        installed = False
        print("pld-accounting is not installed; its lines are left out")
    for case in CASES:
        print("σ = {}, {} steps, {} epochs, {} participations".format(*case), flush=True)
        print("  accountant      ", timed(ours, case), flush=True)
        if installed:
            print("  pld-accounting  ", timed(peers, case), flush=True)


if __name__ == "__main__":
    main()
