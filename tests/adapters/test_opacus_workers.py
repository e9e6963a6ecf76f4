"""Data-parallel runs: two and four workers have the ε of one, or are refused."""

import math
import re

import numpy as np
import pytest

import accountant as ac
from support.opacus_runs import DELTA, QUIET, coin

pytestmark = QUIET

from support import forked_workers, opacus_worker  # noqa: E402 (needs opacus)

ONE_RUN = [[1.1, coin(1 / 9), 9]]
WHOLE = ["own seeds", "one global seed", "physical batches", "sharded", "torch's own", "ghost"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    return forked_workers.started(opacus_worker, [2, 4], tmp_path_factory.mktemp("workers"))


@pytest.fixture(params=[2, 4])
def workers(request, reports):
    """What each worker reports of each run: a dictionary of lists, by the name of the run."""
    ends = reports[request.param]
    return {name: [end[name] for end in ends] for name in ends[0]}


def test_every_run_that_is_whole_has_the_epsilon_of_one_process(workers):
    alone = opacus_worker.run(0, wrapped=lambda model: model)
    assert alone["epsilon"] == ac.get_epsilon(coin(1 / 9), 1.1, 9, DELTA)
    for name in WHOLE:
        for found in workers[name]:
            assert found["refused"] is None, name
            assert (found["history"], found["epsilon"]) == (ONE_RUN, alone["epsilon"])
            assert found["weights"] == workers[name][0]["weights"]  # one model
    # Together they draw what one worker would: 9 batches of 200 on average, within 6 deviations.
    for name in ("own seeds", "one global seed", "physical batches", "sharded"):
        seen = sum(found["seen"] for found in workers[name])
        assert abs(seen - 1800) < 6 * math.sqrt(1800 * 8 / 9)


@pytest.mark.parametrize("name", ["noise alone", "noise alone, sharded"])
def test_the_noise_of_all_workers_is_that_of_one(workers, name):
    # Records of zeros have no gradient in the first layer: 9 steps change it by their noise.
    for found in workers[name]:
        noise = np.array(found["change"]) * 200 / 0.1
        assert abs(noise.std() / (3 * 1.1) - 1) < 6 / math.sqrt(2 * noise.size)
        parts = np.split(noise, len(workers[name]))
        assert all(abs(np.corrcoef(parts[0], part)[0, 1]) < 0.6 for part in parts[1:])


def test_the_optimisers_are_those_of_data_parallel_training(workers):
    kinds = {name: {found["optimizer"] for found in workers[name]} for name in WHOLE}
    assert kinds["own seeds"] == kinds["torch's own"] == {"DistributedDPOptimizer"}
    assert kinds["sharded"] == {"FSDPOptimizerFastGradientClipping"}
    assert kinds["ghost"] == {"DistributedDPOptimizerFastGradientClipping"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("one seed", "draw their batches independently"),
        ("sharded, one seed", "draw their batches independently"),
        ("sharded, ghost noise", "the noise of worker 0 and the noise of worker 1 have one seed"),
        ("noise of the coins", "coins of worker . have one seed|noise of worker 0 have one seed"),
        ("seeded afterwards", "seeded after make_private"),
        ("small batches", "empty batch"),
        ("other noise", "must make the same step"),
        ("past elsewhere", "hold releases that the first worker's does not"),
        ("sharded, bfloat16", "norms of bfloat16"),
        ("sharded without ghosts", "is sharded over them"),
        ("whole data", "a shard of its own"),
        ("allocation", "a shard of its own"),
    ],
)
def test_what_would_not_be_covered_is_refused_on_every_worker(workers, name, why):
    for found in workers[name]:
        assert re.search(why, found["refused"]), found["refused"]
        assert found["unchanged"]
        assert found["history"] == [] or name == "past elsewhere"


def test_a_budget_on_the_first_worker_stops_all_at_one_step(workers):
    first, *others = workers["budget"]
    assert 0 < first["history"][0][2] < 9
    assert first["epsilon"] <= opacus_worker.BUDGET.epsilon
    for found in others:
        assert (found["history"], found["epsilon"]) == (first["history"], first["epsilon"])
        assert found["weights"] == first["weights"]
        assert found["refused"] == first["refused"]
    assert all(found["unchanged"] for found in workers["budget"])


def test_the_past_of_the_first_worker_is_that_of_all(workers):
    whole = [[2.0, 0.5, 1], *ONE_RUN]
    parts = [(ac.PoissonSampled(ac.Gaussian(noise), rate), n) for noise, rate, n in whole]
    for found in workers["past"]:
        assert found["history"] == whole
        assert found["epsilon"] == ac.Composition(parts).epsilon(DELTA)


def test_a_resumed_run_has_the_epsilon_of_the_whole(workers):
    for half, found in zip(workers["first half"], workers["second half"], strict=True):
        assert half["history"] == ONE_RUN
        assert found["history"] == [[1.1, coin(1 / 9), 18]]
        assert found["epsilon"] == ac.get_epsilon(coin(1 / 9), 1.1, 18, DELTA)
