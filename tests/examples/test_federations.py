"""The examples of federations, simulated by Flower and by NVFlare where they are installed.

The server is killed in the middle of a run, as a power failure would, and started again.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

from accountant import store
from accountant.adapters import _federated_state as memory

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [
    pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not here"),
    pytest.mark.slow,
]

TOLD = re.compile(r"^(\d+) rounds, ε = ([\d.]+) at δ = \S+, accuracy ([\d.]+)", re.M)
BUDGET = {"federated_flower": 6.5, "federated_nvflare": 13.0}
PACKAGE = {"federated_flower": "ray", "federated_nvflare": "nvflare"}


def kill(mark):
    """Kill every process with this word in its environment; NVFlare's leave their group."""
    for _ in range(100):
        found = False
        for told in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError, ProcessLookupError):
                if mark.encode() in told.read_bytes():  # empty once a process is dead
                    os.kill(int(told.parent.name), signal.SIGKILL)
                    found = True
        if not found:
            return
        time.sleep(0.05)
    raise AssertionError("processes of a simulation cannot be killed")


@contextlib.contextmanager
def simulation(name, directory, kind):
    """Run an example; all its processes are ended whatever happens."""
    mark = f"simulation-{uuid.uuid4()}"
    run = subprocess.Popen(
        [sys.executable, "-u", str(EXAMPLES / f"{name}.py"), str(directory), kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=directory.parent,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "SIMULATION": mark},
    )

    def end():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        kill(mark)

    limit = threading.Timer(170, end)
    limit.start()
    try:
        with run:
            yield run, end
    finally:
        limit.cancel()
        end()


def charged(directory):
    """Return how often each client was charged."""
    with store.open(f"sqlite:///{directory / 'budgets.db'}") as budgets:
        return [block.releases for block in budgets.blocks()]


def killed_in_round(number, name, directory, kind):
    """Kill a run when it says that the round is paid for."""
    said = []
    with simulation(name, directory, kind) as (run, end):
        for line in run.stdout:
            said.append(line)
            if f"round {number}: ε" in line:
                end()
                return
    pytest.fail("the run ended before: " + "".join(said)[-3000:])


def finished(name, directory, kind):
    """Run to the end; return the rounds, ε, the accuracy, and all that was said."""
    with simulation(name, directory, kind) as (run, _):
        said = run.stdout.read()
    found = TOLD.search(said)
    assert found, said[-3000:]
    return int(found[1]), float(found[2]), float(found[3]), said


@pytest.mark.parametrize("kind", ["central", "secure"])
@pytest.mark.parametrize("name", ["federated_flower", "federated_nvflare"])
def test_a_federation_learns_within_its_budgets_and_survives_its_server(name, kind, tmp_path):
    pytest.importorskip("flwr" if name == "federated_flower" else "nvflare")
    pytest.importorskip(PACKAGE[name])
    place = tmp_path / "federation"
    for number in (3, 5, 7):
        killed_in_round(number, name, place, kind)
        left = memory.read(place / "released.npz")
        assert left.rounds >= 2
        # The round is recorded, and not released: unless the signal came late.
        if max(charged(place)) > left.rounds:
            break
    else:
        pytest.fail("no server was killed between recording and releasing")
    rounds, epsilon, accuracy, said = finished(name, place, kind)
    assert "round 1: ε" not in said  # two rounds were released before
    assert rounds > 3
    assert 0.0 < epsilon <= BUDGET[name]
    assert accuracy > 0.75
    # Nothing is lost, and nothing charged twice but for a secure sum, which was perhaps seen.
    kept, paid = memory.read(place / "released.npz"), max(charged(place))
    assert (kept.rounds, kept.charges) == (rounds, paid)
    assert paid > rounds if kind == "secure" else paid == rounds
