"""The golden files of a version: ledger, store, certificate and checkpoint, as it wrote them.

Every release adds a folder, which is never changed again. For the next one, after its version is
set in ``accountant/__init__.py``:

    PYTHONPATH=tests python -m support.golden

writes ``tests/support/data/golden/VERSION`` and what was answered then; ``answers.json`` is what
tests/cross_cutting/test_golden.py compares with. A version that refuses the files of an earlier one
says so in the changelog, and keeps their folder under ``refused``.
"""

import contextlib
import json
from pathlib import Path

import numpy as np

import accountant as ac
from accountant import store
from accountant.learn import Batches, Checkpoint, LogisticRegression, Noise, Watch, train_dp_sgd
from accountant.learn.run import function_digest

GOLDEN = Path(__file__).parent / "data" / "golden"
DELTA = 1e-5
STEP = ac.PoissonSampled(ac.Gaussian(1.1), 0.01)
BLOCKS = ("acme/visits/2026-01", "acme/visits/2026-02")
# A checkpoint is of a run of six steps that ended after three.
MADE, STEPS = 3, 6


def ledger():
    """Return a ledger with a budget, a plan, statements at two δ and records of several kinds."""
    book = ac.Accountant(ac.Budget(3.0, DELTA))
    book.plan(1000 * STEP + ac.Laplace(40.0), label="night α")
    book.compose(STEP, 300, label="night α", time=1764374400.0)
    book.compose(ac.Laplace(40.0), label='"count"')
    book.compose(STEP, 20)
    book.note_delta(1e-7)
    return book


def fill(shared):
    """Charge the blocks of an empty store, once by a reservation."""
    shared.add_blocks(BLOCKS, ac.Budget(2.0, 1e-6))
    shared.charge(BLOCKS, STEP, 100, key="first")
    shared.charge(BLOCKS[:1], ac.Gaussian(9.0))
    shared.reserve(BLOCKS, STEP, 50, key="second")
    shared.commit("second", 40)


def told_by(shared):
    """Return what a store says of its blocks, whose journal and tables must fit."""
    found = shared.verify()
    assert not found.faults, found
    return {
        "rows": found.head.rows,
        "records": {each: records(shared.ledger(each)) for each in BLOCKS},
        "epsilon": {each: ends(shared.ledger(each), 1e-6) for each in BLOCKS},
    }


def ends(book, delta):
    """Return the two ends of a ledger's ε."""
    found = book.epsilon_bounds(delta)
    return [found.lower, found.upper]


def records(book):
    """Return the records of a ledger as plain values."""
    return [[repr(e.mechanism), e.count, e.label, e.time] for e in book.history]


def data():
    """Return the records that the checkpoint's run trains on."""
    rng = np.random.default_rng(0)
    features = rng.integers(-3, 4, size=(64, 2)).astype(float)
    return features, (features[:, 0] > 0).astype(int)


def train(checkpoint, end=STEPS):
    """Make the run of a checkpoint, or go on with it, up to a step, and return its result."""

    def stop(progress):
        if progress.step == end < STEPS:
            raise Ended

    return train_dp_sgd(
        LogisticRegression(2), *data(), batches=Batches(16, steps=STEPS), noise=Noise(1.0),
        clipping_norm=1.0, delta=DELTA, rng=5, checkpoint=checkpoint,
        watch=Watch(callbacks=[stop]),
    )  # fmt: skip


class Ended(Exception):  # noqa: N818 - nothing is wrong
    """A run was ended before its last step."""


def here(saved):
    """Give a checkpoint this machine's rounding of sums and exponentials; the rest is portable."""
    model = LogisticRegression(2)
    saved.header["identity"]["function"] = function_digest(model, *model.check(*data()))
    return saved


def make(folder):
    """Write the golden files of this version, and its answers."""
    folder.mkdir(parents=True)
    book = ledger()
    (folder / "ledger.json").write_text(book.to_json())
    made = ac.certificate(book, DELTA)
    (folder / "certificate.json").write_text(made.text)
    with store.open(f"sqlite:///{folder / 'store.db'}", create=True) as shared:
        fill(shared)
        stored = told_by(shared)
    place = Checkpoint(folder / "run.checkpoint", every=1)
    with contextlib.suppress(Ended):
        train(place, MADE)
    half = (folder / "run.checkpoint").read_bytes()
    result = train(place)
    (folder / "run.checkpoint").write_bytes(half)
    answers = {
        "ledger": {
            "records": records(book),
            "planned": [[repr(e.mechanism), e.count, e.label] for e in book.planned],
            "deltas": list(book.deltas),
            "epsilon": {repr(delta): ends(book, delta) for delta in book.deltas},
            "affordable": book.affordable(STEP),
        },
        "store": stored,
        "certificate": {"epsilon": made.epsilon, "delta": DELTA},
        "checkpoint": {
            "steps": result.ledger.counts[0][1],
            "epsilon": result.epsilon,
            "parameters": result.parameters.tolist(),
        },
    }
    (folder / "answers.json").write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    make(GOLDEN / ac.__version__)
