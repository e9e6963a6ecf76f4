"""The base class of mechanisms: a frozen value with dominating pairs and questions.

A :class:`Mechanism` states one bound per record and one neighbouring relation, and returns its
ordered dominating pairs (:mod:`accountant.pairs`): two of them (remove, then add) when the
directions differ, one when they do not. Its questions (``epsilon``, ``rdp``, …) and its algebra
(``n * a + b``) are methods; :mod:`accountant._basics.binding` links them to the code that computes
them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, overload

from accountant._basics.arrays import FloatArray
from accountant._basics.binding import bound
from accountant._basics.display import Described as Described
from accountant._basics.display import Selection as Selection
from accountant._basics.display import text_up
from accountant.bounds import Bounds
from accountant.checks import ArrayLike, Scalar
from accountant.environment import to_nearest
from accountant.errors import UnsupportedError
from accountant.pairs.base import DominatingPair, Problems, has_pld
from accountant.relations import REPLACE_ONE, NeighbouringRelation

# Counted mechanisms that are released together.
Counted: TypeAlias = "tuple[tuple[Mechanism, int], ...]"


class Profile(Protocol):
    """Everything that is known of a release; :mod:`accountant.analyses.profile` has it."""

    def __hash__(self) -> int:
        """Return a hash by value: profiles are cached."""

    def solvers(self) -> tuple[Any, ...]:
        """Return the analyses of the problems."""

    @property
    def problems(self) -> Problems:
        """The counted pairs of every direction of every alternative."""

    @property
    def pure_epsilon(self) -> float:
        """The ε at δ = 0."""

    @overload
    def epsilon(self, delta: Scalar) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> FloatArray: ...
    def epsilon_bounds(self, delta: Scalar | ArrayLike) -> Bounds:
        """Bracket ε(delta)."""

    def roughly(self, kind: str, at: float, width: float) -> Bounds:
        """Bracket "epsilon" or "delta" at one number, for whom a relative width will do."""

    @overload
    def delta(self, epsilon: Scalar) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> FloatArray: ...
    def delta_bounds(self, epsilon: Scalar | ArrayLike) -> Bounds:
        """Bracket δ(epsilon)."""

    @overload
    def rdp(self, order: Scalar) -> float: ...
    @overload
    def rdp(self, order: ArrayLike) -> FloatArray: ...
    @overload
    def tradeoff(self, fpr: Scalar) -> float: ...
    @overload
    def tradeoff(self, fpr: ArrayLike) -> FloatArray: ...
    def mu(self) -> float:
        """Return the μ of a Gaussian mechanism that dominates."""

    def rho(self) -> float:
        """Return the ρ of zero-concentrated differential privacy."""


class Mechanism(Described, ABC):
    """A release, described by a frozen value.

    Subclasses are frozen dataclasses (``repr`` evaluates back; they hash and compare by value) and
    implement :attr:`relation` and :meth:`pairs`. All numbers are in nats.

    Attributes
    ----------
    theorems : tuple of str
        Of the class: numbers of the theorems of docs/theorems*.md behind its pairs. A privacy
        statement cites them, and no others.
    about : str
        Of the class: one sentence that says what the mechanism is, for statements.
    selection : Selection or None
        Of the class: how it chooses records; None where its bound counts on no sampling.
    claim : str
        Of the class: what it takes on trust, as in "a pure ε"; empty where a theorem proves it.
    """

    theorems: ClassVar[tuple[str, ...]] = ()
    about: ClassVar[str] = ""
    selection: ClassVar[Selection | None] = None
    claim: ClassVar[str] = ""

    # NumPy's integers must leave ``n * mechanism`` to the mechanism.
    __array_ufunc__ = None

    def __init_subclass__(cls, **arguments: object) -> None:
        # These methods round parameters outwards before any question.
        super().__init_subclass__(**arguments)
        for name in ("__init__", "__post_init__", "group", "pairs", "under"):
            if name in vars(cls):
                setattr(cls, name, to_nearest(vars(cls)[name]))

    @property
    @abstractmethod
    def relation(self) -> NeighbouringRelation:
        """The neighbouring relation of the guarantee."""

    @property
    def covers_removal(self) -> bool:
        """Whether the bound holds, too, between data with the record and data without it.

        A Poisson sample holds the record or not, so it needs more than a bound on replacing it.
        Noise on contributions that are bounded one by one has it under every relation; a guarantee
        that is only stated has it unless it is stated under replace-one.
        """
        return self.relation is not REPLACE_ONE

    @abstractmethod
    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the dominating pairs: ``(remove, add)``, or one that serves both directions.

        Under replace-one, where neither value of the record comes first, two pairs are those of
        one release in either order; compositions take the worse of them each time.
        """

    def from_below(self) -> Mechanism | None:
        """Return a mechanism whose losses pairs of data sets reach, for the lower ends of brackets.

        None where data sets reach :meth:`pairs` themselves, also in compositions. Override it where
        your pairs only dominate: ``Gaussian(math.inf)`` releases nothing, so lower ends are 0.
        """
        return None

    @property
    def attained(self) -> bool:
        """Whether data sets reach the dominating pairs, so that brackets have the truth inside.

        False of what is known by a Rényi curve alone.
        """
        return self.from_below() is None and all(has_pld(pair) for pair in self.pairs())

    @property
    def attained_alone(self) -> bool:
        """Whether the profile of a single release is reached, at each ε by data of its own."""
        return self.attained

    def adaptively(self) -> Mechanism:
        """Return it with every ``parallel`` in it made adaptive: itself where there is none."""
        return self

    def group(self, size: int) -> Mechanism:
        """Return this mechanism as seen by a group of ``size`` records that change together."""
        raise UnsupportedError(
            f"no theorem gives {type(self).__name__} a group guarantee; state one as"
            " PureDP, ApproximateDP or ZCDP and take its group"
        )

    def under(self, relation: NeighbouringRelation) -> Mechanism:
        """Return the same release with its bound stated under another neighbouring relation."""
        if relation is self.relation:
            return self
        raise UnsupportedError(
            f"{self!r} is bounded under {self.relation!r}, and no theorem carries that bound over"
            f" to {relation!r}; derive it for that relation"
        )

    def alternatives(self, count: int = 1) -> Iterator[Counted]:
        """Yield the lists of counted mechanisms that ``count`` releases may amount to.

        One of one mechanism; compositions list their parts, and parallel compositions every way to
        meet their branches. The worst of them is the answer.
        """
        yield ((self, count),)

    @to_nearest
    def profile(self) -> Profile:
        """Return everything that is known of this release: one object for every question."""
        found: Profile = bound().solve(self)
        return found

    @overload
    def epsilon(self, delta: Scalar) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> FloatArray: ...
    def epsilon(self, delta: Scalar | ArrayLike) -> float | FloatArray:
        """Return the ε spent at ``delta``, certified never too small.

        Parameters
        ----------
        delta : float or array_like
            In [0, 1).

        Returns
        -------
        float or ndarray
            In nats: a float for a scalar, else float64 in the shape of ``delta``. So do the other
            questions.

        Notes
        -----
        *Guarantee.* The release is (ε, delta)-differentially private under :attr:`relation`, in
        both directions (docs/theorems_mechanisms.md, and the theorems of the analysis that
        :meth:`explain` names).
        """
        return self.profile().epsilon(delta)

    def epsilon_bounds(self, delta: Scalar | ArrayLike) -> Bounds:
        """Return a certified bracket of ε(delta).

        The upper end holds for all neighbouring data sets, and some pair of data sets reaches the
        lower end: that of the dominating pairs where they are :attr:`attained`, else that of
        :meth:`from_below`, and 0 where no such pair is known, or where the analysis bounds from
        above only (Rényi). For a stated guarantee (``PureDP``, ``DominatingPMFs``) it is what some
        mechanism with that guarantee reaches.
        """
        return self.profile().epsilon_bounds(delta)

    @overload
    def delta(self, epsilon: Scalar) -> float: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> FloatArray: ...
    def delta(self, epsilon: Scalar | ArrayLike) -> float | FloatArray:
        """Return the δ at ``epsilon`` >= 0, certified never too small."""
        return self.profile().delta(epsilon)

    def delta_bounds(self, epsilon: Scalar | ArrayLike) -> Bounds:
        """Return a certified bracket of δ(epsilon), with ends as of :meth:`epsilon_bounds`."""
        return self.profile().delta_bounds(epsilon)

    @overload
    def rdp(self, order: Scalar) -> float: ...
    @overload
    def rdp(self, order: ArrayLike) -> FloatArray: ...
    def rdp(self, order: Scalar | ArrayLike) -> float | FloatArray:
        """Return an upper bound on the Rényi divergence at ``order`` > 1, both directions."""
        return self.profile().rdp(order)

    @overload
    def tradeoff(self, fpr: Scalar) -> float: ...
    @overload
    def tradeoff(self, fpr: ArrayLike) -> FloatArray: ...
    def tradeoff(self, fpr: Scalar | ArrayLike) -> float | FloatArray:
        """Return a lower bound on any attacker's false negative rate at rate ``fpr`` in [0, 1].

        The safe direction is down: no test between two neighbouring data sets with false positive
        rate at most ``fpr`` misses less often than this.
        """
        return self.profile().tradeoff(fpr)

    def mu(self) -> float:
        """Return the μ of a Gaussian mechanism that dominates the release (GDP), rounded up.

        Exact for Gaussian noise, subsampled or not (its tail allows no smaller μ); from the pure ε
        otherwise (Theorem M11).

        Raises
        ------
        UnsupportedError
            No such μ is known.
        """
        return self.profile().mu()

    def rho(self) -> float:
        """Return the ρ of zero-concentrated differential privacy, rounded up.

        Raises
        ------
        UnsupportedError
            No such ρ is known.
        """
        return self.profile().rho()

    def explain(self, delta: float) -> Explanation:
        """Say which analysis answers :meth:`epsilon`, why, and what each part contributes."""
        found: Explanation = bound().explain(self, delta)
        return found

    def __mul__(self, count: int) -> Mechanism:
        found: Mechanism = bound().compose(((self, count),))
        return found

    __rmul__ = __mul__

    def __add__(self, other: Mechanism) -> Mechanism:
        if not isinstance(other, Mechanism):
            return NotImplemented
        found: Mechanism = bound().compose(((self, 1), (other, 1)))
        return found

    def __radd__(self, other: object) -> Mechanism:
        # sum(mechanisms) starts from the integer 0.
        if isinstance(other, int) and not isinstance(other, bool) and other == 0:
            return self
        return NotImplemented


