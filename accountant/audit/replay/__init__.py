"""Record and replay: what a run does with its data outside its releases, found without statistics.

``records`` makes neighbouring data sets, ``sameness`` compares values, ``randomness`` freezes the
global random numbers, ``releases`` is what a run hands its private values to, ``patches`` puts it
under code that is already written, ``report`` holds what was found, ``audit`` runs it all.
"""

from accountant.audit.replay.audit import audit_replay
from accountant.audit.replay.releases import Releases
from accountant.audit.replay.report import Finding, ReplayReport

__all__ = ["Finding", "Releases", "ReplayReport", "audit_replay"]
