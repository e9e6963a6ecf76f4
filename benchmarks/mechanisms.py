"""Every mechanism, sampled or not, after a thousand releases, beside dp-accounting.

    python benchmarks/mechanisms.py --write [--results FILE] [--fresh]
    python benchmarks/mechanisms.py [--only NAME] [--limit SECONDS] [--jobs N]

``--write`` puts the table into docs/accuracy.md. Without dp-accounting its columns are left out.
What was measured is kept in a file, line by line: the same command goes on where it was
interrupted, and ``--fresh`` starts anew. ``every_mechanism`` says what is measured and how.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from every_mechanism import page, peer
from every_mechanism.cases import CASES, RATES
from every_mechanism.measuring import Line, measure
from every_mechanism.results import Results

COUNTS = (1000,)
RESULTS = Path("build") / "mechanisms.jsonl"


def setting(jobs: int) -> str:
    beside = f"dp-accounting {version('dp-accounting')}" if peer.is_installed() else "no peer"
    load = os.getloadavg()[0]
    return (
        f"Measured with Python {platform.python_version()} and {beside} on {os.cpu_count()} cores"
        f" at\nload {load:.0f}, rows at once: {jobs}. Both libraries measure a row one after the"
        " other, in one thread."
    )


def main() -> None:
    given = arguments()
    if not peer.is_installed():
        print("dp-accounting is not installed; its columns are left out")
    results = Results(given.results, fresh=given.fresh)
    rows = [
        (place, rate, n)
        for place, case in enumerate(CASES)
        if given.only in case.name
        for rate in RATES
        for n in COUNTS
    ]
    left = [row for row in rows if results.of(*key(row)) is None]
    with ProcessPoolExecutor(given.jobs) as pool:
        waiting = [pool.submit(measured, row, given.limit) for row in left]
        for done, future in enumerate(as_completed(waiting), 1):
            results.add(future.result())
            print(f"\r{len(rows) - len(left) + done} of {len(rows)}", end="", file=sys.stderr)
    lines = [line for row in rows for line in results.of(*key(row)) or ()]
    text = page.section(lines, setting(given.jobs), given.limit)
    if given.write and not given.only:
        page.write(text)
    else:
        print(text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the section of the page")
    parser.add_argument("--only", default="", help="mechanisms whose name contains this")
    parser.add_argument("--limit", type=float, default=0.25, help="seconds for a run of the peer")
    parser.add_argument("--jobs", type=int, default=1, help="rows measured at once")
    parser.add_argument("--results", type=Path, default=RESULTS, help="what was measured so far")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    return parser.parse_args()


def key(row: tuple[int, float, int]) -> tuple[str, float, int]:
    return CASES[row[0]].name, row[1], row[2]


def measured(row: tuple[int, float, int], limit: float) -> list[Line]:
    """Measure one mechanism, by its place in the list: it need not be picklable."""
    return measure(CASES[row[0]], row[1], row[2], limit)


if __name__ == "__main__":
    main()
