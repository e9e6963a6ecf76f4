"""The events of a run, how those of a replay compare with them, and what was found."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from accountant._basics.arrays import Array
from accountant._basics.display import text_down, text_up
from accountant.mechanisms.base import Mechanism


class Diverged(BaseException):
    """Ends a replay that makes other releases; no handler of the run's own shall catch it."""


@dataclass(frozen=True)
class Entry:
    """One event of a run: a release, a sample or a public value."""

    kind: str
    name: str
    private: Any
    outcome: Any
    public: dict[str, Any]


class Script:
    """The events of a run, in order; a replay of it gets the outcomes that were recorded.

    Parameters
    ----------
    recorded : Script or None
        That of the recorded run; None while recording.
    """

    def __init__(self, recorded: Script | None = None) -> None:
        self.recorded = recorded
        self.entries: list[Entry] = []

    def meet(
        self, kind: str, name: str, private: Any, make: Callable[[], Any], public: dict[str, Any]
    ) -> Entry | None:
        """Add an event whose outcome is ``make()``, or the recorded one; return what was recorded.

        Raises
        ------
        Diverged
            Another event was recorded at this place, or none.
        """
        past = None
        if self.recorded is not None:
            place, there = len(self.entries), self.recorded.entries
            here = f"the {kind} {name!r}"
            if place >= len(there):
                raise Diverged(f"{here} is one more than were recorded")
            past = there[place]
            if (past.kind, past.name) != (kind, name):
                raise Diverged(f"{here} in place of the {past.kind} {past.name!r}")
        self.entries.append(
            Entry(kind, name, private, make() if past is None else past.outcome, public)
        )
        return past


@dataclass(frozen=True)
class Finding:
    """One way in which the data reached what the account does not cover.

    Attributes
    ----------
    kind : str
        ``"sensitivity"``: a released value moved by more than the sensitivity that was stated.
        ``"public value"``: a value that the account treats as public differed. ``"control flow"``:
        other releases, or another number of them. ``"sample"``: batches that were drawn from
        another number of records, or a release inside a Poisson sample that depends on records
        outside of it. ``"result"``: the run returned something else although all
        releases had the same outcome. ``"randomness"``: another number of random numbers was drawn.
        ``"error"``: one of the two runs failed. ``"claim"``: the releases cost more than claimed.
    message : str
        What differed; it may quote the data.
    release : int, optional
        The number of the release at which it was seen, from 0.
    record : int, optional
        The record that was removed or replaced.
    """

    kind: str
    message: str
    release: int | None = None
    record: int | None = None

    def __str__(self) -> str:
        """Return one line."""
        place = "" if self.release is None else f" at release {self.release}"
        whose = "" if self.record is None else f", record {self.record}"
        return f"{self.kind}{place}{whose}: {self.message}"


@dataclass(frozen=True)
class ReplayReport:
    """What a run did differently on neighbouring data sets with all releases' outcomes equal.

    Attributes
    ----------
    name : str
        What was audited.
    findings : tuple of Finding
        Empty if nothing was found. The first of each kind at each release is kept.
    releases : int
        The number of releases of the recorded run.
    records : tuple of int
        The records that were removed or replaced, one replay each.
    largest_ratio : float
        The largest distance of two private values over the stated sensitivity.
    mechanism : Mechanism, optional
        What the releases compose to, where each named its mechanism.
    epsilon_seen, epsilon_claimed : float, optional
        The least ε of that mechanism and the claim's, at the claim's δ.
    """

    name: str
    findings: tuple[Finding, ...]
    releases: int
    records: tuple[int, ...]
    largest_ratio: float
    mechanism: Mechanism | None = None
    epsilon_seen: float | None = None
    epsilon_claimed: float | None = None

    @property
    def flagged(self) -> bool:
        """Whether anything was found."""
        return bool(self.findings)

    def __str__(self) -> str:
        """Return a line for the run and one for each finding."""
        verdict = "FLAGGED" if self.flagged else "nothing found"
        line = (
            f"{self.name}: {self.releases} releases, {len(self.records)} neighbours, values moved"
            f" by at most {text_up(self.largest_ratio, 4)} of their sensitivity: {verdict}"
        )
        if self.epsilon_seen is not None and self.epsilon_claimed is not None:
            line += (
                f" (ε ≥ {text_down(self.epsilon_seen, 4)} seen,"
                f" {text_up(self.epsilon_claimed, 4)} claimed)"
            )
        return "\n  ".join([line, *map(str, self.findings)])


LONGEST = 60  # Characters of a value in a message.


def is_same(a: Any, b: Any) -> bool:
    """Compare numbers, arrays, containers, generators and plain objects by their contents."""
    return bool(View().of(a) == View().of(b))


