"""The end of a reservation: committed, perhaps in part, or aborted; or its lease has ended.

A reservation counts in full from the moment it is made. Only its holder can say that less was
released, and only while the lease lasts: what nobody has answered for by then counts in full for
ever, because the release may have been made before its process died.
"""

from __future__ import annotations

import json

from accountant.errors import DomainError, LedgerConflict
from accountant.store import texts
from accountant.store.journal import Transaction


def settle(turn: Transaction, key: str, used: int | None) -> int:
    """Commit ``used`` of a reservation's releases, all for None; 0 is an abort. Return the row.

    Repeated, it changes nothing.
    """
    asked = (
        "SELECT r.seq, r.until, r.state, r.used, j.body FROM accountant_reservations r"
        " JOIN accountant_journal j ON j.seq = r.seq WHERE r.key = ?"
    )
    (found,) = turn.open((asked, (key,)))
    if not found:
        raise DomainError(f"no reservation of this store has the key {key!r}")
    row, until, state, held, text = found[0]
    body = json.loads(text)
    kind, count, _, _ = body["entries"][0]
    wanted = count if used is None else used
    if wanted > count:
        raise DomainError(f"count must be at most the {count} reserved; got {wanted}")
    if state != "open":
        if held != wanted:
            raise LedgerConflict(
                f"reservation {key!r} was settled before: {held} of {count} are charged"
                + (", because its lease had ended" if state == "expired" else "")
            )
        settled = _settled(turn, row, wanted)
        turn.leave()
        return settled
    if wanted < count and turn.now >= until:
        raise LedgerConflict(
            f"the lease of reservation {key!r} has ended, and so all {count} count as released;"
            " nothing was given back"
        )
    done = "commit" if wanted else "abort"
    number = turn.append(done, {"reservation": row, "used": wanted})
    if wanted < count:
        turn.hold(body["blocks"], kind, wanted - count)
    turn.later(
        "UPDATE accountant_reservations SET state = ?, used = ? WHERE key = ?",
        ("committed" if wanted else "aborted", wanted, key),
    )
    turn.close()
    return number


def _settled(turn: Transaction, row: int, used: int) -> int:
    """Return the row of the journal that settled the reservation of another row."""
    found = turn.ask(
        "SELECT seq FROM accountant_journal WHERE seq > ?"
        " AND action IN ('commit', 'abort', 'expire') AND body IN (?, ?)",
        row,
        texts.compact({"reservation": row, "used": used}),
        texts.compact({"reservation": row}),
    )
    return int(found[0][0])


def expire(turn: Transaction) -> list[str]:
    """Close every reservation whose lease has ended, in full; return their keys."""
    (found,) = turn.open(
        (
            "SELECT key, seq, until FROM accountant_reservations WHERE state = 'open' ORDER BY seq",
            (),
        )
    )
    over = [(key, row) for key, row, until in found if turn.now >= until]
    for key, row in over:
        turn.append("expire", {"reservation": row})
        turn.later("UPDATE accountant_reservations SET state = 'expired' WHERE key = ?", (key,))
    if over:
        turn.close()
    else:
        turn.leave()
    return [key for key, _ in over]
