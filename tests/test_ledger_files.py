"""Ledger files: whole after every crash, refused when damaged, never overwritten unread."""

import errno
import json
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from accountant.errors import BudgetExceeded, DomainError, LedgerConflict, LedgerError
from accountant.ledger import Accountant, Budget, register, storage
from toy_mechanisms import Coin, Noise

register(Coin)
register(Noise)


def ledger_of(*counts):
    ledger = Accountant()
    for position, count in enumerate(counts):
        ledger.compose(Noise(1.0 + position), count, label=f"part {position}")
    return ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


def test_save_then_load_restores_everything(path):
    ledger = Accountant(Budget(2.0, 1e-5, orders=[8.0, 16.0]))
    ledger.compose(Noise(50.0), 3, label="α", time=-1.5)
    ledger.compose(Noise(60.0), label=None)
    ledger.save(path)
    again = Accountant.load(path)
    assert again.history == ledger.history
    assert again.budget == ledger.budget
    assert again.remaining() == ledger.remaining()


def test_the_loaded_ledger_goes_on_refusing(path):
    ledger = Accountant(Budget(1.0, 1e-5))
    left = ledger.affordable(Noise(10.0))
    ledger.compose(Noise(10.0), left)
    ledger.save(path)
    again = Accountant.load(path)
    with pytest.raises(BudgetExceeded):
        again.compose(Noise(10.0))
    assert again.history == ledger.history


def test_a_saved_file_is_not_overwritten_unread(path):
    ledger_of(1).save(path)
    before = path.read_bytes()
    with pytest.raises(LedgerConflict, match="merge"):
        ledger_of(2).save(path)
    assert path.read_bytes() == before


def test_two_who_loaded_the_same_cannot_both_save(path):
    ledger_of(1).save(path)
    first, second = Accountant.load(path), Accountant.load(path)
    for ledger in (first, second):
        # The same record on purpose: their contents are equal, and still they are two releases.
        ledger.compose(Noise(1.0), label="part 0")
    first.save(path)
    first.compose(Noise(9.0))
    first.save(path)
    with pytest.raises(LedgerConflict):
        second.save(path)
    assert len(Accountant.load(path)) == 3


def test_equal_contents_of_two_writers_are_told_apart(path):
    # Writer two fails between writing aside and renaming, while writer one records the same.
    ledger_of(1).save(path)
    first, second = Accountant.load(path), Accountant.load(path)
    first.compose(Noise(1.0), label="part 0")
    second.compose(Noise(1.0), label="part 0")
    second._versions[storage.resolve(path)].add(storage.digest(second.to_json().encode()))
    first.save(path)
    with pytest.raises(LedgerConflict):
        second.save(path)


def test_links_are_followed(tmp_path, path):
    ledger_of(1).save(path)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    ledger = Accountant.load(link)
    ledger.compose(Noise(2.0))
    ledger.save(link)
    assert link.is_symlink()
    assert len(Accountant.load(path)) == 2


def test_the_files_mode_is_kept(path):
    ledger = ledger_of(1)
    ledger.save(path)
    path.chmod(0o640)
    ledger.compose(Noise(3.0))
    ledger.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("call", ["fsync", "replace", "write"])
