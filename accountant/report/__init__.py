"""Privacy statements: a ledger's ε and δ, explained to readers who have never seen the code.

``statement`` collects plain values, which ``contents`` lists: ``numbers`` from ``spending`` and
``gaussian_summary``; texts from ``facts``, ``answers`` and the caller's ``Deployment``; a
certificate. ``render`` makes pages from them.
"""

from accountant.ledger.evaluation import ASSUMED_DELTA
from accountant.report.contents import Deployment
from accountant.report.statement import STAGES, Statement, statement

__all__ = ["ASSUMED_DELTA", "STAGES", "Deployment", "Statement", "statement"]
