"""Checks certificates of differential privacy; see docs/certificates.md of the accountant."""

from dp_verifier.check import check
from dp_verifier.document import Refused

__all__ = ["Refused", "check"]
