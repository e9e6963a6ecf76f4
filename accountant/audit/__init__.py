"""Empirical lower bounds on ε, for comparison with the certified upper bounds.

An audit tests a claim by many calls of one release (``mechanism``, ``two_sample``), by one run with
many canaries (``one_run``), by the exact masses of the outputs (``density``), or for a whole
trainer (``trainer``). ``shipped`` audits this package's own releases.
"""

from accountant.audit.mechanism import (
    audit_masses,
    audit_mechanism,
    audit_observations,
    cell_masses,
)
from accountant.audit.one_run import (
    Guesses,
    count_guesses,
    one_run_epsilon,
    one_run_mu,
    one_run_p_value,
)
from accountant.audit.recorded import Finding, ReplayReport
from accountant.audit.releases import Releases
from accountant.audit.replay import audit_replay
from accountant.audit.report import AuditReport
from accountant.audit.trainer import audit_trainer
from accountant.audit.two_sample import ErrorRates, epsilon_lower_bound, error_rates, mu_lower_bound

__all__ = [
    "AuditReport",
    "ErrorRates",
    "Finding",
    "Guesses",
    "Releases",
    "ReplayReport",
    "audit_masses",
    "audit_mechanism",
    "audit_observations",
    "audit_replay",
    "audit_trainer",
    "cell_masses",
    "count_guesses",
    "epsilon_lower_bound",
    "error_rates",
    "mu_lower_bound",
    "one_run_epsilon",
    "one_run_mu",
    "one_run_p_value",
]
