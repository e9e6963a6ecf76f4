"""Laws of a report, and randomised response between two answers, shuffled: from above.

docs/theorems_shuffling.md, Theorem H4.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.derived.report_sum import ReportLaw, multisets
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.stated_guarantees import RandomizedResponse
from accountant.pairs.atoms import Atoms
from accountant.pairs.base import DominatingPair


def kary_blanket(epsilon0: float, k: int) -> ReportLaw:
    """Return the atoms of k-ary randomised response: the two values, and any other."""
    a, size = math.exp(epsilon0), math.exp(epsilon0) + (k - 1.0)
    rows = np.array([[a, 1.0, 1.0], [1.0, a, 1.0], [1.0, 1.0, k - 2.0]])
    one, two, many = rows[:, : min(k, 3)]
    return ReportLaw(one, two, many / size, math.expm1(epsilon0) / size, 16 * U, 16 * U, 0.0)


def kary_others(epsilon0: float, k: int, *, reverse: bool) -> ReportLaw:
    """Return the atoms when all other users have one value: a third one, or for k = 2 the second.

    ``reverse`` exchanges the user's two values.
    """
    a, size = math.exp(epsilon0), math.exp(epsilon0) + (k - 1.0)
    rows = [[a, 1.0, 1.0 / a, 1.0], [1.0, a, 1.0 / a, 1.0], [1.0, 1.0, a, k - 3.0]]
    one, two, many = np.array(rows if k > 2 else [[a, 1.0 / a], [1.0, 1.0], [1.0, a]])[:, :k]
    first, second = (two, one) if reverse else (one, two)
    return ReportLaw(first, second, many / size, 0.0, 16 * U, 16 * U, 0.0)


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


# The transform is summed until it has fallen to e^-CUT.
CUT = 45.0
# Deviations that a period of the sum is long.
PERIOD = 40.0
# The least period.
LEAST_PERIOD = 200.0
# Variances of sums that share a line of nodes differ by this factor at most.
ALIKE = 4.0
# Entries of a matrix, at most: they decide how much memory a product takes.
VALUES = 2**20
# Places around the mean that are tried.
MOVES = (-1, 0, 1)
LEAST_TILT = -30.0


class _Randomizer(NamedTuple):
    """One report, and the tilt of the number of reports at which the profile is read off."""

    epsilon0: float
    tilt: float

    def chances(self) -> tuple[float, float]:
        """Return the tilted probabilities that values 1 and 0 report 1."""
        one = 1.0 / (1.0 + math.exp(-self.tilt - self.epsilon0))
        return one, 1.0 / (1.0 + math.exp(-self.tilt + self.epsilon0))

    def log_scales(self) -> tuple[float, float]:
        """Return the logarithms of the transforms at the tilt, of values 1 and 0."""
        growth = math.expm1(self.tilt)
        p = 1.0 / (1.0 + math.exp(-self.epsilon0))
        q = 1.0 / (1.0 + math.exp(self.epsilon0))
        return math.log1p(p * growth), math.log1p(q * growth)


def two_answers(epsilon0: float, users: int, epsilon: float, groups: int) -> float:
    """Bound the profile at ``epsilon`` of ``users`` reports, one user's answer replaced.

    Parameters
    ----------
    epsilon0 : float
        The loss of one report, > 0.
    users : int
        n >= 2.
    epsilon : float
        In [0, epsilon0).
    groups : int
        How many answers of the others are told apart: of n - 1 users about n / groups are left
        out, so that the rest stands for all answers that they may have.
    """
    # u = p - γq and v = γp - q: what a report of 0 and of 1 weighs, over 1 - p = q.
    room = (epsilon0 - epsilon) + 4.0 * U * epsilon0
    growth = math.exp(epsilon)
    u, v = growth * math.expm1(room), math.expm1(epsilon0 + epsilon)
    tilt = min(max(math.log(u / v), LEAST_TILT), 0.0)
    local = _Randomizer(epsilon0, tilt)
    excess = math.expm1(epsilon) * (1.0 + math.exp(epsilon0))  # v - u
    others = users - 1
    ends = np.unique(np.linspace(0, others, min(groups, others + 1)).astype(np.int64))
    if ends.size == users:
        ones, zeros = ends, others - ends
    else:
        ones, zeros = ends[:-1], others - ends[1:]
    found = 0.0
    for part in _alike(local, ones, zeros):
        found = max(found, _largest(local, ones[part], zeros[part], u, excess))
    q = 1.0 / (1.0 + math.exp(epsilon0))
    # Every user's law is off by a few units, and so is what is weighed with it.
    return min(found * q * (1.0 + (users + 64.0) * 16.0 * U), 1.0)


def _variances(
    local: _Randomizer, ones: NDArray[np.int64], zeros: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Return means and variances of the tilted numbers of reports of 1."""
    (one, zero), (ones, zeros) = local.chances(), (ones.astype(float), zeros.astype(float))
    return ones * one + zeros * zero, ones * one * (1.0 - one) + zeros * zero * (1.0 - zero)