@dataclass(frozen=True)
class Contribution:
    """What one part of a composition contributes.

    Attributes
    ----------
    mechanism : Mechanism
        The part.
    count : int
        How often it runs.
    epsilon : float
        An upper bound on its ε at the same δ if released alone; these do not add up.
    share : float or None
        Its share of the Rényi divergence at the order that serves the whole best; these add up to
        one. None when a part has no Rényi curve.
    account : str
        What of the part enters the answer: a closed form, its transform on a contour, its atoms or
        its loss distribution on a grid, a pair that dominates it, or its Rényi curve.
    width : float or None
        By how much the bracket of ε narrows when all releases of the part are left out, relative to
        its width, in [0, 1]. These need not add up to one: a grid that suits one part may not suit
        another. None when the bracket has no finite width, or for more than eight parts.
    narrower : str
        What would narrow the bracket.
    """

    mechanism: Mechanism
    count: int
    epsilon: float
    share: float | None
    account: str
    width: float | None
    narrower: str

    def __str__(self) -> str:
        """Write the part on three lines."""
        share = "" if self.share is None else f", {100.0 * self.share:.1f} % of the divergence"
        width = "" if self.width is None else f" ({100.0 * self.width:.1f} % of the width)"
        return (
            f"  {self.count} × {self.mechanism!r}: alone ε ≤ {text_up(self.epsilon)}{share}\n"
            f"    account: {self.account}{width}\n"
            f"    narrower by: {self.narrower}"
        )


