"""Private steps on several processes: one draw, one sum, one noise, one ledger."""

import math

import numpy as np
import pytest

import accountant as ac

pytest.importorskip("torch")

from support import forked_workers, units_worker

DELTA = units_worker.DELTA


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("units")
    return forked_workers.started(units_worker, [2, 4], folder), folder


@pytest.fixture(params=[2, 4])
def workers(request, reports):
    """What each worker reports of each run, a dictionary of lists by the run's name; its folder."""
    ends, folder = reports[0][request.param], reports[1] / str(request.param)
    return {name: [end[name] for end in ends] for name in ends[0]}, folder


def test_all_workers_have_one_model_and_one_epsilon(workers):
    for name, found in workers[0].items():
        for other in found[1:]:
            assert other["weights"] == found[0]["weights"], name
            assert (other["epsilon"], other["steps"]) == (found[0]["epsilon"], found[0]["steps"])


def test_the_sum_is_that_of_one_process(workers):
    alone = units_worker.loop(0, units_worker.ALL, noise=1e-4)
    found = workers[0]["all"]
    assert sum(each["seen"] for each in found) == alone["seen"] == 90
    assert found[0]["epsilon"] == alone["epsilon"] == units_worker.ALL.epsilon(1e-4, DELTA)
    # Sums are integers, so that only the noise differs.
    assert np.allclose(found[0]["weights"], alone["weights"], atol=1e-5)


def test_samples_are_drawn_once_for_all(workers):
    found = workers[0]["some"]
    seen = sum(each["seen"] for each in found)
    assert abs(seen - 8 * 15) < 6 * math.sqrt(8 * 7.5)
    assert found[0]["epsilon"] == units_worker.SOME.epsilon(1.0, DELTA)


def test_the_budget_of_the_first_worker_ends_all(workers):
    found = workers[0]["budget"]
    assert 0 < found[0]["steps"] < units_worker.SOME.steps
    assert found[0]["epsilon"] <= 4.0


def test_gradients_that_are_averaged_over_workers_are_refused(workers):
    for found in workers[0]["wrapped"]:
        assert "must be the module itself" in found["told"][0]
        assert "averages it with those of other workers" in found["told"][1]


def test_accelerate_prepares_what_is_trained(workers):
    if "accelerate" not in workers[0]:
        pytest.skip("accelerate is not installed")
    assert workers[0]["accelerate"][0]["epsilon"] == units_worker.SOME.epsilon(1.0, DELTA)


def test_the_trainer_of_hugging_face_on_all_workers(workers):
    found, folder = workers
    if "trainer" not in found:
        pytest.skip("transformers is not installed")
    rate = 5 * 2 * len(found["trainer"]) / 30
    step = ac.PoissonSampled(ac.Gaussian(1.0), min(rate, 1.0))
    for each in found["trainer"]:
        assert each["seen"] == each["steps"] == 4
        assert each["epsilon"] == (4 * step).epsilon(DELTA)
    assert "one user, with all their records" in (folder / "statement.md").read_text()
