"""Both databases: what one of them promises, the other promises."""

import pytest

from accountant import store
from accountant.ledger import Budget
from support import postgres


@pytest.fixture(scope="session")
def server():
    if why := postgres.why_not():
        pytest.skip(why)
    made = postgres.Server()
    yield made
    made.stop()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'budget.db'}"
    return request.getfixturevalue("server").fresh()


@pytest.fixture
def shared(url):
    """A store with two blocks; whatever a test did to it, it verifies in the end."""
    with store.open(url, create=True) as opened:
        opened.add_blocks(["acme/visits/2026-01", "acme/visits/2026-02"], Budget(1.0, 1e-6))
        yield opened
        assert opened.verify().passed, opened.verify()
