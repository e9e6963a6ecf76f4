"""dp-accounting's privacy loss distributions of the releases of the table.

A builder takes the sampling probability and the peer's keyword arguments, and returns what it can
compose. Chords (``use_connect_dots``) are the peer's sharper pessimistic estimate.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

try:
    from dp_accounting.pld import privacy_loss_distribution as pld
except ImportError:
    pld = None

__all__ = [
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian",
    "group_of_four",
    "is_installed",
    "laplace",
    "masses",
    "mixture",
    "response",
    "stated",
]

logging.disable(logging.WARNING)  # the peer warns at every optimistic estimate
Builder = Callable[..., Any]


def is_installed() -> bool:
    return pld is not None


def gaussian(q: float, **grid: Any) -> Any:
    return pld.from_gaussian_mechanism(1.0, sampling_prob=q, **grid)


def group_of_four(q: float, **grid: Any) -> Any:
    if q == 1.0:
        return pld.from_gaussian_mechanism(1.0, sensitivity=4.0, **grid)
    chances = [math.comb(4, j) * q**j * (1.0 - q) ** (4 - j) for j in range(5)]
    return pld.from_mixture_gaussian_mechanism(1.0, [0.0, 1.0, 2.0, 3.0, 4.0], chances, **grid)


def mixture(shifts: Sequence[float], chances: Sequence[float]) -> Builder:
    def build(q: float, **grid: Any) -> Any:
        weights = [q * chance for chance in chances]
        weights[0] += 1.0 - q
        return pld.from_mixture_gaussian_mechanism(1.0, list(shifts), weights, **grid)

    return build


def laplace(q: float, **grid: Any) -> Any:
    return pld.from_laplace_mechanism(1.0, sampling_prob=q, **grid)


def discrete_laplace(sensitivity: int) -> Builder:
    def build(q: float, **grid: Any) -> Any:
        return pld.from_discrete_laplace_mechanism(
            1.0, sensitivity, sampling_prob=q, use_connect_dots=True, **grid
        )

    return build


def discrete_gaussian(q: float, **grid: Any) -> Any:
    return pld.from_discrete_gaussian_mechanism(1.0, sampling_prob=q, use_connect_dots=True, **grid)


def masses(p: Sequence[float], q: Sequence[float]) -> Builder:
    """Take masses of each outcome with the record (the upper ones) and without it."""

    def build(rate: float, **grid: Any) -> Any:
        mixed = [rate * a + (1.0 - rate) * b for a, b in zip(p, q, strict=True)]
        lower = {i: math.log(b) for i, b in enumerate(q) if b > 0.0}
        upper = {i: math.log(a) for i, a in enumerate(mixed) if a > 0.0}
        return pld.from_two_probability_mass_functions(lower, upper, symmetric=False, **grid)

    return build


def response(epsilon: float, k: int) -> Builder:
    truth = math.exp(epsilon) / (math.exp(epsilon) + k - 1.0)
    other = (1.0 - truth) / (k - 1.0)
    rest = [other] * (k - 2)
    sampled = masses([truth, other, *rest], [other, truth, *rest])

    def build(q: float, **grid: Any) -> Any:
        if q < 1.0:
            return sampled(q, **grid)
        return pld.from_randomized_response(k * other, k, **grid)

    return build


def stated(epsilon: float, delta: float) -> Builder:
    truth = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    other = (1.0 - delta) / (1.0 + math.exp(epsilon))
    return masses([delta, truth, other, 0.0], [0.0, other, truth, delta])
