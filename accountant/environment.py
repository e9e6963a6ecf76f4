"""The floating-point environment in which every bound is computed.

Round-off is counted, and bounds are rounded outwards, on the assumption that operations round to
nearest and that subnormal numbers are kept. A program may have changed either for its thread:
``fesetround``, or a library compiled with ``-ffast-math``, which flushes subnormals to zero. The
native entries set and restore the environment themselves; :func:`to_nearest` does it for what
Python and NumPy compute around them (docs/theorems.md, Round-off).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from accountant._core import tools as core

P = ParamSpec("P")
R = TypeVar("R")


def to_nearest(function: Callable[P, R]) -> Callable[P, R]:
    """Run ``function`` in the default floating-point environment, and restore the caller's."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        before = core.enter()
        if before is None:
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            core.leave(before)

    return guarded
