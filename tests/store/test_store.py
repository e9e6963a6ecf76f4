"""What clients of a store may rely on, in both databases."""

import copy
import functools
import os
import pickle
import random
import time

import pytest

import accountant as ac
from accountant import store
from accountant.errors import (
    ArgumentTypeError,
    BudgetExceeded,
    DomainError,
    LedgerConflict,
    LedgerError,
    UnsupportedError,
)
from accountant.ledger import Accountant, Budget, document
from accountant.relations import NeighbouringRelation
from accountant.store import decisions
from support.threads import together

STEP = ac.PoissonSampled(ac.Gaussian(2.0), 0.001)
ONE, TWO, OTHER = "acme/visits/2026-01", "acme/visits/2026-02", "acme/sales/all"


KINDS = {
    "renyi": [STEP, ac.Gaussian(8.0), ac.Laplace(30.0), ac.PureDP(0.01)],
    "gaussian": [ac.Gaussian(8.0), ac.Gaussian(30.0)],
    "kinds": [ac.Gaussian(20.0), ac.Gaussian(60.0)],
    "approximate": [ac.PureDP(0.1), ac.ApproximateDP(0.05, delta=1e-8)],
    "non-adaptive": [STEP, ac.Gaussian(20.0)],
}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", KINDS)
def test_decisions_are_those_of_a_ledger(url, name):
    rng = random.Random(1)
    kinds = KINDS[name] if name == "kinds" else None
    budget = Budget(1.0, 1e-6, filter=name, kinds=kinds)
    ledger = Accountant(budget)
    refused = 0
    with store.open(url, create=True) as shared:
        shared.add_blocks([ONE, TWO], budget)
        for _ in range(12 if name == "non-adaptive" else 60):
            mechanism, count = rng.choice(KINDS[name]), rng.choice([1, 1, 2, 7, 20, 300])
            try:
                ledger.compose(mechanism, count)
                admitted = True
            except BudgetExceeded:
                admitted = False
                refused += 1
            if admitted:
                shared.charge([ONE, TWO], mechanism, count)
            else:
                with pytest.raises(store.BlockExceeded) as caught:
                    shared.charge([TWO, ONE], mechanism, count)
                assert caught.value.block == ONE
                assert caught.value.remaining == ledger.remaining()
        assert refused
        for address in (ONE, TWO):
            assert shared.ledger(address).history == ledger.history
            assert shared.remaining(address) == ledger.remaining()
            (held,) = shared.blocks(address)
            assert dict(held.counts) == dict(ledger.counts)
        if name != "non-adaptive":
            for mechanism in KINDS[name]:
                assert shared.affordable([ONE, TWO], mechanism) == ledger.affordable(mechanism)
        assert shared.verify().passed


def test_a_retried_charge_is_charged_once(shared):
    first = shared.charge([TWO, ONE], STEP, 3, "model", time=2.5, key="job-1")
    again = shared.charge([ONE, TWO, ONE], STEP, 3, "model", time=2.5, key="job-1")
    assert not first.repeated
    assert again == (first.key, first.row, True, None)
    assert [block.counts for block in shared.blocks()] == [((STEP, 3),)] * 2
    for changed in (
        lambda: shared.charge([ONE, TWO], STEP, 4, "model", time=2.5, key="job-1"),
        lambda: shared.charge([ONE, TWO], STEP, 3, "other", time=2.5, key="job-1"),
        lambda: shared.charge([ONE], STEP, 3, "model", time=2.5, key="job-1"),
        lambda: shared.charge("acme/visits/*", STEP, 3, "model", time=2.5, key="job-1"),
        lambda: shared.charge([ONE, TWO], ac.Gaussian(9.0), 3, "model", time=2.5, key="job-1"),
        lambda: shared.reserve([ONE, TWO], STEP, 3, "model", time=2.5, key="job-1"),
    ):
        with pytest.raises(LedgerConflict, match="key 'job-1' was used"):
            changed()


