"""A run killed at any point and resumed is the run that was not killed."""

import hashlib
import io
import math
import os
import re
import stat
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest

from accountant.errors import ArgumentTypeError, DomainError
from accountant.learn import (
    SGD,
    AdaptiveQuantile,
    Batches,
    Checkpoint,
    CheckpointError,
    DPAdam,
    MultilayerPerceptron,
    Noise,
    PerExampleModel,
    Watch,
    train_dp_sgd,
)
from accountant.ledger import Accountant
from accountant.noise import SecureGenerator
from support.dp_sgd_runs import arranged

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = (X[:, 0] > 0).astype(int)
KEY = bytes(range(32))
Q = math.nextafter(40 / 300, 1.0)


class KilledError(Exception):
    pass


def run(path, *, kill=None, every=3, rng=5, key=None, data=X, model=None, **given):
    def hook(progress):
        if progress.step == kill:
            raise KilledError

    settings = {
        "clipping_norm": AdaptiveQuantile(1.0),
        "noise_multiplier": 1.0,
        "delta": 1e-5,
        "expected_batch_size": 40,
        "steps": 20,
        "optimizer": DPAdam(0.05),
        "averaging": "ema",
    } | given
    return train_dp_sgd(
        model or MultilayerPerceptron((4, 6, 2)), data, Y, rng=rng,
        checkpoint=None if path is None else Checkpoint(path, every=every, key=key),
        **arranged(settings | {"callbacks": [hook]}),
    )  # fmt: skip


@pytest.mark.long(keep=4)
@pytest.mark.parametrize("kill", [1, 3, 4, 11, 18, 20])
@pytest.mark.parametrize("key", [None, KEY])
def test_resumed_is_the_same(tmp_path, kill, key):
    path = tmp_path / "run.checkpoint"
    whole = run(None)
    with pytest.raises(KilledError):
        run(path, kill=kill, key=key)
    resumed = run(path, key=key)
    assert np.array_equal(resumed.parameters, whole.parameters)
    assert resumed.ledger.counts == whole.ledger.counts
    assert resumed.epsilon == whole.epsilon
    assert resumed.history.public == whole.history.public


def test_a_resumed_run_draws_no_noise_of_another_run(tmp_path):
    """Two runs share a generator; the first goes on from its checkpoint after the second."""
    shared = SecureGenerator()

    def noises(path, last):
        seen = []

        def hook(progress):
            seen.append(progress.parameters)
            return progress.step == last

        # So much noise that gradients do not show.
        train_dp_sgd(
            MultilayerPerceptron((4, 6, 2)), X, Y, batches=Batches(40, steps=20),
            noise=Noise(1e6), rng=shared, clipping_norm=1.0, delta=1e-5,
            optimizer=SGD(1e-3), checkpoint=path, watch=Watch([hook]),
        )  # fmt: skip
        return np.diff(np.array(seen, dtype=float), axis=0)

    noises(tmp_path / "first", 5)
    second = noises(None, 20)
    resumed = noises(tmp_path / "first", 20)
    ours = resumed / np.linalg.norm(resumed, axis=1, keepdims=True)
    theirs = second / np.linalg.norm(second, axis=1, keepdims=True)
    assert np.abs(ours @ theirs.T).max() < 0.95


def test_killed_twice_with_secure_noise(tmp_path):
    # Unseeded: the checkpoint carries the key, so released iterates agree where they overlap.
    path, seen, kills = tmp_path / "c", {}, [8, 14]

    def watch(progress):
        if progress.step in seen:
            assert np.array_equal(seen[progress.step], progress.parameters)
        seen[progress.step] = progress.parameters
        if progress.step in kills:
            kills.remove(progress.step)
            raise KilledError

    for _ in range(2):
        with pytest.raises(KilledError):
            train(path, watch)
    result = train(path, watch)
    assert result.steps == 20
    assert result.private


def train(path, hook):
    return train_dp_sgd(
        MultilayerPerceptron((4, 6, 2)), X, Y, batches=Batches(40, steps=20), noise=Noise(1.0),
        clipping_norm=1.0, delta=1e-5, optimizer=SGD(0.1), checkpoint=Checkpoint(path, every=5),
        watch=Watch([hook]),
    )  # fmt: skip


def test_a_finished_run_is_not_continued(tmp_path):
    path = tmp_path / "c"
    first = run(path)
    again = run(path)
    assert np.array_equal(first.parameters, again.parameters)
    assert again.steps == 20


