"""One call at a time: forks, threads, signals, and waits that end."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import accountant as ac
from accountant import store
from accountant.errors import LedgerConflict, LedgerError
from accountant.ledger import Budget
from support.threads import together

BLOCK = "a/b/c"
STEP = ac.Gaussian(20.0)
LIMIT = 18  # of these in the budget

HOLDER = """
import os, sys, time
from accountant import store
shared = store.open(sys.argv[1])
shared._database.connect(time.monotonic() + 60)
shared._database.begin()
if sys.argv[2:] == ["fork"] and os.fork() == 0:
    time.sleep(60)
    os._exit(0)
print("holds", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def opened(url):
    """Return a function that opens the store; it has one block."""
    with store.open(url, create=True) as made:
        made.add_blocks(BLOCK, Budget(1.0, 1e-6))
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(store.open(url, **options))


@contextlib.contextmanager
def holder(url, *options):
    """Another process in its turn; it ends by the end of the block."""
    command = [sys.executable, "-c", HOLDER, url, *options]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, start_new_session=True) as process:
        try:
            assert process.stdout.readline() == b"holds\n"
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def charged(shared, most=2 * LIMIT):
    """Charge until the budget refuses; return how often it did not."""
    for done in range(most):
        try:
            shared.charge(BLOCK, STEP)
        except store.BlockExceeded:
            return done
    return most


