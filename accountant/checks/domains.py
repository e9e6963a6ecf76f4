"""An argument, the sentences that refuse its value, and the domains that several packages share."""

from __future__ import annotations

import math
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


def nonnegative(name: str, advice: str) -> Argument:
    """Return the argument that is a finite number >= 0."""
    return Argument(name, "a finite number >= 0", lambda x: (x >= 0.0) & (x < np.inf), advice)


def integers(name: str, least: int, most: int, advice: str) -> Argument:
    """Return the argument that is an integer in [least, most]."""
    highest = "2**53" if most == MAX_COUNT else str(most)
    return Argument(
        name, f"an integer in [{least}, {highest}]", lambda x: (x >= least) & (x <= most), advice
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


Q = Argument(
    "q",
    "a sampling probability in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "It is the expected batch size over the number of records",
    lambda x: (
        "It is expected_batch_size / dataset_size, at most 1; were q and sigma swapped?"
        if x > 1.0
        else ""
    ),
)
SAMPLING_PROBABILITY = Argument(
    "sampling_probability",
    "a sampling probability in [0, 1]",
    Q.holds,
    Q.advice,
    lambda x: "A probability is at most 1; is it the noise multiplier?" if x > 1.0 else "",
)
SIGMA = Argument(
    "sigma",
    "a noise multiplier > 0",
    lambda x: x > 0.0,
    "It is the noise standard deviation over the clipping norm",
)
NOISE_MULTIPLIER = Argument(
    "noise_multiplier",
    "a noise multiplier > 0",
    SIGMA.holds,
    "It is the standard deviation of the noise over the unit of sensitivity",
)
SCALE = Argument("scale", "a number > 0", lambda x: x > 0.0, "It is the scale of the noise")
SENSITIVITY = Argument(
    "sensitivity",
    "a finite number >= 0",
    lambda x: (x >= 0.0) & (x < math.inf),
    "It is the largest norm of one record's contribution",
)
STEPS = Argument(
    "steps",
    "an integer in [0, 2**53]",
    lambda x: (x >= 0) & (x <= MAX_COUNT),
    "It counts releases; round epochs / q up to an int",
    lambda x: "It counts releases; were steps and delta swapped?" if 0.0 < x < 1.0 else "",
)
COUNT = STEPS.renamed("count", "It says how often the mechanism is run")
USER_RECORDS = integers(
    "user_records", 1, 10**6, "It is the largest number of records that one user contributes"
)
DATASET_SIZE = integers("dataset_size", 1, MAX_COUNT, "It is the number of records")
BATCH_SIZE = integers("batch_size", 1, MAX_COUNT, "It is the number of records in a batch")
EPSILON = Argument("epsilon", "a number >= 0", lambda x: x >= 0.0, "It is a privacy loss in nats")
FINITE_EPSILON = Argument(
    "epsilon", "a finite number >= 0", lambda x: (x >= 0.0) & (x < math.inf), "It is in nats"
)
TARGET_EPS = Argument(
    "target_eps",
    "a finite number > 0",
    lambda x: (x > 0.0) & (x < math.inf),
    "It is the privacy loss to stay within, in nats",
)
DELTA = Argument(
    "delta",
    "a probability in [0, 1)",
    lambda x: (x >= 0.0) & (x < 1.0),
    "Choose it well below one over the number of records",
    lambda x: "A failure probability is below 1; is it another argument?" if x > 1.0 else "",
)
TARGET_DELTA = Argument(
    "delta",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "At delta = 0 the ε of Gaussian noise is infinite, so no target can be reached",
    lambda x: (
        "Choose it well below one over the number of records; were epsilon and delta swapped?"
        if x >= 1.0
        else ""
    ),
)
STATED_DELTA = Argument(
    "delta", "a probability in [0, 1]", lambda x: (x >= 0.0) & (x <= 1.0), "It bounds a probability"
)
ORDER = Argument(
    "order",
    "a finite Rényi order > 1",
    lambda x: (x > 1.0) & (x < math.inf),
    "At order 1 the divergence is Kullback-Leibler's, at infinity it bounds the loss",
)
ORDERS = ORDER.renamed("orders")
RHO = Argument(
    "rho", "a number >= 0", lambda x: x >= 0.0, "It bounds the Rényi divergence by rho * order"
)
OMEGA = Argument(
    "omega", "a Rényi order > 1", lambda x: x > 1.0, "The Rényi curve is bounded below this order"
)
MU = Argument(
    "mu", "a number >= 0", lambda x: x >= 0.0, "It is a distance of means in standard deviations"
)
FPR = Argument(
    "fpr",
    "a false-positive rate in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "It is the probability that the attack accuses a record that was not used",
)
PRIOR = Argument(
    "prior",
    "a probability in (0, 1)",
    lambda x: (x > 0.0) & (x < 1.0),
    "It is the attacker's probability, before the release, that the record was used",
)