def test_every_changed_byte_is_refused(tmp_path):
    path = tmp_path / "c"
    run(path, key=KEY)
    content = path.read_bytes()
    for position in [*range(60), *range(60, len(content), 97), len(content) - 1]:
        changed = bytearray(content)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(CheckpointError):
            run(path, key=KEY)


def test_every_cut_is_refused(tmp_path):
    path = tmp_path / "c"
    run(path)
    content = path.read_bytes()
    for length in [0, 1, 24, 40, 71, 200, len(content) - 33, len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            run(path)


def test_another_key_is_refused(tmp_path):
    path = tmp_path / "c"
    run(path, key=KEY)
    for key in (None, bytes(32)):
        with pytest.raises(CheckpointError):
            run(path, key=key)


@pytest.mark.long(keep=12)
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"steps": 21}, "plan.steps"),
        ({"noise_multiplier": 1.1}, "plan.noise_multiplier"),
        ({"noise": "discrete_gaussian"}, "plan.noise"),
        ({"delta": 1e-6}, "plan.delta"),
        ({"expected_batch_size": 41}, "plan.sampling_probability"),
        ({"sampler": "full", "expected_batch_size": 300}, "plan.sampler"),
        ({"sampling_probability": 0.12}, "plan.sampling_probability"),
        ({"clipping_norm": 1.0}, "clipping"),
        ({"clipping_norm": AdaptiveQuantile(1.1)}, "clipping"),
        ({"clipping_norm": AdaptiveQuantile(1.0, count_noise=9.0)}, "clipping"),
        ({"optimizer": DPAdam(0.06)}, "optimizer.schedule"),
        ({"optimizer": SGD(0.05)}, "optimizer.name"),
        ({"averaging": "last"}, "averaging.name"),
        ({"projection_radius": 3.0}, "radius"),
        ({"data": X + 1}, "data"),
        ({"data": X[:, ::-1]}, "data"),
        ({"model": MultilayerPerceptron((4, 7, 2))}, "model"),
        ({"model": MultilayerPerceptron((4, 6, 2), activation="sigmoid")}, "function"),
        ({"rng": None}, "seeded"),
    ],
    # By name and setting alone: values may print where they are in memory.
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value,
)
def test_another_run_is_refused_and_the_setting_is_named(tmp_path, given, named):
    path = tmp_path / "c"
    run(path, kill=None)
    with pytest.raises(CheckpointError, match=f"other data or settings .*{named}"):
        run(path, **given)


# Without a key anybody can write a header whose digest fits: it is a claim, not a fact.


def rewrite(path, change):
    saved = Checkpoint(path).load()
    change(saved.header, saved.arrays)
    Checkpoint(path).save(saved)


def started(tmp_path):
    path = tmp_path / "c"
    with pytest.raises(KilledError):
        run(path, kill=10, every=1)
    assert Checkpoint(path).load().header["step"] == 10
    return path


def leaves(value, name=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*name, key))
    else:
        yield name, value