@dataclass
class View:
    """Makes values comparable by ``==``: nested tuples of what they hold, down to the bits.

    Parameters
    ----------
    strict : bool
        Look into every object, what it has cached included, and tell one NaN from another.
        Otherwise an object is what its class says: the fields of a dataclass, its own ``==``.
    without : frozenset of str
        Attributes that are left out.
    opaque : tuple of type
        Types whose values are not looked into.
    """

    strict: bool = False
    without: frozenset[str] = frozenset()
    opaque: tuple[type, ...] = ()
    seen: set[int] = field(default_factory=set, init=False)

    def of(self, value: Any) -> Any:
        """Return what a value is compared by."""
        value = _plain(value)
        kind = type(value)
        if isinstance(value, self.opaque):
            return kind
        if isinstance(value, (np.ndarray, np.generic, float, complex)):
            return kind, self._array(np.asarray(value))
        if isinstance(value, (list, tuple)):
            return kind, tuple(map(self.of, value))
        if isinstance(value, dict):
            return kind, tuple((self.of(k), self.of(v)) for k, v in value.items())
        if isinstance(value, MethodType):
            return self.of((value.__func__, value.__self__))
        if isinstance(value, partial):
            return self.of((value.func, value.args, value.keywords))
        if isinstance(value, random.Random):
            return value.getstate()
        if isinstance(value, np.random.Generator):
            return self.of(value.bit_generator.state)
        if isinstance(value, (type, ModuleType)):
            return kind, value
        if _is_table(value):
            # Labels may come from the data.
            return kind, self.of(_labels(value)), self.of(value.to_numpy())
        if isinstance(value, FunctionType):
            return self._once(value, _function(value))
        return self._object(value, kind)

    def _array(self, a: Array) -> Any:
        if a.dtype.kind == "O":
            return a.shape, tuple(map(self.of, a.ravel().tolist()))
        if a.dtype.kind in "fc" and not self.strict:
            # 0 is not -0, but one NaN is as good as another.
            parts = np.ascontiguousarray(a).reshape(-1).view(a.real.dtype)
            return a.shape, a.dtype, np.where(np.isnan(parts), np.nan, parts).tobytes()
        return a.shape, a.dtype, a.tobytes()

    def _object(self, value: Any, kind: type) -> Any:
        equal: Any = kind.__eq__
        compares = equal is not object.__eq__
        if not self.strict:
            if dataclasses.is_dataclass(value):
                return self._once(
                    value, [getattr(value, f.name) for f in dataclasses.fields(value)]
                )
            if compares:
                return kind, value
        state = dict(getattr(value, "__dict__", ()))
        for base in kind.__mro__:
            slots = getattr(base, "__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    state[name] = getattr(value, name)
        if state:
            return self._once(value, state)
        return (kind, value) if compares else kind

    def _once(self, value: Any, state: Any) -> Any:
        """Look into an object where it is met first: it may hold itself."""
        if id(value) in self.seen:
            return type(value)
        self.seen.add(id(value))
        if isinstance(state, dict):
            state = {name: state[name] for name in sorted(state) if name not in self.without}
        return type(value), self.of(state)


def _is_table(value: Any) -> bool:
    return hasattr(value, "iloc") and hasattr(value, "to_numpy")


def _labels(table: Any) -> list[Any]:
    """Return the labels of a table's rows and columns, and what these are called."""
    found: list[Any] = [getattr(table, "name", None)]
    for axis in (table.index, getattr(table, "columns", None)):
        found += [None] if axis is None else [list(axis.names), axis.to_numpy()]
    return found


def _function(value: FunctionType) -> tuple[Any, ...]:
    """Return what a function of Python computes from: its code, defaults and closed-over values."""
    cells: list[Any] = []
    for cell in value.__closure__ or ():
        try:
            # A function that calls itself is in its own closure.
            cells.append(None if cell.cell_contents is value else cell.cell_contents)
        except ValueError:  # not assigned yet
            cells.append(None)
    return value.__code__, value.__defaults__, value.__kwdefaults__, vars(value), cells


def _plain(value: Any) -> Any:
    """Return a tensor as an array, anything else as it is."""
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return value.detach().cpu().numpy()
    return value


def distance(a: Any, b: Any, norm: float) -> tuple[float, float]:
    """Return the distance of two values in the 1-, 2- or infinity norm, and what rounding may add.

    Values that have no distance (another shape, other labels, or not finite) are infinitely far
    apart. The rounding is sixteen units in the last place of the larger value: sums in another
    order, or with another blocking, differ by that much.
    """
    if _is_table(a) and _is_table(b) and not is_same(_labels(a), _labels(b)):
        return math.inf, 0.0
    x, y = np.atleast_1d(np.asarray(_plain(a))), np.atleast_1d(np.asarray(_plain(b)))
    if x.shape != y.shape or x.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
        return math.inf, 0.0
    wide = np.longdouble
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return (0.0 if is_same(x, y) else math.inf), 0.0
    gap = (x.astype(wide) - y.astype(wide)).ravel()
    if gap.size == 0:
        return 0.0, 0.0
    kind = np.result_type(x, y)
    unit = float(np.finfo(kind).eps) if kind.kind == "f" else 0.0
    slack = 16.0 * unit * max(_size(x, norm), _size(y, norm))
    return _size(gap, norm), slack


def _size(value: np.ndarray, norm: float) -> float:
    flat = np.abs(value.ravel().astype(np.longdouble))
    largest = flat.max(initial=0.0)
    if largest == 0.0 or norm == math.inf:
        return float(largest)
    if norm == 1:
        return float(flat.sum())
    return float(largest * np.sqrt(np.square(flat / largest).sum()))


def shown(value: Any) -> str:
    """Write a value for a message: an array by its shape."""
    plain = value.to_numpy() if _is_table(value) else _plain(value)
    if isinstance(plain, np.ndarray) and plain.size > 4:
        return f"an array of shape {plain.shape} and type {plain.dtype}"
    text = repr(plain)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