def test_a_refused_key_may_be_asked_again(shared):
    most = shared.affordable(ONE, STEP)
    held = shared.reserve(ONE, STEP, most)
    for _ in range(2):
        with pytest.raises(store.BlockExceeded, match=f"block {ONE} cannot pay Poisson"):
            shared.charge([ONE, TWO], STEP, key="late")
    assert shared.blocks(TWO)[0].counts == ()
    shared.abort(held.key)
    assert not shared.charge([ONE, TWO], STEP, key="late").repeated
    assert shared.affordable(ONE, STEP) == most - 1


def test_a_pattern_names_all_blocks_of_its_data_set(shared):
    shared.add_blocks([OTHER, "acme/visits2/x"], Budget(1.0, 1e-6))
    first = shared.charge("acme/visits/*", STEP, key="all")
    shared.add_blocks("acme/visits/2026-03", Budget(1.0, 1e-6))
    assert shared.charge("acme/visits/*", STEP, key="all").row == first.row
    shared.charge(["acme/visits/*", OTHER], STEP)
    assert {block.address: block.releases for block in shared.blocks()} == {
        ONE: 2,
        TWO: 2,
        OTHER: 1,
        "acme/visits2/x": 0,
        "acme/visits/2026-03": 1,
    }
    with pytest.raises(DomainError, match="no block of this store is called acme/none"):
        shared.charge(["acme/none/*", ONE], STEP)


def test_a_reservation_counts_in_full_until_it_is_settled(shared):
    most = shared.affordable(ONE, STEP)
    held = shared.reserve([ONE, TWO], STEP, most, "run", key="run-1")
    assert held.until > time.time()
    assert shared.reserve([ONE, TWO], STEP, most, "run", key="run-1").repeated
    assert shared.affordable(ONE, STEP) == 0
    assert shared.blocks(ONE)[0].reserved == most
    assert len(shared.ledger(ONE)) == most
    row = shared.commit("run-1", 5)
    assert row == shared.head().rows
    assert shared.commit("run-1", 5) == row == shared.head().rows
    assert shared.affordable(ONE, STEP) == most - 5
    assert shared.blocks(ONE)[0].reserved == 0
    assert len(shared.ledger(TWO)) == 5
    for wrong in (lambda: shared.commit("run-1"), lambda: shared.abort("run-1")):
        with pytest.raises(LedgerConflict, match=f"5 of {most} are charged"):
            wrong()


def test_an_abort_gives_back_exactly_what_was_added(shared):
    shared.charge([ONE, TWO], ac.Laplace(77.0), 13)
    before = shared.remaining(ONE), shared.affordable(ONE, STEP)
    held = shared.reserve("acme/visits/*", STEP, 7)
    assert shared.abort(held.key) == shared.abort(held.key) == shared.head().rows
    assert (shared.remaining(ONE), shared.affordable(ONE, STEP)) == before
    assert shared.ledger(TWO).counts == ((ac.Laplace(77.0), 13),)
    with pytest.raises(LedgerConflict):
        shared.commit(held.key)


@pytest.mark.parametrize("used", [0, 3])
def test_what_was_given_back_is_not_reserved_by_its_old_key(shared, used):
    shared.reserve(ONE, STEP, 10, key="run")
    shared.commit("run", used) if used else shared.abort("run")
    with pytest.raises(LedgerConflict, match="given back"):
        shared.reserve(ONE, STEP, 10, key="run")
    assert shared.blocks(ONE)[0].releases == used
    shared.reserve(ONE, STEP, 10, key="whole")
    shared.commit("whole")
    assert shared.reserve(ONE, STEP, 10, key="whole").repeated


def test_what_nobody_answered_for_counts_in_full(shared):
    held = shared.reserve(ONE, STEP, 9, lease=0.01)
    kept = shared.reserve(ONE, STEP, 2, lease=1000.0)
    time.sleep(0.03)
    for late in (lambda: shared.abort(held.key), lambda: shared.commit(held.key, 8)):
        with pytest.raises(LedgerConflict, match=r"lease of reservation .* has ended"):
            late()
    assert shared.blocks(ONE)[0].releases == 11
    assert shared.expire() == [held.key]
    expired = shared.head().rows
    assert shared.expire() == []
    assert shared.blocks(ONE)[0].reserved == 2
    assert shared.commit(held.key) == expired  # all of it: what is counted already
    with pytest.raises(LedgerConflict, match="because its lease had ended"):
        shared.abort(held.key)
    shared.abort(kept.key)
    assert shared.blocks(ONE)[0].releases == 9


