"""Convex losses of linear scores: value, slope, curvature, and their public bounds.

A loss acts on scores ``u = x @ theta`` (one per record; K per record for :class:`Softmax`) and on
labels whose domain is public. With rows of norm at most R, a record's gradient has norm at most
``slope_bound * R`` and its Hessian at most ``curvature_bound * R**2``.
"""

from __future__ import annotations

import ast
import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from accountant import checks
from accountant._basics.arrays import FloatArray
from accountant.errors import DomainError
from accountant.learn.validation import class_labels, numbers

MAX_SCORE = checks.FINITE.renamed("max_score", "Beyond it the loss is linear")
# An evaluated slope is off by at most this many roundings of the largest one: measured below 8;
# Theorem V10 depends on it.
SLOPE_ROUNDINGS = 24.0


class Loss(ABC):
    """A convex loss of a linear score, with a Lipschitz slope."""

    slope_bound: float
    curvature_bound: float

    @property
    def slopes(self) -> tuple[float, float]:
        """Range of a record's slope, up to a sign that is its own for every record."""
        return -self.slope_bound, self.slope_bound

    @property
    def outputs(self) -> int | None:
        """Columns of the parameter matrix; None when the parameter is a vector."""
        return None

    def weight_shape(self, columns: int) -> tuple[int, ...]:
        """Return the shape of the parameter of rows with ``columns`` columns."""
        return (columns,) if self.outputs is None else (columns, self.outputs)

    @property
    def slope_roundings(self) -> float:
        """How far :meth:`slope_of_sum` is off, in units of 2**-53 of the slope bound.

        Infinite unless a class states it: the minimum of its risk cannot be certified then.
        """
        return math.inf

    @abstractmethod
    def encode(self, y: object) -> FloatArray:
        """Return the labels as the other methods want them, NaN for what is none."""

    def cut(self, y: FloatArray, largest: float) -> FloatArray:
        """Return encoded labels, cut to ±``largest`` where their size is not bounded anyway."""
        return y

    @abstractmethod
    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return each record's loss."""

    @abstractmethod
    def slope(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return each record's derivative with respect to its scores, of the shape of ``u``."""

    def slope_of_sum(self, high: FloatArray, low: FloatArray, y: FloatArray) -> FloatArray:
        """Return the slope at scores ``high + low``, ``low`` below the digits of ``high``."""
        return self.slope(high + low, y)

    def curvature_along(self, u: FloatArray, y: FloatArray, v: FloatArray) -> FloatArray:
        """Return the second derivative at ``u`` times ``v``; a guide for solvers, not a bound."""
        step = 1e-5
        return np.asarray((self.slope(u + step * v, y) - self.slope(u - step * v, y)) / (2 * step))


class _OfMargins(Loss):
    """A loss of y u for labels y in {-1, 1}, whose slope is -y s with s in [0, 1]."""

    slope_bound = 1.0
    slopes = (0.0, 1.0)
    # Logistic: |u| times the curvature is below 1/4, so digits below those of a score do not
    # matter. Hinge: a gap within the half width is off by three of its own roundings.
    slope_roundings = SLOPE_ROUNDINGS

    def encode(self, y: object) -> FloatArray:
        """Return labels -1 and 1, NaN for others."""
        labels = real_labels(y)
        return np.where(np.abs(labels) == 1.0, labels, np.nan)


@dataclass(frozen=True)
class Logistic(_OfMargins):
    """log(1 + exp(-y u)), y in {-1, 1}: slope and curvature are tied, s and s(1 - s)."""

    curvature_bound = 0.25

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return log(1 + exp(-y u))."""
        margin = y * u
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)

    def slope(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return -y / (1 + exp(y u))."""
        return np.asarray(-y * expit(-y * u))

    def curvature_along(self, u: FloatArray, y: FloatArray, v: FloatArray) -> FloatArray:
        """Return s (1 - s) v."""
        return np.asarray(expit(u) * expit(-u) * v)


@dataclass(frozen=True)
class HuberHinge(_OfMargins):
    """The hinge max(0, 1 - y u), smoothed over margins within ``half_width`` of 1: a linear SVM."""

    half_width: float = 0.5

    def __post_init__(self) -> None:
        _positive("half_width", self.half_width)

    @property
    def curvature_bound(self) -> float:  # type: ignore[override]
        """One over twice the half width."""
        return 0.5 / self.half_width

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the smoothed hinge."""
        gap = 1.0 - y * u
        h = self.half_width
        return np.where(np.abs(gap) < h, (gap + h) ** 2 / (4.0 * h), np.maximum(gap, 0.0))

    def slope(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the derivative."""
        h = self.half_width
        return np.asarray(-y * np.clip((1.0 - y * u + h) / (2.0 * h), 0.0, 1.0))

    def slope_of_sum(self, high: FloatArray, low: FloatArray, y: FloatArray) -> FloatArray:
        """Return the derivative; near the kinks the gap has all its digits."""
        h = self.half_width
        gap = (1.0 - y * high) - y * low
        return np.asarray(-y * np.clip((gap + h) / (2.0 * h), 0.0, 1.0))

    def curvature_along(self, u: FloatArray, y: FloatArray, v: FloatArray) -> FloatArray:
        """Return v over twice the half width near the kink, else 0."""
        return np.where(np.abs(1.0 - y * u) < self.half_width, v * (0.5 / self.half_width), 0.0)


@dataclass(frozen=True)
class Huber(Loss):
    """Squared loss with the residual's slope bounded: r²/2 up to ``threshold``, linear beyond."""

    threshold: float = 1.0

    def __post_init__(self) -> None:
        _positive("threshold", self.threshold)

    curvature_bound = 1.0
    # A residual within the threshold is off by two of its own roundings.
    slope_roundings = SLOPE_ROUNDINGS

    @property
    def slope_bound(self) -> float:  # type: ignore[override]
        """The threshold."""
        return self.threshold

    def encode(self, y: object) -> FloatArray:
        """Return finite labels, NaN for others."""
        return real_labels(y)

    def cut(self, y: FloatArray, largest: float) -> FloatArray:
        """Return the labels within ±``largest``; a residual beyond reach has one slope."""
        return np.clip(y, -largest, largest)

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the Huber loss of the residual."""
        r = np.abs(u - y)
        t = self.threshold
        return np.where(r <= t, 0.5 * np.minimum(r, t) ** 2, t * (r - 0.5 * t))

    def slope(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the clipped residual."""
        return np.clip(u - y, -self.threshold, self.threshold)

    def slope_of_sum(self, high: FloatArray, low: FloatArray, y: FloatArray) -> FloatArray:
        """Return the clipped residual; where it is not clipped it has all its digits."""
        return np.clip((high - y) + low, -self.threshold, self.threshold)

    def curvature_along(self, u: FloatArray, y: FloatArray, v: FloatArray) -> FloatArray:
        """Return v within the threshold, else 0."""
        return np.where(np.abs(u - y) < self.threshold, v, 0.0)


@dataclass(frozen=True)
class BoundedPoisson(Loss):
    """exp(u) - y u, linear in u beyond ``max_score``; counts y are clipped to [0, max_count]."""

    max_score: float = 1.0
    max_count: float = 5.0

    def __post_init__(self) -> None:
        _positive("max_count", self.max_count)
        checks.number(MAX_SCORE, self.max_score)

    @property
    def curvature_bound(self) -> float:  # type: ignore[override]
        """The largest rate, e^max_score."""
        return math.exp(self.max_score)

    @property
    def slope_bound(self) -> float:  # type: ignore[override]
        """The larger of the largest rate and the largest count."""
        return max(self.max_count, math.exp(self.max_score))

    @property
    def slopes(self) -> tuple[float, float]:
        """From minus the largest count to the largest rate."""
        return -self.max_count, math.exp(self.max_score)

    def encode(self, y: object) -> FloatArray:
        """Return finite labels, clipped to the public range, NaN for others."""
        return np.clip(real_labels(y), 0.0, self.max_count)

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the negative log-likelihood, without the constant."""
        low = np.minimum(u, self.max_score)
        return np.exp(low) * (1.0 + (u - low)) - y * u

    def slope(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the rate minus the count."""
        return np.exp(np.minimum(u, self.max_score)) - y

    @property
    def slope_roundings(self) -> float:
        """A score's rounding moves a rate by at most max(1, |max_score|) of the largest."""
        return SLOPE_ROUNDINGS + abs(self.max_score)

    def curvature_along(self, u: FloatArray, y: FloatArray, v: FloatArray) -> FloatArray:
        """Return the rate times v below the largest score, else 0."""
        return np.where(u < self.max_score, np.exp(np.minimum(u, self.max_score)) * v, 0.0)


@dataclass(frozen=True)
class Softmax(Loss):
    """log Σ_j exp(u_j) - u_y for K classes, labels 0 … K - 1."""

    classes: int

    def __post_init__(self) -> None:
        checks.integer("classes", self.classes, 2)

    slope_bound = math.sqrt(2.0)
    curvature_bound = 0.5

    @property
    def outputs(self) -> int:
        """One column per class."""
        return self.classes

    def encode(self, y: object) -> FloatArray:
        """Return rows of the identity for class numbers, rows of NaN for others."""
        labels = real_labels(y)
        places = class_labels(labels, len(labels), self.classes)
        return np.where((places < 0)[:, None], np.nan, np.eye(self.classes)[places])

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the cross-entropy."""
        top = u.max(axis=1)
        total = np.exp(u - top[:, None]).sum(axis=1)
        return np.asarray(top + np.log(total) - (u * y).sum(axis=1))

    def slope(self, u: FloatArray, y: FloatArray) -> FloatArray:
        """Return the class probabilities minus the label's row."""
        p = np.exp(u - u.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return np.asarray(p - y)

    @property
    def slope_roundings(self) -> float:
        """A sum of K exponentials is off by K roundings at most."""
        return SLOPE_ROUNDINGS + 2.0 * self.classes

    def slope_of_sum(self, high: FloatArray, low: FloatArray, y: FloatArray) -> FloatArray:
        """Return the probabilities less the label's row; a shift of all scores does not matter."""
        return self.slope((high - high.max(axis=1, keepdims=True)) + low, y)

    def curvature_along(self, u: FloatArray, y: FloatArray, v: FloatArray) -> FloatArray:
        """Return (diag p - p pᵀ) v, record by record."""
        p = self.slope(u, np.zeros_like(u))
        return np.asarray(p * (v - (p * v).sum(axis=1, keepdims=True)))


def named_loss(text: str) -> Loss:
    """Return the loss whose ``repr`` this is, as a ledger's file holds it."""
    match = re.fullmatch(r"(\w+)\((.*)\)", text)
    kinds = {kind.__name__: kind for kind in (BoundedPoisson, Huber, HuberHinge, Logistic, Softmax)}
    if match is None or match[1] not in kinds:
        wanted = ", ".join(sorted(kinds))
        raise DomainError(f"loss must be the repr of one of {wanted}; got {text!r}")
    parts = [part.split("=") for part in match[2].split(", ") if part]
    try:
        return kinds[match[1]](**{name: ast.literal_eval(value) for name, value in parts})
    except (SyntaxError, TypeError, ValueError) as error:
        raise DomainError(f"loss must be the repr of a loss; got {text!r}: {error}") from None


def real_labels(y: object) -> FloatArray:
    """Return the labels as float64 numbers, NaN where one is no finite number."""
    labels = numbers("y", y, ())
    if labels.ndim != 1:
        # A column of labels would be paired with every record's score.
        raise DomainError(f"y must have one dimension, (records,); got {labels.ndim}")
    return np.where(np.isfinite(labels), labels, np.nan)


def _positive(name: str, value: float) -> None:
    checks.number(checks.positive(name, ""), value)
