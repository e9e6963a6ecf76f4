"""Time what users wait for: imports, the command line, records, reports.

``python benchmarks/everyday.py``. Medians of five, wall clock, in processes of their own where
it is about a fresh one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

import accountant as ac
from accountant.ledger import IndividualFilter, document
from accountant.ledger.history import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 5
EPSILON = ["epsilon", "--q", "0.01", "--steps", "1000", "--sigma", "1.1", "--delta", "1e-5"]
IMPORT = """
import numpy, time
start = time.perf_counter()
import accountant
print(time.perf_counter() - start)
"""


def show(what: str, seconds: Callable[[], float]) -> None:
    """Print the median of a few measurements."""
    print(f"{what}: {median(seconds() for _ in range(REPEATS)) * 1e3:.4g} ms", flush=True)


def command(*arguments: str) -> float:
    """Run Python on arguments; return the seconds it took from start to end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def importing() -> float:
    """Return what the import takes beyond NumPy's."""
    return float(subprocess.check_output([sys.executable, "-c", IMPORT], text=True))


def steps_under_a_budget() -> float:
    """Return the seconds that recording one step takes, with a budget to look after."""
    ledger = ac.Accountant(ac.Budget(8.0, 1e-5))
    start = time.perf_counter()
    for _ in range(20_000):
        ledger.step(noise_multiplier=50.0, sampling_probability=0.001)
    return (time.perf_counter() - start) / 20_000


def individual() -> float:
    """Return the seconds that one charge to each of a million records takes."""
    ledger = IndividualFilter(ac.Budget(8.0, 1e-5, orders=20.0), 10**6)
    norms = np.random.default_rng(3).uniform(0.0, 1.0, 10**6)
    start = time.perf_counter()
    ledger.charge_gaussian(norms, noise_multiplier=50.0)
    return time.perf_counter() - start


def reports(folder: Path) -> None:
    """Time the statement for reviewers, for ledgers of equal and of different steps."""
    for what, different, records in (("equal", 1, 10_000), ("different", 10_000, 10_000)):
        steps = [ac.PoissonSampled(ac.Gaussian(1.0 + k / 9e3), 0.01) for k in range(different)]
        entries = [Entry(steps[k % different], 1, None, None) for k in range(records)]
        path = folder / f"{what}.json"
        path.write_text(document.encode(entries, None))
        arguments = ["-m", "accountant", "report", str(path), "-o", str(folder / "report.html")]
        show(f"report of {records:,} {what} steps", lambda given=arguments: command(*given))


def main() -> None:
    """Print one line for each figure."""
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    show("import beyond NumPy's", importing)
    show("a cold call of the command line", lambda: command("-m", "accountant", *EPSILON))
    show("a cold Python alone", lambda: command("-c", "pass"))
    show("one step under a budget", steps_under_a_budget)
    show("one charge to each of a million records", individual)
    with tempfile.TemporaryDirectory() as folder:
        reports(Path(folder))


if __name__ == "__main__":
    main()
