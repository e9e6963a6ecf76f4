"""Neighbours told apart by nothing but the noise: every trainer, extractor, estimator, mechanism.

Both data sets of a pair are run with the same noise, the second one on the releases of the first.
What reaches the noise may differ by the sensitivity charged, exactly; exceptions, warnings, output,
sizes of releases, noise and everything a result holds may not differ at all.
"""

import numpy as np
import pytest

from accountant.learn import CheckpointError, PerExampleModel, train_dp_sgd
from support.dp_sgd_runs import arranged
from support.twins import cases, pairs, walk
from support.twins.cases_descent import SETTINGS
from support.twins.cases_features import EXTRACTIONS, rows_apart
from support.twins.comparison import twins

EVERY = cases()
IDS = [case.name for case in EVERY]


@pytest.mark.long(keep=20)
@pytest.mark.parametrize("case", EVERY, ids=IDS)
def test_neighbours_differ_by_what_was_charged_and_by_nothing_else(case):
    ran = 0
    for pair in case.pairs():
        wrong, one, _ = twins(case, pair)
        assert not wrong, f"{pair.name}: {'; '.join(wrong)}"
        ran += one.raised is None
    # A trainer that refuses everything has passed no test, unless it is meant to.
    assert bool(ran) != case.refused or not list(case.pairs())


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in EVERY if list(c.more())], ids=lambda c: c.name)
def test_the_same_on_many_more_pairs(case):
    for pair in case.more():
        wrong, _, _ = twins(case, pair, seconds=120.0)
        assert not wrong, f"{pair.name}: {'; '.join(wrong)}"


def test_every_public_name_has_a_case_or_a_reason_for_none():
    assert not walk.unaccounted({name for case in [*EVERY, *EXTRACTIONS] for name in case.covers})


def test_the_lists_of_exceptions_name_what_there_is():
    drawing = walk.drawing()
    assert [name for name in walk.WITHIN if name not in drawing] == []
    offered = {name.rpartition(".")[2] for name in walk.offered()}
    words = [word for line in walk.WITHOUT_RELEASES.values() for word in line.split()]
    assert [word for word in words if word not in offered] == []


@pytest.mark.parametrize("extraction", EXTRACTIONS, ids=lambda e: e.name)
def test_a_record_is_extracted_by_itself_to_the_last_bit(extraction):
    for pair in extraction.pairs[0]():
        assert not rows_apart(extraction, pair), pair.name


@pytest.mark.slow
@pytest.mark.parametrize("extraction", EXTRACTIONS, ids=lambda e: e.name)
def test_the_same_at_every_size_a_kernel_may_care_about(extraction):
    for pair in extraction.pairs[1]():
        assert not rows_apart(extraction, pair), pair.name


def test_a_run_resumed_with_another_function_gets_none_of_its_noise(tmp_path):
    # Hinge and squared hinge: the same gradients where every target is 0.
    def hinge(parameters, X, y):
        return -(y * (y * (X @ parameters) < 1.0))[:, None] * X

    def squared(parameters, X, y):
        return hinge(parameters, X, y) * np.maximum(1.0 - y * (X @ parameters), 0.0)[:, None]

    def run(gradients, **given):
        X = pairs.features(21, 3)
        settings = arranged(SETTINGS | {"noise_multiplier": 5.0} | given)
        settings["checkpoint"] = tmp_path / "run"
        return train_dp_sgd(
            PerExampleModel(np.full(3, 0.2), gradients), X, pairs.signs(X), **settings
        )

    run(hinge, callbacks=[lambda progress: progress.step == 1])
    with pytest.raises(CheckpointError, match="other data or settings"):
        run(squared)
    assert run(hinge).steps == 2