@dataclass(frozen=True)
class Explanation:
    """Which analysis answered and why; ``print`` it.

    Attributes
    ----------
    analysis, reason : str
        The analysis of the worst direction and why it was chosen.
    direction : str
        ``"remove"``, ``"add"`` or ``"both"``: the worst direction.
    epsilon : Bounds
        The bracket of ε(delta).
    delta : float
        The δ of the question.
    relation : str
        The neighbouring relation.
    contributions : tuple of Contribution
        The parts of the worst alternative, the largest share first.
    """

    analysis: str
    reason: str
    direction: str
    epsilon: Bounds
    delta: float
    relation: str
    contributions: tuple[Contribution, ...]

    def __str__(self) -> str:
        """Write it as a short table, ε rounded up."""
        lower = float(self.epsilon.lower)
        lines = [
            f"ε ≤ {text_up(float(self.epsilon.upper))} at δ = {self.delta:g}, {self.relation}",
            f"analysis: {self.analysis} ({self.reason}); worst direction: {self.direction}",
            f"bracket: from {lower:.6g}, {relative_width(self.epsilon):.1e} wide relatively",
        ]
        return "\n".join([*lines, *map(str, self.contributions)])


def relative_width(bounds: Bounds) -> float:
    """Return the width relative to the upper end; 0 where both are 0 or infinite."""
    width, upper = float(bounds.width), float(bounds.upper)
    if width == 0.0:
        return 0.0
    return width / upper if upper < math.inf else math.inf
