"""Worker processes: one library each, under a memory cap and a time limit.

All timing is taken inside the worker, after the import and a warm-up call, so that neither
process start nor imports count.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import resource
import sys
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from comparison.libraries import ENGINES, Engine
from comparison.measuring import NOT_INSTALLED, Effort, Outcome, measure

START_TIMEOUT = 180.0


# --- inside the worker ------------------------------------------------------------------


def _status_kb(key: str) -> int | None:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
    except OSError:
        pass
    return None


def _reset_peak() -> None:
    """Set the peak of the resident set back to its present size, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    """Peak resident set of this process in MB."""
    peak = _status_kb("VmHWM")
    if peak is None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if sys.platform == "darwin":
            peak //= 1024
    return peak / 1024.0


def _cap_memory(extra_gb: float) -> None:
    """Let the address space grow by at most `extra_gb` from here."""
    size_kb = _status_kb("VmSize") or 0
    limit = int(size_kb * 1024 + extra_gb * 2**30)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _describe(error: BaseException) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 160 else text[:157] + "..."
    return f"error: {type(error).__name__}" + (f": {text}" if text else "")


def _load(engine: Engine) -> tuple[str, Callable[..., Any] | None]:
    try:
        importlib.import_module(engine.module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == engine.module:
            return NOT_INSTALLED, None
        return _describe(error), None
    except Exception as error:
        return _describe(error), None
    try:
        return "ok", engine.load()
    except Exception as error:
        return _describe(error), None


def _serve(conn: Connection, name: str, memory_gb: float, warm_up: bool) -> None:
    """Answer ``(args, effort)`` jobs until the connection closes."""
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sink = os.open(os.devnull, os.O_WRONLY)  # what libraries print is not part of the report
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    engine = ENGINES[name]
    status, call = _load(engine)
    if call is not None:
        _cap_memory(memory_gb)
        if warm_up:
            # a real failure shows again, and is reported, at the first job
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(*engine.warm_up)
    conn.send(status)
    if call is None:
        return
    while True:
        try:
            job = conn.recv()
        except EOFError:
            return
        conn.send(_run(call, engine, *job))


def _run(call: Callable[..., Any], engine: Engine, args: tuple, effort: Effort) -> Outcome:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        _reset_peak()
        before = _status_kb("VmRSS")
        start_mb = _peak_mb() if before is None else before / 1024.0
        try:
            outcome = measure(call, args, engine.vary, effort)
        except Exception as error:
            outcome = Outcome(_describe(error))
        outcome.peak_mb = max(0.0, _peak_mb() - start_mb)
    outcome.warnings = sorted({" ".join(str(item.message).split())[:200] for item in caught})
    return outcome


# --- in the parent ----------------------------------------------------------------------


class Worker:
    """A process that runs one engine; started on first use and again after a failure.

    Parameters
    ----------
    name : str
        Name of the engine.
    timeout : float
        Seconds that one job may take, all its repeats included.
    memory_gb : float
        How far a call may grow the address space.
    warm_up : bool
        Whether to make one cheap call first.
    """

    def __init__(self, name: str, timeout: float, memory_gb: float, warm_up: bool = True) -> None:
        self.name = name
        self.timeout = timeout
        self.memory_gb = memory_gb
        self.warm_up = warm_up
        self._process: multiprocessing.process.BaseProcess | None = None
        self._conn: Connection | None = None
        self._status: str | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def status(self) -> str:
        """Start the process if need be; return "ok" or why the library cannot be used."""
        if self._process is None and self._status in (None, "ok"):
            self._start()
        return self._status or "error: worker did not start"

    def run(self, args: tuple, effort: Effort) -> Outcome:
        """Measure one call; every way of failing is an :class:`Outcome` too."""
        status = self.status()
        if status != "ok":
            return Outcome(status)
        try:
            self._conn.send((args, effort))
            if not self._conn.poll(self.timeout):
                self.close()
                return Outcome("timeout", at_least_seconds=self.timeout)
            return self._conn.recv()
        except (EOFError, OSError):
            return Outcome(f"error: worker ended ({self._end()})")

    def close(self) -> None:
        """End the process."""
        if self._conn is not None:
            self._conn.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._conn = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._conn, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self.name, self.memory_gb, self.warm_up), daemon=True
        )
        self._process.start()
        theirs.close()
        try:
            ready = self._conn.poll(START_TIMEOUT)
            self._status = self._conn.recv() if ready else "error: start timed out"
        except (EOFError, OSError):
            self._status = f"error: worker ended at start ({self._end()})"
        if self._status != "ok":
            self.close()

    def _end(self) -> str:
        self._process.join(5.0)
        code = self._process.exitcode
        self.close()
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def run_fresh(name: str, args: tuple, effort: Effort, timeout: float, memory_gb: float) -> Outcome:
    """Run one job in a process of its own, without a warm-up call."""
    with Worker(name, timeout, memory_gb, warm_up=False) as worker:
        return worker.run(args, effort)
