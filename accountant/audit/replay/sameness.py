"""Whether two values are the same to the last bit, and how far apart private ones are."""

from __future__ import annotations

import dataclasses
import math
import random
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from accountant._basics.arrays import Array

LONGEST = 60  # Characters of a value in a message.


def is_same(a: Any, b: Any) -> bool:
    """Compare numbers, arrays, containers, generators and plain objects by their contents."""
    return bool(View().of(a) == View().of(b))


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

    def __init__(
        self,
        strict: bool = False,
        without: frozenset[str] = frozenset(),
        opaque: tuple[type, ...] = (),
    ) -> None:
        self.strict, self.without, self.opaque = strict, without, opaque
        self.seen: set[int] = set()

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
