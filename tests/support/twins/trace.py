"""One run, seen from outside: its result, what it raised, warned of and printed."""

from __future__ import annotations

import contextlib
import io
import signal
import warnings
from dataclasses import dataclass
from typing import Any

from accountant.audit.recorded import View
from accountant.noise import SecureGenerator


@dataclass
class Trace:
    """What anybody may see of a run."""

    result: Any
    raised: tuple[str, str] | None
    warned: tuple[tuple[str, str], ...]
    printed: str

    @property
    def too_long(self):
        """Whether the run was interrupted."""
        return self.raised is not None and self.raised[0] == TooLongError.__name__

    @property
    def outside(self):
        """All of it but the result."""
        return self.raised, self.warned, self.printed


class TooLongError(Exception):
    """A run that did not end in its time."""


@contextlib.contextmanager
def deadline(seconds):
    """Interrupt what takes longer."""

    def stop(*_):
        raise TooLongError(f"still running after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def watch(run, data, seconds=30.0):
    """Run a trainer and keep what is seen of it."""
    printed = io.StringIO()
    result, raised = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                with deadline(seconds):
                    result = run(data)
            except AssertionError:
                raise
            except Exception as error:
                raised = (type(error).__name__, str(error))
    warned = tuple((w.category.__name__, str(w.message)) for w in caught)
    return Trace(result, raised, warned, printed.getvalue())


def public_view(value, without=frozenset()):
    """Return everything reachable from a result, down to the bits, for comparison.

    Attributes whose names are in ``without`` are documented as private and left out.
    """
    return View(strict=True, without=without, opaque=(SecureGenerator,)).of(value)
