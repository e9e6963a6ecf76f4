"""Discrete pairs: the masses of finitely many losses, as those of randomised response."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.files import ModuleLock
from accountant._basics.rounding import TINY, U, lift, up
from accountant.bounds import Bounds
from accountant.environment import to_nearest
from accountant.pairs.base import ATOMS, DominatingPair, LineLaw, Masses
from accountant.pairs.base import Atoms as Atoms
from accountant.pairs.excess import divergence, rdp_excess_terms


class AtomicPair(DominatingPair):
    """A pair whose loss takes countably many values; subclasses provide :meth:`atoms`.

    Subclasses are frozen dataclasses: the atoms of equal pairs are computed once.
    """

    @abstractmethod
    def atoms(self) -> Atoms:
        """Return the atoms; those of next to no mass may be left out."""

    @property
    def _table(self) -> Atoms:
        # A pair with few atoms keeps them itself: a question asks for them dozens of times.
        own: dict[str, Atoms] = self.__dict__
        if "_few" in own:
            return own["_few"]
        table = _remembered(self)
        if table.loss.size <= FEW:
            own["_few"] = table
        return table

    @property
    def loss_atoms(self) -> Atoms:
        """The atoms, computed once."""
        return self._table

    @cached_property
    def support(self) -> tuple[float, float]:
        """The least and the largest finite loss, moved out by the error they carry."""
        loss, error = self._table.loss, self._table.loss_error
        low, high = float(loss[0]), float(loss[-1])
        if error == 0.0:
            return low, high
        return math.nextafter(low - error, -math.inf), math.nextafter(high + error, math.inf)

    @cached_property
    def pure_epsilon(self) -> float:
        """As of every pair, computed once."""
        return super().pure_epsilon

    @property
    def lattice(self) -> tuple[float, float] | None:
        """The lattice of two atoms, which always lie on one, or of a few that happen to."""
        distinct = np.unique(self._table.loss)
        if distinct.size == 2:
            return float(distinct[0]), float(distinct[1] - distinct[0])
        if not 2 < distinct.size <= FEW_SPACED:
            return None
        return _spaced(distinct)

    @property
    def infinite_mass(self) -> float:
        """P{L = +∞}, rounded up."""
        return min(up(self._table.infinite_p * (1.0 + self._table.relative_error), 4.0), 1.0)

    @property
    def has_negative_infinite_loss(self) -> bool:
        """Whether Q has outcomes that P has not."""
        return self._table.infinite_q > 0.0

    @property
    def loss_error(self) -> float:
        """The error of the losses."""
        return self._table.loss_error

    @property
    def line(self) -> LineLaw | None:
        """The atoms, where they are few."""
        found = listed(self)
        return found if found is not None and found.p.size <= MOST_ON_A_LINE else None

    def masses(self, edges: FloatArray) -> Masses:
        """Return the masses of the cells: sums of the atoms in them."""
        edges = np.asarray(edges, dtype=np.float64)
        table = self._table
        cell = np.searchsorted(edges, table.loss, side="left")
        size = edges.size + 1
        p = np.bincount(cell, weights=table.p, minlength=size).astype(np.float64)
        q = np.bincount(cell, weights=table.q, minlength=size).astype(np.float64)
        p[-1] += table.infinite_p
        q[0] += table.infinite_q
        # A sum of k positive terms loses at most k units of roundoff.
        most = int(np.bincount(cell, minlength=size).max(initial=0)) + 1
        return Masses(p, q, (table.relative_error + most * U) * (1.0 + 1e-9))

    def finite_rdp(self, order: float) -> float:
        """Return the divergence of the finite losses, rounded up."""
        table = self._table
        # A - 1 = Σ q·(e^{αL} - 1 - α(e^L - 1)) + (α - 1)·Q{-∞} - α·P{∞}: positive terms, but for
        # the last (Theorem M12). Losses are taken at their largest within the error they carry.
        error = 2.0 * table.relative_error + (1024.0 + 8.0 * order) * U
        rest = (order - 1.0) * table.infinite_q * (1.0 + error)
        rest -= order * table.infinite_p * (1.0 - error)
        shift = table.loss_error
        if order * float(np.abs(table.loss).max()) < 600.0:
            outwards = table.loss + np.copysign(shift, table.loss)
            # Positive terms, each added up with the others in any order.
            excess = float((_seen(table.q) * rdp_excess_terms(order, outwards)).sum())
            error += table.loss.size * U
            if shift > 0.0 or np.any(table.loss != 0.0):
                excess = lift(excess)
            return divergence(max(excess * (1.0 + error) + rest, 0.0), order)
        if (order - 1.0) * float(np.abs(table.loss).max()) > 1e300:
            # The largest loss, and a bound on how far the total mass may exceed one.
            most = max(float(table.loss.max()) + shift, 0.0)
            return up(most + error / min(order - 1.0, 1.0), 32.0)
        # E_P[e^{(α-1)L}]: unlike q, a loss does not underflow.
        exponents = np.log(_seen(table.p)) + (order - 1.0) * (table.loss + shift)
        top = float(exponents.max())
        total = top + math.log(float(np.exp(exponents - top).sum()))
        # log p and (α - 1)·L carry a few units of their size.
        error += 8.0 * U * (700.0 + (order - 1.0) * float(np.abs(table.loss).max()))
        error += exponents.size * U
        return up(max(total + math.log1p(2.0 * error), 0.0) / (order - 1.0), 32.0)

    def profile(self, epsilon: float) -> Bounds:
        """Bracket H(ε) by a sum over the atoms above ε."""
        return profile_of_losses(self._table, epsilon)


def listed(pair: DominatingPair) -> LineLaw | None:
    """Return the losses of more than next to no mass as one law, where the loss is discrete."""
    table = pair.loss_atoms
    if table is None or not (kept := table.p > max(table.doubtful, 1e-280)).any():
        return None
    rest = float(table.p[~kept].sum()) * 1.001 + table.loss.size * TINY
    return LineLaw(
        ATOMS,
        loss=table.loss[kept],
        p=table.p[kept],
        relative_error=table.relative_error,
        loss_error=table.loss_error,
        unlisted=rest,
    )


@dataclass(frozen=True)
class ResponsePair(AtomicPair):
    """Losses ε, 0 and -ε, and an infinite one.

    Parameters
    ----------
    bound : float
        ε >= 0.
    others : int
        Number of outcomes of loss 0 beside the two of loss ±ε.
    infinite : float
        Mass of the infinite losses, in [0, 1].
    """

    bound: float
    others: int = 0
    infinite: float = 0.0

    def atoms(self) -> Atoms:
        """Return three atoms at most."""
        if self.bound == math.inf:  # a quotient beyond the doubles: its losses dominate it
            return ResponsePair(0.0, self.others, 1.0).atoms()
        e, k = self.bound, float(self.others)
        down = math.exp(-e)
        most = (1.0 - self.infinite) / (1.0 + down + k * down)
        # A mass that underflows is below 1e-300, which `Masses` allows to ignore.
        masses, loss = [down * most, most], [-e, e]
        if self.others:
            masses.insert(1, k * down * most)
            loss.insert(1, 0.0)
        p, q = np.array(masses), np.array(masses[::-1])
        return Atoms(np.array(loss), p, q, self.infinite, self.infinite, 32.0 * U, 0.0)

    @property
    def pure_epsilon(self) -> float:
        """The ε, where no loss is infinite."""
        return math.inf if self.infinite > 0.0 else self.bound

    @property
    def infinite_mass(self) -> float:
        """As given, exactly."""
        return self.infinite if self.bound < math.inf else 1.0

    @property
    def line(self) -> LineLaw | None:
        """The atoms; two of opposite losses alone have a transform whose powers have all digits."""
        found = super().line
        if found is None or self.others or self.infinite or not self.bound > 0.0:
            return found
        return found._replace(spread=self.bound)

    @property
    def lattice(self) -> tuple[float, float] | None:
        """Multiples of ε, or of 2ε when 0 is not among them."""
        spacing = self.bound if self.others else 2.0 * self.bound
        return (-self.bound, spacing) if 0.0 < spacing < math.inf else None


def _spaced(losses: FloatArray) -> tuple[float, float] | None:
    """Return the first loss and the spacing, where distances from it are multiples to rounding."""
    # Losses that differ by rounding alone are one.
    gaps, doubt = np.diff(losses), 8.0 * U * float(np.abs(losses).max())
    apart = gaps[gaps > doubt]
    if apart.size == 0:
        return None
    first, length = float(losses[0]), float(losses[-1] - losses[0])
    steps = round(length / float(apart.min()))
    if steps > MOST_STEPS:
        return None
    spacing = length / steps
    off = losses - first - spacing * np.rint((losses - first) / spacing)
    return None if np.any(np.abs(off) > doubt) else (first, spacing)


def profile_of_losses(table: Atoms, epsilon: float) -> Bounds:
    """Bracket H(ε) of a table by a sum over its losses above ε."""
    shift, first = table.loss_error, 0
    if epsilon >= 0.0 and shift < 1e280:
        # The losses are in order. No difference to those above ε overflows.
        first = int(table.loss.searchsorted(epsilon - 2.0 * shift))
        beyond = epsilon - table.loss[first:]
    else:
        with np.errstate(over="ignore"):
            beyond = epsilon - table.loss
    masses = table.p[first:]
    least = most = _lost(masses, beyond)
    if shift > 0.0:
        least, most = _lost(masses, beyond + shift), _lost(masses, beyond - shift)
    size = table.p.size
    error = 4.0 * table.relative_error + (size + 16) * U
    # Each mass may be off by as much as all that are not listed carry.
    faint = (size + 1) * table.absolute_error if table.absolute_error < TINY else TINY
    upper = (most + table.infinite_p) * (1.0 + error) + faint
    lower = (least + table.infinite_p) * (1.0 - error) - faint
    upper = max(min(up(upper, 4.0), 1.0), -math.expm1(min(epsilon, 0.0)))
    return Bounds(min(max(lower, 0.0), upper), upper)


def _lost(masses: FloatArray, beyond: FloatArray) -> float:
    """Return the sum of masses times ``1 - e^beyond``, where that is positive."""
    # Not by BLAS, whose threads take longer to wake than the sum takes.
    return float((masses * -np.expm1(np.minimum(beyond, 0.0))).sum())


def _seen(masses: FloatArray) -> FloatArray:
    """Raise masses that underflow may have made inexact or zero."""
    return np.where(masses < 1e-290, masses + TINY, masses)


# Losses that one node of a line sums up, at most (it affects speed alone).
MOST_ON_A_LINE = 64
# A table with more atoms than this is shared by equal pairs; a smaller one is kept by its pair.
# This and the next two affect speed and memory alone.
FEW = 256
# Shared tables that are kept, in the order of their last use.
MOST_TABLES = 512
# Bytes of all shared tables together, or of one larger table.
MOST_BYTES = 64 * 2**20
# Losses up to which a common spacing is looked for.
FEW_SPACED = 64
# Steps of a common spacing that the losses may span.
MOST_STEPS = 1024
_tables: OrderedDict[AtomicPair, Atoms] = OrderedDict()
_lock = ModuleLock()


@to_nearest
def _remembered(pair: AtomicPair) -> Atoms:
    """Return the atoms of a pair; many are computed again only when the cache has evicted them."""
    if _tables:
        with _lock:
            if pair in _tables:
                _tables.move_to_end(pair)
                return _tables[pair]
    table = pair.atoms()
    for column in (table.loss, table.p, table.q):
        column.flags.writeable = False
    if table.loss.size <= FEW:
        return table
    with _lock:
        _tables[pair] = table
        total = sum(map(_bytes, _tables.values()))
        while len(_tables) > 1 and (total > MOST_BYTES or len(_tables) > MOST_TABLES):
            total -= _bytes(_tables.popitem(last=False)[1])
    return table


def _bytes(table: Atoms) -> int:
    return sum(column.nbytes for column in (table.loss, table.p, table.q))
