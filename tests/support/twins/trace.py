"""One run, seen from outside: its result, what it raised, warned of and printed."""

from __future__ import annotations

import contextlib
import enum
import io
import signal
import types
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.noise import SecureGenerator


@dataclass
class Trace:
    """What anybody may see of a run."""

    result: Any
    raised: tuple[str, str] | None
    warned: tuple[tuple[str, str], ...]
    printed: str

    @property
    def too_long(self) -> bool:
        """Whether the run was interrupted."""
        return self.raised is not None and self.raised[0] == TooLongError.__name__

    @property
    def outside(self) -> tuple[Any, ...]:
        """All of it but the result."""
        return self.raised, self.warned, self.printed


class TooLongError(Exception):
    """A run that did not end in its time."""


@contextlib.contextmanager
def deadline(seconds: float) -> Any:
    """Interrupt what takes longer."""

    def stop(*_: Any) -> None:
        raise TooLongError(f"still running after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def watch(run: Any, data: Any, seconds: float = 30.0) -> Trace:
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


def public_view(value: Any, without: frozenset[str] = frozenset()) -> Any:
    """Return everything reachable from a result, down to the bits, for comparison.

    Attributes whose names are in ``without`` are documented as private and left out.
    """
    return _View(without).of(value)


class _View:
    def __init__(self, without: frozenset[str]) -> None:
        self.without, self.seen = without, set()

    def of(self, value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            array = np.asarray(value)
            if array.dtype.kind == "O":
                return ("objects", array.shape, self.of(array.tolist()))
            return ("array", array.dtype.str, array.shape, array.tobytes())
        if isinstance(value, float):
            return ("float", value.hex())
        if value is None or isinstance(value, (bool, int, str, bytes, enum.Enum)):
            return value
        if isinstance(value, (list, tuple)):
            return (type(value).__name__, tuple(self.of(v) for v in value))
        if isinstance(value, (set, frozenset)):
            return ("set", tuple(sorted(map(repr, value))))
        if isinstance(value, dict):
            return ("dict", tuple((repr(k), self.of(v)) for k, v in value.items()))
        if isinstance(value, np.random.Generator):
            return ("public randomness", repr(value.bit_generator.state))
        return self._object(value)

    def _object(self, value: Any) -> Any:
        if isinstance(value, SecureGenerator | types.FunctionType | type | types.ModuleType):
            return type(value).__name__
        if id(value) in self.seen:
            return "seen"
        self.seen.add(id(value))
        state = dict(getattr(value, "__dict__", {}))
        for kind in type(value).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if hasattr(value, name):
                    state[name] = getattr(value, name)
        kept = {k: v for k, v in sorted(state.items()) if k not in self.without}
        return (type(value).__name__, tuple((k, self.of(v)) for k, v in kept.items()))
