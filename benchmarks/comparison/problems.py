"""The fixed table of problems that the benchmark runs over.

Every problem is the Poisson-subsampled Gaussian mechanism under the add-or-remove-one
relation: sampling rate ``q``, noise multiplier ``sigma``, ``steps`` compositions, and the
``delta`` at which epsilon is asked for. A few carry the true epsilon, rounded to the digits
written here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One accounting problem.

    Parameters
    ----------
    family : str
        Label of the group that the problem belongs to.
    q, sigma : float
        Sampling rate and noise multiplier.
    steps : int
        Number of compositions.
    delta : float
        The delta of the (epsilon, delta) guarantee.
    reference : str, optional
        Known epsilon as decimal text; its last digit is rounded.
    """

    family: str
    q: float
    sigma: float
    steps: int
    delta: float
    reference: str | None = None

    @property
    def args(self) -> tuple[float, float, int, float]:
        """Arguments in the order ``(q, sigma, steps, delta)``."""
        return self.q, self.sigma, self.steps, self.delta

    @property
    def reference_interval(self) -> tuple[float, float] | None:
        """Interval that the reference's rounding leaves open, or None without a reference."""
        if self.reference is None:
            return None
        digits = len(self.reference.partition(".")[2])
        half_unit = 0.5 * 10.0**-digits
        value = float(self.reference)
        return value - half_unit, value + half_unit

    def __str__(self) -> str:
        return f"q={self.q:g} sigma={self.sigma:g} steps={self.steps:.6g} delta={self.delta:g}"


@dataclass(frozen=True)
class CalibrationProblem:
    """Find the smallest sigma that meets ``(target_eps, delta)`` at ``q`` and ``steps``."""

    target_eps: float
    delta: float
    q: float
    steps: int

    @property
    def args(self) -> tuple[float, float, float, int]:
        """Arguments in the order ``(target_eps, delta, q, steps)``."""
        return self.target_eps, self.delta, self.q, self.steps

    def __str__(self) -> str:
        return f"eps={self.target_eps:g} delta={self.delta:g} q={self.q:g} steps={self.steps}"


@dataclass(frozen=True)
class ScalingProblem:
    """A setting whose cost is compared between ``few`` and ``many`` steps."""

    q: float
    sigma: float
    delta: float
    few: int = 10**3
    many: int = 10**9

    def __str__(self) -> str:
        return f"q={self.q:g} sigma={self.sigma:g} delta={self.delta:g}"


