"""Checks of private arguments: an error names the argument and its domain, not the value.

A message is seen by whoever sees the release. It names the argument and what it must be, and holds
no value, no position and no number of records.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import numpy as np

from accountant import checks
from accountant.checks import Argument, Checked
from accountant.errors import ArgumentTypeError, DomainError

P = ParamSpec("P")
T = TypeVar("T")


def private_real(argument: Argument, value: object) -> Checked:
    """Check real numbers that are private."""
    return _checked(checks.real, argument, value)


def private_count(argument: Argument, value: object) -> Checked:
    """Check integers that are private."""
    return _checked(checks.count, argument, value)


def private_scalar(argument: Argument, value: object) -> float:
    """Check one private real number."""
    return _checked(checks.number, argument, value)


@contextmanager
def silence() -> Iterator[None]:
    """Suppress warnings of any kind while a user's function or object sees records.

    Python's filters are those of all threads: the first to come in keeps them, and the last one to
    leave puts them back.
    """
    with _Filters.lock:
        _Filters.inside += 1
        if _Filters.inside == 1:
            _Filters.kept = warnings.catch_warnings()
            _Filters.kept.__enter__()
            warnings.simplefilter("ignore")
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with _Filters.lock:
            _Filters.inside -= 1
            if _Filters.inside == 0:
                _Filters.kept.__exit__(None, None, None)


class _Filters:
    lock = threading.Lock()
    inside = 0
    kept = warnings.catch_warnings()


def without_numpy_warnings(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function without NumPy's warnings, which would say something about a record."""

    @functools.wraps(function)
    def quiet(*args: P.args, **options: P.kwargs) -> T:
        with np.errstate(all="ignore"):
            return function(*args, **options)

    return quiet


def _checked(check: Callable[[Argument, object], T], argument: Argument, value: object) -> T:
    wrong: type[Exception] = DomainError
    try:
        return check(argument, value)
    except ArgumentTypeError:
        wrong = ArgumentTypeError
    except DomainError:
        pass
    # Raised here and not above, where the first error would come along as the context.
    raise wrong(
        f"{argument.name} must be {argument.requirement}; got something else, which is private and"
        f" not shown. {argument.advice}"
    )
