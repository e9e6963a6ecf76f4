"""The profile of a release: all answers, each the worst over directions and alternatives.

:func:`solve` takes the counted dominating pairs of a mechanism and returns one :class:`Profile`,
which answers every question. Each direction of each alternative (the branches of a parallel
composition) is solved by the tightest analysis that is valid for it
(:mod:`accountant.analyses.dispatch`), and the worst is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import overload

from accountant import checks
from accountant._typing import FloatArray
from accountant.analyses import both_directions
from accountant.analyses.dispatch import cached_solver
from accountant.analyses.solvers import Contour, Solver
from accountant.bounds import Bounds
from accountant.broadcasting import each_bounds, each_number
from accountant.checks import ArrayLike, Checked, Scalar
from accountant.environment import to_nearest
from accountant.errors import UnsupportedError
from accountant.pairs.base import DominatingPair, Parts, Problems, has_rdp
from accountant.pairs.sums import root_of_squares, total
from accountant.pairs.two_sided import two_sided

# Number of different parts from which a contour gets a thread of its own.
MANY_PARTS = 100


@dataclass(frozen=True)
class Profile:
    """Brackets of ε and δ, the Rényi curve and what follows from them, of one release.

    Parameters
    ----------
    problems : tuple of parts
        The counted pairs of every direction of every alternative.
    released : object, optional
        The release, for messages.
    below : tuple of parts, optional
        Problems that pairs of data sets reach, for the lower ends of brackets. Needed if they do
        not reach those of ``problems``.
    """

    problems: Problems
    released: object = field(default="this release", compare=False)
    below: Problems | None = field(default=None, compare=False)

    def solvers(self) -> tuple[Solver, ...]:
        """Return a solver for every problem."""
        return _solvers(self.problems, self._upper_alone)

    @property
    def _upper_alone(self) -> bool:
        """Whether the problems' lower ends are not used."""
        return self.below is not None

    @to_nearest
    def epsilon_bounds(self, delta: Scalar | ArrayLike) -> Bounds:
        """Bracket ε(delta), the largest over the problems; arrays of deltas give arrays."""
        return each_bounds(checks.DELTA, delta, self._epsilon_bounds)

    @to_nearest
    def delta_bounds(self, epsilon: Scalar | ArrayLike) -> Bounds:
        """Bracket δ(epsilon), the largest over the problems; arrays of epsilons give arrays."""
        return each_bounds(checks.EPSILON, epsilon, self._delta_bounds)

    @overload
    def epsilon(self, delta: Scalar) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> FloatArray: ...
    @to_nearest
    def epsilon(self, delta: Scalar | ArrayLike) -> Checked:
        """Return the upper end of ε(delta), for each element of an array."""
        return each_number(checks.DELTA, delta, lambda one: float(self._worst_epsilon(one).upper))

    @overload
    def delta(self, epsilon: Scalar) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> FloatArray: ...
    @to_nearest
    def delta(self, epsilon: Scalar | ArrayLike) -> Checked:
        """Return the upper end of δ(epsilon), for each element of an array."""
        return each_number(
            checks.EPSILON,
            epsilon,
            lambda one: float(_worst_delta(self.problems, self._upper_alone, one).upper),
        )

    @overload
    def rdp(self, order: Scalar) -> float: ...
    @overload
    def rdp(self, order: ArrayLike) -> FloatArray: ...
    @to_nearest
    def rdp(self, order: Scalar | ArrayLike) -> Checked:
        """Bound the Rényi divergence from above, the largest over the problems, at each order."""
        return each_number(checks.ORDER, order, self._rdp)

    def _rdp(self, order: float) -> float:
        for parts in self.problems:
            for pair, _ in parts:
                if not has_rdp(pair):
                    raise UnsupportedError(
                        f"{type(pair).__name__} has no Rényi curve; its loss distribution answers"
                        " epsilon(delta) and delta(epsilon)"
                    )
        return self._largest(lambda parts: total((pair.rdp(order), n) for pair, n in parts))

    @property
    def pure_epsilon(self) -> float:
        """The ε at δ = 0, rounded up; infinite where losses are unbounded."""
        return self.epsilon(0.0)

    @to_nearest
    def rho(self) -> float:
        """Return the ρ of zero-concentrated differential privacy, rounded up."""
        found = self._largest(lambda parts: total((pair.rho, n) for pair, n in parts))
        if found < math.inf:
            return found
        raise UnsupportedError(
            f"no ρ is known for {self.released!r}: it must be concentrated at every order (Gaussian"
            " noise, pure ε, ZCDP); rdp(order) may still be finite at some orders"
        )

    @to_nearest
    def mu(self) -> float:
        """Return the μ of a Gaussian mechanism that dominates, rounded up."""
        found = self._largest(lambda parts: root_of_squares((pair.mu, n) for pair, n in parts))
        if found < math.inf:
            return found
        raise UnsupportedError(
            f"no Gaussian mechanism is known to dominate {self.released!r}: only Gaussian noise,"
            " GDP and pure ε convert; tradeoff(fpr) gives the exact trade-off function"
        )

    @overload
    def tradeoff(self, fpr: Scalar) -> float: ...
    @overload
    def tradeoff(self, fpr: ArrayLike) -> FloatArray: ...
    @to_nearest
    def tradeoff(self, fpr: Scalar | ArrayLike) -> Checked:
        """Bound the false negative rate from below, at each false positive rate ``fpr``."""
        from accountant.analyses import tradeoff as attacks

        found = self.solvers()

        def delta(epsilon: float) -> float:
            return max(float(one.delta_bounds(epsilon).upper) for one in found)

        return each_number(checks.FPR, fpr, lambda one: attacks.tradeoff(one, delta))

    def _worst_epsilon(self, delta: float) -> Bounds:
        return _worst_epsilon(self.problems, self._upper_alone, delta)

    def _epsilon_bounds(self, delta: float) -> Bounds:
        return self._both_ends(
            self._worst_epsilon(delta), lambda some: _worst_epsilon(some, False, delta)
        )

    def _delta_bounds(self, epsilon: float) -> Bounds:
        return self._both_ends(
            _worst_delta(self.problems, self._upper_alone, epsilon),
            lambda some: _worst_delta(some, False, epsilon),
        )

    def _largest(self, measure: Callable[[Parts], float]) -> float:
        return max((measure(parts) for parts in self.problems), default=0.0)

    def _both_ends(self, found: Bounds, ask: Callable[[Problems], Bounds]) -> Bounds:
        if self.below is None:
            return found
        lower = float(ask(self.below).lower)
        if all(one.reaches for one in self.solvers()):
            lower = max(lower, float(found.lower))
        return Bounds(min(lower, float(found.upper)), float(found.upper))


