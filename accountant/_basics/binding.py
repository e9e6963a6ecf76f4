"""Links the methods of mechanisms to the analyses and the algebra.

Mechanisms describe, and import neither. The package itself, which stands above both, binds them
here when it is imported (``accountant/__init__.py``), so that ``mechanism.epsilon(delta)`` and
``10 * mechanism`` read as they should without an import that runs up the layers. The quick
functions, which stay light, meet the mechanism of a user's records in the same way. The types of
what is bound are those of the methods that call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Bound(NamedTuple):
    """What the methods of a mechanism and the quick functions call.

    Attributes
    ----------
    solve : callable
        ``solve(mechanism)`` returns its profile.
    explain : callable
        ``explain(mechanism, delta)`` returns the explanation of an answer.
    joint : callable
        ``joint(problems)`` returns one pair that dominates every problem.
    compose : callable
        ``compose(counted)`` returns the composition of counted mechanisms.
    sampled_replacement : callable
        ``sampled_replacement(mechanism, q)`` returns the pairs of a Poisson sample under
        replace-one.
    steps_of_user : callable
        ``steps_of_user(q, sigma, steps, records)`` returns DP-SGD as a user with several records
        sees it.
    """

    solve: Callable[[Any], Any]
    explain: Callable[[Any, object], Any]
    joint: Callable[[Any], Any]
    compose: Callable[[Any], Any]
    sampled_replacement: Callable[[Any, float], Any]
    steps_of_user: Callable[[float, float, int, int], Any]


_bound: list[Bound] = []


def bind(functions: Bound) -> None:
    """Say which functions the methods of mechanisms call."""
    _bound[:] = [functions]


def bound() -> Bound:
    """Return the functions bound."""
    return _bound[0]
