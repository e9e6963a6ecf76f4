"""What every fit of this package has in common: public bounds, the charge, and the result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accountant import checks
from accountant._basics.arrays import Array, FloatArray
from accountant.checks import Argument, positive
from accountant.errors import DomainError
from accountant.learn.account import Released, charged
from accountant.learn.convex.losses import Logistic, Loss
from accountant.learn.convex.noise import NoiseSource
from accountant.learn.convex.rows import clip_rows, paired, table
from accountant.ledger import Accountant
from accountant.mechanisms.base import Mechanism
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
# The accounts of V12, V16 and V17 cover the rounding of sums of up to this many records.
MOST_RECORDS = 10**7
# Sums of integers below 2^30 over up to this many records fit 64 bits (V14, V18).
MOST_COUNTED = 2**31
# The largest max_records where the rounding of sums grows with it, and is paid for (V10).
MOST_EXACT = 10**9
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


@dataclass(frozen=True, eq=False)
class PrivateResult(Released):
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
    details: dict[str, float] = field(default_factory=dict)

    def _charged(self) -> int:
        return len(self.mechanisms)


class Fit:
    """One fit: its guarantee, its noise, the charge before the noise, and the result after it.

    Parameters
    ----------
    label : str
        Of the charge.
    epsilon, delta : float
        The guarantee, in nats; δ = 0 for a pure one.
    ledger : Accountant or None
        The ledger given; a new one is made where there is none.
    rng : int or None
        A seed, for tests only: the charge is marked and the result is not private.
    """

    def __init__(
        self, label: str, epsilon: float, delta: float, ledger: Accountant | None, rng: int | None
    ) -> None:
        self.label, self.ledger = label, ledger
        self.epsilon = checks.number(checks.TARGET_EPS, epsilon)
        self.delta = checks.number(checks.DELTA, delta)
        self.source = NoiseSource(rng)
        self.mechanisms: tuple[Mechanism, ...] = ()

    def charge(self, *mechanisms: Mechanism) -> None:
        """Charge the ledger for the whole fit: before noise is drawn, and once."""
        self.mechanisms = mechanisms
        self.ledger = charged(self.ledger, mechanisms, self.label, self.source.generator)

    def result(self, value: FloatArray, **details: float) -> PrivateResult:
        """Return what was released, with what was charged for it."""
        assert self.ledger is not None
        return PrivateResult(
            value, self.mechanisms, details, ledger=self.ledger, delta=self.delta,
            run_epsilon=self.epsilon, private=self.source.private,
        )  # fmt: skip


class LinearFit(Fit):
    """One fit of a linear model: its rows, their public bound, and its loss.

    Parameters
    ----------
    label, epsilon, delta, ledger, rng
        As of :class:`Fit`.
    x : array of shape (n, d)
        Records.
    data_norm : float
        Public bound on the rows' norm.
    loss : Loss or None
        Logistic where it is left out.
    """

    def __init__(
        self, label: str, x: Array, data_norm: float, loss: Loss | None, **given: Any
    ) -> None:
        super().__init__(label, **given)
        self.rows = table(x)
        self.norm = checks.number(DATA_NORM, data_norm)
        self.loss = Logistic() if loss is None else loss
        self.shape = self.loss.weight_shape(self.rows.shape[1])
        self.size = int(np.prod(self.shape))
        self.slope = self.norm * self.loss.slope_bound

    def data(self, y: Array, limit: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Return clipped rows and encoded labels, of at most ``limit`` records.

        It is asked when all public numbers have been: whatever they are refused for says nothing
        about a record.
        """
        if limit is not None:
            require_few(self.rows, limit)
        labels, rows = paired(self.loss.encode(y), self.rows)
        return clip_rows(rows, self.norm), labels
