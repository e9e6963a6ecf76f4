"""The result of a private fit: a value and its mechanisms."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.errors import DomainError
from accountant.learn.account import epsilon_with
from accountant.learn.validation import numbers
from accountant.ledger import Accountant
from accountant.ledger.closed import HoldsLedger
from accountant.mechanisms.base import Mechanism

# Rows end this much inside the ball, so that no rounding puts them outside.
INSIDE = 1.0 - 2.0**-40
# NumPy cuts longer sums at places of its own, and a single row elsewhere than one of several.
TOGETHER = 4096


@dataclass(frozen=True, eq=False)
class PrivateResult(HoldsLedger):
    """A released value, what it cost, and the ledger that was charged for it.

    Attributes
    ----------
    value : ndarray
        The release. Anything computed from it is private as well.
    mechanisms : tuple of Mechanism
        What was released, to be composed.
    ledger : Accountant
        The ledger given, or the fit's own, with the mechanisms charged.
    run_epsilon, delta : float
        The guarantee this fit was calibrated to, under the mechanisms' relation.
    private : bool
        False when the noise came from a known seed; then there is no guarantee at all.
    epsilon : float
        The ε at ``delta`` of everything in the ledger when the fit ended.
    """

    value: FloatArray
    mechanisms: tuple[Mechanism, ...]
    ledger: Accountant
    run_epsilon: float
    delta: float
    private: bool
    details: dict[str, float] = field(default_factory=dict)
    epsilon: float = field(init=False)

    def __post_init__(self) -> None:
        spent = epsilon_with(self.ledger, len(self.mechanisms), self.run_epsilon, self.delta)
        object.__setattr__(self, "epsilon", spent)


def table(x: object) -> FloatArray:
    """Return ``x`` as a float64 matrix, row by row in memory; what cannot be read is NaN.

    Sums over a row round by the row's layout (Theorem V12), and what clips one long row copies all
    of them: only one layout may ever be met.
    """
    rows = np.require(numbers("x", x), requirements=["C", "A", "E"])
    if rows.ndim != 2:
        raise DomainError(f"x must have two dimensions, (records, columns); got {rows.ndim}")
    if not rows.shape[1]:
        raise DomainError("x must have at least one column; got none")
    return rows


def clip_rows(rows: FloatArray, norm: float) -> FloatArray:
    """Scale every row longer than ``norm`` down to it; rows within are unchanged.

    A row that is not finite, or whose squares overflow, becomes zero, and so adds nothing.
    """
    with np.errstate(all="ignore"):  # a warning would say something about a record
        lengths = np.sqrt(row_products(rows, rows))
    # A computed norm of d squares is off by d/2 roundings at most, and some.
    limit = norm * (INSIDE - (rows.shape[1] + 8) * U)
    within = lengths <= limit  # not so for NaN
    if within.all():
        return rows
    scale = np.ones_like(lengths)
    scale[~within] = limit / lengths[~within]
    lost = ~np.isfinite(lengths)
    with np.errstate(all="ignore"):
        clipped = rows * scale[:, None]
    clipped[lost] = 0.0
    return clipped


def row_products(rows: FloatArray, other: FloatArray) -> FloatArray:
    """Return every row's inner product with its row of ``other``, or with the one vector it is.

    No digit depends on the other rows or on their number (docs/theorems_convex.md, Theorem V12).
    """
    equation = "ij,j->i" if other.ndim == 1 else "ij,ij->i"
    total = np.zeros(len(rows))
    for start in range(0, rows.shape[1], TOGETHER):
        part = slice(start, start + TOGETHER)
        total += np.einsum(equation, rows[:, part], other[..., part])
    return total


def paired(labels: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return labels and rows, if there is a label for every row.

    A record whose label could not be read, and is NaN, becomes one of zeros: it adds nothing.
    """
    if len(labels) != len(rows):
        # Neither number: how many records there are is private.
        raise DomainError("y must have one label a row of x; got another number of labels")
    lost = np.isnan(labels) if labels.ndim == 1 else np.isnan(labels).any(axis=1)
    if not lost.any():
        return labels, rows
    labels, rows = labels.copy(), rows.copy()
    labels[lost], rows[lost] = 0.0, 0.0
    return labels, rows


def project(theta: FloatArray, radius: float) -> FloatArray:
    """Return the nearest point of the centred ball; points inside stay where they are."""
    length = float(np.sqrt(np.vdot(theta, theta)))
    return theta if length <= radius else theta * (radius / length)