# family, then rows of (q, sigma, steps, delta[, reference epsilon])
_TABLE: dict[str, list[tuple]] = {
    # DP-SGD as it is run: MNIST- to ImageNet- and language-model-sized data sets
    "typical": [
        (256 / 60_000, 1.1, 14_062, 1e-5),
        (4096 / 50_000, 3.0, 2_500, 1e-5),
        (0.01, 1.0, 1_000, 1e-5),
        (0.01, 0.8, 5_000, 1e-5),
        (0.01, 4.0, 100_000, 1e-6),
        (0.02, 0.6, 100, 1e-5),
        (0.02, 1.5, 5_000, 1e-5),
        (0.05, 1.0, 100, 1e-5),
        (0.05, 2.0, 2_000, 1e-5),
        (0.05, 4.0, 10_000, 1e-6),
        (0.04, 1.0, 500, 1e-5),
        (0.005, 1.0, 20_000, 1e-6),
        (0.003, 2.0, 100_000, 1e-7),
        (0.002, 0.7, 50_000, 1e-7),
        (0.001, 0.6, 10_000, 1e-6),
        (0.001, 0.8, 20_000, 1e-6),
        (0.001, 1.0, 100_000, 1e-8),
        (0.001, 4.0, 100_000, 1e-8),
    ],
    # very small sampling rates, very many steps
    "large-scale": [
        (1e-8, 1.0, 10**9, 1e-9),
        (1e-8, 0.6, 10**9, 1e-10),
        (1e-7, 0.8, 10**8, 1e-9),
        (1e-6, 0.5, 10**6, 1e-9),
        (1e-6, 1.0, 10**8, 1e-8),
        (1e-5, 0.6, 10**5, 1e-8),
        (1e-5, 1.0, 10**7, 1e-8),
        (1e-5, 1.0, 10**8, 1e-7),
        (1e-5, 2.0, 10**9, 1e-8),
    ],
    # heavy-tailed privacy loss
    "small-noise": [
        (0.01, 0.3, 100, 1e-5, "26.83"),
        (1e-4, 0.35, 10_000, 1e-7),
        (0.001, 0.3, 1_000, 1e-5),
        (0.001, 0.5, 10_000, 1e-6),
        (0.01, 0.4, 1_000, 1e-5),
        (0.05, 0.5, 500, 1e-5),
        (0.1, 0.8, 200, 1e-5),
    ],
    # far from any central limit
    "few-steps": [
        (0.01, 1.0, 1, 1e-5),
        (0.01, 0.5, 1, 1e-6),
        (0.1, 1.0, 1, 1e-5),
        (0.001, 0.6, 3, 1e-8),
        (0.05, 0.8, 5, 1e-6),
        (0.02, 0.6, 10, 1e-5),
        (0.2, 2.0, 20, 1e-5),
    ],
    # tiny epsilon
    "high-privacy": [
        (0.001, 50.0, 1_000, 1e-6, "0.0016309"),
        (0.001, 100.0, 10**4, 1e-9, "0.0044265"),
        (1e-4, 10.0, 1_000, 1e-8),
        (1e-4, 1.0, 100, 1e-6),
        (0.01, 200.0, 10**4, 1e-6),
        (1e-5, 5.0, 10**4, 1e-9),
    ],
    # delta where round-off decides
    "small-delta": [
        (0.01, 1.0, 1_000, 1e-12, "3.91430"),
        (0.01, 1.0, 1_000, 1e-13, "4.2298"),
        (0.01, 1.0, 1_000, 1e-14, "4.5437"),
        (0.01, 1.0, 1_000, 1e-15, "4.8545"),
        (0.001, 0.8, 20_000, 1e-11, "2.81965"),
        (0.001, 0.6, 10_000, 1e-15),
        (0.02, 2.0, 5_000, 1e-13),
        (0.05, 4.0, 10_000, 1e-15),
    ],
    # the plain Gaussian mechanism; references from its closed form
    "full-batch": [
        (1.0, 1.0, 1, 1e-5, "4.377178095681"),
        (1.0, 5.0, 1, 1e-5, "0.725521750858"),
        (1.0, 0.5, 1, 1e-10, "14.274089645078"),
        (1.0, 2.0, 50, 1e-15, "33.803561102460"),
        (1.0, 10.0, 100, 1e-6, "4.886554117462"),
        (1.0, 20.0, 1_000, 1e-12, "11.992091054968"),
        (1.0, 50.0, 1_000, 1e-8, "3.491255025563"),
        (1.0, 1_000.0, 10**5, 1e-6, "1.367571475084"),
    ],
    "large-q": [
        (0.5, 0.3, 1_000, 1e-5),
        (0.1, 2.0, 500, 1e-5),
        (0.2, 3.0, 1_000, 1e-5),
        (0.25, 5.0, 2_000, 1e-6),
        (0.3, 1.0, 10, 1e-5),
        (0.5, 2.0, 100, 1e-5),
        (0.9, 4.0, 300, 1e-6),
    ],
}

PROBLEMS: tuple[Problem, ...] = tuple(
    Problem(family, *row) for family, rows in _TABLE.items() for row in rows
)
FAMILIES: tuple[str, ...] = tuple(_TABLE)

CALIBRATION: tuple[CalibrationProblem, ...] = (
    CalibrationProblem(3.0, 1e-5, 256 / 60_000, 14_062),
    CalibrationProblem(1.0, 1e-5, 0.01, 1_000),
    CalibrationProblem(2.0, 1e-6, 0.001, 20_000),
    CalibrationProblem(8.0, 1e-5, 0.05, 2_000),
    CalibrationProblem(0.5, 1e-7, 0.001, 100_000),
)

SCALING: tuple[ScalingProblem, ...] = (
    ScalingProblem(1e-8, 1.0, 1e-9),
    ScalingProblem(1e-5, 1.0, 1e-6),
    ScalingProblem(1e-3, 50.0, 1e-6),
)


def select(families: Iterable[str] | None = None) -> list[Problem]:
    """Return the problems of the given families, in table order (all when None)."""
    if families is None:
        return list(PROBLEMS)
    wanted = set(families)
    unknown = wanted - set(FAMILIES)
    if unknown:
        raise ValueError(f"unknown families {sorted(unknown)}; known: {', '.join(FAMILIES)}")
    return [problem for problem in PROBLEMS if problem.family in wanted]
