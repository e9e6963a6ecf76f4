"""One budget for all people, beside those of tenants who share them."""

import json
import random

import pytest

import accountant as ac
from accountant import store
from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import Accountant, Budget
from accountant.store.texts import EVERYONE
from support.store_tampering import Tampered

TENANTS = ["acme/visits/1", "acme/visits/2", "blue/visits/1"]
TENTH = ac.PureDP(0.1)


@pytest.fixture
def together(url):
    with store.open(url, create=True, everyone=Budget(1.0)) as opened:
        opened.add_blocks(TENANTS, Budget(0.8))
        yield opened
        assert opened.verify().passed, opened.verify()


def test_every_charge_is_charged_to_all_people(together, url):
    together.charge(TENANTS[0], TENTH, 5)
    with store.open(url) as other:  # which was not told of the budget for all people
        other.charge("acme/visits/*", TENTH, 2)
        assert other.affordable(TENANTS[2], TENTH) == 3
        with pytest.raises(store.BlockExceeded, match=f"block {EVERYONE} cannot pay"):
            other.charge(TENANTS[2], TENTH, 4)
        held = other.reserve(TENANTS[2], TENTH, 3)
        other.commit(held.key, 1)
        assert other.affordable(TENANTS[2], TENTH) == 2
    blocks = {block.address: block.releases for block in together.blocks()}
    assert blocks == {EVERYONE: 8, TENANTS[0]: 7, TENANTS[1]: 2, TENANTS[2]: 1}
    assert together.ledger(EVERYONE).epsilon(0.0) == 0.8


def test_reports_of_all_people_are_never_below_the_union(together):
    rng, union = random.Random(1), 0
    for k in range(60):
        count = rng.randint(1, 3)
        named = rng.sample(TENANTS, rng.randint(1, 3))
        try:
            receipt = together.charge(named, ac.PureDP(0.01), count, key=f"k{k % 20}")
        except (store.BlockExceeded, ac.LedgerConflict):
            continue
        union += 0 if receipt.repeated else count
        assert together.blocks(EVERYONE)[0].releases == union
    assert union > 20


def test_plans_are_of_all_people_too(together):
    together.plan(TENANTS[0], TENTH, 8)
    assert together.affordable(TENANTS[2], TENTH) == 8  # its own; of the plan for all people
    together.charge(TENANTS[0], TENTH, 8)
    assert together.affordable(TENANTS[2], TENTH) == 2


def test_it_comes_first_and_stays(url):
    with store.open(url, create=True) as opened:
        opened.add_blocks(TENANTS, Budget(1.0))
        with pytest.raises(UnsupportedError, match="before all other blocks"):
            opened.add_blocks(EVERYONE, Budget(1.0))
    with pytest.raises(UnsupportedError, match="before all other blocks"):
        store.open(url, everyone=Budget(1.0))


def test_it_is_not_changed_and_takes_no_ledger(together, url):
    with pytest.raises(DomainError, match="is there already, with"):
        store.open(url, everyone=Budget(2.0))
    store.open(url, everyone=Budget(1.0)).close()
    with pytest.raises(UnsupportedError, match="imports no ledger"):
        together.import_ledger("acme/other/1", Accountant(Budget(1.0)))


def test_a_row_that_leaves_all_people_out_is_a_fault(tmp_path):
    path = tmp_path / "budget.db"
    with store.open(f"sqlite:///{path}", create=True, everyone=Budget(1.0)) as opened:
        opened.add_blocks(TENANTS[0], Budget(1.0))
        opened.charge(TENANTS[0], TENTH)
    hands = Tampered(path)
    *_, last = hands.rows
    body = json.loads(last[4])
    assert last[2] == "charge"
    assert len(body["blocks"]) == 2 or body["blocks"][0][0] != body["blocks"][0][1]
    body["blocks"] = [[body["blocks"][-1][1]] * 2]
    told = [last[0] + 1, last[1], "charge", "another", json.dumps(body)]
    rows = [*hands.rows, [*told, hands.chain.next(last[5], *told)]]
    found = hands.verified(rows, end=(told[0], rows[-1][5]))
    assert any("block of everyone" in fault for fault in found.faults), found
