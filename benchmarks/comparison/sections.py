"""The sections of a run: what is asked of which library, and the report that collects it."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from comparison.judging import judge, ratio, summarise
from comparison.libraries import (
    OPACUS_CALIBRATE,
    OURS,
    OURS_BOUNDS,
    OURS_CALIBRATE,
    OURS_RDP,
    PEERS,
    RDP_PEERS,
)
from comparison.measuring import ONE_CALL, Effort
from comparison.problems import CALIBRATION, SCALING, Problem
from comparison.worker import Worker, run_fresh

SECTIONS = ("problems", "calibration", "scaling", "memory")


class Benchmark:
    """Runs the sections and collects a JSON-ready report.

    Parameters
    ----------
    problems : sequence of Problem
        The problems to run over.
    peers : sequence of str
        Names of the peers.
    quick : bool
        Fewer repeats.
    timeout, memory_gb : float
        Limits of one job of a peer.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        peers: Sequence[str],
        quick: bool,
        timeout: float,
        memory_gb: float,
    ) -> None:
        self.problems = problems
        self.peers = list(peers)
        self.timeout = timeout
        self.memory_gb = memory_gb
        self.peer_effort = Effort(1, 0.005, timeout / 2) if quick else Effort(3, 0.02, timeout / 2)
        self.our_effort = Effort(5, 0.01, 2.0) if quick else Effort(15, 0.02, 5.0)
        self.report: dict[str, Any] = {"environment": environment(self.peers)}

    def worker(self, name: str) -> Worker:
        """Return a worker for an engine under this run's limits."""
        return Worker(name, self.timeout, self.memory_gb)

    def effort(self, name: str) -> Effort:
        """Return how much repetition an engine gets."""
        return self.our_effort if name.startswith("ours") else self.peer_effort

    def run_problems(self) -> None:
        """Run every engine over every problem, one engine after the other."""
        rows = [
            {
                "family": problem.family,
                "q": problem.q,
                "sigma": problem.sigma,
                "steps": problem.steps,
                "delta": problem.delta,
                "reference": problem.reference,
                "ours": {},
                "peers": {},
            }
            for problem in self.problems
        ]
        paired = list(zip(self.problems, rows, strict=True))
        ours = (OURS.name, OURS_BOUNDS.name, OURS_RDP.name)
        for name in (*ours, *self.peers):
            group = "ours" if name in ours else "peers"
            with self.worker(name) as worker:
                installed = worker.status() == "ok"
                for number, (problem, row) in enumerate(paired, 1):
                    if installed:
                        progress(f"{name}: {number}/{len(rows)} {problem}")
                    outcome = worker.run(problem.args, self.effort(name))
                    row[group][name] = outcome.as_dict()
        for problem, row in paired:
            judge(problem, row)
        self.report["problems"] = rows
        self.report["summary"] = summarise(rows, self.peers)

    def run_calibration(self) -> None:
        """Time noise calibration here and in Opacus, and check both answers."""
        rows = []
        with (
            self.worker(OURS_CALIBRATE.name) as ours,
            self.worker(OPACUS_CALIBRATE.name) as opacus,
            self.worker(OURS_BOUNDS.name) as bounds,
        ):
            for problem in CALIBRATION:
                progress(f"calibration: {problem}")
                mine = ours.run(problem.args, self.our_effort)
                row: dict[str, Any] = {
                    "target_eps": problem.target_eps,
                    "delta": problem.delta,
                    "q": problem.q,
                    "steps": problem.steps,
                    "ours": mine.as_dict(),
                }
                theirs = None
                if "opacus-prv" in self.peers:
                    theirs = opacus.run(problem.args, self.peer_effort)
                    row["opacus"] = theirs.as_dict()
                    row["time_ratio"] = ratio(theirs.seconds, mine.seconds)
                    if mine.ok and theirs.ok:
                        row["sigma_excess"] = theirs.value / mine.value - 1.0
                for key, found in (("ours", mine), ("opacus", theirs)):
                    if found is not None and found.ok:
                        args = (problem.q, found.value, problem.steps, problem.delta)
                        row[f"{key}_epsilon_bounds"] = bounds.run(args, ONE_CALL).value
                rows.append(row)
        self.report["calibration"] = rows

    def run_scaling(self) -> None:
        """Time many steps over few steps at the same other parameters."""
        names = (OURS.name, *(name for name in self.peers if name not in RDP_PEERS))
        rows = []
        for name in names:
            with self.worker(name) as worker:
                for problem in SCALING:
                    progress(f"scaling: {name} {problem}")
                    few, many = (
                        worker.run(
                            (problem.q, problem.sigma, steps, problem.delta), self.effort(name)
                        )
                        for steps in (problem.few, problem.many)
                    )
                    rows.append(
                        {
                            "engine": name,
                            "q": problem.q,
                            "sigma": problem.sigma,
                            "delta": problem.delta,
                            "few_steps": problem.few,
                            "many_steps": problem.many,
                            "few": few.as_dict(),
                            "many": many.as_dict(),
                            "time_ratio": ratio(many.seconds, few.seconds),
                        }
                    )
        self.report["scaling"] = rows

    def run_memory(self) -> None:
        """Measure the growth of the resident set by one call in a fresh process."""
        chosen = list({problem.family: problem for problem in reversed(self.problems)}.values())
        rows = []
        for problem in reversed(chosen):
            row: dict[str, Any] = {"problem": str(problem), "peak_mb": {}}
            for name in (OURS.name, *(name for name in self.peers if name not in RDP_PEERS)):
                progress(f"memory: {name} {problem}")
                found = run_fresh(name, problem.args, ONE_CALL, self.timeout, self.memory_gb)
                row["peak_mb"][name] = found.peak_mb if found.ok else found.status
            rows.append(row)
        self.report["memory"] = rows


def environment(peers: Iterable[str]) -> dict[str, Any]:
    """Describe the machine and the versions."""
    engines = [OURS, *(PEERS[name] for name in peers)]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": {engine.distribution: engine.version() for engine in engines},
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def progress(text: str) -> None:
    """Write one line of progress to standard error."""
    print(text, file=sys.stderr, flush=True)
