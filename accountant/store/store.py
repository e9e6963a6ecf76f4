"""The store: budgets of blocks, shared by many processes and machines, opened by a URL."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self, TypeVar

from accountant import checks
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.ledger import Accountant, Budget, Remaining
from accountant.ledger.history import Entry, Uncopied, entry
from accountant.mechanisms.base import Mechanism
from accountant.store import blocks as kept
from accountant.store import journal, texts, verification
from accountant.store.blocks import Block
from accountant.store.charges import Request, decide, expire, plan, settle
from accountant.store.database import Access, Database
from accountant.store.journal import Chain, Head, Transaction
from accountant.store.verification import Verification

T = TypeVar("T")

_TIMEOUT = checks.positive("timeout", "It is the seconds to wait for the database")
_LEASE = checks.Argument("lease", "seconds in (0, 1e9]", lambda x: (x > 0.0) & (x <= 1e9), "")


class Receipt(NamedTuple):
    """What was decided: a row of the journal.

    Attributes
    ----------
    key : str
        The idempotency key; of a reservation, what ``commit`` and ``abort`` are given.
    row : int
        The number of the journal's row.
    repeated : bool
        Whether this had been decided before, under the same key.
    until : float or None
        Of a reservation: when its lease ends, in seconds since 1970 by the database's clock.
    """

    key: str
    row: int
    repeated: bool
    until: float | None = None


class Store(Access, Uncopied):
    """Budgets of blocks in a database; made by :func:`accountant.store.open`.

    Notes
    -----
    Safe to use from several threads, which take turns. Connections are closed before a fork, and
    both sides open their own. A signal handler that interrupts a call of its own thread is refused
    (LedgerError) before anything is touched. Every wait ends after ``timeout`` seconds, with
    LedgerConflict; where the request may have been written nevertheless, the message says so and
    names the key under which to repeat it. What the database refuses (a full disk, a missing right)
    is a LedgerError, with the same words where they are needed.
    Make a release only after ``charge``, or ``reserve``, returned.
    """

    _COPIED = "a Store has no copies; open it once more"
    _PICKLED = "a Store is not pickled; open it in each process"

    def __init__(
        self,
        connect: Callable[[], Database],
        secret: bytes | None,
        create: bool,
        timeout: float,
        everyone: Budget | None = None,
    ) -> None:
        super().__init__(connect, timeout)
        self._chain = Chain(secret)
        self._identity = self._retried(lambda: self._open(create))
        if everyone is not None:
            self.add_blocks(texts.EVERYONE, everyone)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a later call opens another."""
        self._alone(lambda _: self._database.close())

    # Blocks

    @to_nearest
    def add_blocks(self, blocks: str | Iterable[str], budget: Budget | None) -> int:
        """Make blocks with a budget each; return how many were not there yet.

        Parameters
        ----------
        blocks : str or iterable of str
            Addresses, tenant/dataset/block. The block of a record must be a function of the record
            alone (docs/theorems_store.md, B1).
        budget : Budget or None
            Of each block. A budget is never changed; None never refuses.

        Raises
        ------
        DomainError
            A block is there with another budget; nothing was made.
        UnsupportedError
            The data set was charged under replace-one, hence has one block only.
        """
        checks.instance("budget", budget, (Budget, type(None)), "a Budget or None")
        listed = (blocks,) if isinstance(blocks, str) else blocks
        wanted = tuple(dict.fromkeys(texts.address_of(each) for each in listed))
        if not wanted:
            raise DomainError("blocks must name at least one block")
        return self._written(lambda turn: kept.add(turn, wanted, budget))

    def blocks(self, named: str | Iterable[str] | None = None) -> list[Block]:
        """Return what blocks hold: those of addresses or patterns, or all."""
        wanted = None if named is None else texts.named(named)
        return self._read(lambda base: kept.listed(base, wanted))

    @to_nearest
    def import_ledger(self, address: str, ledger: Accountant) -> None:
        """Make a block of a ledger: its budget, and all its records, whatever they cost."""
        checks.instance("ledger", ledger, Accountant, "an Accountant")
        where = texts.address_of(address)
        self._written(lambda turn: kept.take_up(turn, where, ledger))

    @to_nearest
    def ledger(self, address: str) -> Accountant:
        """Return a block as a ledger, for questions and for a file; open reservations in full.

        What is charged to it is not charged to the store.
        """
        where = texts.address_of(address)
        return self._read(lambda base: kept.ledger(base, where))

    # Charging

    @to_nearest
    def plan(
        self,
        blocks: str | Iterable[str],
        mechanism: Mechanism,
        count: int | None = None,
        label: str | None = None,
        *,
        key: str | None = None,
    ) -> int:
        """Set aside ``count`` releases on each of ``blocks``, before the first of any; return it.

        As :meth:`accountant.ledger.Accountant.plan`, for each block: by exact composition, in
        full; None takes as many as all blocks allow. Planned releases are then charged or reserved
        as others are, and use the plan up.

        Raises
        ------
        BlockExceeded
            A block does not allow it; nothing was planned.
        UnsupportedError
            Something was charged to a block already, or another relation was.
        DomainError
            A block has no budget, or is not there.
        """
        token = secrets.token_hex(12) if key is None else texts.token(key)
        wanted = entry(mechanism, 1 if count is None else count, label)
        request = Request(texts.named(blocks), wanted, token, planned=True)
        made, planned = self._written(lambda turn: plan(turn, request, count is None), token)
        if made.refused is not None:
            raise made.refused
        return planned

    @to_nearest
    def charge(
        self,
        blocks: str | Iterable[str],
        mechanism: Mechanism,
        count: int = 1,
        label: str | None = None,
        *,
        time: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Charge ``count`` releases of ``mechanism`` to each of ``blocks``, or to none.

        Parameters
        ----------
        blocks : str or iterable of str
            Every block whose records the release used: addresses, or ``tenant/dataset/*`` for all
            blocks that the data set has now.
        mechanism, count, label, time
            As for :meth:`accountant.ledger.Accountant.compose`.
        key : str, optional
            An idempotency key: repeated with the same key, the same charge is charged once. By
            default a fresh one, under which this call repeats itself when the connection is lost.
            Repeated with ``tenant/dataset/*``, it names the blocks of the first time: a block that
            was added since is not charged, and must not be read.
            A key is for one release: where the receipt says ``repeated``, another call charged it,
            its release may have been made, and fresh noise would be another.

        Raises
        ------
        BlockExceeded
            A block cannot pay; none was charged. Under the same key it may be asked again.
        LedgerConflict
            The key was used for something else.
        UnsupportedError, DomainError, ArgumentTypeError
            As for ``compose``; a block that is not there.
        """
        return self._decided(blocks, entry(mechanism, count, label, time), key)

    @to_nearest
    def reserve(
        self,
        blocks: str | Iterable[str],
        mechanism: Mechanism,
        count: int = 1,
        label: str | None = None,
        *,
        lease: float = 3600.0,
        time: float | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Charge as :meth:`charge` does, so that some may be given back within ``lease`` seconds.

        The rule of expiry: only ``commit`` and ``abort`` give back, and only while the lease
        lasts. When it has ended, the reservation counts in full for ever, as if all was released
        (docs/theorems_store.md, B2). Repeated under the key of a reservation of which some was
        given back, it raises LedgerConflict.
        """
        seconds = checks.number(_LEASE, lease)
        return self._decided(blocks, entry(mechanism, count, label, time), key, seconds)

    @to_nearest
    def commit(self, key: str, count: int | None = None) -> int:
        """Say that ``count`` releases of a reservation were made, by default all; return the row.

        The rest is given back to every block. Repeated, it changes nothing.

        Raises
        ------
        LedgerConflict
            It was settled otherwise before, or less than all is said after the lease has ended.
        DomainError
            There is no such reservation, or fewer were reserved.
        """
        if count is not None:
            count = checks.integer("count", count, 1, 1 << 53)
        token = texts.token(key)
        return self._written(lambda turn: settle(turn, token, count))

    @to_nearest
    def abort(self, key: str) -> int:
        """Say that nothing of a reservation was released, and give it back; as :meth:`commit`."""
        token = texts.token(key)
        return self._written(lambda turn: settle(turn, token, 0))

    def expire(self) -> list[str]:
        """Journal which reservations count in full because their lease has ended; return keys."""
        return self._written(expire)

    # Asking

    @to_nearest
    def remaining(self, address: str) -> Remaining:
        """Return what a block has left, in the unit of its filter."""
        where = texts.address_of(address)
        return self._read(lambda base: kept.known(base, (where,))[0].remaining())

    @to_nearest
    def affordable(self, blocks: str | Iterable[str], mechanism: Mechanism) -> int:
        """Return how many more releases each of ``blocks`` would allow now, at most 2**53."""
        wanted = texts.named(blocks)
        checked = entry(mechanism, 1).mechanism
        return self._read(lambda base: kept.affordable(base, wanted, checked))

    def head(self) -> Head:
        """Return the end of the journal. Kept elsewhere, it shows what was cut off later."""
        return self._read(kept.head)

    def verify(self, head: Head | None = None) -> Verification:
        """Check the chain of the journal, and that every table follows from it.

        Parameters
        ----------
        head : Head, optional
            One that was kept elsewhere: the journal must still begin with the same rows.
        """
        checks.instance("head", head, (Head, type(None)), "a Head or None")
        return self._read(lambda base: verification.verify(base, self._chain, self._identity, head))

    def _decided(
        self, blocks: str | Iterable[str], item: Entry, key: str | None, lease: float | None = None
    ) -> Receipt:
        token = secrets.token_hex(12) if key is None else texts.token(key)
        by = secrets.token_hex(8) if key else ""
        micros = None if lease is None else round(lease * 1e6)
        request = Request(texts.named(blocks), item, token, micros, by=by)
        made = self._written(lambda turn: decide(turn, request), token)
        if made.refused is not None:
            raise made.refused
        until = None if lease is None else made.until / 1e6
        return Receipt(token, made.row, made.repeated, until)

    def _open(self, create: bool) -> str:
        if create:
            journal.create(self._database, self._chain)
        return journal.opened(self._database, self._chain)

    def _written(self, work: Callable[[Transaction], T], key: str = "") -> T:
        """Do ``work`` in a turn of its own; again, if the connection is lost: keys make it safe."""
        again = f"repeat it under its key, {key!r}" if key else "repeat it; nothing is done twice"
        unknown = f". It is unknown whether this was written: {again}"
        return self._retried(lambda: work(Transaction(self._database, self._chain)), unknown)

    def _read(self, work: Callable[[Database], T]) -> T:
        def looking() -> T:
            self._database.look()
            found = work(self._database)
            self._database.settled()
            return found

        return self._retried(looking)


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
