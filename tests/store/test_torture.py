"""Random clients, treated as badly as processes are, against what they wrote down themselves.

Threads, forks at any point of a call, signals, kills, stops, clients that close in either order,
servers that die, clocks that jump, and reservations settled or not. Nothing that was acknowledged
may be missing, nothing be there twice, and no block hold more than its budget, computed anew from
the notes.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import accountant
from accountant import store
from accountant.ledger import Accountant, Budget
from support.store_torture import BLOCKS, STEPS

PROGRAM = Path(__file__).parents[1] / "support" / "store_torture.py"
BUDGET = Budget(60.0, 1e-6)


def started(url, name, rng, notes):
    path = os.pathsep.join(str(Path(each).parents[1]) for each in (accountant.__file__, PROGRAM))
    return subprocess.Popen(
        [sys.executable, PROGRAM, url, name, str(rng.getrandbits(30)), str(notes)],
        stderr=open(f"{notes}.{name}.err", "wb"),
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
    )


def torture(url, notes, seconds, seed, server=None, clients=4):
    """Let clients charge for some seconds, and be killed and stopped meanwhile."""
    rng = random.Random(seed)
    names = iter(f"c{k}" for k in range(10**6))
    running = [started(url, next(names), rng, notes) for _ in range(clients)]
    groups = [each.pid for each in running]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(rng.expovariate(2.0))
        victim = rng.choice(running)
        what = rng.random()
        if what < 0.4:
            os.kill(victim.pid, signal.SIGSTOP)
            time.sleep(rng.random() * 0.3)
            os.kill(victim.pid, signal.SIGCONT)
        elif what < 0.7:  # its children live on
            victim.kill()
            victim.wait()
            running[running.index(victim)] = started(url, next(names), rng, notes)
            groups.append(running[-1].pid)
        elif server is not None and what < 0.8:
            server.kill()
            time.sleep(rng.random() * 0.2)
            server.start()
        if any(each.poll() for each in running):
            break
    Path(f"{notes}.stop").touch()
    try:
        failed = [each.wait(timeout=60) for each in running]
    except subprocess.TimeoutExpired:
        for each in running:
            if each.poll() is None:
                each.send_signal(signal.SIGUSR1)
        failed = [-1]
        time.sleep(1.0)
    for each in running:
        each.kill()
    for group in groups:  # orphans charge a little and end
        deadline = time.monotonic() + 60
        while alive(group):
            assert time.monotonic() < deadline, "an orphan does not end"
            time.sleep(0.05)
    assert not any(failed), errors(notes)


def errors(notes):
    """Return the ends of what clients and their children say that is no note."""
    return [path.read_text()[-2500:] for path in notes.parent.glob(f"{notes.name}.*.err")]


def alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def written(notes):
    """Return what all clients wrote down: by key its last words, and what it asked for."""
    asked, answers, settled = {}, {}, {}
    for path in notes.parent.glob(f"{notes.name}.*"):
        if path.suffix in (".err", ".stop"):
            continue
        for line in path.read_text().splitlines():
            word, key, *rest = line.split(" ")
            if word == "asks":
                asked[key] = int(rest[0]), int(rest[1]), rest[2].split(",")
            elif word in ("settles", "settled"):
                settled[key] = word, int(rest[0])
            else:
                answers[key] = word
    return asked, answers, settled


def check(url, notes, budget):
    """Compare the store with the notes; return how many charges were acknowledged."""
    asked, answers, settled = written(notes)
    with store.open(url) as shared:
        found = shared.verify()
        assert found.passed, found
        rows = shared._read(
            lambda base: base.execute(
                "SELECT key, action, body, seq FROM accountant_journal"
            ).fetchall()
        )
        state = dict(
            shared._read(
                lambda base: base.execute(
                    "SELECT key, used FROM accountant_reservations"
                ).fetchall()
            )
        )
        blocks = {block.address: block for block in shared.blocks()}
    there = Counter(key for key, action, *_ in rows if action in ("charge", "reserve"))
    assert set(there.values()) <= {1}
    unanswered = [key for key in asked if "f" in key.partition("-")[0] and key not in answers]
    assert not unanswered, ("a child could not go on", errors(notes))  # children are not killed
    acknowledged = {key for key, word in answers.items() if word in ("charge", "reserve")}
    assert acknowledged <= set(there), "an acknowledged charge is missing"
    assert set(there) <= set(asked), "a charge is there that nobody asked for"
    assert not set(there) & {key for key, word in answers.items() if word == "refused"}
    held = {address: Counter() for address in BLOCKS}
    for key in there:
        kind, count, named = asked[key]
        counted = state.get(key, count)
        word, used = settled.get(key, ("", count))
        assert counted == used or (word != "settled" and counted == count), key
        for number in named:
            held[f"kill/data/{number}"][STEPS[kind]] += counted
    for address, counts in held.items():
        counts = +counts
        assert dict(blocks[address].counts) == counts
        ledger = Accountant(budget)
        for mechanism, count in counts.items():
            ledger.compose(mechanism, count)  # BudgetExceeded, were it over
    order = [json.loads(body)["entries"] for _, action, body, _ in rows if action == "refuse"]
    assert all(entries[0][1] in (1, 2) for entries in order)
    return len(acknowledged)


def run(url, request, tmp_path, seconds, seed, budget=BUDGET):
    server = request.getfixturevalue("server") if url.startswith("postgres") else None
    with store.open(url, create=True) as shared:
        shared.add_blocks(BLOCKS, budget)
    torture(url, tmp_path / "notes", seconds, seed, server)
    return check(url, tmp_path / "notes", budget)


@pytest.mark.long
def test_clients_that_are_tortured_lose_and_double_nothing(url, request, tmp_path):
    assert run(url, request, tmp_path, 8.0, 0) > 20


@pytest.mark.long
def test_tortured_clients_stay_within_a_budget_that_is_soon_spent(tmp_path, request):
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    assert run(url, request, tmp_path, 5.0, 1, Budget(1.0, 1e-6)) >= 3


@pytest.mark.slow
def test_ten_minutes_of_torture(url, request, tmp_path):
    total = 0
    for seed in range(2, 12):
        home = tmp_path / str(seed)
        home.mkdir()
        each = f"sqlite:///{home / 'budget.db'}"
        if url.startswith("postgres"):
            each = request.getfixturevalue("server").fresh()
        total += run(each, request, home, 30.0, seed, Budget(200.0, 1e-6))
    print(f"{total} charges were acknowledged")
    assert total >= 10_000, total
