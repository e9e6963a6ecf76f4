"""What a federation's server remembers across a crash: what it released, and whom it charged."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._basics import files
from accountant.errors import LedgerConflict, LedgerError

_FORMAT = "accountant-federation-1"


class Share(NamedTuple):
    """What one client can pay, and has paid, of the rounds with one mechanism.

    Attributes
    ----------
    mechanism : int
        Its place in the mechanisms of the state.
    first : int
        Number of the first charge that it may be part of.
    most, paid : int
        How many rounds it can pay, and how many of them it has paid.
    """

    mechanism: int
    first: int
    most: int
    paid: int = 0


Clients: TypeAlias = dict[str, tuple[Share, ...]]


@dataclass(frozen=True)
class State:
    """The model that was released last, and how far the charges are.

    Attributes
    ----------
    model : ndarray of shape (length,)
        After ``rounds`` rounds.
    rounds : int
        How many rounds were released.
    charges : int
        How many charges are used up; the next one has this number.
    clipping_norm : float
        That of the next round.
    mechanisms : tuple of str
        What rounds have cost, written as in ledgers: the past is priced by these, whatever the
        noise is now.
    present, label : int, str
        Which of them a charge is now, and the label of the charge in the store.
    clients : dict
        The shares of every client, at most one of each mechanism.
    reasons : tuple of str
        Why what was released is not private, if so.
    """

    model: NDArray[np.float64]
    rounds: int = 0
    charges: int = 0
    clipping_norm: float = 0.0
    mechanisms: tuple[str, ...] = ()
    present: int = 0
    label: str = ""
    clients: Clients = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def priced(self, text: str, label: str) -> State:
        """Return the state of a server whose rounds cost this mechanism."""
        known = self.mechanisms if text in self.mechanisms else (*self.mechanisms, text)
        return replace(self, mechanisms=known, present=known.index(text), label=label)

    def shares(self) -> Iterator[tuple[str, Share]]:
        """Yield the share of each client in rounds as they are now, by name."""
        for name, held in sorted(self.clients.items()):
            for share in held:
                if share.mechanism == self.present:
                    yield name, share

    def paying(self) -> tuple[str, ...]:
        """Return who can pay for the next charge, sorted."""
        return tuple(
            name
            for name, share in self.shares()
            if share.first <= self.charges and share.paid < share.most
        )

    def charged(self, names: Iterable[str]) -> State:
        """Return the state after one more charge, to these clients."""
        clients = dict(self.clients)
        for name in names:
            clients[name] = tuple(
                share._replace(paid=share.paid + (share.mechanism == self.present))
                for share in clients[name]
            )
        reasons = self.reasons
        if self.label and self.label not in reasons:
            reasons = (*reasons, self.label)
        return replace(self, charges=self.charges + 1, clients=clients, reasons=reasons)


def hold(path: Path) -> int:
    """Take the lock of a federation for as long as the process lives; return its open file."""
    descriptor = files.opened(path)
    if not files.lock(descriptor, wait=False):
        os.close(descriptor)
        raise LedgerConflict(
            f"{path.parent} is in use by another server; two would release the same round twice"
        )
    return descriptor


def read(path: Path) -> State | None:
    """Return what is remembered, or None where nothing was."""
    try:
        with files.stream(path) as packed:
            # ``write`` packs nothing: arrays that grow are not its own.
            files.require_unpacked(packed, path, os.fstat(packed.fileno()).st_size, LedgerError)
            stored = np.load(packed, allow_pickle=False)
            told = json.loads(str(stored["told"]))
            if told.pop("format") != _FORMAT:
                raise LedgerError(
                    f"{path} is not in the format {_FORMAT}, the only one that this release reads."
                    " Go on with the release that wrote it, or begin another directory"
                )
            told["clients"] = {
                name: tuple(Share(*share) for share in held)
                for name, held in told["clients"].items()
            }
            for name in ("mechanisms", "reasons"):
                told[name] = tuple(told[name])
            return State(np.asarray(stored["model"], dtype=np.float64), **told)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise LedgerError(f"{path} is damaged: {error}") from error


def write(path: Path, state: State) -> None:
    """Replace what is remembered; when it returns the disk has it, before it the old is there."""
    told = {"format": _FORMAT, **vars(state)}
    model = told.pop("model")
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    descriptor = files.new(temporary)
    with os.fdopen(descriptor, "wb") as stream:
        np.savez(stream, model=model, told=np.array(json.dumps(told)))
        stream.flush()
        os.fsync(stream.fileno())
    files.replace(temporary, path)
    files.sync_directory(path.parent)