def in_child(work):
    """Fork, do ``work`` in the child, and return a function that waits for its number."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        try:
            os.write(start, str(work()).encode())
        except BaseException as error:
            os.write(start, repr(error).encode())
        finally:
            os._exit(0)
    os.close(start)

    def result():
        with open(end) as stream:
            text = stream.read()
        os.waitpid(child, 0)
        return int(text) if text.isdigit() else text

    return result


def held(shared):
    found = shared.verify()
    assert found.passed, found
    return shared.blocks(BLOCK)[0].releases


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("child_closes", [True, False])
def test_a_parent_that_closes_leaves_its_child_the_store(opened, child_closes):
    parent = opened()
    assert parent.charge(BLOCK, STEP).row
    ready, go = os.pipe()

    def work():
        os.close(go)
        done = charged(parent, 1)
        os.read(ready, 1)  # until the parent has closed
        done += charged(parent, 8)
        if child_closes:
            parent.close()
        return done

    waited = in_child(work)
    parent.close()
    third = opened()
    done = charged(third, 3)
    os.close(go)
    os.close(ready)
    done += waited()
    done += charged(third) + charged(parent)
    assert done == LIMIT - 1
    assert held(third) == held(parent) == LIMIT


def test_a_child_that_was_forked_while_a_thread_charges_can_charge(opened):
    shared = opened(timeout=10.0)
    over = threading.Event()

    def work():
        while not over.is_set():
            with contextlib.suppress(store.BlockExceeded):
                shared.charge(BLOCK, STEP)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        answers = [in_child(lambda: len(str(shared.head())) and 7) for _ in range(5)]
        assert [answer() for answer in answers] == [7] * 5
        assert in_child(lambda: charged(shared, 40) <= LIMIT and 7)() == 7
    finally:
        over.set()
        thread.join()
    assert held(shared) == LIMIT


@pytest.mark.parametrize(
    ("where", "method"),
    [
        (lambda _: store.store.Transaction, "append"),
        (lambda shared: shared._database, "begin"),
        (lambda shared: shared._database, "execute"),
    ],
)
def test_a_fork_in_the_middle_of_a_call_is_its_parents(opened, monkeypatch, where, method):
    shared = opened()
    original = getattr(where(shared), method)
    children = []

    def forks(*rest):
        found = original(*rest)
        if not children:
            children.append(os.fork())
        return found

    monkeypatch.setattr(where(shared), method, forks)
    parent, answer = os.getpid(), ""
    try:
        shared.charge(BLOCK, STEP, key="one")
        answer = "charged"
    except LedgerError as error:
        answer = str(error)
    finally:
        if os.getpid() != parent:
            print(answer, flush=True)
            with contextlib.suppress(BaseException):
                if "forked in the middle of a call" in answer and charged(shared, 1):
                    os._exit(0)
            os._exit(1)
    assert answer == "charged"
    assert os.waitpid(children[0], 0)[1] == 0
    assert held(shared) == 2


def test_a_fork_while_rows_are_read_lets_the_call_begin_again(tmp_path, monkeypatch):
    """A signal may come between a statement of SQLite and its rows."""
    import sqlite3

    with store.open(f"sqlite:///{tmp_path}/budget.db", create=True) as shared:
        shared.add_blocks(BLOCK, Budget(1.0, 1e-6))
        children = []

        class Forks(sqlite3.Cursor):
            def fetchall(self):
                if not children:
                    children.append(os.fork())
                    if children == [0]:
                        os._exit(0 if charged(shared, 1) == 1 else 1)
                return super().fetchall()

        shared.head()
        monkeypatch.setattr(shared._database, "_connection", Lent(shared._database, Forks))
        assert not shared.charge(BLOCK, STEP, key="one").repeated
        assert os.waitpid(children[0], 0)[1] == 0
        assert held(shared) == 2


class Lent:
    """A connection whose cursors are of another class."""

    def __init__(self, base, cursors):
        self._real, self._cursors = base._connection, cursors

    def execute(self, *statement):
        return self._real.cursor(self._cursors).execute(*statement)

    def __getattr__(self, name):
        return getattr(self._real, name)


def raising(*_):
    raise KeyboardInterrupt


def alarmed(handler, shared, monkeypatch, method="append"):
    """Let ``handler`` run in the middle of the next charge, as of a signal."""
    original = getattr(store.store.Transaction, method)
    before = signal.signal(signal.SIGUSR1, handler)

    def interrupted(turn, *rest):
        signal.raise_signal(signal.SIGUSR1)
        return original(turn, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(store.store.Transaction, method, interrupted)
        try:
            return shared.charge(BLOCK, STEP, key="outer")
        finally:
            signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("method", ["open", "append", "hold", "close"])
def test_a_handler_in_a_call_is_refused_before_it_touches_anything(opened, monkeypatch, method):
    shared = opened()
    shared.reserve(BLOCK, STEP, 3, key="held")
    told = []

    def handler(*_):
        for ask in (lambda: shared.commit("held", 1), shared.close, shared.head):
            try:
                ask()
            except LedgerError as error:
                told.append(str(error))

    assert not alarmed(handler, shared, monkeypatch, method).repeated
    assert len(told) == 3
    assert all("in a call of the store already" in each for each in told)
    assert held(shared) == 4
    shared.commit("held", 1)
    assert shared.charge(BLOCK, STEP, key="outer").repeated
    assert held(shared) == 2


def test_an_interruption_and_one_more_leave_the_turn_to_others(opened, monkeypatch):
    shared, other = opened(), opened(timeout=1.0)
    base, undo = shared._database, shared._database.rollback
    again = []

    def twice():
        if not again:
            again.append(1)
            raise KeyboardInterrupt
        undo()

    monkeypatch.setattr(base, "rollback", twice)
    with pytest.raises(KeyboardInterrupt):
        alarmed(raising, shared, monkeypatch)
    assert again
    assert other.charge(BLOCK, STEP, key="outer").row
    monkeypatch.undo()
    assert shared.charge(BLOCK, STEP, key="outer").repeated
    assert held(shared) == 1


@pytest.mark.long
@pytest.mark.parametrize("how", ["stopped", "killed with a child"])
def test_every_wait_ends(opened, url, how):
    shared = opened(timeout=1.0)
    assert shared.charge(BLOCK, STEP).row
    with holder(url, *(["fork"] if "child" in how else [])) as process:
        if how == "stopped":
            os.kill(process.pid, signal.SIGSTOP)
            for _ in range(2):
                start = time.monotonic()
                with pytest.raises(LedgerConflict, match=r"for 1 s .*Nothing was written"):
                    shared.charge(BLOCK, STEP)
                assert time.monotonic() - start < 4.0
        else:
            process.kill()
            process.wait()
            if url.startswith("sqlite"):  # a server's session is the child's, too
                assert shared.charge(BLOCK, STEP).row
    assert shared.charge(BLOCK, STEP).row


@pytest.mark.long
def test_a_server_that_stopped_is_waited_for_no_longer_than_said(server):
    with store.open(server.fresh(), create=True, timeout=1.0) as shared:
        shared.add_blocks(BLOCK, Budget(1.0, 1e-6))
        (session,) = shared._read(lambda base: base.execute("SELECT pg_backend_pid()").fetchall())[
            0
        ]
        os.kill(session, signal.SIGSTOP)
        try:
            start = time.monotonic()
            with pytest.raises(LedgerConflict, match="for 1 s"):
                shared.charge(BLOCK, STEP, key="one")
            assert time.monotonic() - start < 4.0
        finally:
            os.kill(session, signal.SIGCONT)
        shared.charge(BLOCK, STEP, key="one")
        assert held(shared) == 1


@pytest.mark.long
def test_threads_wait_no_longer_than_said(opened, url):
    shared = opened(timeout=1.0)
    told = []

    def work():
        start = time.monotonic()
        with pytest.raises(LedgerConflict):
            shared.charge(BLOCK, STEP)
        told.append(time.monotonic() - start)

    with holder(url):
        together(*[work] * 4)
    assert len(told) == 4
    assert max(told) < 3.0


class CutError(Exception):
    """The connection went away when the commit was done, or before."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("other", [False, True])
def test_a_charge_is_repeated_only_if_another_call_made_it(opened, monkeypatch, when, other):
    shared, second = opened(), opened()
    base, commit, lost = shared._database, shared._database.commit, shared._database.trouble
    left = [1]

    def cut():
        if not left:
            return commit()
        left.clear()
        if when == "after":
            commit()
        else:
            base.rollback()
            if other:
                second.charge(BLOCK, STEP, key="one")
        raise CutError

    monkeypatch.setattr(base, "commit", cut)
    monkeypatch.setattr(base, "trouble", lambda e: "lost" if isinstance(e, CutError) else lost(e))
    receipt = shared.charge(BLOCK, STEP, key="one")
    assert receipt.repeated is (when == "before" and other)
    assert shared.charge(BLOCK, STEP, key="one").repeated
    assert held(shared) == 1
