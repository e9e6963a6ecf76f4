"""Record and replay: what a run does with its data outside its releases, found without statistics.

``sameness`` compares values, ``script`` holds the events of a run, ``releases`` is what a run
hands its private values to, ``report`` says what was found, ``audit`` makes neighbours, freezes the
global random numbers, and runs it all.
"""

from accountant.audit.replay.audit import audit_replay
from accountant.audit.replay.releases import Releases
from accountant.audit.replay.report import Finding, ReplayReport

__all__ = ["Finding", "Releases", "ReplayReport", "audit_replay"]