def _alike(local: _Randomizer, ones: NDArray[np.int64], zeros: NDArray[np.int64]) -> list[slice]:
    """Return slices in which the variances are nearly alike, and which are not too large."""
    variance = (_variances(local, ones, zeros)[1] + 1.0).tolist()
    found, begin = [], 0
    least = most = variance[0]
    for k, here in enumerate(variance[1:], 1):
        least, most = min(least, here), max(most, here)
        if most > ALIKE * least or k - begin >= 1024:
            found.append(slice(begin, k))
            begin, least, most = k, here, here
    return [*found, slice(begin, len(variance))]


class _Nodes(NamedTuple):
    """Angles of the transform, and what periods and cuts leave out of masses."""

    angles: FloatArray
    weights: FloatArray
    period: int
    left: float


def _nodes(mean_variance: tuple[FloatArray, FloatArray], most: int) -> _Nodes:
    """Return nodes for sums up to ``most`` with these means and variances."""
    _, variance = mean_variance
    low, high = float(variance.min()), float(variance.max())
    wanted = math.ceil(PERIOD * math.sqrt(high) + LEAST_PERIOD)
    period = min(wanted, 2 * (most + 4))
    reach = 0.5 * period - 6.0
    # Bernstein: what the neighbouring periods hold, both ways.
    outside = 0.0
    if period < 2 * (most + 4):
        outside = 4.0 * math.exp(-0.5 * reach * reach / (high + reach / 3.0))
    whole, left = period // 2, 0.0
    last = whole
    if low > 0.5 * CUT:
        last = min(whole, math.ceil(period * math.acos(1.0 - CUT / low) / (2.0 * math.pi)))
        fallen = math.exp(-low * (1.0 - math.cos(2.0 * math.pi * last / period)))
        left = fallen if last < whole else 0.0
    angles = np.asarray(2.0 * math.pi / period * np.arange(last + 1), dtype=np.float64)
    weights = np.full(last + 1, 2.0 / period)
    weights[0] = 1.0 / period
    if 2 * last == period:
        weights[-1] = 1.0 / period
    return _Nodes(angles, weights, period, outside + left)


