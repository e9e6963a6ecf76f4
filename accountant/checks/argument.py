"""An argument: its name, its domain and advice, and the sentences that refuse a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accountant.errors import ArgumentTypeError

# Every integer up to here is a double, so counts reach the native core unrounded.
MAX_COUNT = 2**53


class Argument:
    """An argument's name, its domain in words and as a predicate, and advice.

    ``holds`` takes a number or an array. Its conditions are positive (``x >= 0``), so NaN fails
    every one of them. ``hint`` takes a number outside the domain and returns better advice, or
    nothing, where the value looks like another argument's.
    """

    __slots__ = ("advice", "hint", "holds", "name", "requirement")

    def __init__(
        self,
        name: str,
        requirement: str,
        holds: Callable[[Any], Any],
        advice: str,
        hint: Callable[[Any], str] | None = None,
    ) -> None:
        self.name = name
        self.requirement = requirement
        self.holds = holds
        self.advice = advice
        self.hint = hint

    def renamed(self, name: str, advice: str | None = None) -> Argument:
        """Return the argument under another name, with other advice where it is given.

        The hint goes, for it names other arguments.
        """
        other = self.advice if advice is None else advice
        return Argument(name, self.requirement, self.holds, other)

    @property
    def must(self) -> str:
        """The requirement as a sentence."""
        return f"{self.name} must be {self.requirement}"

    def advise(self, value: object) -> str:
        """Return what to do about a number outside the domain, as the message's next sentence."""
        return followed((self.hint(value) if self.hint else "") or self.advice)


def positive(name: str, advice: str) -> Argument:
    """Return the argument that is a finite number > 0."""
    return Argument(name, "a finite number > 0", lambda x: (x > 0.0) & (x < np.inf), advice)


def integers(name: str, least: int, most: int, advice: str) -> Argument:
    """Return the argument that is an integer in [least, most]."""
    highest = "2**53" if most == MAX_COUNT else str(most)
    return Argument(
        name,
        f"an integer in [{least}, {highest}]",
        lambda x: (x >= least) & (x <= most),
        advice,
    )


def wrong_type(argument: Argument, received: str, advice: str | None = None) -> ArgumentTypeError:
    """Return the error about a value of the wrong type."""
    text = argument.advice if advice is None else advice
    return ArgumentTypeError(f"{argument.must}; got {received}{followed(text)}")


def followed(advice: str) -> str:
    """Return advice as the next sentence of a message, or nothing."""
    return f". {advice}" if advice else ""


def describe(value: object) -> str:
    """Return the type of a value and the value, for a message."""
    return f"the {type(value).__name__} {shown(value)}"


def shown(value: object) -> str:
    """Return a value for a message, cut off where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python declines to print integers of thousands of digits
        text = "a very large integer"
    return text if len(text) <= 60 else text[:57] + "..."
