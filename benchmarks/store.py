"""Charges a second, verification and wide charges of the shared store, beside the disk's own rate.

    python benchmarks/store.py [--rows 1000000] [--clients 8] [--seconds 10] [sqlite] [postgres]

Numbers are printed as a table for docs/store.md. The journal is first filled with ROWS rows, then
CLIENTS processes charge as fast as they can, each one block of many. PostgreSQL is started from the
system's package in a temporary directory; without one it is left out, and the table says so.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import accountant as ac
from accountant import store
from accountant.ledger import Budget
from accountant.store.journal import Transaction
from accountant.store.texts import runs
from support import postgres

STEP = ac.PoissonSampled(ac.Gaussian(50.0), 1e-6)
BLOCKS = [f"bench/narrow/{k}" for k in range(100)]
# What fills the journal at once, and the charges of one turn in it.
TURN = 20_000


def syncs_a_second(directory, seconds=2.0):
    """Return how often one process can append 4 kB to a file and wait for the disk."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            os.write(file.fileno(), b"x" * 4096)
            os.fdatasync(file.fileno())
            count += 1
        return count / (time.perf_counter() - start)


def fill(shared, rows):
    """Append charges many at a time, by the functions of the store."""
    shared.add_blocks(BLOCKS, Budget(8.0, 1e-6))
    shared.charge(BLOCKS, STEP)
    base, chain = shared._database, shared._chain
    while (missing := rows - shared.head().rows) > 0:
        turn = Transaction(base, chain)
        base.connect(time.monotonic() + 600)
        (blocks, kinds) = turn.open(
            ("SELECT id FROM accountant_blocks ORDER BY id LIMIT 100", ()),
            ("SELECT id FROM accountant_kinds", ()),
        )
        kind = kinds[0][0]
        counts = dict.fromkeys((row[0] for row in blocks), 0)
        for k in range(min(missing, TURN)):
            block = blocks[k % len(blocks)][0]
            body = {"blocks": [[block, block]], "entries": [[kind, 1, f"filled {k}", None]]}
            turn.append("charge", body, os.urandom(12).hex())
            counts[block] += 1
        for block, count in counts.items():
            if count:
                turn.hold(runs([block]), kind, count)
        turn.close()


def client(url, number, seconds):
    """Charge until the time is over; print each charge's milliseconds."""
    with store.open(url) as shared:
        for k in range(3):
            shared.charge(BLOCKS[number], STEP, label=f"warm {k}")
        print("ready", flush=True)
        sys.stdin.readline()
        took, end = [], time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            shared.charge(BLOCKS[(number + 8 * len(took)) % len(BLOCKS)], STEP)
            took.append(time.perf_counter() - start)
    print(*(f"{1000 * t:.3f}" for t in took), flush=True)


def charges(url, clients, seconds):
    """Return charges a second, and the median and 99th percentile of their milliseconds."""
    own = [sys.executable, __file__, "--client", url, "--seconds", str(seconds)]
    running = [
        subprocess.Popen(
            [*own, "--number", str(k)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for k in range(clients)
    ]
    for each in running:
        assert each.stdout.readline() == "ready\n"
    for each in running:
        each.stdin.write("go\n")
        each.stdin.flush()
    took = sorted(float(t) for each in running for t in each.communicate()[0].split())
    return len(took) / seconds, took[len(took) // 2], took[int(0.99 * len(took))]


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measure(name, url, directory, options):
    with store.open(url, create=True) as shared:
        seconds, _ = timed(lambda: fill(shared, options.rows))
        print(f"{name}: filled to {options.rows} rows in {seconds:.0f} s", file=sys.stderr)
        # The best of several: other programs use the disk and the processors, too.
        tries = [
            (charges(url, options.clients, options.seconds), syncs_a_second(directory))
            for _ in range(options.repeats)
        ]
        (rate, middle, last), syncs = max(tries)
        wide = [f"bench/wide/{k}" for k in range(10_000)]
        shared.add_blocks(wide, Budget(8.0, 1e-6))
        shared.charge("bench/wide/*", STEP)
        broad = min(timed(lambda: shared.charge("bench/wide/*", STEP))[0] for _ in range(3))
        checked, found = timed(shared.verify)
        assert found.passed, found
    print(
        f"| {name} | {found.head.rows} | {syncs:.0f} | {rate:.0f} | {middle:.1f} | {last:.1f}"
        f" | {broad:.2f} | {checked:.1f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("databases", nargs="*", default=["sqlite", "postgres"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--client")
    parser.add_argument("--number", type=int)
    options = parser.parse_args()
    if options.client:
        client(options.client, options.number, options.seconds)
        return
    print(
        f"| database | rows | syncs/s of the disk | charges/s, {options.clients} clients |"
        " median, ms | 99 %, ms | 10,000 blocks, s | verify, s |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    if "sqlite" in options.databases:
        with tempfile.TemporaryDirectory() as directory:
            measure("SQLite", f"sqlite:///{directory}/budget.db", directory, options)
    if "postgres" in options.databases:
        if why := postgres.why_not():
            print(f"| PostgreSQL | {why} |")
            return
        server = postgres.Server()
        try:
            measure("PostgreSQL", server.fresh(), server.home, options)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
