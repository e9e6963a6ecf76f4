"""Privacy statements: what a ledger's releases cost, for somebody who has never seen the code.

``statement`` collects plain values: numbers from ``spending``, ``over_steps``, ``meaning`` and
``looser``, words from ``facts``. ``render`` and ``charts`` make pages of them.
"""

from accountant.report.statement import ASSUMED_DELTA, STAGES, Statement, statement

__all__ = ["ASSUMED_DELTA", "STAGES", "Statement", "statement"]