def _solvers(problems: Problems, upper_alone: bool) -> tuple[Solver, ...]:
    return tuple([cached_solver(parts, joint_pair, upper_alone=upper_alone) for parts in problems])


def _worst_epsilon(problems: Problems, upper_alone: bool, delta: float) -> Bounds:
    solvers = _solvers(problems, upper_alone)
    return both_directions.epsilon_bounds(solvers, delta) or _worst(
        solvers,
        lambda one: one.epsilon_bounds(delta),
        lambda one: one.largest_loss,
        lambda one: one.quick_epsilon_upper(delta),
        upper_alone=upper_alone,
    )


def _worst_delta(problems: Problems, upper_alone: bool, epsilon: float) -> Bounds:
    return _worst(
        _solvers(problems, upper_alone),
        lambda one: one.delta_bounds(epsilon),
        lambda one: one.quick_delta_upper(epsilon),
        upper_alone=upper_alone,
    )


def _worst(
    solvers: Sequence[Solver],
    ask: Callable[[Solver], Bounds],
    *quick: Callable[[Solver], float],
    upper_alone: bool = False,
) -> Bounds:
    """Return the worst bracket; each of ``quick`` bounds its upper end at little cost.

    ``upper_alone`` tells that nothing is asked of the lower end.
    """
    if len(solvers) == 1:
        return ask(solvers[0])
    if len(solvers) > 1 and all(
        isinstance(one, Contour) and len(one.parts) >= MANY_PARTS for one in solvers
    ):
        # The native core releases the GIL, so both directions run at the same time.
        with ThreadPoolExecutor(min(len(solvers), 4)) as pool:
            brackets = list(pool.map(ask, solvers))
        return Bounds(
            max(float(each.lower) for each in brackets),
            max(float(each.upper) for each in brackets),
        )
    lower = upper = 0.0
    if len(solvers) > 2:  # the worst first, so that most others need no more than a quick bound
        solvers = sorted(solvers, key=lambda one: -min(bound(one) for bound in quick))
    for one in solvers:
        # A direction that cannot exceed the worst one so far needs no more digits.
        enough = upper if upper_alone else lower
        if enough > 0.0 and any(bound(one) <= enough for bound in quick):
            continue
        bounds = ask(one)
        lower, upper = max(lower, float(bounds.lower)), max(upper, float(bounds.upper))
    return Bounds(lower, upper)


def solve(
    problems: Problems, released: object = "this release", below: Problems | None = None
) -> Profile:
    """Return the profile of what composes to the given counted pairs."""
    return Profile(problems, released, below)


@lru_cache(maxsize=64)
def joint_pair(problems: Problems) -> DominatingPair:
    """Return one pair, with a loss distribution, that dominates every problem (Theorem E1)."""
    return two_sided(Profile(problems))
