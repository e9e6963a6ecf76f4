"""The rule of a step whose outcomes are labelled small, middling or large (Theorem K3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import erfc, log_ndtr

from accountant._typing import FloatArray
from accountant.certificates.line import Rule
from accountant.certificates.step import LARGE, log_sum


class Labelled(Rule):
    """A rule whose steps have labels."""

    upper: float | None
    lower: float | None
    known: tuple[float | None, float | None, float] | None = None  # what the tables are of

    def label(self, upper: float, lower: float | None, width: float, high: float) -> None:
        """Set thresholds, and the window up to ``high`` that they leave."""
        if (upper, width, high) != self.known:
            self.upper, self.width, self.known = upper, width, (upper, width, high)
            self._tabulate(high, min(self.step.sigma, width))
            self.kept, self.large = self._below(upper)
        self.lower = lower
        self.small = self._below(lower)[0] if lower is not None else self.kept
        with np.errstate(divide="ignore"):
            ratio = np.exp(np.minimum(self.small - self.kept, 0.0))
            self.middling = self.kept + np.log1p(-np.where(ratio < 1.0, ratio, 1.0))

    def leave(self, high: float) -> None:
        """Set no labels: all steps are small."""
        if self.known != (None, None, high):
            self.upper, self.lower, self.known = None, None, (None, None, high)
            self._tabulate(high, self.step.sigma)
            self.kept = self.small = np.zeros(self.x.size)
            self.large = self.middling = np.full(self.x.size, -math.inf)

    def _tabulate(self, high: float, unit: float) -> None:
        self.high, step = high, self.step
        far = max(high, step.furthest + 10.0 * step.sigma)
        size = int(min(max(300, 3.0 * (far - self.low) / unit), 2500))
        self.x = np.linspace(self.low, far, size)
        self.loss, self.noise = step.loss(self.x), step.log_density(self.x)
        self.noise = self.noise + math.log(self.x[1] - self.x[0])
        self.mass, self.grown = np.exp(self.noise), np.expm1(np.minimum(self.loss, LARGE))

    def _below(self, cut: float) -> tuple[FloatArray, FloatArray]:
        z = (self.x - cut) / self.width
        return log_ndtr(-z), log_ndtr(z)

    @property
    def is_labelled(self) -> bool:
        """Whether steps are kept with a probability only."""
        return self.upper is not None

    @property
    def most_rise(self) -> float:
        """The height of the path that keeps its ends negligible, and one for orders below 0."""
        scale = self.step.sigma**2 / self.step.furthest
        most = min(super().most_rise, 0.24 * math.pi * scale)
        return most if self.upper is None else min(most, 2.6 * self.width)

    def log_stretch(self, rise: float) -> float:
        """Return how much larger density and label are on the strip, by their logarithm."""
        stretch = super().log_stretch(rise)
        return stretch if self.upper is None else stretch + 2.0 * rise**2 / self.width**2

    def log_label(self, x: FloatArray) -> FloatArray:
        """Return the logarithm of the probability that a step is kept."""
        if self.upper is None:
            return super().log_label(x)
        return np.asarray(log_ndtr((self.upper - x) / self.width))

    def listed(self) -> dict[str, Any]:
        """Return the rule as the document has it, with its labels."""
        if self.upper is None:
            return super().listed()
        labels = {"width": self.width, "upper": self.upper}
        if self.lower is not None:
            labels["lower"] = self.lower
        return super().listed() | {"labels": labels}

    def path(self, c: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return logarithms of the weights' moduli, phases and Im L, for kept or middling steps."""
        log_weight, phase, angle = super().path(c)
        if self.upper is None:
            return log_weight, phase, angle
        z = self.low + self.spacing * (np.arange(self.nodes) + 0.5) + 1j * self.rise
        unit = self.width * math.sqrt(2.0)
        label = 0.5 * erfc((z - self.upper) / unit)
        if self.lower is not None:
            left = 0.5 * (erfc((self.lower - z) / unit) - erfc((self.upper - z) / unit))
            right = label - 0.5 * erfc((z - self.lower) / unit)
            label = np.where(z.real < self.lower, left, right)
        with np.errstate(divide="ignore"):
            return log_weight + np.log(np.abs(label)), phase + np.angle(label), angle

    def log_moment(self, c: float, log_label: FloatArray) -> float:
        """Return the logarithm of the transform of the steps with a label, at a real order."""
        exponent = c * self.loss
        if (exponent + self.noise + log_label).max() > LARGE or exponent.max() > LARGE:
            return log_sum(self.noise + exponent + log_label)
        label, first = np.exp(log_label), c * self.grown
        second = label * (np.expm1(exponent) - first) - (1.0 - label) * (1.0 + first)
        return math.log1p(max(float(self.mass @ second), -0.999))

    def log_integral(self, c: float, log_label: FloatArray) -> float:
        """Return the logarithm of the integral of a label's steps that hardly ever occur."""
        return log_sum(self.noise + c * self.loss + log_label)

    def log_excess(self, c: float) -> float:
        """Return the logarithm of what the path errs by in all small steps, cell by cell."""
        if self.lower is None:
            return -math.inf
        k = math.ceil(self.spacing / (self.x[1] - self.x[0]))
        suprema = self.noise[k:-k] + c * self.loss[2 * k :] + self.small[: -2 * k]
        alias = -2.0 * math.pi * self.rise / self.spacing
        # At the very end: between two places of the table it may grow by orders of magnitude.
        end = np.array([self.high])
        height = (
            self.step.log_density(end)
            + c * self.step.loss(end)
            + log_ndtr((self.lower - end) / self.width)
        )
        ended = float(height[0]) + math.log(self.rise)
        whole = np.logaddexp(log_sum(suprema) + alias, ended)
        return float(whole) + self.log_stretch(self.rise) + math.log(2.0 * self.step.count)
