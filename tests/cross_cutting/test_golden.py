"""Files that earlier versions wrote are read by this one, and give the answers of then."""

import json
import math
import shutil

import numpy as np
import pytest

import accountant as ac
from accountant import store
from accountant.learn import Checkpoint
from support import golden

VERSIONS = sorted(path for path in golden.GOLDEN.iterdir() if (path / "answers.json").exists())
# A later version may round otherwise on the way, or find a narrower bracket; never a disjoint one.
WIDTH = 1e-6


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def folder(request):
    return request.param


@pytest.fixture
def answers(folder):
    return json.loads((folder / "answers.json").read_text())


def agrees(found, stored):
    """Tell whether two brackets overlap, and the new upper end did not rise."""
    return found[0] <= stored[1] and stored[0] <= found[1] <= stored[1] * (1.0 + WIDTH)


def test_this_version_has_its_files():
    assert ac.__version__ in [path.name for path in VERSIONS]


def test_the_ledger_is_read(folder, answers):
    text = (folder / "ledger.json").read_text()
    book, told = ac.Accountant.from_json(text), answers["ledger"]
    assert golden.records(book) == told["records"]
    assert [[repr(e.mechanism), e.count, e.label] for e in book.planned] == told["planned"]
    assert list(book.deltas) == told["deltas"]
    assert book.affordable(golden.STEP) >= told["affordable"]
    for delta, stored in told["epsilon"].items():
        assert agrees(golden.ends(book, float(delta)), stored)


def test_the_store_is_read_verified_and_charged_again(folder, answers, tmp_path):
    shutil.copy(folder / "store.db", tmp_path)
    with store.open(f"sqlite:///{tmp_path / 'store.db'}") as shared:
        told, stored = golden.told_by(shared), answers["store"]
        assert told["rows"] == stored["rows"]
        assert told["records"] == stored["records"]
        assert all(agrees(told["epsilon"][each], stored["epsilon"][each]) for each in golden.BLOCKS)
        # An idempotency key is remembered: the release is not charged twice.
        assert shared.charge(golden.BLOCKS, golden.STEP, 100, key="first").repeated
        shared.charge(golden.BLOCKS[1:], golden.STEP, 1)
        assert shared.verify().head.rows == stored["rows"] + 1


def test_the_certificate_is_shown_by_the_checker(folder, answers):
    pytest.importorskip("flint")
    from dp_verifier import check

    claim, _ = check((folder / "certificate.json").read_text())
    told = answers["certificate"]
    assert (float(claim.epsilon), float(claim.delta)) == (told["epsilon"], told["delta"])
    book = ac.Accountant.from_json((folder / "ledger.json").read_text())
    assert book.epsilon_bounds(golden.DELTA).lower <= told["epsilon"]


def test_the_checkpoint_is_resumed(folder, answers, tmp_path):
    saved = golden.here(Checkpoint(folder / "run.checkpoint").load())
    assert saved.header["step"] == golden.MADE
    place = Checkpoint(tmp_path / "run.checkpoint")
    place.save(saved)
    result, told = golden.train(place), answers["checkpoint"]
    assert result.ledger.counts[0][1] == told["steps"] == golden.STEPS
    assert math.isclose(result.epsilon, told["epsilon"], rel_tol=WIDTH)
    # The same key draws the same noise; other libraries round sums otherwise.
    np.testing.assert_allclose(result.parameters, told["parameters"], rtol=WIDTH)
