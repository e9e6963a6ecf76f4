"""Compare this library with other accountants: time, tightness, soundness and memory.

Run ``python benchmarks/compare.py`` in an environment with this library and whichever of
dp-accounting, opacus and prv-accountant are wanted; what is missing is reported as such.
Each library runs in a worker process of its own, one at a time, with default settings.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from comparison.libraries import OURS, PEERS
from comparison.problems import FAMILIES, select
from comparison.sections import SECTIONS, Benchmark, progress
from comparison.tables import render
from comparison.worker import Worker


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--families", nargs="+", metavar="NAME", choices=FAMILIES, help=", ".join(FAMILIES)
    )
    parser.add_argument(
        "--peers",
        nargs="*",
        metavar="NAME",
        choices=[*PEERS],
        default=[*PEERS],
        help=f"{', '.join(PEERS)}; none after the flag runs this library alone",
    )
    parser.add_argument(
        "--sections",
        nargs="+",
        metavar="NAME",
        choices=SECTIONS,
        default=list(SECTIONS),
        help=", ".join(SECTIONS),
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds per job")
    parser.add_argument("--memory-gb", type=float, default=6.0, help="growth allowed per job")
    parser.add_argument("--output", type=Path, help="write the results here as JSON")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = parse(argv)
    benchmark = Benchmark(
        select(options.families), options.peers, options.quick, options.timeout, options.memory_gb
    )
    with Worker(OURS.name, options.timeout, options.memory_gb) as worker:
        status = worker.status()
    if status != "ok":
        progress(f"this library: {status}; running the peers alone")
    for section in SECTIONS:
        if section in options.sections:
            getattr(benchmark, f"run_{section}")()
            if options.output is not None:  # after every section: a long run may be cut short
                text = json.dumps(benchmark.report, indent=1, allow_nan=False)
                options.output.write_text(text + "\n", encoding="utf-8")
    print(render(benchmark.report, options.peers))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
