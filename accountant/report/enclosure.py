"""The certificate that a statement encloses: what another program needs to check its ε."""

from __future__ import annotations

import base64
import hashlib
import math
from dataclasses import dataclass

from accountant._basics import safe_text
from accountant.certificates import certificate
from accountant.errors import AccountantError
from accountant.ledger import Accountant
from accountant.report.numbers import Row

# The certificate of more kinds of releases than this would take over a second: none is made.
MOST_KINDS = 50
# A page encloses no certificate of more bytes.
MOST_BYTES = 50_000
# The reason for a missing certificate is cut after this many characters.
LONGEST = 400


@dataclass(frozen=True)
class Enclosure:
    """The certificate of all releases together, or why there is none.

    Attributes
    ----------
    text : str or None
        The certificate: the JSON document that ``dp-verify`` reads.
    epsilon : float or None
        The ε that it claims, at the δ of the statement.
    larger : float
        By how much that is larger than the ε of the statement, relatively (of an ε of 0, in all).
    digest : str or None
        The SHA-256 of ``text``, in hexadecimal.
    reason : str
        Why there is no certificate; empty where there is one.
    """

    text: str | None = None
    epsilon: float | None = None
    larger: float = 0.0
    digest: str | None = None
    reason: str = ""

    @property
    def address(self) -> str:
        """The document as an address from which a browser saves a file."""
        encoded = base64.b64encode((self.text or "").encode()).decode()
        return f"data:application/json;base64,{encoded}"


def enclosure(ledger: Accountant, headline: Row, wanted: bool) -> Enclosure:
    """Return the certificate of a ledger at the δ of its statement, or the reason for none.

    No ledger makes this fail: a statement holds without a certificate.
    """
    if reason := _reason(ledger, headline, wanted):
        return Enclosure(reason=reason)
    try:
        made = certificate(ledger, headline.delta)
    except (AccountantError, ArithmeticError) as error:
        return Enclosure(reason=safe_text.shown(str(error), LONGEST))
    size = len(made.text.encode())
    if size > MOST_BYTES:
        return Enclosure(reason=f"it has {size:,} bytes, and a page at most {MOST_BYTES:,}")
    digest = hashlib.sha256(made.text.encode()).hexdigest()
    # An ε on a grid has digits that depend on what was asked before: compare with the one shown.
    larger = max(made.epsilon - headline.epsilon, 0.0) / (headline.epsilon or 1.0)
    return Enclosure(made.text, made.epsilon, larger, digest)


def _reason(ledger: Accountant, headline: Row, wanted: bool) -> str:
    """Return why none is tried; nothing if one is."""
    if not wanted:
        return "none was asked for"
    if not len(ledger):
        return "nothing was released"
    if headline.delta == 0.0:
        return "a certificate is for a δ above 0"
    if not headline.epsilon < math.inf:
        return "no finite ε is known at this δ"
    if (kinds := len(ledger.counts)) > MOST_KINDS:
        return f"there are {kinds:,} kinds of releases, and a page certifies at most {MOST_KINDS}"
    return ""
