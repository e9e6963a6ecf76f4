"""Answers about counted mechanisms: the ledger's only access to their algebra and analyses."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import overload

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.analyses.over_steps.curve import upper_curve
from accountant.bounds import Bounds
from accountant.broadcasting import each_bounds, each_number
from accountant.checks import ArrayLike, Checked, Scalar
from accountant.composition import composed
from accountant.environment import to_nearest
from accountant.ledger.basic import basic_epsilon
from accountant.ledger.history import Entry
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
    if type(noise_multiplier) is float and type(sampling_probability) is float:
        return _cached_step(noise_multiplier, sampling_probability)
    return _dp_sgd_step(noise_multiplier, sampling_probability)


def _dp_sgd_step(noise_multiplier: float, sampling_probability: float) -> Mechanism:
    return PoissonSampled(Gaussian(noise_multiplier), sampling_probability)


_cached_step = functools.lru_cache(maxsize=1024)(_dp_sgd_step)


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
        return each_number(
            checks.EPSILON, epsilon, lambda one: float(delta_bounds(counts, one).upper)
        )

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


_CHECKPOINTS = checks.Argument(
    "checkpoints",
    "None or an integer in [0, 2**20]",
    lambda x: (x >= 0) & (x <= 2**20),
    "Each costs one exact composition",
)
