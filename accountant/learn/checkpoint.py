"""Checkpoints: everything a run needs to continue.

A checkpoint holds the generator's key, and with it all *later* noise (earlier noise cannot be
recomputed from it): keep it as secret as the data until training has ended, then delete it.

The file is a magic line, a JSON header, NumPy arrays, and a message authentication code over all
of it: HMAC-SHA256 under the user's key, or a plain SHA-256 without one. The plain digest detects
damage and careless edits; only a key keeps out somebody who can recompute a digest.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accountant import checks, files
from accountant._typing import Array
from accountant.checks import Argument
from accountant.errors import AccountantError, ArgumentTypeError, DomainError

EVERY = Argument("every", "an integer >= 1", lambda x: x >= 1, "It counts steps")
MAGIC = b"accountant checkpoint 1\n"
CODE_BYTES = 32
# More than the arrays of any model that trains beside its data in memory.
MAX_BYTES = 1 << 34


class CheckpointError(AccountantError):
    """A checkpoint that was changed, cut short, or belongs to another run."""


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often to save.

    Parameters
    ----------
    path : str or Path
        The file; an existing one is resumed from. It is readable by its owner only.
    every : int
        Steps between savings.
    key : bytes, optional
        The secret of the message authentication code, at least 16 bytes.
    """

    path: str | Path
    every: int = 100
    key: bytes | None = None

    def __post_init__(self) -> None:
        checks.count(EVERY, self.every)
        if self.key is not None and len(self.key) < 16:
            raise DomainError("key must be at least 16 bytes. Use secrets.token_bytes(32)")

    def save(self, saved: Saved) -> None:
        """Write the checkpoint; an interrupted write leaves the previous one."""
        arrays = io.BytesIO()
        np.savez(arrays, allow_pickle=False, **saved.arrays)
        header = json.dumps(saved.header, allow_nan=True).encode()
        body = b"".join(
            [MAGIC, struct.pack("<QQ", len(header), arrays.tell()), header, arrays.getvalue()]
        )
        path = Path(self.path)
        temporary = path.with_name(path.name + ".partial")
        # What a crash left there may be open to others; it is never written into.
        temporary.unlink(missing_ok=True)
        descriptor = files.new(temporary)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(body + self._code(body))
                file.flush()
                os.fsync(file.fileno())
            files.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)  # it holds the key of all later noise
            raise
        files.sync_directory(path.parent)

    def load(self) -> Saved | None:
        """Return what was saved, None without a file; raise when it was changed."""
        path = Path(self.path)
        if not path.exists():
            return None
        content = files.content(path, MAX_BYTES, CheckpointError)
        body, code = content[:-CODE_BYTES], content[-CODE_BYTES:]
        start = len(MAGIC) + 16
        if not content.startswith(MAGIC) or len(body) < start:
            raise CheckpointError(f"{path} is not a checkpoint, or was cut short")
        if not hmac.compare_digest(code, self._code(body)):
            raise CheckpointError(
                f"{path} was changed, cut short, or written under another key; it is not used"
            )
        header_size, arrays_size = struct.unpack("<QQ", body[len(MAGIC) : start])
        if len(body) != start + header_size + arrays_size:
            raise CheckpointError(f"{path} was cut short")
        try:
            header = json.loads(body[start : start + header_size])
            packed = io.BytesIO(body[start + header_size :])
            # ``save`` packs nothing: arrays that grow are not its own.
            files.require_unpacked(packed, path, arrays_size, CheckpointError)
            with np.load(packed, allow_pickle=False) as arrays:
                return Saved(header, {name: arrays[name] for name in arrays.files})
        except Exception as error:
            # The code fits: somebody computed it anew, around contents that are none.
            raise CheckpointError(f"{path} is damaged: {error}") from error

    def _code(self, body: bytes) -> bytes:
        if self.key is None:
            return hashlib.sha256(body).digest()
        return hmac.new(self.key, body, hashlib.sha256).digest()


@dataclass(frozen=True)
class Saved:
    """The content of a checkpoint: JSON values and arrays."""

    header: dict[str, Any]
    arrays: dict[str, Array]


def as_checkpoint(value: object) -> Checkpoint | None:
    """Return a Checkpoint for a path, None for None."""
    if value is None or isinstance(value, Checkpoint):
        return value
    if isinstance(value, (str, Path)):
        return Checkpoint(value)
    raise ArgumentTypeError(f"checkpoint must be a path or a Checkpoint; got {value!r}")


def fingerprint(*arrays: Array) -> str:
    """Return a digest of the data, which recognises a run's own; it never leaves the checkpoint."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
