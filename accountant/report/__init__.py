"""Privacy statements: what a ledger's releases cost, for somebody who has never seen the code."""

from accountant.report.statement import STAGES, Statement, statement

__all__ = ["STAGES", "Statement", "statement"]
