"""Arguments of mechanisms: one scalar each, checked and stored as a Python number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from accountant import checks
from accountant.checks import Argument
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.relations import NeighbouringRelation

__all__ = [
    "BLACK_BOX_DELTA",
    "BOUND",
    "MULTIPLIER",
    "PROBABILITY",
    "RANGE",
    "RHO",
    "SCALE",
    "SENSITIVITY",
    "carry",
    "integer",
    "named",
    "order",
    "refuse",
    "relation",
    "scalar",
    "settle",
    "several",
]

MULTIPLIER = Argument(
    "noise_multiplier",
    "a number > 0",
    lambda x: x > 0.0,
    "It is the standard deviation of the noise over the unit of sensitivity",
)
SCALE = Argument("scale", "a number > 0", lambda x: x > 0.0, "It is the scale of the noise")
SENSITIVITY = Argument(
    "sensitivity",
    "a finite number >= 0",
    lambda x: (x >= 0.0) & (x < math.inf),
    "It is the largest norm of one record's contribution",
)
BOUND = Argument(
    "epsilon", "a finite number >= 0", lambda x: (x >= 0.0) & (x < math.inf), "It is in nats"
)
RANGE = Argument(
    "epsilon", "a finite number >= 0", lambda x: (x >= 0.0) & (x < math.inf), "It is in nats"
)
RHO = Argument(
    "rho", "a finite number >= 0", lambda x: (x >= 0.0) & (x < math.inf), "It is in nats"
)
BLACK_BOX_DELTA = Argument(
    "delta", "a probability in [0, 1]", lambda x: (x >= 0.0) & (x <= 1.0), "It bounds a probability"
)
PROBABILITY = Argument(
    "sampling_probability",
    "a probability in [0, 1]",
    lambda x: (x >= 0.0) & (x <= 1.0),
    "It is the expected sample size over the number of records",
)
ORDER = Argument(
    "order",
    "a finite Rényi order > 1",
    lambda x: (x > 1.0) & (x < math.inf),
    "At order 1 the divergence is Kullback-Leibler's, at infinity it bounds the loss",
)


def scalar(argument: Argument, value: object) -> float:
    """Check one real number."""
    checked = checks.real(argument, value)
    if isinstance(checked, float):
        return checked
    raise ArgumentTypeError(
        f"{argument.name} must be one number, not an array; describe one mechanism for each"
    )


def order(value: object) -> float:
    """Check a Rényi order."""
    return scalar(ORDER, value)


def integer(name: str, value: object, least: int, most: int = checks.MAX_COUNT) -> int:
    """Check a true integer: 10.0 and True are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(
            f"{name} must be an integer in [{least}, {most}]; got {value!r}. Round it yourself:"
            " which way is the caller's decision"
        )
    if least <= value <= most:
        return int(value)
    raise DomainError(f"{name} must be an integer in [{least}, {most}]; got {value!r}")


def several(name: str, value: object) -> Sequence[Any]:
    """Check a list, a tuple or a one-dimensional array; its items are checked by the caller."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return cast("Sequence[Any]", value)
    raise ArgumentTypeError(f"{name} must be a list, a tuple or a 1-D array; got {value!r:.60}")


def named(argument: Argument, name: str) -> Argument:
    """Return the argument under another name."""
    return argument._replace(name=name)


def relation(value: object) -> NeighbouringRelation:
    """Check a neighbouring relation."""
    if isinstance(value, NeighbouringRelation):
        return value
    raise ArgumentTypeError(
        f"relation must be a NeighbouringRelation, as in NeighbouringRelation.ADD_OR_REMOVE;"
        f" got {value!r}"
    )


def settle(mechanism: Any, **values: object) -> None:
    """Store checked values on a frozen dataclass under construction, and check its relation."""
    for name, value in values.items():
        object.__setattr__(mechanism, name, value)
    relation(mechanism.relation)


def carry(mechanism: Any, relation: NeighbouringRelation) -> int:
    """Return how many changes of the bound's own relation make one of ``relation`` (M9).

    Blanking a record is removing it, as far as a mechanism that ignores blanks can tell; replacing
    one is removing (or blanking) it and adding (or filling in) another.
    """
    own = mechanism.relation
    if relation is own or (own, relation) == (
        NeighbouringRelation.ADD_OR_REMOVE,
        NeighbouringRelation.ZERO_OUT,
    ):
        return 1
    if relation is NeighbouringRelation.REPLACE_ONE:
        return 2
    raise UnsupportedError(
        f"{mechanism!r} is bounded under {own!r}, which does not imply a bound under {relation!r};"
        " derive it for that relation"
    )


def refuse(name: str, relation: NeighbouringRelation, advice: str) -> None:
    """Refuse a relation under which no theorem is known."""
    raise UnsupportedError(f"no theorem covers {name} under {relation!r}; {advice}")