def test_wrong_settlements(shared):
    with pytest.raises(DomainError, match="no reservation of this store has the key 'none'"):
        shared.commit("none")
    shared.charge(ONE, STEP, key="charge")
    with pytest.raises(DomainError, match="no reservation"):
        shared.abort("charge")
    shared.reserve(ONE, STEP, 3, key="three")
    for count in (0, -1, 4):
        with pytest.raises(DomainError, match="count must be"):
            shared.commit("three", count)
    with pytest.raises(ArgumentTypeError):
        shared.commit("three", 1.0)


def test_a_block_keeps_its_budget(shared):
    assert shared.add_blocks([ONE, OTHER], Budget(1.0, 1e-6)) == 1
    with pytest.raises(DomainError, match="is there already, with Budget"):
        shared.add_blocks(["acme/visits/new", ONE], Budget(2.0, 1e-6))
    with pytest.raises(DomainError, match="is there already, with Budget"):
        shared.add_blocks(ONE, None)
    assert [block.address for block in shared.blocks()] == [ONE, TWO, OTHER]


def test_without_a_budget_everything_is_recorded(shared):
    shared.add_blocks(OTHER, None)
    shared.charge(OTHER, ac.Gaussian(0.01), 10**6)
    assert shared.blocks(OTHER)[0].releases == 10**6
    with pytest.raises(DomainError, match="has none"):
        shared.remaining(OTHER)
    with pytest.raises(DomainError, match="within 2"):
        shared.charge(OTHER, ac.Gaussian(0.01), 2**53)
    assert shared.blocks(OTHER)[0].releases == 10**6


def test_relations_are_not_mixed(shared):
    other = ac.Gaussian(90.0, relation=NeighbouringRelation.REPLACE_ONE)
    shared.charge(ONE, STEP)
    with pytest.raises(UnsupportedError, match="neighbouring relation of block"):
        shared.charge(ONE, other)
    with pytest.raises(UnsupportedError, match="has several blocks"):
        shared.charge(TWO, other)
    shared.add_blocks(OTHER, Budget(1.0, 1e-6))
    shared.charge(OTHER, other)
    with pytest.raises(UnsupportedError, match="one block only"):
        shared.add_blocks("acme/sales/more", Budget(1.0, 1e-6))


def test_what_a_filter_cannot_charge_is_refused_and_not_journalled(shared):
    head = shared.head()
    shared.add_blocks(OTHER, Budget(1.0, 1e-6, filter="approximate"))
    with pytest.raises(UnsupportedError, match="filter cannot charge it"):
        shared.charge([ONE, OTHER], STEP)
    assert shared.head().rows == head.rows + 2
    assert shared.blocks(ONE)[0].releases == 0


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("budget", [None, Budget(1.0, 1e-6), Budget(0.5, 1e-6, filter="gaussian")])
def test_a_ledger_goes_in_and_out_unchanged(shared, budget):
    ledger = Accountant(budget)
    for k in range(3):
        ledger.compose(ac.Gaussian(40.0), 2, f"step {k} \u0000 ε", time=k / 3)
        ledger.compose(ac.Gaussian(50.0), 3)
    ledger.note_delta(1e-4)
    shared.import_ledger(OTHER, ledger)
    assert shared.ledger(OTHER).to_json() == ledger.to_json()
    shared.charge(OTHER, ac.Gaussian(50.0), 1)
    ledger.compose(ac.Gaussian(50.0), 1)
    assert shared.ledger(OTHER).to_json() == ledger.to_json()
    with pytest.raises(DomainError, match="is there already"):
        shared.import_ledger(OTHER, ledger)


