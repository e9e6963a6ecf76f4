"""The likelihood ratios of one user's report, as laws of finitely many values.

Two laws describe one local randomiser: that of the *blanket*, the part that the reports of all
values have in common, from above, and that of the reports of actual other users, from below.
docs/theorems_shuffling.md, Theorems H1 and H2.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.derived.report_sum import Fineness, Terms, mean_excess
from accountant.pairs.base import DominatingPair

LARGEST = 600.0  # of exponents


class ReportLaw(NamedTuple):
    """Atoms of a report under a common law, and the ratios of the user's two laws to it.

    Attributes
    ----------
    one, two : float64 arrays of one length
        Ratios of the laws of the user's first and second value.
    masses : float64 array
        Positive masses of the common law; with ``rest`` they add up to one.
    rest : float
        The probability that a report is not drawn from the common law.
    ratio_error, mass_error : float
        Relative errors.
    left_out : float
        Mass of the first law that is in no atom.
    """

    one: FloatArray
    two: FloatArray
    masses: FloatArray
    rest: float
    ratio_error: float
    mass_error: float
    left_out: float


def excess(law: ReportLaw, users: int, epsilon: float, fineness: Fineness, *, upper: bool) -> float:
    """Bound E(Σ(one - e^ε·two))₊ / users from above or below (Theorem H1)."""
    grown = math.exp(min(epsilon, LARGEST))
    sign = 1.0 if upper else -1.0
    slack = (law.one + grown * law.two) * (law.ratio_error + 8.0 * U)
    values = law.one - grown * law.two + sign * slack
    masses = law.masses
    if law.rest > 0.0:
        values, masses = np.append(values, 0.0), np.append(masses, law.rest)
    found = mean_excess(Terms(values, masses), users, fineness)[upper]
    slip = math.expm1(min(users * math.log1p(law.mass_error), LARGEST)) * (1.0 + 1e-9)
    if upper:
        return min(found * (1.0 + slip) + law.left_out, 1.0)
    return max(found * (1.0 - slip), 0.0)


def kary_blanket(epsilon0: float, k: int) -> ReportLaw:
    """Return the atoms of k-ary randomised response: the two values, and any other."""
    a, size = math.exp(epsilon0), math.exp(epsilon0) + (k - 1.0)
    one, two, many = [a, 1.0, 1.0], [1.0, a, 1.0], [1.0, 1.0, k - 2.0]
    kept = slice(None, 3 if k > 2 else 2)
    rest = math.expm1(epsilon0) / size
    masses = np.array(many[kept]) / size
    return ReportLaw(np.array(one[kept]), np.array(two[kept]), masses, rest, 16 * U, 16 * U, 0.0)


def kary_others(epsilon0: float, k: int, *, reverse: bool) -> ReportLaw:
    """Return the atoms when all other users have one value: a third one, or for k = 2 the second.

    ``reverse`` exchanges the user's two values.
    """
    a, size = math.exp(epsilon0), math.exp(epsilon0) + (k - 1.0)
    if k > 2:
        one, two, many = [a, 1.0, 1.0 / a, 1.0], [1.0, a, 1.0 / a, 1.0], [1.0, 1.0, a, k - 3.0]
        kept = slice(None, 4 if k > 3 else 3)
    else:
        one, two, many, kept = [a, 1.0 / a], [1.0, 1.0], [1.0, a], slice(None)
    first, second = (two, one) if reverse else (one, two)
    masses = np.array(many[kept]) / size
    return ReportLaw(
        np.array(first[kept]), np.array(second[kept]), masses, 0.0, 16 * U, 16 * U, 0.0
    )


@lru_cache(maxsize=32)
def blanket(pair: DominatingPair, middle: float, most: float, knots: int) -> ReportLaw:
    """Return atoms above the law of the blanket of additive noise, from the pair of its two ends.

    Where the loss L of the pair is positive the blanket is its second law, elsewhere the first,
    and the pair is its own mirror image. Masses are spread over the ends of cells, which keeps
    the means. ``middle`` and ``most`` are losses: where knots become sparse, and the last one.
    """
    marks = _knots(middle, most, knots)
    found = pair.masses(marks)
    error = found.relative_error + 8.0 * U
    q, p = found.q[1:-1], found.p[1:-1]
    q_tail, p_tail = float(found.q[-1]), float(found.p[-1])
    ends = np.exp(marks)
    low, width = ends[:-1], ends[:-1] * np.expm1(np.diff(marks))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(q > 0.0, (p / q - low) / width, 0.0)
        slack = 4.0 * (error + pair.loss_error) * ends[1:] / width
    up, down = np.clip(share + slack, 0.0, 1.0), np.clip(share - slack, 0.0, 1.0)
    upper = _spread(q, up, q_tail)
    lower = _spread(q, down, q_tail)
    ones = np.ones(marks.size)
    one, two = np.concatenate([ends, ones]), np.concatenate([ones, ends])
    masses = np.concatenate([upper, lower])
    kept = masses > 0.0
    # With probability P{L > 0} - Q{L > 0} a report is of no use to hide the user's.
    rest = max(float(p.sum() + p_tail - q.sum() - q_tail), 0.0)
    rest_error = error * (1.0 + 2.0 * float(p.sum() + q.sum()) / max(rest, 1e-300))
    return ReportLaw(
        one[kept],
        two[kept],
        masses[kept],
        rest,
        2.0 * pair.loss_error + 8.0 * U,
        max(error, rest_error) + 64.0 * U,
        p_tail * (1.0 + error),
    )


@lru_cache(maxsize=32)
def others(
    pair: DominatingPair, middle: float, most: float, knots: int, *, reverse: bool
) -> ReportLaw:
    """Return the law of cells of a report when all other users have the user's second value.

    ``reverse`` exchanges the user's two values: then the others have the first.
    """
    half = _knots(middle, most, knots)
    edges = np.concatenate([-half[:0:-1], half[:-1]])
    found = pair.masses(edges)
    kept = found.q > 1e-290
    q, p = found.q[kept], found.p[kept]
    ratio, same = p / q, np.ones(q.size)
    error = found.relative_error + 8.0 * U
    one, two = (same, ratio) if reverse else (ratio, same)
    return ReportLaw(one, two, q, 0.0, 2.0 * error, error, 0.0)


def _knots(middle: float, most: float, knots: int) -> FloatArray:
    """Return losses from 0 on, the last ones further apart."""
    dense = np.linspace(0.0, min(middle, most), knots)
    if middle >= most:
        return dense
    return np.concatenate([dense, np.linspace(middle, most, knots // 4)[1:]])


def _spread(masses: FloatArray, share: FloatArray, tail: float) -> FloatArray:
    """Return masses at knots: of every cell, its share at the upper end and the rest below."""
    found = np.zeros(masses.size + 1)
    found[:-1] += masses * (1.0 - share)
    found[1:] += masses * share
    found[-1] += tail
    return found
