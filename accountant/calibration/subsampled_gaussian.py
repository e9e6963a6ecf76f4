"""Inverse problems: the best noise, count or sampling probability for a target ε.

Each answer is the last point, on the cheap side, whose *certified* ε was evaluated and found to be
at most the target; its neighbour — the adjacent double, or the next integer — was evaluated too
and found above. There is no tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from accountant import broadcasting, checks
from accountant._core import answers as core
from accountant.analyses import user_level
from accountant.broadcasting import flatten, run_tasks
from accountant.checks import ArrayLike, Checked, Integer, Scalar
from accountant.environment import to_nearest
from accountant.errors import DomainError, PrecisionError


@overload
def calibrate_sigma(
    target_eps: Scalar,
    delta: Scalar = ...,
    q: Scalar = ...,
    steps: Integer = ...,
    *,
    user_records: Integer = ...,
    workers: int | None = ...,
) -> float: ...
@overload
def calibrate_sigma(
    target_eps: Scalar | ArrayLike,
    delta: Scalar | ArrayLike = ...,
    q: Scalar | ArrayLike = ...,
    steps: Integer | ArrayLike = ...,
    *,
    user_records: Integer | ArrayLike = ...,
    workers: int | None = ...,
) -> float | NDArray[np.float64]: ...
@to_nearest
def calibrate_sigma(
    target_eps: Scalar | ArrayLike,
    delta: Scalar | ArrayLike = 1e-5,
    q: Scalar | ArrayLike = 1.0,
    steps: Integer | ArrayLike = 1,
    *,
    user_records: Integer | ArrayLike = 1,
    workers: int | None = None,
) -> float | NDArray[np.float64]:
    """Return the smallest noise multiplier whose certified ε is at most ``target_eps``.

    Parameters
    ----------
    target_eps : float or array_like
        The ε to stay within, in nats; finite and > 0.
    delta : float or array_like
        In (0, 1).
    q, steps, user_records, workers
        As in :func:`accountant.get_epsilon`.

    Returns
    -------
    float or ndarray
        The noise multiplier σ. The next smaller double costs more than ``target_eps``.

    Raises
    ------
    DomainError
        An argument is outside its domain; or every σ > 0 meets the target, because nothing is
        released (q = 0 or steps = 0) or because a record is used at all with probability at most
        ``delta``, so that no smallest one exists.
    PrecisionError
        No finite σ is certified to meet the target, as where ``target_eps`` and ``delta`` are both
        below 1e-150.

    Notes
    -----
    *Guarantee.* ``get_epsilon(q, sigma, steps, delta) <= target_eps`` for the σ returned, with
    the same ``user_records``, by the theorems of :func:`accountant.get_epsilon`.

    *Algorithm.* Interpolation on the bit patterns of doubles from an approximate root; some five
    certified evaluations.

    Examples
    --------
    >>> import accountant as ac
    >>> sigma = ac.calibrate_sigma(3.0, delta=1e-5, q=0.01, steps=1000)
    >>> ac.get_epsilon(0.01, sigma, 1000, 1e-5) <= 3.0
    True
    """
    arguments = _target(target_eps, delta) | {
        "q": checks.real(checks.Q, q),
        "steps": checks.count(checks.STEPS, steps),
    }
    found: float | NDArray[np.float64] = _solve(
        _sigma, arguments, user_records, workers, np.float64
    )
    return found


@overload
def calibrate_steps(
    target_eps: Scalar,
    delta: Scalar = ...,
    *,
    q: Scalar,
    sigma: Scalar,
    user_records: Integer = ...,
    workers: int | None = ...,
) -> int: ...
@overload
def calibrate_steps(
    target_eps: Scalar | ArrayLike,
    delta: Scalar | ArrayLike = ...,
    *,
    q: Scalar | ArrayLike,
    sigma: Scalar | ArrayLike,
    user_records: Integer | ArrayLike = ...,
    workers: int | None = ...,
) -> int | NDArray[np.int64]: ...
@to_nearest
def calibrate_steps(
    target_eps: Scalar | ArrayLike,
    delta: Scalar | ArrayLike = 1e-5,
    *,
    q: Scalar | ArrayLike,
    sigma: Scalar | ArrayLike,
    user_records: Integer | ArrayLike = 1,
    workers: int | None = None,
) -> int | NDArray[np.int64]:
    """Return the largest number of steps whose certified ε is at most ``target_eps``.

    Parameters
    ----------
    target_eps, delta
        As in :func:`calibrate_sigma`.
    q, sigma, user_records, workers
        As in :func:`accountant.get_epsilon`.

    Returns
    -------
    int or ndarray of int64
        The number of steps; one more costs more than ``target_eps``. It is 0 where a single step
        already does, for no step costs nothing.

    Raises
    ------
    DomainError
        An argument is outside its domain; or the number is unlimited, because q = 0 or sigma = inf,
        or because even 2**53 steps, the largest count, stay within the target.

    Notes
    -----
    *Guarantee.* ``get_epsilon(q, sigma, steps, delta) <= target_eps`` for the steps returned, with
    the same ``user_records``, by the theorems of :func:`accountant.get_epsilon`.

    *Algorithm.* Interpolation on the integers from an approximate root; some three certified
    evaluations.

    Examples
    --------
    >>> import accountant as ac
    >>> steps = ac.calibrate_steps(3.0, delta=1e-5, q=0.01, sigma=1.0)
    >>> costs = [ac.get_epsilon(0.01, 1.0, n, 1e-5) for n in (steps, steps + 1)]
    >>> costs[0] <= 3.0 < costs[1]
    True
    """
    arguments = _target(target_eps, delta) | {
        "q": checks.real(checks.Q, q),
        "sigma": checks.real(checks.SIGMA, sigma),
    }
    found: int | NDArray[np.int64] = _solve(_steps, arguments, user_records, workers, np.int64)
    return found


@overload
def calibrate_q(
    target_eps: Scalar,
    delta: Scalar = ...,
    *,
    sigma: Scalar,
    steps: Integer,
    user_records: Integer = ...,
    workers: int | None = ...,
) -> float: ...
@overload
def calibrate_q(
    target_eps: Scalar | ArrayLike,
    delta: Scalar | ArrayLike = ...,
    *,
    sigma: Scalar | ArrayLike,
    steps: Integer | ArrayLike,
    user_records: Integer | ArrayLike = ...,
    workers: int | None = ...,
) -> float | NDArray[np.float64]: ...
@to_nearest
def calibrate_q(
    target_eps: Scalar | ArrayLike,
    delta: Scalar | ArrayLike = 1e-5,
    *,
    sigma: Scalar | ArrayLike,
    steps: Integer | ArrayLike,
    user_records: Integer | ArrayLike = 1,
    workers: int | None = None,
) -> float | NDArray[np.float64]:
    """Return the largest sampling probability whose certified ε is at most ``target_eps``.

    Parameters
    ----------
    target_eps, delta
        As in :func:`calibrate_sigma`.
    sigma, steps, user_records, workers
        As in :func:`accountant.get_epsilon`.

    Returns
    -------
    float or ndarray
        The sampling probability q; the next larger double costs more than ``target_eps``. It is
        1.0 where even using every record in every step meets the target, and 0.0 where no q > 0 is
        certified to.

    Notes
    -----
    *Guarantee.* ``get_epsilon(q, sigma, steps, delta) <= target_eps`` for the q returned, with
    the same ``user_records``, by the theorems of :func:`accountant.get_epsilon`.

    *Algorithm.* Interpolation on the bit patterns of doubles from an approximate root; some five
    certified evaluations.

    Examples
    --------
    >>> import accountant as ac
    >>> q = ac.calibrate_q(3.0, delta=1e-5, sigma=1.0, steps=1000)
    >>> ac.get_epsilon(q, 1.0, 1000, 1e-5) <= 3.0
    True
    """
    arguments = _target(target_eps, delta) | {
        "sigma": checks.real(checks.SIGMA, sigma),
        "steps": checks.count(checks.STEPS, steps),
    }
    found: float | NDArray[np.float64] = _solve(_q, arguments, user_records, workers, np.float64)
    return found


def _target(target_eps: object, delta: object) -> dict[str, Checked]:
    return {
        "target_eps": checks.real(checks.TARGET_EPS, target_eps),
        "delta": checks.real(checks.TARGET_DELTA, delta),
    }


def _solve(
    problem: Callable[..., float],
    arguments: dict[str, Checked],
    user_records: object,
    workers: object,
    dtype: type,
) -> Any:
    arguments["user_records"] = checks.count(checks.USER_RECORDS, user_records)
    threads = broadcasting.workers(workers)
    values = list(arguments.values())
    shape = broadcasting.common_shape(list(arguments), values)
    if shape == ():
        return problem(*values)
    rows = [row.tolist() for row in flatten(shape, values)]
    answers = run_tasks(lambda task: problem(*task), list(zip(*rows, strict=True)), threads)
    return np.array(answers, dtype=dtype).reshape(shape)


def _sigma(target: float, delta: float, q: float, steps: float, records: float) -> float:
    try:
        found = core.calibrate_sigma(target, delta, q, steps, records, _upper(records))
    except PrecisionError:
        raise PrecisionError(
            f"calibrate_sigma has no certified answer: no finite sigma is certified to meet"
            f" target_eps = {target!r} at delta = {delta!r}; raise one of them"
        ) from None
    if found is not None:
        return found
    draws = steps * records
    used = 0.0 if draws == 0.0 else 1.0 if q == 1.0 else -math.expm1(draws * math.log1p(-q))
    if used <= delta:
        raise DomainError(
            "calibrate_sigma has no smallest answer: at any sigma > 0 the ε is 0, because"
            f" {'a record' if records == 1.0 else 'some record of a user'} is used at all with"
            f" probability {used!r}, at most delta = {delta!r}; raise q = {q!r}"
            f" or steps = {int(steps)}, or lower delta"
        )
    raise DomainError(
        "calibrate_sigma has no smallest answer: every sigma > 0, down to the least double,"
        f" meets target_eps = {target!r}"
    )


def _steps(target: float, delta: float, q: float, sigma: float, records: float) -> int:
    found = core.calibrate_steps(target, delta, q, sigma, records, _upper(records))
    if found is not None:
        return int(found)
    if q == 0.0 or sigma == math.inf:
        raise DomainError(
            "calibrate_steps has no largest answer: with"
            f" {'q = 0' if q == 0.0 else 'sigma = inf'} nothing is released, so any number of steps"
            " meets target_eps"
        )
    raise DomainError(
        f"calibrate_steps has no answer in its range: even 2**53 steps, the largest count, meet"
        f" target_eps = {target!r} at q = {q!r}, sigma = {sigma!r}"
    )


def _q(target: float, delta: float, sigma: float, steps: float, records: float) -> float:
    return core.calibrate_q(target, delta, sigma, steps, records, _upper(records))


def _upper(records: float) -> Callable[..., float] | None:
    """Return the upper end of ε of a user's records; None is the native one, of one record."""
    if records == 1.0:
        return None
    # Of more records than one it is the larger of both directions, whatever is asked.
    return lambda q, sigma, steps, delta, _: user_level.epsilon_bounds(
        q, sigma, steps, delta, records
    )[1]
