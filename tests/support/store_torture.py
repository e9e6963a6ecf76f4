"""A client of a store that is treated as badly as processes are: run as a program.

``python store_torture.py URL NUMBER SEED NOTES``: two threads charge until the file NOTES.stop is
there. Each decision is written down, in one write, when it is made: ``charge KEY COUNT``, ``reserve
KEY COUNT``, ``commit KEY COUNT``, ``refused KEY``; before a call, ``asks KEY COUNT``, so that of
what died unanswered it is known what it may have held. Meanwhile the process forks at random points
of its calls and interrupts itself by a signal whose handler raises, uses the store, or forks; and
the database's clock jumps by years between any two calls, for each client as it likes.
"""

import contextlib
import faulthandler
import os
import random
import signal
import sys
import threading
import traceback
from pathlib import Path

import accountant as ac
from accountant import store
from accountant.errors import LedgerConflict, LedgerError

BLOCKS = ["kill/data/1", "kill/data/2", "kill/data/3"]
STEPS = [ac.Gaussian(20.0), ac.Gaussian(31.0), ac.Laplace(40.0)]


# After these the same is asked again.
PASSING = "could not be used", "another thread used", "It is unknown whether"


YEAR = 365 * 86_400 * 10**6  # in microseconds


class Jumping:
    """The database's clock as it would be if somebody set it before every call."""

    def __init__(self, now):
        self.now = now

    def __get__(self, *_):
        ahead = random.choice([0, 0, 0, random.randint(-YEAR, YEAR), random.randint(-7200, 7200)])
        return f"({self.now} + {ahead})"


class SignalledError(Exception):
    """What the handler raises in the middle of a call."""


class Client:
    """One process, and after each fork its child too, with keys of their own."""

    def __init__(self, url, name, seed, notes):
        self.name, self.notes = name, notes
        self.random = random.Random(seed)
        self.shared = store.open(url, timeout=20.0)
        kind = type(self.shared._database)
        kind.now = Jumping(kind.now)
        self.log = os.open(f"{notes}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.children = []
        for step in STEPS:  # imports that a handler interrupts keep their locks
            self.shared.affordable(BLOCKS, step)

    def note(self, *words):
        os.write(self.log, (" ".join(map(str, words)) + "\n").encode())

    def one(self, rng, name):
        """Make one charge; ask again under its key until there is an answer."""
        key = f"{name}-{rng.getrandbits(48):x}"
        blocks = sorted(rng.sample(BLOCKS, rng.choice([1, 1, 2, 3])))
        kind = rng.randrange(len(STEPS))
        count = rng.choice([1, 1, 1, 2])
        reserve = rng.random() < 0.3
        about = (key, kind, count, ",".join(each[-1] for each in blocks))
        self.note("asks", *about)
        ask = self.shared.reserve if reserve else self.shared.charge
        while True:
            try:
                ask(blocks, STEPS[kind], count, key=key)
                break
            except store.BlockExceeded:
                self.note("refused", *about)
                return
            except SignalledError:
                continue
            except LedgerError as error:
                if not any(each in str(error) for each in PASSING):
                    raise
        self.note("reserve" if reserve else "charge", *about)
        if not reserve or rng.random() < 0.2:
            return
        used = rng.randrange(count + 1)
        self.note("settles", key, used)
        while True:
            try:
                self.shared.commit(key, used) if used else self.shared.abort(key)
                break
            except SignalledError:
                continue
            except LedgerConflict as error:
                if "lease" in str(error):  # by the clock it has ended: all count
                    self.note("settled", key, count)
                    return
                if not any(each in str(error) for each in PASSING):
                    raise
        self.note("settled", key, used)

    def work(self, rng, thread, stop, most=1 << 30):
        for _ in range(most):
            if stop():
                return
            self.one(rng, f"{self.name}{thread}")
            if rng.random() < 0.02:
                with contextlib.suppress(LedgerConflict, SignalledError):
                    self.shared.close()
            if rng.random() < 0.02:
                with contextlib.suppress(LedgerError, SignalledError):
                    self.shared.expire()

    # Signals

    def handler(self, *_):
        what = self.random.random()
        if what < 0.4:
            raise SignalledError
        if what < 0.8:
            with contextlib.suppress(LedgerError, LedgerConflict):
                self.shared.head()
        elif len(self.children) < 30:
            self.fork()

    def fork(self):
        # What is raised in logging's own work around a fork leaves logging locked.
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        child = os.fork()
        if child:
            self.children.append(child)
            return
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            name = f"{self.name}f{os.getpid()}"
            mine = Client.__new__(Client)
            mine.name, mine.notes, mine.shared, mine.children = name, self.notes, self.shared, []
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            mine.log = os.open(f"{self.notes}.{name}", flags, 0o600)
            mine.work(random.Random(os.getpid()), "", lambda: False, 3)
            if self.random.random() < 0.5:
                mine.shared.close()
        except BaseException:  # it must not go on as its parent would
            with contextlib.suppress(BaseException):
                traceback.print_exc()
        finally:
            os._exit(0)


def main():
    url, name, seed, notes = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    faulthandler.register(signal.SIGUSR1)  # for whoever asks why it does not end
    client = Client(url, name, seed, notes)
    end = Path(f"{notes}.stop")
    over = threading.Event()

    def stop():
        return over.is_set() or end.exists()

    other = threading.Thread(target=client.work, args=(random.Random(seed + 1), "b", stop))
    other.start()
    signal.signal(signal.SIGALRM, client.handler)
    rng = random.Random(seed + 2)
    while True:
        try:
            if stop():
                break
            signal.setitimer(signal.ITIMER_REAL, rng.expovariate(20.0) + 0.001)
            client.work(rng, "a", stop, 5)
            if rng.random() < 0.1 and len(client.children) < 30:
                client.fork()
        except SignalledError:
            continue
    with contextlib.suppress(SignalledError):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    over.set()
    other.join()
    for child in client.children:
        os.waitpid(child, 0)
    client.shared.close()


if __name__ == "__main__":
    main()