def test_an_overspent_ledger_is_taken_as_it_is(shared):
    """Its releases have happened; a file may hold more than its budget."""
    spent = Accountant()
    spent.compose(ac.Gaussian(0.1), 5)
    text = document.encode(spent.history, Budget(1.0, 1e-6))
    shared.import_ledger(OTHER, Accountant.from_json(text))
    assert shared.ledger(OTHER).to_json() == text
    with pytest.raises(store.BlockExceeded):
        shared.charge(OTHER, ac.PureDP(1e-9))


def test_threads_take_turns(shared):
    def charge(number):
        for k in range(10):
            shared.charge([ONE, TWO], STEP, key=f"{number}-{k}")

    together(*(functools.partial(charge, number) for number in range(4)))
    assert [block.releases for block in shared.blocks()] == [40, 40]


def test_a_fork_connects_anew(shared):
    shared.charge(ONE, STEP)
    child = os.fork()
    if child == 0:
        try:
            shared.charge(ONE, STEP)
            shared.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    shared.charge(ONE, STEP)
    assert shared.blocks(ONE)[0].releases == 3


def test_a_store_is_not_copied(shared):
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UnsupportedError):
            copied(shared)


def test_others_charge_while_a_refusal_is_worded(shared, url, monkeypatch):
    worded = decisions.refusal

    def slowly(*found):
        with store.open(url, timeout=3.0) as other:
            other.charge(TWO, STEP)
        return worded(*found)

    monkeypatch.setattr(decisions, "refusal", slowly)
    with pytest.raises(store.BlockExceeded):
        shared.charge(ONE, ac.Gaussian(0.1))
    assert [block.releases for block in shared.blocks()] == [0, 1]


def test_what_a_refusal_says(shared):
    with pytest.raises(store.BlockExceeded) as caught:
        shared.charge([TWO, ONE], ac.Gaussian(0.5), 2)
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.as_dict() == caught.value.as_dict()
    assert error.block == ONE
    assert error.asked == (("Gaussian(0.5)", 2),)
    assert error.as_dict()["remaining"]["fraction"] == 1.0
    assert "0 would fit" in str(error)
    assert isinstance(error, BudgetExceeded)


def test_what_the_database_refuses_is_one_of_our_errors(shared, url):
    setting = (
        "PRAGMA query_only = "
        if url.startswith("sqlite")
        else ("SET default_transaction_read_only = ")
    )
    shared._database.execute(f"{setting} on")
    with pytest.raises(LedgerError, match="database of this store says"):
        shared.charge(ONE, STEP)
    shared._database.execute(f"{setting} off")
    shared.charge(ONE, STEP)


def test_urls(tmp_path):
    for wrong in ("mysql://x", "sqlite://x", "sqlite:///", ""):
        with pytest.raises(DomainError):
            store.open(wrong)
    with pytest.raises(ArgumentTypeError):
        store.open(tmp_path)
    with pytest.raises(DomainError, match="no store at"):
        store.open(f"sqlite:///{tmp_path}/none.db")
    assert not list(tmp_path.iterdir())


def test_wrong_arguments(shared):
    for blocks in ([], "a/b", "a/b/", "a/b/c/d", "a b/c/d", "*/b/c", "acme/visits/2026-*"):
        with pytest.raises(DomainError):
            shared.charge(blocks, STEP)
    for wrong in (3, None, [3]):
        with pytest.raises(ArgumentTypeError):
            shared.charge(wrong, STEP)
    for key in ("", " ", "a\nb", "é", "k" * 201):
        with pytest.raises(DomainError, match="key must be"):
            shared.charge(ONE, STEP, key=key)
    for lease in (0.0, -1.0, 1e10, float("inf"), float("nan")):
        with pytest.raises(DomainError, match="lease must be"):
            shared.reserve(ONE, STEP, lease=lease)
    with pytest.raises(ArgumentTypeError):
        shared.charge(ONE, "Gaussian")
    with pytest.raises(DomainError):
        shared.charge(ONE, STEP, 0)
    with pytest.raises(ArgumentTypeError):
        shared.add_blocks("a/b/c", 1.0)
    with pytest.raises(DomainError):
        shared.add_blocks([], None)
    assert shared.blocks(ONE)[0].releases == 0
