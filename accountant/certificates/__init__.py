"""Certificates: documents from which another program can check an ε without running this one.

``certificate`` makes one for a mechanism or a ledger. ``verifier/`` in the repository has the
checker, a distribution of its own; docs/certificates.md describes the format.
"""

from accountant.certificates.claim import Certificate, certificate

__all__ = ["Certificate", "certificate"]
