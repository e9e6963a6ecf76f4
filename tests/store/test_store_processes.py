"""Many processes at one store, killed at random, and their server with them."""

import json
from collections import Counter

import pytest

from accountant import store
from accountant.ledger import Accountant, Budget
from support import store_crowd
from support.store_client import BLOCKS, STEP

# Of 32,000 charges it admits some 5,000.
BUDGET = Budget(8.0, 1e-6)


def affordable(budget):
    ledger = Accountant(budget)
    return ledger.affordable(STEP)


def crowd(url, directory, clients, charges, budget, **kills):
    """Run the clients, and check that nothing was lost, doubled or overspent."""
    with store.open(url, create=True) as shared:
        shared.add_blocks(BLOCKS, budget)
    told = store_crowd.run(url, clients, charges, directory, **kills)
    with store.open(url) as shared:
        assert shared.verify().passed, shared.verify()
        rows = shared._read(
            lambda base: base.execute(
                "SELECT key, action, body FROM accountant_journal WHERE key IS NOT NULL"
            ).fetchall()
        )
        held = {block.address: block for block in shared.blocks()}
    keys = Counter(key for key, _, _ in rows)
    assert set(keys.values()) == {1}
    assert all(len(each) == charges for each in told)
    admitted = {f"{n}-{k}" for n, each in enumerate(told) for k, yes in each.items() if yes}
    assert admitted == set(keys)  # what was acknowledged is there, and nothing else
    for place, address in enumerate(BLOCKS):
        counted = sum(1 for key in keys if not place or int(key.partition("-")[2]) % 2)
        assert held[address].releases == counted  # each key's one release, once
        assert held[address].reserved == 0
        assert counted <= affordable(budget)
    assert all(json.loads(body)["entries"][0][1] in (1, 2) for _, _, body in rows)
    return held[BLOCKS[0]].releases


@pytest.mark.long
def test_killed_clients_lose_and_double_nothing(url, request, tmp_path):
    budget = Budget(0.5, 1e-6)
    most = affordable(budget)
    assert most == 31
    server = request.getfixturevalue("server") if url.startswith("postgres") else None
    spent = crowd(
        url, tmp_path, 2, 25, budget, kills=2, server=server, server_kills=int(server is not None)
    )
    assert most - 1 <= spent <= most


@pytest.mark.slow
def test_thirty_two_killed_clients_lose_and_double_nothing(url, request, tmp_path):
    """32 x 1,000 charges; the budget allows a seventh of them."""
    server = request.getfixturevalue("server") if url.startswith("postgres") else None
    kills = {"kills": 100, "server": server, "server_kills": 10 if server else 0}
    spent = crowd(url, tmp_path, 32, 1000, BUDGET, **kills)
    assert affordable(BUDGET) - 1 <= spent <= affordable(BUDGET)


@pytest.mark.slow
def test_thirty_two_killed_clients_charge_everything_that_fits(url, request, tmp_path):
    server = request.getfixturevalue("server") if url.startswith("postgres") else None
    kills = {"kills": 100, "server": server, "server_kills": 10 if server else 0, "seed": 1}
    assert crowd(url, tmp_path, 32, 1000, Budget(30.0, 1e-6), **kills) == 32_000
