"""Public limits on the input of the convex mechanisms, checked before the data."""

from __future__ import annotations

from accountant import checks
from accountant._typing import FloatArray
from accountant.checks import Argument, positive
from accountant.errors import DomainError
from accountant.relations import NeighbouringRelation


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
MOST_RECORDS = 10**7  # up to which the accounts cover the rounding of sums
MOST_COUNTED = 2**31  # up to which sums of integers fit 64 bits
MOST_EXACT = 10**9  # where the rounding of sums grows with max_records, and is paid for
BOUND = _length("bound", "It must be known without looking at the data")


def certified_tolerance(value: object, default: float, least: float) -> float:
    """Return the tolerance: the one asked for, or the default if public numbers allow it.

    ``least`` is reached on every data set that public numbers admit (docs/theorems_convex.md, V10).
    """
    if value is None:
        return max(default, least)
    found = checks.number(TOLERANCE, value)
    if not (found >= least):
        raise DomainError(
            f"tolerance must be at least {least:.6g}, which double precision certifies for any data"
            f" of up to max_records rows; got {found!r}"
        )
    return found


def record_limit(value: object, most: int = MOST_RECORDS) -> int:
    """Return the public bound on the number of records."""
    advice = "It bounds the number of records and must be known without looking at the data"
    return checks.integer("max_records", value, 1, most, advice=advice)


def require_few(rows: FloatArray, limit: int) -> None:
    """Refuse more records than a public bound, without saying how many there are."""
    if not (len(rows) <= limit):
        raise DomainError(
            f"x must have at most {limit} rows: rounding is paid for up to this public bound on the"
            " number of records (max_records, where a function has it), and not beyond"
        )


def relation_factor(relation: NeighbouringRelation) -> float:
    """Return how many records' contributions one step of the relation moves a sum by."""
    return 2.0 if checks.relation(relation) is NeighbouringRelation.REPLACE_ONE else 1.0
