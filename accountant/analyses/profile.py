"""The profile of a release: all answers, each the worst over directions and alternatives.

:func:`solve` takes the counted dominating pairs of a mechanism and returns one :class:`Profile`,
which answers every question. Each direction of each alternative (the branches of a parallel
composition) is solved by the tightest analysis that is valid for it
(:mod:`accountant.analyses.dispatch`), and the worst is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import overload

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.analyses import mixed
from accountant.analyses.dispatch import cached_solver
from accountant.analyses.gaussian_mixtures import Contour
from accountant.analyses.solver import Question, Solver, is_within
from accountant.analyses.solvers import WIDE
from accountant.bounds import Bounds
from accountant.broadcasting import each_bounds, each_number
from accountant.checks import ArrayLike, Checked, Scalar
from accountant.environment import to_nearest
from accountant.errors import UnsupportedError
from accountant.pairs.base import DominatingPair, Parts, Problems, has_rdp
from accountant.pairs.product import root_of_squares, total
from accountant.pairs.profile_pair import two_sided


def both_directions(solvers: Sequence[Solver], delta: float) -> Bounds | None:
    """Bracket the worst ε(delta), or return None where the solvers are to be asked one by one.

    They are where they are not the two directions of one composition of different parts, or where
    the bracket is wide: a grid may then be narrower.
    """
    if len(solvers) != 2 or delta == 0.0:
        return None
    one, other = solvers
    if not (isinstance(one, Contour) and isinstance(other, Contour)) or one.variation <= delta:
        return None
    if len(one.parts) < 2 or not one.exact or one.direction == other.direction:
        return None
    return narrow_bracket(one.rows, delta) if one.rows == other.rows else None


def narrow_bracket(rows: tuple[mixed.Part, ...], delta: float) -> Bounds | None:
    """Bracket ε(delta) of different parts in both directions; None where it is wide."""
    found = _both(rows, delta)
    return found if is_within(found, WIDE) else None


@lru_cache(maxsize=256)
def _both(rows: tuple[mixed.Part, ...], delta: float) -> Bounds:
    return Bounds(*mixed.bracket("epsilon", rows, delta, mixed.EITHER))


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
        return _solvers(self.problems)

    @to_nearest
    def epsilon_bounds(self, delta: Scalar | ArrayLike) -> Bounds:
        """Bracket ε(delta), the largest over the problems; arrays of deltas give arrays."""
        return each_bounds(checks.DELTA, delta, lambda at: self._answer("epsilon", at))

    @to_nearest
    def delta_bounds(self, epsilon: Scalar | ArrayLike) -> Bounds:
        """Bracket δ(epsilon), the largest over the problems; arrays of epsilons give arrays."""
        return each_bounds(checks.EPSILON, epsilon, lambda at: self._answer("delta", at))

    @overload
    def epsilon(self, delta: Scalar) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> FloatArray: ...
    @to_nearest
    def epsilon(self, delta: Scalar | ArrayLike) -> Checked:
        """Return the upper end of ε(delta), for each element of an array."""
        return each_number(checks.DELTA, delta, lambda at: self._upper("epsilon", at))

    @overload
    def delta(self, epsilon: Scalar) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> FloatArray: ...
    @to_nearest
    def delta(self, epsilon: Scalar | ArrayLike) -> Checked:
        """Return the upper end of δ(epsilon), for each element of an array."""
        return each_number(checks.EPSILON, epsilon, lambda at: self._upper("delta", at))

    @to_nearest
    def roughly(self, kind: str, at: float, width: float) -> Bounds:
        """Bracket "epsilon" or "delta" at one number, for whom a relative ``width`` will do."""
        return self._answer(kind, at, width)

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
            return max(one.delta_upper(epsilon) for one in found)

        return each_number(checks.FPR, fpr, lambda one: attacks.tradeoff(one, delta))

    def _upper(self, kind: str, at: float) -> float:
        return float(_worst(self.problems, Question(kind, at, both=False)).upper)

    def _answer(self, kind: str, at: float, width: float = 1e-6) -> Bounds:
        asked = Question(kind, at, width=width)
        if self.below is None:
            return _worst(self.problems, asked)
        upper = float(_worst(self.problems, asked._replace(both=False)).upper)
        lower = float(_worst(self.below, asked).lower)
        if all(one.reaches for one in self.solvers()):
            lower = max(lower, float(_worst(self.problems, asked).lower))
        return Bounds(min(lower, upper), upper)

    def _largest(self, measure: Callable[[Parts], float]) -> float:
        return max((measure(parts) for parts in self.problems), default=0.0)


def _solvers(problems: Problems) -> tuple[Solver, ...]:
    return tuple([cached_solver(parts) for parts in problems])


def _worst(problems: Problems, asked: Question) -> Bounds:
    """Return the worst bracket; a direction that cannot be worse needs a quick bound alone."""
    solvers, lower, upper = _solvers(problems), 0.0, 0.0
    both = both_directions(solvers, asked.at) if asked.kind == "epsilon" else None
    if both is not None:
        return both

    def largest(one: Solver) -> float:
        return one.largest_loss if asked.kind == "epsilon" else math.inf

    if len(solvers) > 2:  # in the order in which most of them need no more than that
        solvers = tuple(sorted(solvers, key=lambda one: -min(largest(one), one.quick(asked))))
    for one in solvers:
        reached = lower if asked.both else upper
        if not reached > 0.0 or (largest(one) > reached and not one.is_below(asked, reached)):
            found = one.answer(asked)
            lower, upper = max(lower, float(found.lower)), max(upper, float(found.upper))
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