def test_a_failing_disk_leaves_the_old_file(path, monkeypatch, call):
    ledger = ledger_of(1)
    ledger.save(path)
    before = path.read_bytes()
    ledger.compose(Noise(3.0))

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if call == "fsync":
            patch.setattr(os, "fsync", full)
        elif call == "replace":
            patch.setattr("pathlib.Path.replace", full)
        else:
            patch.setattr(storage, "_write_synced", full)
        with pytest.raises(OSError, match="space"):
            ledger.save(path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == [".ledger.json.lock", "ledger.json"]
    ledger.save(path)
    assert len(Accountant.load(path)) == 2


def test_a_failing_directory_sync_may_be_tried_again(path, monkeypatch):
    ledger = ledger_of(1)
    ledger.save(path)
    ledger.compose(Noise(3.0))

    def broken(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "sync_directory", broken)
        with pytest.raises(OSError, match="Input"):
            ledger.save(path)
    ledger.save(path)
    assert len(Accountant.load(path)) == 2


def test_a_missing_directory_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        ledger_of(1).save(tmp_path / "no" / "ledger.json")


def test_the_order_of_system_calls(path, monkeypatch):
    # Durable: the contents reach the disk, then the name changes, then the name does.
    calls = []
    real_fsync, real_replace = os.fsync, type(path).replace

    def fsync(descriptor):
        calls.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_fsync(descriptor)

    def replace(self, target):
        calls.append("rename")
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(type(path), "replace", replace)
    ledger_of(1).save(path)
    assert calls == ["file", "rename", "directory"]


# Damage


def damaged(text):
    yield ""
    yield "{}"
    yield "[]"
    yield "null"
    yield "not JSON"
    yield "[" * 100_000
    yield text[: len(text) // 2]
    yield text[:-3]
    yield text + "{}"
    yield text.replace("[1,7,", "[1,6,")
    yield text.replace("part 1", "part l")
    yield text.replace("sha256:", "sha256:0")
    yield text.replace('"budget": null', '"budget": null, "budget": null')
    yield text.replace("[1,7,", "[1,NaN,")
    yield text.replace("[1,7,", "[1,1e999,")
    yield text.replace("[1,7,", "[1," + "9" * 5000 + ",")
    yield text.replace('"version": 2', '"version": 0')
    yield text.replace('"version": 2', '"version": true')
    yield text.replace('"version": 2', '"version": "2"')
    yield text.replace('"format": "accountant-ledger"', '"format": "ledger"')
    yield text.replace('"format"', '"surprise": 1, "format"')


@pytest.mark.parametrize("case", range(21))
def test_damaged_text_is_refused(case, path):
    ledger = ledger_of(2, 7)
    text = list(damaged(ledger.to_json()))[case]
    with pytest.raises(LedgerError):
        Accountant.from_json(text)
    path.write_text(text)
    with pytest.raises(LedgerError, match=r"ledger\.json"):
        Accountant.load(path)
    assert path.read_text() == text


def test_every_case_of_damage_is_tried():
    text = ledger_of(2, 7).to_json()
    assert len(set(damaged(text))) == 21
    assert text not in damaged(text)


def test_every_truncation_and_every_flipped_bit_is_refused(path):
    ledger = ledger_of(2, 7)
    ledger.save(path)
    content = path.read_bytes()
    rng = random.Random(5)
    body = content.rstrip()
    for end in range(len(body)):
        path.write_bytes(content[:end])
        with pytest.raises(LedgerError):
            Accountant.load(path)
    for _ in range(500):
        bad = bytearray(content)
        bad[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        try:
            again = Accountant.load(path)
        except LedgerError:
            continue
        # Only white space outside of strings may change unnoticed.
        assert again.history == ledger.history


def rewritten(ledger, change, version=2):
    """A file whose checksum is right, changed by someone who knows how."""
    from accountant.ledger import document as files

    document = json.loads(ledger.to_json())
    if version == 1:
        as_version_1(document)
    change(document["ledger"])
    document["checksum"] = files.checksum(document["revision"], document["ledger"])
    return json.dumps(document)


def as_version_1(document):
    """Write a ledger as the first release did: every record with its whole mechanism."""
    mechanisms = document["ledger"].pop("mechanisms")
    document["version"] = 1
    document["ledger"]["entries"] = [
        {"mechanism": mechanisms[number], "count": count, "label": label, "time": time}
        for number, count, label, time in document["ledger"]["entries"]
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_both_versions_are_read(version):
    ledger = Accountant(Budget(2.0, 1e-5, orders=[8.0, 16.0]))
    ledger.compose(Noise(50.0), 3, label='α "],["', time=-1.5)
    ledger.compose(Noise(60.0), label=None)
    ledger.compose(Noise(50.0), 2)
    again = Accountant.from_json(rewritten(ledger, lambda body: None, version))
    assert again.history == ledger.history
    assert again.counts == ledger.counts
    assert again.budget == ledger.budget
    assert again.remaining() == ledger.remaining()
    assert again.to_json() == ledger.to_json()


def test_steps_of_every_sampler_are_written():
    from accountant import sampling

    ledgers = []
    for mechanism in (
        sampling.Allocated(2.0, 10),
        sampling.FixedSizeSampled(2.0, 10, 100),
        sampling.TruncatedPoissonSampled(2.0, 0.1, 20, 100),
        sampling.WithReplacementSampled(2.0, 10, 100),
    ):
        ledger = Accountant()
        ledger.compose(mechanism, 3)
        ledgers.append(ledger)
    for ledger in ledgers:
        assert Accountant.from_json(ledger.to_json()).history == ledger.history


def test_the_checksum_is_that_of_the_canonical_text():
    import hashlib

    from accountant.ledger import document as files

    ledger = ledger_of(*range(1, 10))
    for text in (ledger.to_json(), rewritten(ledger, lambda body: None, 1)):
        document = json.loads(text)
        whole = [document["revision"], document["ledger"]]
        canonical = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        assert document["checksum"] == files.checksum(*whole) == f"sha256:{digest}"


def test_the_checksum_does_not_depend_on_the_batches(monkeypatch):
    from accountant.ledger import document as files

    text = ledger_of(*range(1, 10)).to_json()
    monkeypatch.setattr(files, "_BATCH", 2)
    assert Accountant.from_json(text).to_json() == text


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(extra=1),
        lambda body: body.pop("budget"),
        lambda body: body.pop("mechanisms"),
        lambda body: body.update(entries={}),
        lambda body: body.update(mechanisms={}),
        lambda body: body["mechanisms"].append(3),
        lambda body: body["mechanisms"].clear(),
        lambda body: body["mechanisms"][0].update(mechanism="os.system"),
        lambda body: body["mechanisms"][1]["parameters"].update(sigma={"eval": "1"}),
        lambda body: body["entries"].append(3),
        lambda body: body["entries"].append([]),
        lambda body: body["entries"][0].append(None),
        lambda body: body["entries"][0].pop(),
        lambda body: body["entries"].__setitem__(0, {"mechanism": 0}),
        *(
            lambda body, place=place, value=value: body["entries"][0].__setitem__(place, value)
            for place, value in [
                *((0, value) for value in (-1, 2, True, 0.0, "0", None, [0], 2**70)),
                *((1, value) for value in (0, -1, True, 1.0, "1", None, 2**53 + 1)),
                (2, 4),
                *((3, value) for value in ("now", True, [1])),
            ]
        ),
    ],
)
def test_unknown_contents_of_version_2_are_refused(change):
    with pytest.raises(LedgerError):
        Accountant.from_json(rewritten(ledger_of(2, 7), change))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(extra=1),
        lambda body: body.pop("budget"),
        lambda body: body.update(entries={}),
        lambda body: body["entries"].append(3),
        lambda body: body["entries"][0].update(note="x"),
        lambda body: body["entries"][0].update(count=0),
        lambda body: body["entries"][0].update(count=-1),
        lambda body: body["entries"][0].update(count=True),
        lambda body: body["entries"][0].update(count=1.0),
        lambda body: body["entries"][0].update(count="1"),
        lambda body: body["entries"][0].update(count=2**53 + 1),
        lambda body: body["entries"][0].update(label=4),
        lambda body: body["entries"][0].update(time="now"),
        lambda body: body["entries"][0].update(time=True),
        lambda body: body["entries"][0].pop("label"),
        lambda body: body["entries"][0]["mechanism"].update(mechanism="os.system"),
        lambda body: body["entries"][0]["mechanism"].update(mechanism=["Noise"]),
        lambda body: body["entries"][0]["mechanism"].update(mechanism="Mechanism"),
        lambda body: body["entries"][0]["mechanism"]["parameters"].update(extra=1),
        lambda body: body["entries"][0]["mechanism"]["parameters"].pop("sigma"),
        lambda body: body["entries"][0]["mechanism"]["parameters"].update(sigma={"number": "x"}),
        lambda body: body["entries"][0]["mechanism"]["parameters"].update(sigma={"eval": "1"}),
        lambda body: body["entries"][0]["mechanism"]["parameters"].update(
            relation={"relation": "definition"}
        ),
        lambda body: body["entries"][0]["mechanism"]["parameters"].update(
            relation={"relation": ["ADD_OR_REMOVE"]}
        ),
        lambda body: body.update(budget={"epsilon": 1.0}),
        lambda body: body.update(
            budget={"epsilon": -1.0, "delta": 0.1, "filter": "renyi", "orders": None, "share": None}
        ),
    ],
)
def test_unknown_contents_are_refused_even_with_a_right_checksum(change):
    with pytest.raises(LedgerError):
        Accountant.from_json(rewritten(ledger_of(2, 7), change, 1))


