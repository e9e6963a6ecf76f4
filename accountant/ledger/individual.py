"""Individual accounting: every record has its own spend and is left out at the budget."""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import fraction_up
from accountant.analyses import contour
from accountant.checks import ArrayLike
from accountant.environment import to_nearest
from accountant.errors import DomainError, UnsupportedError
from accountant.ledger import filters
from accountant.ledger.basic import written
from accountant.ledger.budget import Budget
from accountant.ledger.history import Uncopied
from accountant.ledger.kinds import RecordKinds

Mask: TypeAlias = "NDArray[np.bool_]"

_DIVERGENCE = checks.Argument("divergences", "Rényi divergences >= 0", lambda x: x >= 0.0, "")
_ORDERS = checks.Argument("orders", "Rényi orders above 1", lambda x: x > 1.0, "They are fixed")
_NORMS = checks.nonnegative("norms", "They are those of the records' contributions, clipped")


class IndividualFilter(Uncopied):
    """A Rényi, Gaussian or kinds filter for each of ``dataset_size`` records.

    Parameters
    ----------
    budget : Budget
        Pure, where each record's ε are added up (L18). With ``filter="renyi"`` and no share, or
        with ``"moments"``, which is taken for it. One
        order costs least memory and time:
        :meth:`Budget.suited_to` finds it. Or with ``filter="gaussian"``, which loses nothing where
        all releases are Gaussian and nobody is sampled (Theorem L15). Or with ``filter="kinds"``:
        a contribution is charged as the cheapest kind with at most its noise over norm (L16).
    dataset_size : int
        How many records there are, >= 1.

    Notes
    -----
    *Guarantee.* Let a record take part in a release only while :meth:`charge` says so, where its
    divergences bound the release's Rényi divergences, in both directions, between any data sets
    with and without *this* record, given the earlier outputs. Then everything released is
    (ε, δ)-differentially private under add-or-remove (or zero-out), although no bound over all
    records was ever used (docs/theorems_ledger.md, L9, L15, L16; Feldman, Zrnic 2021).

    The spends depend on the data. They must not be published, nor may they steer anything but the
    taking part of their own record.

    Examples
    --------
    >>> from accountant.ledger import Budget, IndividualFilter
    >>> watch = IndividualFilter(Budget(1.0, 1e-5), dataset_size=3)
    >>> watch.charge_gaussian([0.1, 1.0, 1.0], noise_multiplier=5.0).tolist()
    [True, True, True]
    """

    _COPIED = "an IndividualFilter has no copies: each would spend the budgets"
    _PICKLED = "an IndividualFilter is not pickled; keep spent, and restore it"

    @to_nearest
    def __init__(self, budget: Budget, dataset_size: int) -> None:
        checks.instance("budget", budget, Budget, "a Budget")
        budget = _by_divergences(budget)
        if budget.filter not in ("renyi", "gaussian", "kinds", "pure") or budget.share:
            raise DomainError(
                'budget must be of filter "moments", "renyi" and no share, "gaussian", "kinds" or'
                f' "pure"; got {budget!r}'
            )
        n = checks.whole(_DATASET_SIZE, dataset_size)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._pure = budget.filter == "pure"
        self._kinds = RecordKinds(budget) if budget.filter == "kinds" else None
        self._orders: tuple[float, ...] = ()
        if budget.filter == "renyi":
            self._orders, self._capacities = budget.renyi_capacities()
        elif self._kinds is not None:
            self._capacities = (float(self._kinds.capacity),)
        else:
            self._capacities = (filters.meter(budget).remaining().capacity,)
        self._spent = np.zeros((len(self._kinds or self._capacities), int(n)))

    @property
    def orders(self) -> tuple[float, ...]:
        """The Rényi orders at which divergences are added up; none with another filter."""
        return self._orders

    @property
    def capacities(self) -> tuple[float, ...]:
        """What each record may spend at each order, in nats: it is enough to obey one.

        With a Gaussian filter, the one sum of μ² that each may spend; with kinds, the units.
        """
        return self._capacities

    @property
    def spent(self) -> FloatArray:
        """What each record has spent, in nats, rounded up: a copy, of shape (orders, n).

        With kinds, how many releases of each kind, of shape (kinds, n). Never publish it.
        """
        with self._lock:
            return self._spent.copy()

    @to_nearest
    def restore(self, spent: ArrayLike, orders: ArrayLike) -> None:
        """Continue from the :attr:`spent` of an earlier run; nothing may have been charged yet.

        Parameters
        ----------
        spent : array_like of shape (orders, n)
            What :attr:`spent` was, with an equal budget.
        orders : array_like of shape (orders,)
            What :attr:`orders` was. They must be those of this filter: those that a budget chooses
            depend on its ε and δ, and what was spent at one order says nothing of a higher one.
        """
        if tuple(np.ravel(checks.real(_ORDERS, orders)).tolist()) != self._orders:
            raise DomainError(f"orders must be {self._orders!r}, the filter's; got {orders!r:.80}")
        values = self._each(_DIVERGENCE, spent, self._spent.shape)
        with self._lock:
            if self._spent.any():
                raise DomainError("restore needs a fresh filter; this one has been charged")
            self._spent = np.ceil(values) if self._kinds is not None else values.copy()

    @to_nearest
    def charge(self, divergences: ArrayLike) -> Mask:
        """Charge one release; return who takes part.

        Parameters
        ----------
        divergences : array_like of shape (orders, n), (n,) or ()
            For each record the Rényi divergence, at each of :attr:`orders`, that the release would
            cost it. What lacks the first axis is a bound at every order. With a pure budget, the ε
            of the release for the record; with a Gaussian filter, the μ² for which the release is
            μ-GDP for the record; with kinds, how many releases of
            each kind dominate it, of shape (kinds, n).

        Returns
        -------
        ndarray of bool, shape (n,)
            True where the record can afford it and was charged; the others must be left out, and
            were charged nothing.
        """
        if os.getpid() != self._process:
            raise UnsupportedError("this filter was copied by a fork; let one process charge")
        values = self._each(_DIVERGENCE, divergences, self._spent.shape)
        capacities = np.array(self._capacities)[:, None]
        with self._lock:
            if self._pure:
                (most,) = self._capacities
                units = _decimals(most)
                total = _in_units(self._spent, units) + _in_units(values, units)
                taking_part = np.all(total <= math.floor(written(most) * units), axis=0)
                total = total / units
            elif self._kinds is not None:
                total = self._spent + np.ceil(values)
                taking_part = np.asarray(self._kinds.units(total) <= self._kinds.capacity)
            else:
                with np.errstate(over="ignore"):
                    # Rounded up, so that the sum of doubles is at least the sum.
                    total = np.nextafter(self._spent + values, np.inf)
                total = np.where(values > 0.0, total, self._spent)
                taking_part = np.any(total <= capacities, axis=0)
            self._spent = np.where(taking_part, total, self._spent)
            return np.asarray(taking_part)

    @to_nearest
    def charge_gaussian(
        self, norms: ArrayLike, *, noise_multiplier: float, sampling_probability: float = 1.0
    ) -> Mask:
        """Charge a (Poisson-subsampled) noisy sum, by the norm of each record's contribution.

        Parameters
        ----------
        norms : array_like of shape (n,)
            Norms of the contributions in units of the clipping norm; they need not be at most 1.
        noise_multiplier : float
            Noise standard deviation over clipping norm, > 0.
        sampling_probability : float
            In [0, 1]. All n records are charged, whether sampled or not: amplification counts on
            nobody knowing. A Gaussian filter takes 1 only.

        Returns
        -------
        ndarray of bool, shape (n,)
            As in :meth:`charge`.
        """
        sigma = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        q = checks.number(checks.SAMPLING_PROBABILITY, sampling_probability)
        each = self._each(_NORMS, norms, self._spent.shape[1:])
        if self._kinds is not None:
            return self.charge(self._kinds.releases(each, sigma, q))
        if self._pure:
            raise UnsupportedError("Gaussian noise has no ε at δ = 0, which a pure budget adds up")
        if not self._orders:
            if q != 1.0:
                raise UnsupportedError(f"sampling_probability must be 1, without sampling; got {q}")
            return self.charge(_gaussian(2.0, each, sigma, 1.0))  # αc²/2σ² at α = 2 is c²/σ²
        return self.charge(np.array([_gaussian(a, each, sigma, q) for a in self._orders]))

    def _each(
        self, argument: checks.Argument, value: ArrayLike, shape: tuple[int, ...]
    ) -> FloatArray:
        checked = np.asarray(checks.real(argument, value))
        if checked.shape not in ((), shape[1:], shape):
            raise DomainError(f"{argument.name} must have the shape {shape}; got {checked.shape}")
        return np.broadcast_to(checked, shape)


