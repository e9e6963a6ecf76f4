"""One-call accounting for DP-SGD: Poisson-subsampled Gaussian steps under add-or-remove.

The safe direction is in the name: a ``get_`` function returns a certified upper bound, a
``_bounds`` function the certified bracket. Arguments broadcast like NumPy's; ``workers`` threads
share the elements of arrays. Plain Python numbers inside their domains go to the native core at
once, which sets the floating-point environment itself; all else is checked in that environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, cast, overload

import numpy as np
from numpy.typing import NDArray

from accountant import broadcasting, checks
from accountant.analyses import contour, user_level
from accountant.bounds import Bounds
from accountant.calibration.subsampled_gaussian import calibrate_q, calibrate_sigma, calibrate_steps
from accountant.checks import ArrayLike, Checked, Integer, Scalar
from accountant.environment import to_nearest

if TYPE_CHECKING:
    Answer: TypeAlias = Callable[..., Any]
    Question: TypeAlias = tuple[Answer, Answer, checks.Argument, Answer]

__all__ = [
    "calibrate_q",
    "calibrate_sigma",
    "calibrate_steps",
    "delta_bounds",
    "epsilon_bounds",
    "get_delta",
    "get_epsilon",
    "get_rdp",
]

Method: TypeAlias = Literal["exact", "rdp"]
Reals: TypeAlias = "Scalar | ArrayLike"
Counts: TypeAlias = "Integer | ArrayLike"


class _Options(TypedDict, total=False):
    user_records: Counts
    workers: int | None


class _OfOne(TypedDict, total=False):
    user_records: Integer
    workers: int | None


class _Analysis(_Options, total=False):
    method: Method


class _AnalysisOfOne(_OfOne, total=False):
    method: Method


@overload
def get_epsilon(
    q: Scalar, sigma: Scalar, steps: Integer, delta: Scalar, **options: Unpack[_AnalysisOfOne]
) -> float: ...
@overload
def get_epsilon(
    q: Reals, sigma: Reals, steps: Counts, delta: Reals, **options: Unpack[_Analysis]
) -> Checked: ...
def get_epsilon(
    q: Scalar | ArrayLike,
    sigma: Scalar | ArrayLike,
    steps: Integer | ArrayLike,
    delta: Scalar | ArrayLike,
    *,
    user_records: Integer | ArrayLike = 1,
    method: Method = "exact",
    workers: int | None = None,
) -> float | NDArray[np.float64]:
    """Return the privacy loss ε that ``steps`` steps of DP-SGD spend, certified never too small.

    Parameters
    ----------
    q : float or array_like
        Sampling probability, in [0, 1]: expected batch size over number of records.
    sigma : float or array_like
        Noise multiplier, > 0 (``inf`` allowed): noise standard deviation over clipping norm.
    steps : int or array_like of int
        Number of steps, in [0, 2**53]. Floats and bools are refused.
    delta : float or array_like
        In [0, 1). At 0 the answer is infinite, unless nothing is released.
    user_records : int or array_like of int
        The largest number K of records that one user contributes, in [1, 10**6]: the guarantee is
        then one for users. Every record is sampled and clipped by itself.
    method : {"exact", "rdp"}
        ``"exact"`` inverts the transform of the privacy loss and is tight; ``"rdp"`` converts the
        Rényi curve and is looser, for comparison with accountants that report it.
    workers : int, optional
        Threads for array arguments; None is the calling thread alone.

    Returns
    -------
    float or ndarray
        An upper bound on ε, in nats: a float for scalars, else float64 of the broadcast shape.

    Raises
    ------
    DomainError, ArgumentTypeError
        An argument is outside its domain, of the wrong type, or the shapes do not broadcast.
    PrecisionError
        No certified number was reached.

    See Also
    --------
    epsilon_bounds : the bracket, to see how tight the answer is.

    Notes
    -----
    *Guarantee.* The mechanism is (ε, δ)-differentially private under the add-or-remove relation
    with the ε returned: the larger of both directions, with truncation, discretisation and
    round-off inside the bound (docs/theorems.md: Theorems 1 to 9, 14 and 15; 10 at one step; 11
    and 13 where no contour fits; for ``"rdp"``, 12 to 14). Records are sampled by Poisson
    sampling, each independently with probability q in every step; a shuffled loader is a
    different sampler. With ``user_records=K`` the data sets differ by all records, at most K, of
    one user: ``PoissonSampled(Gaussian(sigma), q).group(K)`` (Theorems M15 and D1 to D8).

    *Algorithm.* Certified contour inversion of the loss's transform, at a cost that does not grow
    with ``steps``; for ``"rdp"``, one minimum over every real order. In arrays, four or more
    neighbouring ``steps`` and ``delta`` of one ``q`` and ``sigma`` share a contour (Theorem 18):
    microseconds each, and in the last digits not always what the scalar call returns.

    Examples
    --------
    >>> import accountant as ac
    >>> eps = ac.get_epsilon(256 / 60000, 1.1, 14063, 1e-5)
    >>> 2.3 < eps < 2.9
    True

    Somebody contributed up to four of the 60,000 records:

    >>> 12.1 < ac.get_epsilon(256 / 60000, 1.1, 14063, 1e-5, user_records=4) < 12.2
    True
    """
    plain = checks.in_fast_lane(q, sigma, steps, delta, user_records, workers)
    if method == "exact":
        if plain:
            return contour.native_epsilon_bounds(q, sigma, steps, delta, contour.EITHER)[1]
        return cast("Checked", _answer(_EPSILON, q, sigma, steps, delta, user_records, workers)[1])
    checks.choice("method", method, ("exact", "rdp"))
    if plain:
        return contour.native_epsilon_upper(q, sigma, steps, delta)[0]
    return cast("Checked", _answer(_RENYI_EPSILON, q, sigma, steps, delta, user_records, workers))


def epsilon_bounds(
    q: Scalar | ArrayLike,
    sigma: Scalar | ArrayLike,
    steps: Integer | ArrayLike,
    delta: Scalar | ArrayLike,
    *,
    user_records: Integer | ArrayLike = 1,
    workers: int | None = None,
) -> Bounds:
    """Return a certified bracket of ε.

    Parameters
    ----------
    q, sigma, steps, delta, user_records, workers
        As in :func:`get_epsilon`.

    Returns
    -------
    Bounds
        ``lower <= ε(delta) <= upper``; floats for scalars, else arrays of the broadcast shape.

    Notes
    -----
    *Guarantee.* The smallest ε for which the steps are (ε, δ)-differentially private under
    add-or-remove lies in the bracket (docs/theorems.md, Theorems 1 to 11 and 13 to 15).

    *Algorithm.* As :func:`get_epsilon`, exact.

    Examples
    --------
    >>> import accountant as ac
    >>> lower, upper = ac.epsilon_bounds(0.01, 1.0, 1000, 1e-5)
    >>> lower <= upper == ac.get_epsilon(0.01, 1.0, 1000, 1e-5)
    True
    """
    if checks.in_fast_lane(q, sigma, steps, delta, user_records, workers):
        return Bounds(*contour.native_epsilon_bounds(q, sigma, steps, delta, contour.EITHER))
    return Bounds(*_answer(_EPSILON, q, sigma, steps, delta, user_records, workers))


@overload
def get_delta(
    q: Scalar, sigma: Scalar, steps: Integer, epsilon: Scalar, **options: Unpack[_OfOne]
) -> float: ...
@overload
def get_delta(
    q: Reals, sigma: Reals, steps: Counts, epsilon: Reals, **options: Unpack[_Options]
) -> Checked: ...
def get_delta(
    q: Scalar | ArrayLike,
    sigma: Scalar | ArrayLike,
    steps: Integer | ArrayLike,
    epsilon: Scalar | ArrayLike,
    *,
    user_records: Integer | ArrayLike = 1,
    workers: int | None = None,
) -> float | NDArray[np.float64]:
    """Return the δ at which ``steps`` steps of DP-SGD are (ε, δ)-private, never too small.

    Parameters
    ----------
    q, sigma, steps, user_records, workers
        As in :func:`get_epsilon`.
    epsilon : float or array_like
        Privacy loss in nats, >= 0; at ``inf`` the answer is 0.

    Returns
    -------
    float or ndarray
        An upper bound on δ, in [0, 1].

    Notes
    -----
    *Guarantee.* The mechanism is (ε, δ)-differentially private under add-or-remove with the δ
    returned, the larger of both directions (docs/theorems.md, Theorems 1 to 11, 14 and 15).

    *Algorithm.* One certified contour integral for each direction.

    Examples
    --------
    >>> import accountant as ac
    >>> 0 < ac.get_delta(0.01, 1.0, 1000, 2.0) < ac.get_delta(0.01, 1.0, 1000, 1.0) < 1
    True
    """
    plain = type(epsilon) is float and 0.0 <= epsilon < math.inf
    if plain and checks.in_fast_lane(q, sigma, steps, 0.5, user_records, workers):
        return contour.native_delta_bounds(q, sigma, steps, epsilon, contour.EITHER)[1]
    return cast("Checked", _answer(_DELTA, q, sigma, steps, epsilon, user_records, workers)[1])


def delta_bounds(
    q: Scalar | ArrayLike,
    sigma: Scalar | ArrayLike,
    steps: Integer | ArrayLike,
    epsilon: Scalar | ArrayLike,
    *,
    user_records: Integer | ArrayLike = 1,
    workers: int | None = None,
) -> Bounds:
    """Return a certified bracket of δ.

    Parameters
    ----------
    q, sigma, steps, epsilon, user_records, workers
        As in :func:`get_delta`.

    Returns
    -------
    Bounds
        ``lower <= δ(epsilon) <= upper``; floats for scalars, else arrays of the broadcast shape.

    Notes
    -----
    *Guarantee.* The privacy profile under add-or-remove, the larger of both directions, lies in
    the bracket (docs/theorems.md, Theorems 1 to 11, 14 and 15).

    *Algorithm.* As :func:`get_delta`.

    Examples
    --------
    >>> import accountant as ac
    >>> lower, upper = ac.delta_bounds(0.01, 1.0, 1000, 1.0)
    >>> lower <= upper == ac.get_delta(0.01, 1.0, 1000, 1.0)
    True
    """
    return Bounds(*_answer(_DELTA, q, sigma, steps, epsilon, user_records, workers))


@overload
def get_rdp(
    q: Scalar, sigma: Scalar, steps: Integer, orders: Scalar, **options: Unpack[_OfOne]
) -> float: ...
@overload
def get_rdp(
    q: Reals, sigma: Reals, steps: Counts, orders: Reals, **options: Unpack[_Options]
) -> Checked: ...
def get_rdp(
    q: Scalar | ArrayLike,
    sigma: Scalar | ArrayLike,
    steps: Integer | ArrayLike,
    orders: Scalar | ArrayLike,
    *,
    user_records: Integer | ArrayLike = 1,
    workers: int | None = None,
) -> float | NDArray[np.float64]:
    """Return the Rényi divergence of ``steps`` steps at real orders, never too small.

    Parameters
    ----------
    q, sigma, steps, user_records, workers
        As in :func:`get_epsilon`.
    orders : float or array_like
        Rényi orders, > 1 and finite; they need not be integers, and broadcast with the rest.

    Returns
    -------
    float or ndarray
        An upper bound on the divergence in nats, rounded up; ``inf`` beyond the largest double.

    Notes
    -----
    *Guarantee.* The mechanism satisfies (order, returned value)-Rényi differential privacy under
    add-or-remove: ``steps`` times the larger of the two directions of one step (docs/theorems.md,
    Theorems 4, 8, 12 and 14).

    *Algorithm.* A trapezoid rule with an error bound, relative to the divergence itself, so that
    tiny q lose nothing.

    Examples
    --------
    >>> import accountant as ac
    >>> bool((ac.get_rdp(0.01, 1.0, 1000, [2, 4.5, 32]) > 0).all())
    True
    """
    return cast("Checked", _answer(_RDP, q, sigma, steps, orders, user_records, workers))


# Functions of q, sigma, steps and one more: of scalars, of what broadcasts, of a user's records.
_EPSILON = (
    contour.epsilon_bounds,
    contour.each_epsilon_bounds,
    checks.DELTA,
    user_level.epsilon_bounds,
)
_DELTA = (contour.delta_bounds, contour.each_delta_bounds, checks.EPSILON, user_level.delta_bounds)
_RENYI_EPSILON = (
    contour.epsilon_upper,
    contour.each_epsilon_upper,
    checks.DELTA,
    user_level.renyi_epsilon_upper,
)
_RDP = (
    contour.divergence_upper,
    contour.each_divergence_upper,
    checks.ORDERS,
    user_level.divergence_upper,
)


@to_nearest
def _answer(
    question: Question,
    q: object,
    sigma: object,
    steps: object,
    value: object,
    user_records: object,
    workers: object,
) -> Any:
    """Check the arguments, then answer for scalars or for every element of what broadcasts."""
    single, each, argument, of_user = question
    arguments = {
        "q": checks.real(checks.Q, q),
        "sigma": checks.real(checks.SIGMA, sigma),
        "steps": checks.count(checks.STEPS, steps),
        argument.name: checks.real(argument, value),
    }
    records = checks.count(checks.USER_RECORDS, user_records)
    threads = broadcasting.workers(workers)
    if type(records) is not float or records > 1.0:
        arguments["user_records"] = records
        single, each = of_user, partial(user_level.each, of_user)
    values = list(arguments.values())
    if all(type(checked) is float for checked in values):
        return single(*values)
    return each(broadcasting.common_shape(list(arguments), values), *values, threads)
