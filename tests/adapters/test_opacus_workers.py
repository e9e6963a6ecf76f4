"""Data-parallel runs: two workers have the ε of one, or are refused."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import accountant as ac
from support.opacus_runs import DELTA, QUIET, coin

pytestmark = QUIET

from support import opacus_worker  # noqa: E402 (needs opacus)


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """Pairs of what two workers report of each of five runs."""
    meeting = tmp_path_factory.mktemp("workers") / "meeting"
    root = str(Path(ac.__file__).parents[1])
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": root}
    script = opacus_worker.__file__
    started = [
        subprocess.Popen(
            [sys.executable, script, str(rank), "2", str(meeting)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for rank in range(2)
    ]  # fmt: skip
    ends = []
    for one in started:
        out, err = one.communicate(timeout=120)
        assert one.returncode == 0, err
        ends.append(json.loads(out.splitlines()[-1]))
    return list(zip(*ends, strict=True))


def test_two_workers_have_the_epsilon_of_one(workers):
    first, second = workers[0]
    assert first["optimizer"] == "DistributedDPOptimizer"
    assert first["weights"] == second["weights"]  # one model
    assert first["history"] == second["history"] == [[1.1, coin(1 / 9), 9]]
    alone = opacus_worker.run(0, 200, wrapped=lambda model: model)
    assert first["epsilon"] == second["epsilon"] == alone["epsilon"]
    assert alone["epsilon"] == ac.get_epsilon(coin(1 / 9), 1.1, 9, DELTA)
    # Together they draw what one worker would: 9 batches of 200 on average, within 6 deviations.
    assert abs(first["seen"] + second["seen"] - 1800) < 6 * math.sqrt(1800 * 8 / 9)


def test_workers_that_draw_the_same_coins_are_refused(workers):
    for found in workers[1]:
        assert "draw their batches independently" in found["refused"]


def test_workers_that_are_seeded_alike_afterwards_are_refused(workers):
    for found in workers[3]:
        assert "seeded after make_private" in found["refused"]
        assert found["epsilon"] == 0.0


def test_two_workers_with_physical_batches_have_the_epsilon_of_one(workers):
    whole = workers[0][0]
    for found in workers[4]:
        assert found["weights"] == workers[4][0]["weights"]
        assert (found["history"], found["epsilon"]) == (whole["history"], whole["epsilon"])


def test_shards_so_small_that_batches_are_empty_are_refused(workers):
    for found in workers[2]:
        assert "empty batch" in found["refused"]
