"""A charge ends its turn before the server's disk has it; nobody is told of it before then."""

import pytest

import accountant as ac
from accountant import store
from accountant.ledger import Budget

BLOCK = "acme/visits/2026-01"
STEP = ac.Gaussian(100.0)


@pytest.fixture
def url(server):
    return server.fresh()


def power_cut(server):
    server.kill()
    server.start()


def test_what_was_acknowledged_outlives_a_power_cut(url, server):
    with store.open(url, create=True) as shared:
        shared.add_blocks(BLOCK, Budget(1.0, 1e-6))
        for _ in range(2):
            row = shared.charge(BLOCK, STEP).row
            power_cut(server)
            assert shared.head().rows == row
        assert shared.verify().passed


@pytest.mark.parametrize("seen", ["repeated", "read"])
def test_what_was_seen_of_another_client_outlives_a_power_cut(url, server, seen, monkeypatch):
    with store.open(url, create=True) as hasty, store.open(url) as shared:
        shared.add_blocks(BLOCK, Budget(1.0, 1e-6))
        shared.charge(BLOCK, STEP)
        monkeypatch.setattr(hasty._database, "_flush", lambda: None)  # it dies before it waits
        hasty.charge(BLOCK, STEP, key="one")
        if seen == "repeated":
            receipt = shared.charge(BLOCK, STEP, key="one")
            assert receipt.repeated
            row = receipt.row
        else:
            row = shared.head().rows
        power_cut(server)
        assert shared.head().rows == row
        assert shared.verify(shared.head()).passed
