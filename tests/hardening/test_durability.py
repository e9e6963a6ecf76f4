"""Killed processes, full disks, read-only directories, clocks that go back: nothing is lost.

A little of everything by default; ``pytest -m slow`` kills a thousand times.
"""

import contextlib
import errno
import os
import pathlib
import random
import resource
import signal
import struct
import sys
import tempfile
import time

import numpy as np
import pytest

import accountant as ac
from accountant.learn import Batches, LogisticRegression, Noise, Watch, train_dp_sgd
from accountant.learn.checkpoint import Checkpoint, Saved
from accountant.ledger import Accountant, storage

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="these tests fork")

TRIALS = [30, pytest.param(500, marks=pytest.mark.slow)]
STEP = ac.Gaussian(20.0)


@contextlib.contextmanager
def child(work):
    """Run ``work(report)`` in a forked process; yield its number and what it reports into."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(read)
            work(lambda number: os.write(write, struct.pack("<q", number)))
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    os.close(write)
    with open(read, "rb") as reports:
        try:
            yield process, reports
        finally:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)


def killed(work, delay):
    """Kill ``work`` so long after its first report; return all it reported."""
    with child(work) as (process, reports):
        first = reports.read(8)
        time.sleep(delay)
        os.kill(process, signal.SIGKILL)
        rest = reports.read()
    return [number for (number,) in struct.iter_unpack("<q", first + rest)]


@pytest.mark.long
@pytest.mark.parametrize("trials", TRIALS)
def test_a_killed_writer_of_ledgers_loses_nothing_and_repeats_nothing(tmp_path, trials):
    delays, next_label = random.Random(1), 0
    path = tmp_path / "0.json"
    for trial in range(trials):
        if trial % 25 == 0:
            path, next_label = tmp_path / f"{trial}.json", 0

        def work(report, path=path, first=next_label):
            for label in range(first, first + 100_000):
                with Accountant.transaction(path) as ledger:
                    ledger.compose(STEP, label=str(label))
                report(label)  # here the release would be made

        released = killed(work, delays.uniform(0.0, 0.02))
        found = [int(entry.label) for entry in Accountant.load(path).history]
        assert found == sorted(set(found)) == list(range(len(found)))
        assert set(released) <= set(found)
        assert len(found) - (released[-1] + 1) in (0, 1)  # recorded, and not yet released
        next_label = len(found)


@pytest.mark.long
@pytest.mark.parametrize("trials", TRIALS)
def test_a_killed_writer_of_checkpoints_leaves_a_whole_one(tmp_path, trials):
    delays = random.Random(2)
    place = Checkpoint(tmp_path / "run", key=bytes(32))
    last = 0
    for _ in range(trials):

        def work(report, first=last + 1):
            for step in range(first, first + 100_000):
                place.save(Saved({"step": step}, {"weights": np.full(2000, float(step))}))
                report(step)

        saved = killed(work, delays.uniform(0.0, 0.01))
        found = place.load()
        assert found.header["step"] - saved[-1] in (0, 1)
        assert np.all(found.arrays["weights"] == found.header["step"])
        last = found.header["step"]


@pytest.mark.parametrize("trials", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_training_ends_as_if_it_had_not_been(tmp_path, trials):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 3))
    target = (features[:, 0] > 0).astype(int)

    def train(path, hook=lambda progress: None):
        return train_dp_sgd(
            LogisticRegression(3), features, target, batches=Batches(20, steps=40),
            noise=Noise(1.0), clipping_norm=1.0, delta=1e-5, rng=3,
            checkpoint=None if path is None else Checkpoint(path, every=1), watch=Watch([hook]),
        )  # fmt: skip

    whole, delays = train(None), random.Random(3)
    for trial in range(trials):
        path = tmp_path / str(trial)

        def work(report, path=path):
            train(path, lambda progress: report(progress.step) and None)

        steps = killed(work, delays.uniform(0.0, 0.05))
        again: list[int] = []
        resumed = train(path, lambda progress, again=again: again.append(progress.step))
        assert np.array_equal(resumed.parameters, whole.parameters)
        assert resumed.epsilon == whole.epsilon
        assert resumed.ledger.counts == whole.ledger.counts
        # Every step was taken by one run or the other, but for what was in flight: saved and not
        # yet reported.
        assert len(set(range(1, 41)) - set(steps) - set(again)) <= 1
        assert not set(steps) & set(again)


def long_ledger():
    ledger = Accountant()
    for label in range(200):
        ledger.compose(STEP, label=str(label))
    return ledger


def leftovers(directory):
    return sorted(p.name for p in directory.iterdir() if p.name.endswith((".tmp", ".partial")))


def test_a_full_disk_leaves_the_old_ledger_and_the_old_checkpoint(tmp_path):
    ledger, path, place = long_ledger(), tmp_path / "l.json", Checkpoint(tmp_path / "c")
    ledger.save(path)
    place.save(Saved({"step": 1}, {"weights": np.ones(5000)}))
    before = path.read_bytes(), (tmp_path / "c").read_bytes()
    ledger.compose(STEP, label="one more")

    size = path.stat().st_size

    def work(report):
        # A file may not grow beyond this, as on a disk that is full.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for most in (0, 1, size // 4, size // 2):
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
            for save in (
                lambda: ledger.save(path),
                lambda: place.save(Saved({"step": 2}, {"weights": np.zeros(5000)})),
            ):
                try:
                    save()
                except OSError:
                    report(0)
                else:
                    report(1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        report(leftovers(tmp_path) != [])
        ledger.save(path)  # the same object goes on once there is room
        place.save(Saved({"step": 2}, {"weights": np.zeros(5000)}))
        report(2)

    keep = before
    with child(work) as (_, reports):
        told = [number for (number,) in struct.iter_unpack("<q", reports.read())]
    assert told == [0] * 8 + [0, 2]
    assert path.read_bytes() != keep[0]
    assert len(Accountant.load(path)) == 201
    assert place.load().header["step"] == 2


CALLS = ["os.open", "os.fsync", "os.fchmod", "pathlib.Path.replace", "os.fdopen"]


@pytest.mark.long(keep=18)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("name", CALLS)
def test_whatever_call_fails_the_old_or_the_new_file_is_whole(tmp_path, monkeypatch, name, code):
    ledger, place = long_ledger(), Checkpoint(tmp_path / "c")
    path = tmp_path / "l.json"
    ledger.save(path)
    place.save(Saved({"step": 1}, {}))
    owner, call = {"os": os, "pathlib": pathlib.Path}[name.split(".")[0]], name.rsplit(".", 1)[1]
    real = getattr(owner, call)
    for number in range(4):
        ledger.compose(STEP)
        seen = [0]

        def failing(*arguments, number=number, seen=seen, **named):
            seen[0] += 1
            if seen[0] == number + 1:
                raise OSError(code, os.strerror(code))
            return real(*arguments, **named)

        for save in (lambda: ledger.save(path), lambda: place.save(Saved({"step": 2}, {}))):
            seen[0] = 0
            with monkeypatch.context() as patch:
                patch.setattr(owner, call, failing)
                with contextlib.suppress(OSError):
                    save()
        assert len(Accountant.load(path)) in (len(ledger), len(ledger) - 1)
        assert place.load().header["step"] in (1, 2)
        assert leftovers(tmp_path) == []
        ledger.save(path)
        assert len(Accountant.load(path)) == len(ledger)


def test_a_read_only_directory_is_an_oserror_and_the_ledger_can_be_read():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        path = directory / "l.json"
        long_ledger().save(path)
        path.chmod(0o644)
        before = path.read_bytes()
        directory.chmod(0o555)

        def work(report):
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            ledger = Accountant.load(path)
            report(len(ledger))
            ledger.compose(STEP)
            for save in (
                lambda: ledger.save(path),
                lambda: ledger.save(directory / "other.json"),
                lambda: Checkpoint(directory / "c").save(Saved({}, {})),
            ):
                try:
                    save()
                except PermissionError:
                    report(1)

        try:
            with child(work) as (_, reports):
                told = [number for (number,) in struct.iter_unpack("<q", reports.read())]
            assert told == [200, 1, 1, 1]
            assert path.read_bytes() == before
        finally:
            directory.chmod(0o755)


def test_a_clock_that_goes_back_changes_nothing(tmp_path, monkeypatch):
    clock = [1e9]

    def backwards():
        clock[0] -= 3600.0
        return clock[0]

    monkeypatch.setattr(time, "time", backwards)
    path = tmp_path / "l.json"
    for label in range(5):
        with Accountant.transaction(path, ac.Budget(5.0, 1e-5)) as ledger:
            ledger.compose(STEP, label=str(label), time=time.time())
    ledger = Accountant.load(path)
    assert [entry.label for entry in ledger.history] == list("01234")
    times = [entry.time for entry in ledger.history]
    assert times == sorted(times, reverse=True)
    # Nor does it keep a waiting writer waiting.
    began = time.monotonic()
    with storage.locked(path, 1.0), pytest.raises(ac.LedgerConflict):
        ledger.save(path, timeout=0.05)
    assert time.monotonic() - began < 5.0


@pytest.mark.parametrize("spenders", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_processes_that_share_a_budget_never_overspend_it(tmp_path, spenders):
    path, budget = tmp_path / "l.json", ac.Budget(1.0, 1e-5)
    fits = Accountant(budget).affordable(STEP)

    def work(report):
        spent = 0
        while True:
            try:
                with Accountant.transaction(path, budget) as ledger:
                    ledger.compose(STEP)
            except ac.BudgetExceeded:
                report(spent)
                return
            spent += 1

    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(child(work)) for _ in range(spenders)]
        spent = [struct.unpack("<q", reports.read(8))[0] for _, reports in started]
    assert sum(spent) == fits == len(Accountant.load(path))


def test_the_children_killed_here_are_real():
    """A kill that came too early would show nothing: some writers must have got far."""

    def work(report):
        for number in range(10**9):
            report(number)

    assert killed(work, 0.02)[-1] > 10
    assert sys.platform != "win32"
