"""Many threads at one ledger: nothing is lost, nothing is spent twice, nothing hangs."""

import threading

import numpy as np
import pytest

from accountant import mechanisms as m
from accountant.errors import BudgetExceeded
from accountant.ledger import Accountant, Budget, IndividualFilter
from support.toy_mechanisms import Noise


def test_threads_hammering_one_accountant_lose_nothing():
    ledger = Accountant()

    def work(k):
        for _ in range(2000):
            ledger.step(noise_multiplier=1.0 + k, sampling_probability=0.01, label=str(k))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger) == allowed > 20


def test_threads_charging_individual_budgets():
    watch = IndividualFilter(Budget(1.0, 1e-5, orders=20.0), 10)
    taken = []

    def work():
        mine = np.zeros(10, dtype=int)
        for _ in range(200):
            mine += watch.charge(watch.capacities[0] / 100.5)
        taken.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
