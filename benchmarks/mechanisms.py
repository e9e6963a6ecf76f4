"""Every mechanism, sampled or not, after few and many releases, beside dp-accounting.

    python benchmarks/mechanisms.py [--write] [--only NAME] [--limit SECONDS] [--jobs N]

``--write`` puts the table into docs/accuracy.md. Without dp-accounting its columns are left out.
``every_mechanism`` says what is measured and how.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from every_mechanism import page, peer
from every_mechanism.cases import CASES, RATES
from every_mechanism.measuring import Line, measure

COUNTS = (1, 30, 1000, 100_000)


def setting(jobs: int) -> str:
    beside = f"dp-accounting {version('dp-accounting')}" if peer.is_installed() else "no peer"
    load = os.getloadavg()[0]
    return (
        f"Measured in one run with Python {platform.python_version()} and {beside} on"
        f" {os.cpu_count()} cores at load {load:.0f}, {jobs} processes of one thread at once."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the section of the page")
    parser.add_argument("--only", default="", help="mechanisms whose name contains this")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds for a run of the peer")
    parser.add_argument("--jobs", type=int, default=1, help="mechanisms measured at once")
    given = parser.parse_args()
    if not peer.is_installed():
        print("dp-accounting is not installed; its columns are left out")
    chosen = [place for place, case in enumerate(CASES) if given.only in case.name]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = pool.map(measured, chosen, [given.limit] * len(chosen))
        text = page.section(
            [line for rows in found for line in rows], setting(given.jobs), given.limit
        )
    if given.write and not given.only:
        page.write(text)
    else:
        print(text)


def measured(place: int, limit: float) -> list[Line]:
    """Measure one mechanism, by its place in the list: it need not be picklable."""
    case = CASES[place]
    return [line for rate in RATES for n in COUNTS for line in measure(case, rate, n, limit)]


if __name__ == "__main__":
    main()
