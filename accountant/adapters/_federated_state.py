"""What a federation's server remembers across a crash: what it released, and whom it charged."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accountant import files
from accountant.errors import LedgerConflict, LedgerError

__all__ = ["State", "hold", "read", "write"]

_FORMAT = "accountant-federation-1"


@dataclass
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
    clients : dict
        For every client the number of its first charge, and how many it can pay.
    """

    model: NDArray[np.float64]
    rounds: int = 0
    charges: int = 0
    clipping_norm: float = 0.0
    clients: dict[str, tuple[int, int]] = field(default_factory=dict)


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
                raise LedgerError(f"{path} was written by another version")
            told["clients"] = {name: (first, cap) for name, (first, cap) in told["clients"].items()}
            return State(np.asarray(stored["model"], dtype=np.float64), **told)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise LedgerError(f"{path} is damaged: {error}") from error


def write(path: Path, state: State) -> None:
    """Replace what is remembered; when it returns the disk has it, before it the old is there."""
    told = {
        "format": _FORMAT,
        "rounds": state.rounds,
        "charges": state.charges,
        "clipping_norm": state.clipping_norm,
        "clients": state.clients,
    }
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    descriptor = files.new(temporary)
    with os.fdopen(descriptor, "wb") as stream:
        np.savez(stream, model=state.model, told=np.array(json.dumps(told)))
        stream.flush()
        os.fsync(stream.fileno())
    files.replace(temporary, path)
    files.sync_directory(path.parent)
