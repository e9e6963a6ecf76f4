"""Both databases: what one of them promises, the other promises."""

import pytest

from support import postgres


@pytest.fixture(scope="session")
def server():
    if why := postgres.why_not():
        pytest.skip(why)
    made = postgres.Server()
    yield made
    made.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'budget.db'}"
    return request.getfixturevalue("server").fresh()