def _decimals(most: float) -> int:
    """Return how many units a nat has, so that a budget has fewer than 2**52 of them."""
    return int(10 ** (15 - max(math.ceil(math.log10(most)), 0)))


def _in_units(values: FloatArray, units: int) -> FloatArray:
    """Return decimals as integers, exactly; what is no decimal of so many places is rounded up.

    An integer below 2**53 over a power of ten up to 10**15 is rounded once, so that a quotient
    which is the value tells its decimal (Theorem L18).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = np.rint(values * units)
        exact = (nearest / units == values) & (nearest < 2.0**52)
        up = np.ceil(np.nextafter(values * units, np.inf))
    return np.where(exact, nearest, up)


def _gaussian(order: float, norms: FloatArray, sigma: float, q: float) -> FloatArray:
    """Bound the divergences of a (Poisson-subsampled) noisy sum, by norm."""
    if q == 0.0 or sigma == math.inf:
        return np.zeros(norms.shape)
    plain = _plain(order, norms, sigma)
    if q == 1.0:
        return plain
    # Norms are rounded up to a grid first: a thousand curves serve a million records. The grid is
    # the same for all data, for no record's charge may depend on another record (Theorem L9).
    levels = _round_up(norms)
    distinct, where = np.unique(levels, return_inverse=True)
    with np.errstate(divide="ignore", over="ignore"):
        scaled = np.nextafter(sigma / distinct, 0.0)
    # Without noise to speak of there is no curve; without a contribution, no loss.
    some = (distinct > 0.0) & (scaled > 0.0)
    values = np.where(distinct > 0.0, np.inf, 0.0)
    values[some] = contour.each_divergence_upper((int(some.sum()),), q, scaled[some], 1.0, order, 1)
    # Sampling never costs (Theorem L8), even where its curve cannot be resolved.
    return np.minimum(values[where.reshape(norms.shape)], plain)


def _plain(order: float, norms: FloatArray, sigma: float) -> FloatArray:
    """Return αc²/2σ², rounded up."""
    factor = fraction_up(Fraction(order) / (2 * Fraction(sigma) ** 2))
    with np.errstate(over="ignore"):
        # Each operation is rounded up; a square that vanishes must not.
        square = np.nextafter(norms * norms, np.inf)
        return np.where(norms > 0.0, np.nextafter(square * factor, np.inf), 0.0)


_DATASET_SIZE = checks.integers("dataset_size", 1, 2**40, "It is the number of records")


def _round_up(norms: FloatArray) -> FloatArray:
    """Round up to ten bits, exactly."""
    mantissa, exponent = np.frexp(norms)
    return np.asarray(np.ldexp(np.ceil(np.ldexp(mantissa, 10)), exponent - 10))


def _by_divergences(budget: Budget) -> Budget:
    """Return a budget of moments as one of Rényi divergences at its orders: each has a capacity."""
    if budget.filter != "moments":
        return budget
    default = Budget(budget.epsilon, budget.delta, share=budget.share).orders
    orders = budget.orders if budget.orders != default else None
    return Budget(budget.epsilon, budget.delta, "renyi", orders)
