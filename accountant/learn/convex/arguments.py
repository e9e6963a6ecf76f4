"""Arguments that the functions of this room share."""

from __future__ import annotations

from accountant import checks
from accountant.checks import Argument, positive
from accountant.errors import ArgumentTypeError, DomainError
from accountant.relations import NeighbouringRelation

__all__ = [
    "BOUND",
    "DATA_NORM",
    "REGULARIZATION",
    "STEP_SIZE",
    "TOLERANCE",
    "certified_tolerance",
    "relation_factor",
]


def _length(name: str, advice: str) -> Argument:
    """Return the argument that bounds a Euclidean norm: its square is neither lost nor infinite."""
    return Argument(name, "a number in [1e-50, 1e50]", lambda x: (x >= 1e-50) & (x <= 1e50), advice)


DATA_NORM = _length(
    "data_norm", "It bounds the rows' Euclidean norm and must be known without looking at the data"
)
REGULARIZATION = positive(
    "regularization",
    "It multiplies |theta|²/2 in the sum over records; data_norm**2 / epsilon is a good start",
)
STEP_SIZE = positive("step_size", "It multiplies the gradient of the sum")
TOLERANCE = positive("tolerance", "It bounds the certified gradient at the minimum")
BOUND = _length("bound", "It must be known without looking at the data")


def certified_tolerance(value: object, default: float) -> float:
    """Return the tolerance asked for, at least the default.

    Below it round-off may certify the minimum of one data set and not of its neighbour, and what is
    released then tells them apart (docs/theorems_convex.md, V9).
    """
    if value is None:
        return default
    found = float(checks.real(TOLERANCE, value))
    if not (found >= default):
        raise DomainError(
            f"tolerance must be at least {default:.6g}, which double precision certifies for any"
            f" data of usual size; got {found!r}"
        )
    return found


def relation_factor(relation: NeighbouringRelation) -> float:
    """Return how many records' contributions one step of the relation moves a sum by."""
    if not isinstance(relation, NeighbouringRelation):
        raise ArgumentTypeError(
            f"relation must be a NeighbouringRelation, as in NeighbouringRelation.ADD_OR_REMOVE;"
            f" got {relation!r}"
        )
    return 2.0 if relation is NeighbouringRelation.REPLACE_ONE else 1.0
