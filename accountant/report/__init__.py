"""Privacy statements: a ledger's ε and δ, explained to readers who have never seen the code.

``statement`` collects plain values: numbers from ``spending``, ``over_steps``, ``attack_table`` and
``comparison``, and texts from ``facts``. ``render`` and ``charts`` make pages from them.
"""

from accountant.report.statement import ASSUMED_DELTA, STAGES, Statement, statement

__all__ = ["ASSUMED_DELTA", "STAGES", "Statement", "statement"]
