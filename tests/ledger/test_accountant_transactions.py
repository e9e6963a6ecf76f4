"""A ledger records one thing at a time, whoever asks at once, and what can be read again."""

import contextlib
import functools
import os
import threading

import numpy as np
import pytest

import accountant as ac
from accountant import mechanisms as m
from accountant.errors import BudgetExceeded, LedgerError, UnsupportedError
from accountant.ledger import Accountant, Budget, IndividualFilter, register, storage
from support.threads import together
from support.toy_mechanisms import Noise, ledger_of

register(Noise)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


def test_a_ledger_whose_transaction_has_ended_records_no_more(path):
    # Two who kept theirs would each spend the budget that they share.
    budget = Budget(1.0, 1e-5)
    with Accountant.transaction(path, budget) as first:
        left = first.affordable(Noise(10.0))
    with Accountant.transaction(path, budget) as second:
        second.compose(Noise(10.0), left)
    other = Accountant()
    other.compose(Noise(10.0))
    for record in (lambda: first.compose(Noise(10.0)), lambda: first.merge(other)):
        with pytest.raises(UnsupportedError, match="transaction has ended"):
            record()
    assert len(first) == 0
    assert first.epsilon(1e-5) == 0.0
    assert len(Accountant.load(path)) == left


def test_nothing_composed_while_a_transaction_ends_is_lost(path):
    recorded, started = [], threading.Event()

    def compose(ledger):
        while True:
            try:
                ledger.compose(Noise(1000.0))
            except UnsupportedError:
                return
            recorded.append(1)
            started.set()

    for _ in range(20):
        started.clear()
        with Accountant.transaction(path) as ledger:
            thread = threading.Thread(target=compose, args=(ledger,))
            thread.start()
            started.wait()
        thread.join()
        assert len(Accountant.load(path)) == len(recorded)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_that_leaves_a_transaction_writes_nothing(path):
    block = Accountant.transaction(path)
    ledger = block.__enter__()
    ledger.compose(Noise(1.0))
    child = os.fork()
    if child == 0:
        block.__exit__(None, None, None)  # as when an exception unwinds the child's stack
        os._exit(0)
    os.waitpid(child, 0)
    assert not path.exists()
    block.__exit__(None, None, None)
    assert Accountant.load(path).history == ledger.history


def test_what_could_not_be_read_again_is_not_written(path, monkeypatch):
    nested = ac.Laplace(5.0)
    for _ in range(40):
        nested = ac.PoissonSampled(nested, 0.9)
    ledger = ledger_of(1)
    ledger.save(path)
    before = path.read_bytes()
    ledger.compose(nested)
    with pytest.raises(UnsupportedError, match=r"record 1 .* nested so deeply"):
        ledger.save(path)
    long = Accountant.load(path)
    long.compose(Noise(1.0), label="x" * 5000)
    monkeypatch.setattr(storage, "MAX_BYTES", 4000)
    with pytest.raises(LedgerError, match="at most 4000 bytes"):
        long.save(path)
    assert path.read_bytes() == before
    assert len(Accountant.load(path)) == 1


def test_all_that_is_written_is_read():
    """At every depth up to that at which writing is refused."""
    nested, refused = ac.Laplace(5.0), []
    for k in range(40):
        nested = ac.PoissonSampled(nested, 0.9) if k % 2 else 1 * nested + ac.PureDP(0.1)
        ledger = Accountant()
        ledger.compose(nested)
        try:
            text = ledger.to_json()
        except UnsupportedError:
            refused.append(k)
        else:
            assert Accountant.from_json(text).history == ledger.history
    assert refused == list(range(refused[0], 40))
    assert refused[0] >= 10


def test_a_record_within_a_record_is_refused():
    # As a signal's handler may make, while the lock is held by its own thread.
    ledger = Accountant(Budget(1.0, 1e-5))

    class Handler(Noise):
        def pairs(self):
            with contextlib.suppress(UnsupportedError):
                ledger.compose(Noise(self.sigma), half)
            return super().pairs()

    half = ledger.affordable(Noise(50.0)) // 2 + 1
    ledger.compose(Handler(50.0), half)
    assert len(ledger) == half
    spent = ledger.remaining()
    assert spent.spent <= spent.capacity
    ledger.compose(Noise(50.0))  # and later ones are recorded
    assert len(ledger) == half + 1


def test_threads_hammering_one_accountant_lose_nothing():
    ledger = Accountant()

    def work(k):
        for _ in range(2000):
            ledger.step(noise_multiplier=1.0 + k, sampling_probability=0.01, label=str(k))

    together(*(functools.partial(work, k) for k in range(8)))
    assert sorted(count for _, count in ledger.counts) == [2000] * 8
    assert sum(item.count for item in ledger.history) == 16_000


@pytest.mark.parametrize("kind", ["renyi", "gaussian", "approximate", "non-adaptive"])
def test_threads_never_overspend_a_budget(kind):
    mechanism = m.PureDP(0.01) if kind == "approximate" else m.Gaussian(50.0)
    budget = Budget(1.0, 1e-5, filter=kind)
    allowed = Accountant(budget).affordable(mechanism)
    ledger = Accountant(budget)

    def work():
        try:
            while True:
                ledger.compose(mechanism)
        except BudgetExceeded:
            pass

    together(*[work] * 4)
    assert len(ledger) == allowed > 20


def test_threads_charging_individual_budgets():
    watch = IndividualFilter(Budget(1.0, 1e-5, orders=20.0), 10)
    taken = []

    def work():
        mine = np.zeros(10, dtype=int)
        for _ in range(200):
            mine += watch.charge(watch.capacities[0] / 100.5)
        taken.append(mine)

    together(*[work] * 4)
    assert (sum(taken) == 100).all()


def test_merging_each_into_the_other_at_once_does_not_hang():
    ledgers = Accountant(), Accountant()
    for ledger in ledgers:
        ledger.compose(Noise(1.0))
    threads = [
        threading.Thread(target=ledgers[i].merge, args=(ledgers[1 - i],), daemon=True)
        for i in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)
    assert not any(thread.is_alive() for thread in threads)
    assert sorted(map(len, ledgers)) in ([2, 3], [2, 2])
