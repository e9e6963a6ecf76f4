"""Plans of blocks are those of a ledger, and are used up as a ledger's are."""

import pytest

import accountant as ac
from accountant import store
from accountant.errors import BudgetExceeded, DomainError, LedgerConflict, UnsupportedError
from accountant.ledger import Accountant, Budget
from accountant.relations import NeighbouringRelation

STEP = ac.PoissonSampled(ac.Gaussian(2.0), 0.001)
ONE, TWO, OTHER = "acme/visits/2026-01", "acme/visits/2026-02", "acme/sales/all"


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("name", ["renyi", "gaussian", "non-adaptive"])
def test_plans_are_those_of_a_ledger(shared, name):
    budget = Budget(1.0, 1e-6, filter=name)
    three = ["acme/plans/1", "acme/plans/2", "acme/plans/3"]
    shared.add_blocks(three, budget)
    ledger = Accountant(budget)
    query = ac.Gaussian(100.0)
    assert shared.plan(three, query, 3, "panel", key="p") == ledger.plan(query, 3, "panel")
    assert shared.plan(three, query, 3, "panel", key="p") == 3
    most = ledger.plan(STEP)
    assert shared.plan(three, STEP, key="q") == most == shared.plan(three, STEP, key="q")
    for mechanism, count in ((query, 2), (STEP, most - 5), (query, 3), (STEP, 5), (STEP, 10**9)):
        assert shared.affordable(three[0], mechanism) == ledger.affordable(mechanism)
        try:
            ledger.compose(mechanism, count)
        except BudgetExceeded:
            with pytest.raises(store.BlockExceeded):
                shared.charge("acme/plans/*", mechanism, count)
        else:
            shared.charge("acme/plans/*", mechanism, count)
        assert shared.remaining(three[1]) == ledger.remaining()
    assert shared.ledger(three[2]).to_json() == ledger.to_json()
    shared.import_ledger("acme/again/1", ledger)
    assert shared.ledger("acme/again/1").to_json() == ledger.to_json()


def test_what_is_reserved_of_a_plan_and_given_back_may_be_charged_again(shared):
    shared.charge(TWO, STEP)  # so that there is a price
    most = shared.plan(ONE, STEP)
    assert most > 10
    held = shared.reserve(ONE, STEP, most)
    with pytest.raises(store.BlockExceeded):
        shared.charge(ONE, STEP)
    shared.commit(held.key, 10)
    shared.charge([ONE, TWO], STEP, 3)  # of a plan on one, by sums on the other
    assert shared.affordable(ONE, STEP) == most - 13


def test_plans_that_are_refused(shared):
    shared.charge(ONE, STEP)
    with pytest.raises(UnsupportedError, match="before the first release of block"):
        shared.plan([ONE, TWO], STEP)
    with pytest.raises(store.BlockExceeded, match="cannot pay a plan of 5 x Gaussian") as caught:
        shared.plan(TWO, ac.Gaussian(0.5), 5)
    assert caught.value.block == TWO
    shared.add_blocks(OTHER, None)
    with pytest.raises(DomainError, match="plan needs a budget"):
        shared.plan(OTHER, STEP)
    shared.plan(TWO, STEP, 4, key="four")
    with pytest.raises(LedgerConflict):
        shared.plan(TWO, STEP, 5, key="four")
    other = ac.Gaussian(90.0, relation=NeighbouringRelation.REPLACE_ONE)
    with pytest.raises(UnsupportedError, match="neighbouring relation of block"):
        shared.plan(TWO, other)
