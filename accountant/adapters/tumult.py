"""Tumult Analytics: its budgets, and the noise of its queries, as mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from accountant import checks, mechanisms
from accountant._basics.rounding import fraction_up, ratio_down
from accountant.composition import Composition
from accountant.errors import DomainError, UnsupportedError
from accountant.mechanisms.base import Mechanism


def from_budget(budget: Any) -> Mechanism:
    """Return the guarantee of a query that was evaluated with a budget of Tumult Analytics.

    Parameters
    ----------
    budget : PureDPBudget, ApproxDPBudget or RhoZCDPBudget
        What ``Session.evaluate`` was given. Its exact numbers are rounded up.

    Returns
    -------
    Mechanism
        ``PureDP``, ``ApproximateDP`` or ``ZCDP``, under add-or-remove of the protected change.

    Notes
    -----
    *Guarantee.* That of Tumult Analytics, taken on trust. The δ of its ``get_groups`` is valid and
    far above the truth; a SparseHistogram of the same noise and threshold has the exact one.
    """
    kind = type(budget).__name__
    if kind == "PureDPBudget":
        return mechanisms.PureDP(_up(budget.epsilon))
    if kind == "ApproxDPBudget":
        return mechanisms.ApproximateDP(_up(budget.epsilon), delta=_up(budget.delta))
    if kind == "RhoZCDPBudget":
        return mechanisms.ZCDP(_up(budget.rho))
    raise UnsupportedError(
        f"budget must be a PureDPBudget, ApproxDPBudget or RhoZCDPBudget; got a {kind}"
    )


def from_noise_info(
    info: Sequence[Mapping[str, Any]], *, changes: Sequence[float], max_groups: int = 1
) -> Composition:
    """Return the noise of a query as a mechanism, which composes to less than its budget.

    Parameters
    ----------
    info : sequence of mappings
        What ``session._noise_info(query, budget)`` returns: the noise of each aggregation.
    changes : sequence of float, keyword only
        How far one unit of the protected change moves the value of one group, one for each entry.
        It follows from the clamping and the constraints of the query, which ``info`` lacks.
    max_groups : int, keyword only
        How many groups one unit is in, at most.

    Returns
    -------
    Composition
        ``max_groups`` times each noise, under add-or-remove.

    Raises
    ------
    UnsupportedError
        An empty ``info``, as of ``get_groups``, whose threshold it does not tell; a noise that is
        not known.

    Notes
    -----
    *Guarantee.* That of the noise, if the changes are right: they are taken on trust, as the
    private method is that tells the noise.
    """
    if not info:
        raise UnsupportedError(
            "there is no noise in info; of get_groups it tells nothing: charge the budget, or state"
            " a SparseHistogram"
        )
    groups = checks.integer("max_groups", max_groups, 1)
    moved = checks.sequence("changes", changes)
    if len(moved) != len(info):
        raise DomainError(f"changes must have {len(info)} entries; got {len(moved)}")
    return Composition(
        tuple((_noise(row, change), groups) for row, change in zip(info, moved, strict=True))
    )


def _noise(row: Mapping[str, Any], change: Any) -> Mechanism:
    name, parameter = row["noise_mechanism"].name, row["noise_parameter"]
    if name not in _NOISES:
        raise UnsupportedError(f"the noise {name} of Tumult Analytics is not known here")
    kind, scale_of = _NOISES[name]
    return kind(scale_of(parameter), sensitivity=change)


def _exact(number: Any) -> Fraction:
    """Return an int, float or rational of SymPy exactly."""
    if number in (math.inf, -math.inf):
        raise DomainError("a budget or a noise must be finite to be accounted for")
    numerator, denominator = getattr(number, "p", None), getattr(number, "q", None)
    if numerator is None or denominator is None:
        return Fraction(float(number)) if isinstance(number, float) else Fraction(str(number))
    return Fraction(int(numerator), int(denominator))


def _up(number: Any) -> float:
    return fraction_up(_exact(number))


def _down(number: Any) -> float:
    return ratio_down(1.0, fraction_up(1 / _exact(number)))


def _root(variance: Any) -> float:
    """Return the root, rounded down."""
    exact = _exact(variance)
    root = math.sqrt(float(exact))
    while Fraction(root) ** 2 > exact:
        root = math.nextafter(root, 0.0)
    return root


_NOISES: dict[str, tuple[Callable[..., Mechanism], Callable[[Any], float]]] = {
    "LAPLACE": (mechanisms.Laplace, _down),
    "GEOMETRIC": (mechanisms.DiscreteLaplace, _down),
    # Of Gaussian noise it is the variance.
    "GAUSSIAN": (mechanisms.Gaussian, _root),
    "DISCRETE_GAUSSIAN": (mechanisms.DiscreteGaussian, _root),
}
