"""Opening a store by its URL."""

from __future__ import annotations

from accountant import checks
from accountant.errors import DomainError
from accountant.ledger import Budget
from accountant.store.store import Store

_TIMEOUT = checks.positive("timeout", "It is the seconds to wait for the database")


def open(  # noqa: A001 (as files are opened)
    url: str,
    *,
    create: bool = False,
    secret: bytes | None = None,
    timeout: float = 30.0,
    everyone: Budget | None = None,
) -> Store:
    """Open a store of budgets that processes, teams and services share.

    Parameters
    ----------
    url : str
        ``sqlite:///PATH`` (``sqlite:////PATH`` from the root), one file on one machine, or
        ``postgresql://…``, with the extra ``postgres``. Both behave the same.
    create : bool
        Make the tables where there are none.
    secret : bytes, optional
        At least 16 bytes that key the journal's hashes; of a store made with one, the same.
    timeout : float
        Seconds after which a call that could not use the database raises LedgerConflict.
    everyone : Budget, optional
        One budget for all people, where tenants share them: of the block ``everyone/all/all``,
        which every charge to any block is charged to, too, by whatever client (Theorem B3). It is
        made before all other blocks, and never changed.

    Raises
    ------
    DomainError, LedgerError, LedgerConflict
        There is no store, it is of another version, the secret is missing, or it cannot be reached.
    UnsupportedError
        The driver is not installed.
    """
    checks.instance("url", url, str, "a str")
    wait = checks.number(_TIMEOUT, timeout)
    make = checks.flag("create", create)
    if url.startswith(("postgresql://", "postgres://")):
        from accountant.store.postgres import Postgres

        return Store(lambda: Postgres(url), secret, make, wait, everyone)
    if url.startswith("sqlite:"):
        from accountant.store.sqlite import SQLite, path_of

        path = path_of(url)
        return Store(lambda: SQLite(path, make), secret, make, wait, everyone)
    raise DomainError(f"url must begin with sqlite:/// or postgresql://; got {url!r:.40}")
