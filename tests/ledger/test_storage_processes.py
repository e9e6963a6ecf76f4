"""Many processes at one ledger file: killed writers, full disks, locks and transactions."""

import errno
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from accountant.errors import DomainError, LedgerConflict, LedgerError
from accountant.ledger import Accountant, Budget, register, storage
from support import toy_mechanisms
from support.threads import together
from support.toy_mechanisms import Noise, ledger_of

register(Noise)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


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


@pytest.mark.long
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
    from support.toy_mechanisms import Noise
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
).format(tests=str(Path(toy_mechanisms.__file__).parents[1]))


@pytest.mark.long
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

    together(*[work] * 4)
    assert len(Accountant.load(path)) == 20


def test_a_held_lock_is_waited_for_then_refused(path):
    ledger = ledger_of(1)
    with storage.locked(storage.resolve(path), 1.0), pytest.raises(LedgerConflict, match="in use"):
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