def settings():
    """Return the names of all settings a checkpoint holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        run(path)
        return [name for name, _ in leaves(Checkpoint(path).load().header["identity"])]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", settings(), ids=".".join)
def test_every_setting_of_a_header_must_be_the_runs(tmp_path, name):
    for value in (None, True, 1e-3, "other", [1]):

        def change(header, arrays, value=value):
            inner = header["identity"]
            for key in name[:-1]:
                inner = inner[key]
            assert inner[name[-1]] is not value or name[-1] in ("radius", "seeded")
            inner[name[-1]] = value

        if name == ("radius",) and value is None:
            continue
        if name == ("seeded",) and value is True:
            continue
        path = started(tmp_path)
        rewrite(path, change)
        with pytest.raises(CheckpointError, match=re.escape(".".join(name))):
            run(path)
        path.unlink()


def put(field, value):
    return lambda header, arrays: header.update({field: value})


def put_clipping(field, value):
    return lambda header, arrays: header["clipping"].update({field: value})


def put_array(name, value):
    return lambda header, arrays: arrays.update({name: value})


ENTRY = {"noise": "gaussian", "sampling_probability": Q, "noise_multiplier": 1.0}
LIES = [
    (put("data", "0" * 64), "data"),
    (put("step", 9), "step"),
    (put("step", -1), "step"),
    (put("step", 21), "step"),
    (put("step", 10.0), "step"),
    (put("step", True), "step"),
    (put("label", None), "label"),
    (put("optimizer_count", 9), "optimizer_count"),
    (put("clipping", []), "clipping"),
    (put_clipping("clipping_norm", "1"), "clipping.clipping_norm"),
    (put_clipping("clipping_norm", -1.0), "clipping_norm"),
    (put_clipping("clipping_norm", float("nan")), "clipping_norm"),
    (put_clipping("clipping_norm", float("inf")), "clipping_norm"),
    (put_clipping("count_noise", 1e-3), "clipping.count_noise"),
    (put_clipping("quantile", 0.4), "clipping.quantile"),
    (put_clipping("more", 0.4), "clipping.more"),
    (put("generator", "00"), "generator"),
    (put("generator", "x" * 64), "generator"),
    (put("ledger", []), "ledger"),
    (put("ledger", None), "ledger"),
    (put("ledger", [ENTRY | {"steps": 9}]), "ledger"),
    (put("ledger", [ENTRY | {"steps": 10.0}]), "ledger"),
    (put("ledger", [ENTRY | {"steps": -10}]), "ledger"),
    (put("ledger", [ENTRY | {"steps": 10, "noise_multiplier": 100.0}]), "ledger"),
    (put("ledger", [ENTRY | {"steps": 10, "sampling_probability": 1e-9}]), "ledger"),
    (put("ledger", [ENTRY | {"steps": 10, "noise": "discrete_gaussian"}]), "ledger"),
    (put("ledger", [ENTRY | {"steps": 10, "more": 1}]), "ledger"),
    (put("ledger", [ENTRY | {"steps": 10}, ENTRY | {"steps": 10}]), "ledger"),
    (put("ledger", [7]), "ledger"),
    (put("history", [[], [], []]), "history"),
    (put("history", [[{"step": 11}], []]), "history"),
    (put("history", [[{"step": "a"}], []]), "history"),
    (put("history", {}), "history"),
    (put_array("parameters", np.float64(0.0)), "parameters"),
    (put_array("parameters", np.zeros(3)), "parameters"),
    (put_array("more.state", np.zeros(3)), "more.state"),
    (put_array("optimizer.state", np.array(["a"])), "optimizer.state"),
]


@pytest.mark.long(keep=9)
@pytest.mark.parametrize(("change", "named"), LIES, ids=range(len(LIES)))
def test_a_header_that_does_not_fit_itself_is_refused_by_name(tmp_path, change, named):
    path = started(tmp_path)
    rewrite(path, change)
    with pytest.raises(CheckpointError, match=named):
        run(path)


def test_every_field_of_a_header_is_needed(tmp_path):
    path = started(tmp_path)
    kept = path.read_bytes()
    for field in Checkpoint(path).load().header:
        rewrite(path, lambda header, arrays, field=field: header.pop(field))
        with pytest.raises(CheckpointError, match=field):
            run(path)
        path.write_bytes(kept)
    rewrite(path, lambda header, arrays: arrays.pop("parameters"))
    with pytest.raises(CheckpointError, match="parameters"):
        run(path)


def test_a_header_may_add_steps_to_the_account_but_take_none(tmp_path):
    path = started(tmp_path)
    honest = run(None)
    rewrite(path, put("ledger", [ENTRY | {"steps": 12}]))
    resumed = run(path)
    assert resumed.epsilon > honest.epsilon
    assert len(resumed.ledger) == 22
    # A label that no record has charges the accountant again, and not less.
    path = tmp_path / "d"
    book = Accountant()
    with pytest.raises(KilledError):
        run(path, kill=10, every=1, ledger=book)
    rewrite(path, put("label", "another"))
    run(path, ledger=book)
    assert len(book) >= 20


def test_only_the_owner_may_read(tmp_path):
    path = tmp_path / "c"
    old = os.umask(0)
    try:
        run(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_interrupted_write_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "c"
    with pytest.raises(KilledError):
        run(path, kill=10)
    kept = path.read_bytes()

    def full(descriptor):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="disk full"):
            run(path)
    assert path.read_bytes() == kept


@pytest.mark.parametrize("given", [{"every": 0}, {"every": 1.5}, {"key": b"short"}])
def test_bad_settings(given):
    with pytest.raises((DomainError, ArgumentTypeError)):
        Checkpoint("x", **given)


def test_killed_before_the_first_saving_draws_no_other_noise(tmp_path):
    path, seen = tmp_path / "c", {}

    def watch(progress):
        if progress.step in seen:
            assert np.array_equal(seen[progress.step], progress.parameters)
        seen[progress.step] = progress.parameters
        if progress.step == 2 and len(seen) == 2:
            seen[0] = progress.parameters
            raise KilledError

    with pytest.raises(KilledError):
        train(path, watch)
    assert train(path, watch).steps == 20


@pytest.mark.parametrize("other", ["relu", "sigmoid"])
def test_the_same_noise_is_not_used_for_another_function(tmp_path, other):
    path = tmp_path / "c"
    with pytest.raises(KilledError):
        run(path, kill=7)
    with pytest.raises(CheckpointError):
        run(path, model=MultilayerPerceptron((4, 6, 2), activation=other))


def stepwise(folder, kill, gradients, data, labels):
    """Twenty steps, saved one by one; killed after ``kill`` of them."""

    def hook(progress):
        if progress.step == kill:
            raise KilledError

    return train_dp_sgd(
        PerExampleModel(np.zeros(4), gradients), data, labels, batches=Batches(40, steps=20),
        noise=Noise(5.0), clipping_norm=1.0, delta=1e-5,
        checkpoint=Checkpoint(folder / "c", every=1), watch=Watch([hook]),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_another_function_of_the_targets_is_refused(tmp_path, kind):
    # Both are zero for the target 0, and their difference would be released without noise.
    def trained(factor, kill):
        signs = (2 * Y - 1).astype(kind)
        return stepwise(tmp_path, kill, lambda w, x, y: -factor * y[:, None] * x, X, signs)

    with pytest.raises(KilledError):
        trained(0.01, kill=7)
    for other in (0.02, -0.01, 0.01 * (1 + 1e-9)):
        with pytest.raises(CheckpointError, match="function"):
            trained(other, kill=None)
    assert trained(0.01, kill=None).steps == 20


def test_a_function_that_is_not_finite_on_normal_numbers_is_still_told_from_another(tmp_path):
    def trained(power, kill):
        return stepwise(tmp_path, kill, lambda w, x, y: np.sqrt(x) ** power, np.abs(X), Y)

    with pytest.raises(KilledError):
        trained(1, kill=7)
    with pytest.raises(CheckpointError, match="function"):
        trained(3, kill=None)


@pytest.mark.parametrize("threshold", [10.0, 1e3, 1e5])
def test_a_function_that_differs_for_large_numbers_alone_is_another(tmp_path, threshold):
    def trained(threshold, kill):
        def gradients(w, x, y):
            return np.clip(x @ w - y, -threshold, threshold)[:, None] * x

        return run(tmp_path / "c", kill=kill, model=PerExampleModel(np.zeros(4), gradients))

    with pytest.raises(KilledError):
        trained(threshold, kill=7)
    with pytest.raises(CheckpointError, match="function"):
        trained(2 * threshold, kill=None)
    assert trained(threshold, kill=None).steps == 20


def test_steps_of_another_run_do_not_hide_those_of_a_resumed_one(tmp_path):
    path, first, second = tmp_path / "c", Accountant(), Accountant()
    with pytest.raises(KilledError):
        run(path, kill=9, ledger=first)
    run(None, ledger=second)  # 20 steps of the same kind, of a run of its own
    run(path, ledger=second)
    assert sum(count for _, count in second.counts) == 40


def test_a_checkpoint_that_unpacks_to_more_than_itself_is_refused_unread(tmp_path, monkeypatch):
    packed, path = io.BytesIO(), tmp_path / "run.ckpt"
    np.savez_compressed(packed, model=np.zeros(10**6))
    sizes = struct.pack("<QQ", 2, packed.tell())
    body = b"accountant checkpoint 1\n" + sizes + b"{}" + packed.getvalue()
    path.write_bytes(body + hashlib.sha256(body).digest())
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    with pytest.raises(CheckpointError, match="bytes unpacked"):
        Checkpoint(path).load()


def test_a_checkpoint_is_a_regular_file(tmp_path):
    (tmp_path / "run.ckpt").symlink_to("/dev/zero")
    with pytest.raises(DomainError, match="must be a regular file"):
        Checkpoint(tmp_path / "run.ckpt").load()
