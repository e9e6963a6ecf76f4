"""Setting the fields of a frozen mechanism, and checks of its relation."""

from __future__ import annotations

from typing import Any, NoReturn

from accountant import checks
from accountant.checks import Argument
from accountant.errors import UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation


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
    if relation is own or (own, relation) == (
        NeighbouringRelation.ADD_OR_REMOVE,
        NeighbouringRelation.ZERO_OUT,
    ):
        return 1
    if relation is NeighbouringRelation.REPLACE_ONE:
        return 2
    raise UnsupportedError(
        f"{mechanism!r} is bounded under {own!r}, which does not imply a bound under {relation!r};"
        " derive it for that relation"
    )


def raise_unsupported(name: str, relation: NeighbouringRelation, advice: str) -> NoReturn:
    """Refuse a relation under which no theorem is known."""
    raise UnsupportedError(f"no theorem covers {name} under {relation!r}; {advice}")