def _largest(
    local: _Randomizer, ones: NDArray[np.int64], zeros: NDArray[np.int64], u: float, excess: float
) -> float:
    """Return the largest profile over q of these numbers of others, rounded up."""
    moments = _variances(local, ones, zeros)
    most = int((ones + zeros).max())
    line = _nodes(moments, most)
    logs, log_errors = _log_transform(local, line.angles)
    scales = np.array(local.log_scales())
    first = np.rint(moments[0]).astype(np.int64)
    before, steps = _before(local.tilt, line)
    places = np.exp(-1j * np.outer(line.angles, MOVES))
    read = np.concatenate([places, places * before[:, None]], axis=1)
    found = 0.0
    for start in range(0, ones.size, max(1, VALUES // line.angles.size)):
        here = slice(start, start + max(1, VALUES // line.angles.size))
        counts = np.stack([ones[here], zeros[here]], axis=1).astype(float)
        exponents, slack = counts @ logs, counts @ log_errors
        turns = np.outer(first[here], line.angles)
        # The three places that are tried have nearly the same errors.
        error = slack + U * (64.0 + 16.0 * (np.abs(turns) + line.angles))
        values = np.exp(exponents - 1j * turns) * line.weights
        sizes = np.exp(exponents.real) * line.weights
        rough = (sizes * (error + line.angles.size * U)).sum(axis=1) + line.left
        # One product without threads, whose start costs more than these few sums.
        sums = np.einsum("ij,jk->ki", values, read).real
        for k, more in enumerate(MOVES):
            place = first[here] + more
            mass = sums[k] + rough
            tail = np.maximum(sums[len(MOVES) + k] - rough * steps, 0.0)
            wrong = np.abs(counts * scales).sum(axis=1) + np.abs(local.tilt * place) + 4.0
            log_scale = counts @ scales - local.tilt * place + 16.0 * U * wrong
            value = np.maximum(u * mass - excess * tail, 0.0) * np.exp(log_scale)
            found = max(found, float(value.max()) * (1.0 + 64.0 * U))
    return found


def _before(tilt: float, line: _Nodes) -> tuple[NDArray[np.complex128], float]:
    """Return the transform of Σ e^{tilt·i} over the i before a place, and the sum of weights."""
    length = line.period // 2
    step = tilt + 1j * line.angles
    with np.errstate(divide="ignore", invalid="ignore"):
        series = np.exp(step) * (np.expm1(length * step) / np.expm1(step))
    if tilt == 0.0:
        series[0] = length
    return series, float(series[0].real)


def _log_transform(
    local: _Randomizer, angles: FloatArray
) -> tuple[NDArray[np.complex128], FloatArray]:
    """Return log(1 + p(e^{iω} - 1)) for the chances p of values 1 and 0, with its errors."""
    rows, errors = [], []
    half = np.sin(0.5 * angles) ** 2
    for p in local.chances():
        real, imaginary = 1.0 - 2.0 * p * half, p * np.sin(angles)
        lost = 4.0 * p * (1.0 - p) * half
        with np.errstate(divide="ignore"):
            modulus = np.where(
                lost < 0.5,
                0.5 * np.log1p(-np.minimum(lost, 0.5)),
                np.log(np.hypot(real, imaginary)),
            )
        turn = np.arctan2(imaginary, real)
        rows.append(np.maximum(modulus, -60.0) + 1j * turn)
        near = np.where(lost < 0.5, 16.0 * U * lost, 8.0 * U / np.maximum(np.exp(modulus), 1e-20))
        errors.append(near + 16.0 * U * np.abs(turn))
    return np.array(rows), np.array(errors)


Randomizer = RandomizedResponse | Laplace | Gaussian


# Losses of few users that are told apart.
MOST_LOSSES = 2**12


def others_law(randomizer: RandomizedResponse | Laplace, knots: int, *, reverse: bool) -> ReportLaw:
    """Return the law of a report when all other users have one value (Theorem H2)."""
    if isinstance(randomizer, RandomizedResponse):
        return kary_others(randomizer.epsilon0, randomizer.k, reverse=reverse)
    pair = randomizer.pairs()[0]
    most = float(pair.pure_epsilon)
    return others(pair, most, most, knots, reverse=reverse)


def atoms_of_few(law: ReportLaw, users: int) -> Atoms:
    """Return the losses of all multisets of reports and their probabilities (H1, H3)."""
    every = multisets(tuple(law.masses.tolist()), users)
    one, two = every.numbers @ law.one, every.numbers @ law.two
    loss = np.log(one / two)
    p, q = every.chances * (one / users), every.chances * (two / users)
    ratio_error = law.ratio_error + (law.one.size + 4.0) * U
    slip = math.expm1(users * math.log1p(law.mass_error) + every.slip)
    moved = 2.0 * ratio_error + 8.0 * U * (1.0 + float(np.abs(loss).max()))
    error = slip + ratio_error + 16.0 * U
    # What is left out only makes the profile smaller.
    seen = (p > 1e-290) & (q > 1e-290)
    loss, p, q = loss[seen], p[seen], q[seen]
    if loss.size > MOST_LOSSES:
        # Multisets of nearly the same loss are not told apart: post-processing.
        least, reach = float(loss.min()), float(np.ptp(loss))
        cell = np.floor((loss - least) * ((MOST_LOSSES - 1) / reach)).astype(np.int64)
        p, q = (np.bincount(cell, weights=mass).astype(np.float64) for mass in (p, q))
        p, q = p[p > 0.0], q[p > 0.0]
        error += loss.size * U
        loss, moved = np.log(p / q), 4.0 * error + moved
    order = np.argsort(loss)
    lost = max(0.0, 1.0 - float(q.sum()))
    return Atoms(loss[order], p[order], q[order], 0.0, lost, error, moved)
