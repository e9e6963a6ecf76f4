"""Privacy statements: a ledger's ε and δ, explained to readers who have never seen the code.

``statement`` collects plain values: ``numbers`` from ``spending``, ``over_steps``,
``attack_table``, ``gaussian_summary`` and ``comparison``; texts from ``facts``, ``tone``,
``proofs`` and the caller's ``deployment``; the certificate from ``enclosure``. ``render``,
``charts`` and ``registry`` make pages and documents from them.
"""

from accountant.ledger.evaluation import ASSUMED_DELTA
from accountant.report.deployment import Deployment
from accountant.report.statement import STAGES, Statement, statement

__all__ = ["ASSUMED_DELTA", "STAGES", "Deployment", "Statement", "statement"]
