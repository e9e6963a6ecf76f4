"""The certified trade-off curve of a claim, as the largest of many supporting lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant._typing import FloatArray
from accountant.errors import DomainError
from accountant.mechanisms.base import Mechanism
from accountant.quick import get_delta, get_epsilon

LINES = 48
FAR = 1e-7  # lines of smaller δ matter only to a test with millions of observations
# For the roundings of one line's value, all of them in [0, 1].
SLACK = 1e-14


class TradeoffCurve:
    """A lower bound on the false-negative rate of every test between neighbours.

    Parameters
    ----------
    epsilons, deltas : array_like of shape (k,)
        Guarantees: the mechanism is (epsilons[j], deltas[j])-differentially private, for all j, in
        both directions.

    Notes
    -----
    *Guarantee.* At false-positive rate x, ``curve(x)`` is at most what any test must miss, for it
    is the largest of the bounds by the single guarantees (docs/theorems_audit.md, Theorem A4).
    The bounds are their own inverses, so the curve bounds both directions.

    Examples
    --------
    >>> curve = TradeoffCurve([0.0, 1.0], [0.5, 0.0])
    >>> round(float(curve(0.2)), 6)
    0.456344
    """

    def __init__(self, epsilons: ArrayLike, deltas: ArrayLike) -> None:
        self.epsilons = np.asarray(epsilons, dtype=np.float64).ravel()
        self.deltas = np.asarray(deltas, dtype=np.float64).ravel()
        good = (
            self.epsilons.size == self.deltas.size > 0
            and bool((self.epsilons >= 0.0).all())
            and bool(((self.deltas >= 0.0) & (self.deltas <= 1.0)).all())
        )
        if not good:
            raise DomainError("a curve needs guarantees with epsilon >= 0 and delta in [0, 1]")
        with np.errstate(over="ignore"):
            self._steep = np.exp(self.epsilons)
        self._flat = np.exp(-self.epsilons)

    @classmethod
    def of(cls, mechanism: Mechanism) -> TradeoffCurve:
        """Return the curve of a mechanism, from its certified profile."""
        return cls._of_profile(
            lambda e: np.array([mechanism.delta(x) for x in e.tolist()]), mechanism.epsilon(FAR)
        )

    @classmethod
    def of_dp_sgd(cls, q: float, noise_multiplier: float, steps: int) -> TradeoffCurve:
        """Return the curve of DP-SGD under Poisson sampling, from its certified profile."""
        return cls._of_profile(
            lambda e: np.asarray(get_delta(q, noise_multiplier, steps, e)),
            get_epsilon(q, noise_multiplier, steps, FAR),
        )

    @classmethod
    def _of_profile(cls, profile: Callable[[FloatArray], FloatArray], far: float) -> TradeoffCurve:
        far = min(far, 700.0) if math.isfinite(far) else 700.0
        # Dense where the curve bends: a uniform grid, and a geometric one near zero.
        epsilons = np.unique(
            np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 20) * far, np.linspace(0, far, LINES)])
        )
        return cls(epsilons, np.minimum(1.0, profile(epsilons)))

    def __call__(self, fpr: object) -> Any:
        """Return the lower bound at false-positive rates in [0, 1], of the same shape."""
        x = np.asarray(fpr, dtype=np.float64)[..., None]
        top = 1.0 - self.deltas
        with np.errstate(invalid="ignore"):
            steep = np.where(x > 0.0, top - self._steep * x, top)
        best = np.maximum(steep, self._flat * (top - x)).max(axis=-1)
        bound = np.maximum(0.0, best - SLACK)
        return float(bound) if bound.ndim == 0 else bound
