"""Links the methods of mechanisms to the analyses and the algebra.

Mechanisms describe, and import neither. The package itself, which stands above both, binds them
here when it is imported (``accountant/__init__.py``), so that ``mechanism.epsilon(delta)`` and
``10 * mechanism`` read as they should without an import that runs up the layers. The quick
functions, which stay light, meet the mechanism of a user's records in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from accountant.analyses.explanation import Explanation
    from accountant.analyses.profile import Profile
    from accountant.composition import Composition
    from accountant.mechanisms.base import Mechanism
    from accountant.pairs.base import DominatingPair


Counted: TypeAlias = "tuple[tuple[Mechanism, int], ...]"


class Bound:
    """What the methods of a mechanism and the quick functions call."""

    __slots__ = ("compose", "explain", "sampled_replacement", "solve", "steps_of_user")

    def __init__(
        self,
        solve: Callable[[Mechanism], Profile],
        explain: Callable[[Mechanism, object], Explanation],
        compose: Callable[[Counted], Composition],
        sampled_replacement: Callable[[Mechanism, float], tuple[DominatingPair, ...]],
        steps_of_user: Callable[[float, float, int, int], Mechanism],
    ) -> None:
        self.solve = solve
        self.explain = explain
        self.compose = compose
        self.sampled_replacement = sampled_replacement
        self.steps_of_user = steps_of_user


_bound: list[Bound] = []


def bind(functions: Bound) -> None:
    """Say which functions the methods of mechanisms call."""
    _bound[:] = [functions]


def bound() -> Bound:
    """Return the functions bound."""
    return _bound[0]