def test_the_rewriting_itself_is_harmless():
    assert Accountant.from_json(rewritten(ledger_of(2), lambda body: None)).history


def test_a_newer_version_is_refused_by_name():
    text = ledger_of(1).to_json().replace('"version": 2', '"version": 3, "novelty": []')
    with pytest.raises(LedgerError, match="newer"):
        Accountant.from_json(text)


def test_huge_files_are_not_read(path, monkeypatch):
    monkeypatch.setattr(storage, "MAX_BYTES", 100)
    path.write_bytes(b" " * 101)
    with pytest.raises(LedgerError, match="large"):
        Accountant.load(path)


def test_bytes_that_are_no_text(path):
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(LedgerError, match="UTF-8"):
        Accountant.load(path)


# Processes


def write_until_killed(path, say):
    """Save again and again, two records a time: a file with an odd number was torn."""
    ledger = Accountant.load(path)
    while True:
        ledger.compose(Noise(1.0), label="a")
        ledger.compose(Noise(2.0), label="b")
        ledger.save(path)
        os.write(say, b"%d\n" % len(ledger))


def in_a_fork(work):
    """Run ``work(say)`` in another process; return its id and a stream of what it says."""
    hear, say = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(hear)
            work(say)
        finally:
            os._exit(1)
    os.close(say)
    return child, os.fdopen(hear)


