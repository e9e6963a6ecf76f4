"""Every mechanism, sampled or not, after few and many releases, beside dp-accounting.

    python benchmarks/mechanisms.py [--write] [--only NAME] [--limit SECONDS]

``--write`` puts the table into docs/accuracy.md. Without dp-accounting its columns are left out.
``every_mechanism`` says what is measured and how.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from every_mechanism import page, peer
from every_mechanism.cases import CASES, RATES
from every_mechanism.measuring import Line, measure

COUNTS = (1, 30, 1000, 100_000)


def setting() -> str:
    beside = f"dp-accounting {version('dp-accounting')}" if peer.is_installed() else "no peer"
    load = os.getloadavg()[0]
    return (
        f"Measured in one run with Python {platform.python_version()} and {beside} on"
        f" {os.cpu_count()} cores at load {load:.1f}; one core is used."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the section of the page")
    parser.add_argument("--only", default="", help="mechanisms whose name contains this")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds for a run of the peer")
    given = parser.parse_args()
    if not peer.is_installed():
        print("dp-accounting is not installed; its columns are left out")
    start, lines = time.perf_counter(), list[Line]()
    for case in CASES:
        if given.only not in case.name:
            continue
        for rate in RATES:
            for count in COUNTS:
                lines += measure(case, rate, count, given.limit)
        spent = time.perf_counter() - start
        print(f"{case.name}: {spent:.0f} s so far", file=sys.stderr, flush=True)
    text = page.section(lines, setting(), given.limit)
    if given.write and not given.only:
        page.write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
