"""Checks of private arguments: what is wrong is said, what was given is not.

A message is seen by whoever sees the release. It names the argument and what it must be, and holds
no value, no position and no number of records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from accountant import checks
from accountant.errors import ArgumentTypeError, DomainError
from accountant.mechanisms import _arguments as arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from accountant.checks import Argument, Checked

__all__ = ["private_count", "private_real", "private_scalar"]

T = TypeVar("T")


def private_real(argument: Argument, value: object) -> Checked:
    """Check real numbers that are private."""
    return _checked(checks.real, argument, value)


def private_count(argument: Argument, value: object) -> Checked:
    """Check integers that are private."""
    return _checked(checks.count, argument, value)


def private_scalar(argument: Argument, value: object) -> float:
    """Check one private real number."""
    return _checked(arguments.scalar, argument, value)


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