def kill_writers(path, trials, rng):
    Accountant().save(path)
    known = 0
    for _ in range(trials):
        child, stream = in_a_fork(lambda say: write_until_killed(path, say))
        # Some die before they write, most in the middle of their first saves.
        said = [stream.readline() for _ in range(rng.randrange(3))]
        time.sleep(rng.random() * 0.005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with stream:
            said += stream.read().splitlines(keepends=True)
        # Whatever was acknowledged is there; what is there beyond it is one whole save at most.
        acknowledged = max([known, *(int(line) for line in said if line.endswith("\n"))])
        ledger = Accountant.load(path)
        assert len(ledger) in (acknowledged, acknowledged + 2)
        assert dict(ledger.counts).get(Noise(1.0), 0) * 2 == len(ledger)
        known = len(ledger)
    assert known > trials  # the trials did write


def test_killed_writers_lose_nothing(path):
    kill_writers(path, 50, random.Random(1))


@pytest.mark.slow
def test_a_thousand_killed_writers_lose_nothing(path):
    kill_writers(path, 1000, random.Random(2))


def test_a_disk_that_is_really_full(path):
    ledger_of(1).save(path)
    before = path.read_bytes()

    def fill(say):
        import resource

        # The kernel refuses to let any file grow beyond a few bytes.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        ledger = Accountant.load(path)
        ledger.compose(Noise(5.0))
        try:
            ledger.save(path)
        except OSError as error:
            os.write(say, str(error.errno).encode())

    child, stream = in_a_fork(fill)
    with stream:
        assert int(stream.read()) == errno.EFBIG
    os.waitpid(child, 0)
    assert path.read_bytes() == before
    assert not (path.parent / ".ledger.json.tmp").exists()


SPENDER = textwrap.dedent(
    """
    import sys
    sys.path[:0] = [{tests!r}]
    from toy_mechanisms import Noise
    from accountant.errors import BudgetExceeded
    from accountant.ledger import Accountant, Budget, register
    register(Noise)
    spent = 0
    try:
        while True:
            with Accountant.transaction(sys.argv[1], Budget(1.0, 1e-5)) as ledger:
                ledger.compose(Noise(30.0))
            spent += 1
    except BudgetExceeded:
        print(spent)
    """
).format(tests=os.path.dirname(__file__))


def test_processes_share_one_budget_without_overspending(path):
    allowed = Accountant(Budget(1.0, 1e-5)).affordable(Noise(30.0))
    assert 20 < allowed < 1000
    spenders = [
        subprocess.Popen(
            [sys.executable, "-c", SPENDER, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    spent = [int(spender.communicate()[0]) for spender in spenders]
    assert sum(spent) == allowed == len(Accountant.load(path))


def test_threads_saving_one_ledger_to_one_file(path):
    ledger = Accountant()

    def work():
        for _ in range(5):
            ledger.compose(Noise(1.0))
            ledger.save(path)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Accountant.load(path)) == 20


def test_a_held_lock_is_waited_for_then_refused(path):
    ledger = ledger_of(1)
    with (
        storage.locked(storage.resolve(path), 1.0),
        pytest.raises(LedgerConflict, match="in use"),
    ):
        ledger.save(path, timeout=0.05)
    assert not path.exists()
    ledger.save(path)


def test_a_transaction_keeps_what_was_charged_when_the_block_raises(path):
    def charge_and_fail():
        with Accountant.transaction(path) as ledger:
            ledger.compose(Noise(1.0))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        charge_and_fail()
    assert len(Accountant.load(path)) == 1


def test_a_transaction_has_one_budget(path):
    with Accountant.transaction(path, Budget(1.0, 1e-5)):
        pass
    with (
        pytest.raises(DomainError, match="has the budget"),
        Accountant.transaction(path, Budget(2.0, 1e-5)),
    ):
        pass
    with Accountant.transaction(path) as ledger:
        assert ledger.budget == Budget(1.0, 1e-5)


def test_a_transaction_refuses_a_damaged_file_and_leaves_it(path):
    path.write_text("{")
    with pytest.raises(LedgerError), Accountant.transaction(path):
        pass
    assert path.read_text() == "{"
