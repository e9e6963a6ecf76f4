"""Puts the stored truths to accountants, and prints who answered, and who answered too little.

    python conformance/run.py [--seconds 10] [--write conformance/README.md] [LIBRARY ...]

Every library answers in a process of its own, of the Python that runs this; one that is not there
is left out, and said. README.md says what the columns mean.
"""

import argparse
import collections
import importlib.metadata
import json
import logging
import math
import multiprocessing
import re
import resource
import statistics
import time
import warnings
from pathlib import Path

from accountants import ADAPTERS, NoAnswer

TRUTHS = Path(__file__).with_name("truths.json")
MARK = "<!-- conformance -->"
BYTES = 12 << 30  # of addresses that a library may have
START = 120.0  # seconds for an import
FORKED = multiprocessing.get_context("fork")
HEAD = (
    "|library|answered|failed|below the truth|median above|most above|median time|",
    "|---|---:|---:|---:|---:|---:|---:|",
)


def worker(name, pipe):
    """Answer cases until there are none: (ε or a reason, seconds of processor time)."""
    warnings.simplefilter("ignore")
    logging.disable()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for case in iter(pipe.recv, None):
        began = time.process_time()
        try:
            found = float(ADAPTERS[name][1](case["parts"], case["delta"]))
        except NoAnswer:
            found = "none"
        except Exception as error:
            found = f"{type(error).__name__}: {error!s:.60}"
        pipe.send((found, time.process_time() - began))


def answers(name, cases, seconds):
    """Yield every case with its answer; a library that takes longer is ended and begun again."""
    process = None
    for case in [cases[0], *cases]:  # the first is asked twice, because it waits for imports
        if process is None:
            pipe, other = FORKED.Pipe()
            process = FORKED.Process(target=worker, args=(name, other), daemon=True)
            process.start()
            pipe.send(cases[0])
            pipe.poll(START) and pipe.recv()
        pipe.send(case)
        if pipe.poll(seconds):
            yield case, *pipe.recv()
        else:
            process.kill()
            process = None
            yield case, "time", seconds


def judged(name, cases, seconds):
    """Return one row of the table, and what was below the truth."""
    _, *rows = answers(name, cases, seconds)
    given = [(case, e, took) for case, e, took in rows if isinstance(e, float) and e < math.inf]
    below = [(case, e) for case, e, _ in given if e < case["epsilon"][0]]
    above = [
        max(e / case["epsilon"][1] - 1.0, 0.0)
        for case, e, _ in given
        if case["epsilon"][1] is not None and e >= case["epsilon"][0]
    ]
    times = [took for *_, took in given]
    failed = sum(e != "none" for _, e, _ in rows) - len(given)
    version = importlib.metadata.version(ADAPTERS[name][0])
    cells = [f"{name} {version}", len(given), failed, len(below)]
    cells += [f"{f(above):.1e}" if above else "" for f in (statistics.median, max)]
    cells.append(f"{statistics.median(times) * 1e3:.2g} ms" if times else "")
    return f"|{'|'.join(map(str, cells))}|", below


def tables(cases, libraries, seconds):
    """Return the table, and under it what was below the truth, group by group."""
    rows, notes = [*HEAD], []
    for name in libraries:
        try:
            row, below = judged(name, cases, seconds)
        except importlib.metadata.PackageNotFoundError:
            notes.append(f"{name}: not installed")
            continue
        rows.append(row)
        groups = collections.defaultdict(list)
        for case, e in below:
            groups[case["group"]].append(1.0 - e / case["epsilon"][0])
        told = [f"{group} {len(by)} (by up to {max(by):.1e})" for group, by in groups.items()]
        notes += [f"{name}, below the truth: {', '.join(told)}"] if told else []
        print(row, flush=True)
    return "\n".join([*rows, "", *(f"- {note}." for note in notes)])


def main():
    """Ask, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help="by default all")
    parser.add_argument("--seconds", type=float, default=10.0, help="for one answer")
    parser.add_argument("--write", type=Path, help=f"a page with a table between two {MARK}")
    wanted = parser.parse_args()
    truths = json.loads(TRUTHS.read_text())
    found = tables(truths["cases"], wanted.libraries or ADAPTERS, wanted.seconds)
    said = f"{len(truths['cases'])} questions of version {truths['version']}.\n\n{found}"
    print(said)
    if wanted.write:
        page = wanted.write.read_text()
        between = f"{MARK}\n{said}\n{MARK}"
        wanted.write.write_text(re.sub(f"{MARK}.*{MARK}", lambda _: between, page, flags=re.S))


if __name__ == "__main__":
    main()
