"""Few releases of finitely many losses: the masses of all sums, without a grid.

Theorem G12 of docs/theorems_grid.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.bounds import Bounds
from accountant.pairs.atoms import Atoms, Losses, profile_of_losses
from accountant.pairs.base import Parts

# Sums that are listed at most, and knots of a lattice.
MOST_SUMS, MOST_KNOTS, MOST_RELEASES = 8192, 1024, 4096
# Smaller masses may have lost digits to underflow.
LEAST = 1e-290
# How far losses may lie from their lattice, in roundings of the largest.
OFF_LATTICE = 64.0


class SumOfLosses(NamedTuple):
    """The law of a sum of losses under P, and a bound on the mass that it does not list."""

    losses: Losses
    unseen: float

    def profile(self, epsilon: float) -> Bounds:
        """Bracket H(ε) by the sums above ε; the mass that is not listed only adds to it."""
        found = profile_of_losses(self.losses, epsilon)
        most = min((float(found.upper) + self.unseen) * (1.0 + 4.0 * U), 1.0)
        return Bounds(float(found.lower), most)


class _Law(NamedTuple):
    """Masses at ``first``, ``first + 1``, ...; ``lost`` bounds the mass that was left out."""

    first: int
    mass: FloatArray
    lost: float
    error: float  # relative, of every mass


def sum_of_losses(parts: Parts, unseen: float) -> SumOfLosses | None:
    """Return the law of all losses together, or None if they are too many.

    Masses of up to ``unseen`` in all may be left out, at either end.
    """
    if sum(n for _, n in parts) > MOST_RELEASES:
        return None
    losses: Losses | None = None
    lost = LEAST
    for pair, n in parts:
        table = pair.loss_atoms
        if table is None or table.loss.size > MOST_KNOTS:
            return None
        found = _repeated(table, n, unseen / len(parts))
        if found is None:
            return None
        each, left_out = found
        lost += left_out
        if losses is not None and losses.loss.size * each.loss.size > MOST_SUMS:
            return None
        losses = each if losses is None else _both(losses, each)
    return None if losses is None else SumOfLosses(losses, lost * (1.0 + 1e-9))


def _repeated(table: Atoms, n: int, unseen: float) -> tuple[Losses, float] | None:
    """Return the sums of n losses, and a bound on the mass that is not among them."""
    seen = table.p >= LEAST
    loss, p = table.loss[seen], table.p[seen]
    infinite = -math.expm1(n * math.log1p(-table.infinite_p)) if table.infinite_p < 1.0 else 1.0
    # The atoms left out, here and by the table, are below LEAST each.
    rare = n * (table.loss.size + 1) * LEAST
    if n == 1:
        return Losses(loss, p, infinite, table.relative_error, table.loss_error), rare
    found = _on_lattice(table, loss, p, n, unseen) or _listed(table, loss, p, n)
    if found is None:
        return None
    losses, lost = found
    # (1 + r)^n <= e^{nr}
    error = _joined(losses.relative_error, math.expm1(n * table.relative_error)) + 16.0 * U
    return losses._replace(infinite_p=infinite, relative_error=error), lost + rare


def _on_lattice(
    table: Atoms, loss: FloatArray, p: FloatArray, n: int, unseen: float
) -> tuple[Losses, float] | None:
    """Return the sums of losses on a lattice, by convolution; all terms are positive."""
    if loss.size < 2 or not float(loss[-1]) > float(loss[0]):
        return None
    start, spacing = float(loss[0]), float(np.diff(loss).min())
    if not float(loss[-1]) - start <= MOST_KNOTS * spacing:
        return None
    index = np.rint((loss - start) / spacing)
    spacing = (float(loss[-1]) - start) / float(index[-1])
    size = max(abs(start), abs(float(loss[-1])))
    off = float(np.abs(loss - (start + index * spacing)).max())
    if off > OFF_LATTICE * U * size:
        return None
    mass = np.bincount(index.astype(np.int64), weights=p).astype(np.float64)
    law = _power(_Law(0, mass, 0.0, loss.size * U), n, unseen)
    if law is None:
        return None
    knots = np.arange(law.first, law.first + law.mass.size, dtype=np.float64)
    moved = n * (table.loss_error + off + 16.0 * U * size) * (1.0 + 1e-9)
    kept = law.mass > LEAST
    sums = (n * start + spacing * knots)[kept]
    lost = law.lost + LEAST * law.mass.size
    return Losses(sums, law.mass[kept], 0.0, law.error, moved), lost


def _power(one: _Law, n: int, unseen: float) -> _Law | None:
    """Return the n-fold convolution, from the first binary digit of n to the last."""
    law = one
    for place, digit in enumerate(bin(n)[3:], start=2):
        # What is left out of a power counts as often as that is a factor of the whole.
        share = unseen * float(n >> (n.bit_length() - place)) / (64.0 * n)
        law = _convolved(law, law, share)
        if digit == "1":
            law = _convolved(law, one, share)
        if law.mass.size > MOST_KNOTS:
            return None
    return law


def _convolved(one: _Law, other: _Law, share: float) -> _Law:
    """Return the convolution, without the ends of mass up to ``share`` each."""
    mass = np.convolve(one.mass, other.mass)
    few = min(one.mass.size, other.mass.size)
    error = _joined(one.error, other.error) + (few + 1) * U * (1.0 + 1e-9)
    below = int(mass.cumsum().searchsorted(share, side="right"))
    above = int(mass[::-1].cumsum().searchsorted(share, side="right"))
    below, above = min(below, mass.size - 1), min(above, mass.size - 1 - below)
    kept = mass[below : mass.size - above]
    # Products that underflow lose less than LEAST in all.
    lost = (one.lost + other.lost + 2.0 * share) * (1.0 + 1e-9) + LEAST
    return _Law(one.first + other.first + below, kept, lost, error)


def _listed(table: Atoms, loss: FloatArray, p: FloatArray, n: int) -> tuple[Losses, float] | None:
    """Return the sums by how often each loss occurs, with their multinomial masses."""
    kinds = loss.size
    if not 1 < kinds <= MOST_SUMS or math.comb(n + kinds - 1, n) > MOST_SUMS:
        return None
    factorial = _log_factorials(n)
    log_p = np.log(p)
    left = np.array([n])
    sums, log_mass = np.zeros(1), np.array([factorial[n]])
    for i in range(kinds - 1):
        times = left + 1
        place = np.repeat(np.arange(left.size), times)
        taken = np.arange(place.size) - np.repeat(times.cumsum() - times, times)
        left = left[place] - taken
        sums = sums[place] + taken * loss[i]
        log_mass = log_mass[place] + (taken * log_p[i] - factorial[taken])
    sums += left * loss[-1]
    log_mass += left * log_p[-1] - factorial[left]
    order = np.argsort(sums, kind="stable")
    # Every term and partial sum is at most `size`, and carries a few roundings of it.
    size = n * float(np.abs(log_p).max()) + 2.0 * float(factorial[n]) + 1.0
    error = 8.0 * (kinds + 2) * U * size
    most = float(np.abs(loss).max())
    moved = n * (table.loss_error + 2.0 * (kinds + 2) * U * most) * (1.0 + 1e-9)
    mass = np.exp(log_mass[order])
    return Losses(sums[order], mass, 0.0, error * (1.0 + error), moved), LEAST * mass.size


def _joined(one: float, other: float) -> float:
    """Return the relative error of a product, by those of its factors."""
    return (one + other + one * other) * (1.0 + 1e-9)


@lru_cache(maxsize=16)
def _log_factorials(n: int) -> FloatArray:
    """Return log(k!) for k up to n, to a relative 8 U."""
    found = np.array([math.log(math.factorial(k)) for k in range(n + 1)])
    found.flags.writeable = False
    return found


def _both(one: Losses, other: Losses) -> Losses:
    """Return the sums of two independent losses."""
    sums = (one.loss[:, None] + other.loss).ravel()
    mass = (one.p[:, None] * other.p).ravel()
    order = np.argsort(sums, kind="stable")
    most = float(np.abs(sums).max(initial=0.0))
    infinite = one.infinite_p + other.infinite_p * (1.0 - one.infinite_p)
    return Losses(
        sums[order],
        mass[order],
        infinite,
        _joined(one.relative_error, other.relative_error) + 8.0 * U,
        (one.loss_error + other.loss_error + 2.0 * U * most) * (1.0 + 1e-9),
    )
