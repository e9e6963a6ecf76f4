"""Answers about counted mechanisms: the ledger's only access to their algebra and analyses.

An odometer's answers hold after every release at once.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.rounding import fraction_up
from accountant.analyses import renyi_conversion
from accountant.analyses.over_steps.by_renyi import least_over_orders
from accountant.analyses.over_steps.curve import upper_curve
from accountant.analyses.over_steps.history import total
from accountant.bounds import Bounds
from accountant.broadcasting import each_bounds, each_number
from accountant.checks import ArrayLike, Checked, Scalar
from accountant.composition import composed
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.ledger.basic import basic_epsilon, largest_loss
from accountant.ledger.history import Entry
from accountant.ledger.meters import ORDER
from accountant.mechanisms import Gaussian
from accountant.mechanisms.base import Mechanism
from accountant.sampling.poisson import PoissonSampled

# The δ of an answer where neither the question nor the ledger gives one.
ASSUMED_DELTA = 1e-5


def epsilon_bounds(counts: tuple[tuple[Mechanism, int], ...], delta: float) -> Bounds:
    """Bracket ε(delta) of the composition; exactly zero for nothing.

    Without a δ it is at most the sum of the largest losses, of which only the end is rounded (L18).
    """
    if not counts:
        return Bounds(0.0, 0.0)
    found = composed(counts).epsilon_bounds(delta)
    if delta != 0.0:
        return found
    upper = min(float(found.upper), basic_epsilon(counts))
    return Bounds(min(float(found.lower), upper), upper)


def epsilon(counts: tuple[tuple[Mechanism, int], ...], delta: float) -> float:
    """Bound ε(delta) of the composition from above."""
    if not counts:
        return 0.0
    upper = float(composed(counts).epsilon(delta))
    return upper if delta else min(upper, basic_epsilon(counts))


def delta_bounds(counts: tuple[tuple[Mechanism, int], ...], epsilon: float) -> Bounds:
    """Bracket δ(epsilon) of the composition."""
    return composed(counts).delta_bounds(epsilon) if counts else Bounds(0.0, 0.0)


def dp_sgd_step(noise_multiplier: float, sampling_probability: float) -> Mechanism:
    """Return one step of DP-SGD as a mechanism."""
    # Only plain floats: to the cache 1.0, 1 and True are one key.
    plain = type(noise_multiplier) is type(sampling_probability) is float
    return (_step if plain else _step.__wrapped__)(noise_multiplier, sampling_probability)


@functools.lru_cache(maxsize=1024)
def _step(noise_multiplier: float, sampling_probability: float) -> Mechanism:
    return PoissonSampled(Gaussian(noise_multiplier), sampling_probability)


class Questions(ABC):
    """The questions, for whatever has a history and its merged counts."""

    @property
    @abstractmethod
    def history(self) -> tuple[Entry, ...]:
        """Every record in order."""

    @property
    @abstractmethod
    def counts(self) -> tuple[tuple[Mechanism, int], ...]:
        """Distinct mechanisms with their total counts."""

    @overload
    def epsilon(self, delta: Scalar) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> NDArray[np.float64]: ...
    @to_nearest
    def epsilon(self, delta: Scalar | ArrayLike) -> Checked:
        """Return the ε spent at ``delta``, certified never too small.

        Parameters
        ----------
        delta : float or array_like
            In [0, 1).

        Returns
        -------
        float or ndarray
            In nats: a float for a scalar, else float64 in the shape of ``delta``.

        Notes
        -----
        *Guarantee.* If the privacy parameters of the records were fixed in advance, everything
        recorded is (ε, δ)-differentially private under :attr:`relation` (docs/theorems_ledger.md,
        L1). Mechanisms may depend on earlier outputs; where their *parameters* do, too, only a
        :class:`Budget` or an :class:`Odometer` gives a guarantee.

        The sets of a :func:`parallel` may depend on earlier outputs: unless it is the only release,
        it is taken for adaptive (Theorem M18). ``Composition(ledger.counts).epsilon(delta)`` holds
        for sets that were fixed before the first release.
        """
        counts = self.counts
        return each_number(checks.DELTA, delta, lambda one: epsilon(counts, one))

    @to_nearest
    def epsilon_bounds(self, delta: Scalar | ArrayLike) -> Bounds:
        """Return a certified bracket of :meth:`epsilon`."""
        counts = self.counts
        return each_bounds(checks.DELTA, delta, lambda one: epsilon_bounds(counts, one))

    @overload
    def delta(self, epsilon: Scalar) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> NDArray[np.float64]: ...
    @to_nearest
    def delta(self, epsilon: Scalar | ArrayLike) -> Checked:
        """Return the δ at ``epsilon`` >= 0, certified never too small; as :meth:`epsilon`."""
        counts = self.counts
        return each_number(checks.EPSILON, epsilon, lambda e: float(delta_bounds(counts, e).upper))

    @to_nearest
    def delta_bounds(self, epsilon: Scalar | ArrayLike) -> Bounds:
        """Return a certified bracket of :meth:`delta`."""
        counts = self.counts
        return each_bounds(checks.EPSILON, epsilon, lambda one: delta_bounds(counts, one))

    @to_nearest
    def epsilon_over_steps(
        self, delta: float, *, checkpoints: int | None = None
    ) -> NDArray[np.float64]:
        """Return ε after each release: element k holds for the first k + 1 alone.

        Parameters
        ----------
        delta : float
            In (0, 1).
        checkpoints : int, optional
            How many prefixes, evenly spaced, to compose exactly as well; 0 for Rényi bounds alone.
            Different (subsampled) Gaussians are composed exactly after every release anyway. None
            composes equal steps whenever their number has grown by a fourteenth, and mixes of other
            kinds at up to sixteen lengths, where the curve is widest.

        Returns
        -------
        ndarray of float64, shape (len(self),)
            Non-decreasing upper bounds, in nats.

        Notes
        -----
        *Guarantee.* Each element by itself, for parameters fixed in advance
        (docs/theorems_ledger.md, L8). Not an odometer: it must not decide when to stop.

        *Algorithm.* Each element is the least of what is known: Rényi curves at a few orders, added
        up and converted, with infinite losses kept apart; the largest losses, added up; the exact
        composition of the next checkpoint. A schedule of Gaussians is composed exactly along one
        contour; 10,000 different steps take about a second. The largest losses of other releases
        among them are added to it (Theorem L11).
        """
        checked = checks.number(checks.TARGET_DELTA, delta)
        wanted = None if checkpoints is None else checks.whole(_CHECKPOINTS, checkpoints)
        return upper_curve(self.history, checked, wanted)


_CHECKPOINTS = checks.integers("checkpoints", 0, 2**20, "Each costs one exact composition")


# Far apart: every order costs log(orders)/(α - 1), and between them little is lost.
_ORDERS = tuple(1.0 + 2.0**k for k in range(-1, 11))


@dataclass(frozen=True)
class Odometer:
    """Reads off ε after every release of a ledger, all readings valid together.

    Parameters
    ----------
    delta : float
        In [0, 1): the probability that the privacy loss ever exceeds a reading. At 0 a reading is
        the sum of the largest losses, which it never exceeds at any other δ either (L18).
    orders : sequence of float, optional
        Rényi orders, fixed in advance, which share ``delta`` equally.

    Notes
    -----
    *Guarantee.* With mechanisms, parameters and stopping chosen adaptively, and for every pair of
    neighbouring data sets, the probability that the privacy loss after *some* release exceeds the
    reading after it is at most ``delta``. So the interaction stopped at any time at which the
    reading is at most ε, for a fixed ε, is (ε, δ)-differentially private (docs/theorems_ledger.md,
    L6).

    *Source.* Rogers, Roth, Ullman, Vadhan 2016 (odometers); Whitehouse, Ramdas, Rogers, Wu 2023
    (time-uniform martingale bounds); here several linear boundaries share ``delta``.
    """

    delta: float
    orders: Sequence[float] | None = None

    def __post_init__(self) -> None:
        delta = checks.number(checks.DELTA, self.delta)
        orders: Any = checks.real(ORDER, _ORDERS if self.orders is None else self.orders)
        listed = tuple(map(float, np.ravel(orders)))
        if not listed or len(set(listed)) != len(listed):
            raise DomainError(f"orders must be distinct, at least one; got {self.orders!r}")
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "orders", listed)

    @to_nearest
    def over_steps(self, ledger: Questions) -> NDArray[np.float64]:
        """Return the reading after each release, in nats: shape (len(ledger),), non-decreasing."""
        orders: Any = self.orders
        added = self._added(ledger)
        if not self.delta:
            return added
        return np.minimum(least_over_orders(ledger.history, orders, self._convert), added)

    @to_nearest
    def epsilon(self, ledger: Questions) -> float:
        """Return the reading now; 0 before the first release."""
        orders: Any = self.orders
        counts = ledger.counts
        if not counts:
            return 0.0
        added = basic_epsilon(counts)
        if not self.delta:
            return added
        spent = total(counts, orders)
        rows = [self._convert(a, row) for a, row in zip(orders, spent, strict=True)]
        return min(float(np.min(rows, axis=0).max()), added)

    def _added(self, ledger: Questions) -> NDArray[np.float64]:
        """Return the sum of the largest losses after each release, each rounded up once."""
        whole = sum(count for _, count in ledger.counts)
        found: list[float] = []
        total = Fraction(0)
        prices: dict[Mechanism, Fraction | float] = {}
        for item in ledger.history:
            if item.mechanism not in prices:
                prices[item.mechanism] = largest_loss(item.mechanism)
            price = prices[item.mechanism]
            if price == math.inf:
                found += [math.inf] * (whole - len(found))
                break
            start, each = total, Fraction(price)
            found += [fraction_up(start + k * each) for k in range(1, item.count + 1)]
            total += item.count * each
        return np.array(found, dtype=np.float64)

    def _convert(self, order: float, spent: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add what the loss may exceed the divergence by, with this order's part of delta."""
        orders: Any = self.orders
        part = self.delta
        if len(orders) > 1:
            part = math.nextafter(self.delta / len(orders), 0.0)
        offset = renyi_conversion.mironov_upper(order, 0.0, part)
        return np.nextafter(spent + offset, np.inf)
