"""Setting the fields of a frozen mechanism, and checks of its relation."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from accountant import checks
from accountant._basics.rounding import times_up
from accountant.checks import Argument
from accountant.errors import UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.relations import ADD_OR_REMOVE, REPLACE_ONE, ZERO_OUT, NeighbouringRelation


def mechanism_of(value: object, name: str = "mechanism") -> Mechanism:
    """Check that an argument is a mechanism."""
    return checks.instance(name, value, Mechanism, "a Mechanism, such as Gaussian(1.1)")  # type: ignore[type-abstract]


def set_fields(mechanism: Any, *numbers: Argument, **values: object) -> None:
    """Store checked values on a frozen dataclass under construction, and check its relation.

    Parameters
    ----------
    mechanism : Mechanism
        The value under construction.
    *numbers : Argument
        Of fields that hold one number and have the argument's name: they are checked here.
    **values
        Values of other fields, checked already.
    """
    for argument in numbers:
        given = getattr(mechanism, argument.name)
        checked = checks.number(argument, given)
        if checked is not given:
            object.__setattr__(mechanism, argument.name, checked)
    for name, value in values.items():
        object.__setattr__(mechanism, name, value)
    checks.relation(mechanism.relation)


def group_factor(mechanism: Any, relation: NeighbouringRelation) -> int:
    """Return how many changes of the bound's own relation make one of ``relation`` (M9).

    A mechanism that ignores blanks cannot tell a blanked record from a removed one; replacing a
    record is removing (or blanking) it and adding (or filling in) another.
    """
    own = mechanism.relation
    if relation is own or (own, relation) == (ADD_OR_REMOVE, ZERO_OUT):
        return 1
    if relation is REPLACE_ONE:
        return 2
    raise UnsupportedError(
        f"{mechanism!r} is bounded under {own!r}, which does not imply a bound under {relation!r};"
        " derive it for that relation"
    )


class Stated(Mechanism):
    """A guarantee that one number states, the first field; along k neighbours it adds up k times.

    Concentrated bounds grow with the ``power`` 2 of k (Dong, Roth, Su 2022, Theorem 2.14; Bun,
    Steinke 2016, Proposition 1.9).
    """

    power: ClassVar[int] = 1

    def _steps(self, count: int, relation: NeighbouringRelation) -> Self:
        stated = getattr(self, fields(self)[0].name)  # type: ignore[arg-type]
        return type(self)(times_up(stated, count**self.power), relation=relation)  # type: ignore[call-arg]

    def group(self, size: int) -> Self:
        """Return the guarantee for a group: that of ``size`` steps."""
        return self._steps(checks.integer("size", size, 1), self.relation)

    def under(self, relation: NeighbouringRelation) -> Self:
        """Carry the bound over: replacing is removing, then adding."""
        return self._steps(group_factor(self, checks.relation(relation)), relation)


class BoundedContribution(Mechanism):
    """Noise on something that one record moves by at most ``sensitivity``, a field of subclasses.

    A record that is replaced takes its contribution away and brings another: twice as far.
    """

    # Whether Theorem E15 has its pair on a Poisson sample under replace-one.
    is_unimodal: ClassVar[bool] = False

    if TYPE_CHECKING:
        sensitivity: float

    @property
    def distance(self) -> float:
        """How far one record moves it, by the relation."""
        return self.sensitivity * (2 if self.relation is REPLACE_ONE else 1)

    @property
    def covers_removal(self) -> bool:
        """True: a record that is left out moves it less than one that is replaced."""
        return True

    def group(self, size: int) -> Self:
        """Return the mechanism for a group: the contributions of its records add up."""
        moved = times_up(self.sensitivity, checks.integer("size", size, 1))
        return replace(self, sensitivity=moved)  # type: ignore[type-var]

    def under(self, relation: NeighbouringRelation) -> Self:
        """Return the same noise on the same contributions under another relation."""
        return replace(self, relation=checks.relation(relation))  # type: ignore[type-var]


class Wrapper(Mechanism):
    """What is made of another mechanism, in the field ``wrapped``, under its relation."""

    wrapped: ClassVar[str] = "base"

    @property
    def _inner(self) -> Mechanism:
        return mechanism_of(getattr(self, self.wrapped), self.wrapped)

    @property
    def relation(self) -> NeighbouringRelation:
        """That of the mechanism inside."""
        return self._inner.relation

    @property
    def covers_removal(self) -> bool:
        """Whether the bound of the mechanism inside does."""
        return self._inner.covers_removal

    def group(self, size: int) -> Self:
        """Return the same of the mechanism inside as seen by a group."""
        return replace(self, **{self.wrapped: self._inner.group(size)})  # type: ignore[type-var]

    def under(self, relation: NeighbouringRelation) -> Self:
        """Return the same of the mechanism inside, its bound stated under another relation."""
        inner = self._inner.under(relation)
        return replace(self, **{self.wrapped: inner})  # type: ignore[type-var]
