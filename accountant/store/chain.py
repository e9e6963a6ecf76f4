"""The chain of hashes through the journal: each row's hash covers the row and the hash before it.

Without a secret the hash is SHA-256, and whoever can write to the database can compute a whole new
chain; with one it is HMAC-SHA256. Either shows an edit, a deletion, an insertion or a swap inside
the journal. That the *end* was cut off, or an older copy restored, only a head kept elsewhere
shows.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

from accountant import checks
from accountant.errors import DomainError

_WRITTEN = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")
_LEAST_SECRET = 16


class Head(NamedTuple):
    """The end of a journal: keep it outside the database, and ``verify`` sees what was cut off.

    Attributes
    ----------
    rows : int
        How many rows the journal has.
    digest : str
        The hash of the last of them, 64 hexadecimal digits.
    """

    rows: int
    digest: str

    def __str__(self) -> str:
        return f"{self.rows}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read what ``str`` wrote, ``ROWS:DIGEST``."""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise DomainError(f"head must be ROWS:DIGEST as verify prints it; got {text!r:.100}")
        return cls(int(found[1]), found[2])


class Chain:
    """Computes the hashes of rows."""

    def __init__(self, secret: bytes | None) -> None:
        if secret is not None:
            checks.instance("secret", secret, bytes, "bytes")
            if len(secret) < _LEAST_SECRET:
                raise DomainError(
                    f"secret must have at least {_LEAST_SECRET} bytes; got {len(secret)}"
                )
        self._mac = None if secret is None else hmac.new(secret, digestmod="sha256")

    @property
    def keyed(self) -> bool:
        """Whether hashes need a secret."""
        return self._mac is not None

    def first(self, identity: str) -> str:
        """Return what the first row's hash covers in place of a hash before it."""
        return self._digest(f"accountant store\n{identity}")

    def next(
        self, before: str, seq: int, time: int, action: str, key: str | None, body: str
    ) -> str:
        """Return the hash of a row.

        No field that is written holds a line break, so different rows have different texts: a text
        with five line breaks can be split into six fields in one way only.
        """
        mark = "" if key is None else f"={key}"
        return self._digest(f"{before}\n{seq}\n{time}\n{action}\n{mark}\n{body}")

    def _digest(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        if self._mac is None:
            return hashlib.sha256(data).hexdigest()
        mac = self._mac.copy()
        mac.update(data)
        return mac.hexdigest()
