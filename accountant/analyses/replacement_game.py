"""Steps of replace-one on fixed numbers of draws, as a game against the best adversary.

An adversary who sees the outputs chooses the contributions of the next step. What it gains is the
largest of a few convolutions in every step. From above that is attained up to the width of the
bands (docs/theorems_sampling.md, Theorems S18 and S19). From below it is played with two choices: a
record that contributes +u among others that contribute -u, while the budget is not overspent, and
the two exchanged afterwards (Theorem S22).

Values are kept where ε is not negative: elsewhere symmetry gives them. From below the knots move
with the loss of a step without the record, so that it hits them; and values are times e^{θε}, a
step's masses times e^{θ·loss}, so that all of a convolution matters alike.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant._core import tools as core
from accountant.analyses.pld.fft import fft_error, fft_size, norm
from accountant.sampling.lattice_envelope import Lattice, LatticeLaw

# Losses further down are raised to it, as a share of the window; from below they are left out.
BELOW = 0.15
# From below the choice is made anew after a power of two of steps, about this many times.
CHOICES = 384


class Value(NamedTuple):
    """Upper bounds on δ at the knots of ε."""

    epsilon: FloatArray
    delta: FloatArray
    loss_error: float

    def at(self, epsilon: float) -> float:
        """Bound δ at ``epsilon``: the chord between two knots, in e^ε."""
        least = epsilon - self.loss_error
        if not self.epsilon[0] <= least:
            # In e^ε it falls by at most as much.
            fall = math.exp(self.epsilon[0]) - math.exp(least)
            return min(float(self.delta[0]) + fall * (1.0 + 1e-9) + 8.0 * U, 1.0)
        place = min(int(np.searchsorted(self.epsilon, least, side="right")), self.epsilon.size) - 1
        if place == self.epsilon.size - 1:
            return float(self.delta[-1])
        share = math.expm1(least - self.epsilon[place])
        share /= math.expm1(self.epsilon[place + 1] - self.epsilon[place])
        share = max(share * (1.0 - 1e-13), 0.0)
        high, low = float(self.delta[place]), float(self.delta[place + 1])
        return min(high - min(share, 1.0) * (high - low), 1.0) * (1.0 + 8.0 * U)

    def epsilon_of(self, delta: float) -> float:
        """Bound ε where δ is ``delta``; infinite beyond the window."""
        small = np.flatnonzero(self.delta <= delta)
        if small.size == 0:
            return math.inf
        place = int(small[0])
        if place == 0:
            return max(float(self.epsilon[0]), 0.0) + self.loss_error
        high, low = float(self.delta[place - 1]), float(self.delta[place])
        rise = math.expm1(self.epsilon[place] - self.epsilon[place - 1])
        share = min((high - delta) / (high - low) * (1.0 + 1e-13), 1.0)
        found = float(self.epsilon[place - 1]) + math.log1p(share * rise)
        return max(found * (1.0 + 1e-14) + 1e-300, 0.0) + self.loss_error


class Reached(NamedTuple):
    """Lower bounds on δ at the knots of ε."""

    epsilon: FloatArray
    delta: FloatArray
    loss_error: float

    def at(self, epsilon: float) -> float:
        """Bound δ at ``epsilon`` from below."""
        place = int(np.searchsorted(self.epsilon, epsilon + self.loss_error, side="left"))
        return float(self.delta[place]) if place < self.epsilon.size else 0.0

    def epsilon_of(self, delta: float) -> float:
        """Bound ε where δ is ``delta`` from below."""
        more = np.flatnonzero(self.delta > delta)
        return max(float(self.epsilon[more[-1]]) - self.loss_error, 0.0) if more.size else 0.0


def play(laws: tuple[LatticeLaw, ...], lattice: Lattice, count: int, size: int) -> Value:
    """Return the adversary's largest δ after ``count`` steps of its choice, from above.

    At multiples of the spacing below ``size`` strides, of which the last is one.
    """
    spacing, stride, reach = lattice
    epsilon: FloatArray = spacing * np.arange(stride * size + 1.0)
    values = np.maximum(-np.expm1(epsilon), 0.0)
    places = lattice.places()
    raised = [_raised(law, lattice.losses()) for law in laws]
    masses, infinite = np.stack([each[0] for each in raised]), np.array([e[1] for e in raised])
    far = places % stride == 0
    below = min(max(math.ceil(BELOW * size), 1), reach)
    coarse = masses[:, far]
    coarse[:, reach - below] += coarse[:, : reach - below].sum(axis=1)
    # The mass of loss 0 is no chord's.
    near = np.concatenate([masses[:, ~far], coarse[:, reach : reach + 1]], axis=1)
    coarse[:, reach] = 0.0
    steps = spacing * np.arange(stride)
    share = np.expm1(steps) / math.expm1(spacing * stride) * (1.0 - 1e-13)
    losses = spacing * np.arange(reach * stride + 1.0)
    near, coarse = (np.ascontiguousarray(part) for part in (near, coarse[:, reach - below :]))
    core.play(
        values,
        count,
        infinite,
        np.append(places[~far], 0),
        near,
        coarse,
        share,
        np.exp(-losses),
        -np.expm1(-losses),
    )
    values *= math.exp(count * max(law.mass_error for law in laws) * 1.01) * (1.0 + 1e-9)
    loss_error = 32.0 * U * (1.0 + spacing * stride * (size + reach))
    return Value(epsilon, np.minimum.accumulate(np.minimum(values, 1.0)), loss_error)


def _raised(law: LatticeLaw, losses: FloatArray) -> tuple[FloatArray, float]:
    """Return masses and that of infinite loss, above the law whatever the error of its losses.

    A loss between two places, the last of which is infinite, is below the chord on both. Values
    are not read beside a knot instead: below ε = 0, where symmetry gives them, that has no proof.
    """
    # Of the distances to the next place and to infinity, 1 - e^{-distance}.
    rest = -np.expm1(-np.append(np.diff(losses), math.inf))
    moved = law.masses * (-np.expm1(-law.loss_error) / rest * (1.0 + 1e-9))
    masses = law.masses - moved
    masses[1:] += moved[:-1]
    return masses, law.infinite + float(moved[-1])


class _Line:
    """Lower bounds on δ at knots ``start`` + k·D, k >= 0, of which the first is next to 0.

    Attributes
    ----------
    value : float64 array
        Bounds times e^{θkD}, so that all of a convolution matters alike.
    """

    def __init__(
        self, spacing: float, size: int, tilt: float, start: float, loss_error: float
    ) -> None:
        self._spacing, self._size, self._tilt = spacing, size, tilt
        self._doubt = loss_error
        self._start = math.remainder(start, spacing)
        self.weight = np.exp(tilt * spacing * np.arange(size))
        self.value = self.weight * np.maximum(-np.expm1(self.epsilon), 0.0)

    @property
    def epsilon(self) -> FloatArray:
        """The knots."""
        return np.asarray(self._start + self._spacing * np.arange(self._size), dtype=np.float64)

    def play(self, kernel: FloatArray, offset: float, count: int) -> None:
        """Take ``count`` steps of tilted masses at the losses ``offset`` + k·D, k >= 0."""
        size, spacing = self._size, self._spacing
        span = fft_size(2 * size + math.ceil(-offset / spacing) + 1)
        transform, whole = np.fft.rfft(kernel, span), np.zeros(span)
        relative = _convolution_error(kernel, span)
        losses: FloatArray = spacing * np.arange(size - 1.0, 0.0, -1.0)
        before = np.exp(-self._tilt * losses)
        for _ in range(count):
            whole[: size - 1] = before * self._mirrored(losses)
            whole[size - 1 : 2 * size - 1] = self.value
            moved = self._move(offset)
            found = np.fft.irfft(transform * np.fft.rfft(whole), span)[size - 1 + moved :][:size]
            found = np.maximum(found - relative * norm(whole), 0.0)
            found *= math.exp(-self._tilt * moved * spacing) * (1.0 - 64.0 * U)
            self.value = np.minimum(found, self.weight)

    def _move(self, offset: float) -> int:
        """Move the knots, and return how many of them are left behind."""
        start = self._start + offset
        moved = math.floor(-0.5 - start / self._spacing) + 1
        self._start = start + moved * self._spacing
        return moved

    def _mirrored(self, losses: FloatArray) -> FloatArray:
        """Return δ at ``start`` less the losses, by symmetry and the next knot's value.

        That is twice the error of all losses away, so that it is valid beside a knot as at it.
        """
        next_knot = 2 + math.floor(2.0 * (self._doubt - self._start) / self._spacing)
        inside = np.zeros(losses.size)
        values = (self.value / self.weight)[next_knot:][: losses.size]
        inside[: values.size] = values
        gain = -np.expm1(self._start - losses)
        return np.asarray(gain + (1.0 - gain) * inside[::-1])


def reach(
    law: LatticeLaw, lattice: tuple[float, float], count: int, tilt: float, first: float = 0.0
) -> Reached:
    """Return what ``count`` steps reach by ``law`` and its mirror image, from below.

    The masses are those of the losses offset + k·spacing, k >= 0, ``lattice`` the spacing and the
    offset. There are as many knots of ε, from about 0, of which one is ``first`` or would be.
    """
    spacing, offset = lattice
    size = law.masses.size
    loss_error = count * (law.loss_error + 4.0 * U * (spacing - offset))
    loss_error += 32.0 * U * (1.0 + size * spacing)
    line = _Line(spacing, size, tilt, first - count * offset, loss_error)
    doublings = max(int(math.log2(max(count / CHOICES, 1.0))), 0)
    slack = 1.0 - 16.0 * U * (1.0 + abs(tilt) * spacing * size)
    single = several = law.masses * line.weight * slack
    for _ in range(doublings):
        several = _squared(several)
    # The last steps come first.
    line.play(single, offset, count % 2**doublings)
    line.play(several, offset * 2**doublings, count >> doublings)
    value = line.value / line.weight * math.exp(-count * law.mass_error * 1.01) * (1.0 - 1e-9)
    return Reached(line.epsilon, value, loss_error)


def _convolution_error(kernel: FloatArray, span: int) -> float:
    """Bound the ℓ2 error of a convolution, in units of the other factor's norm (Theorem G4).

    It is one at every place, too.
    """
    return 1.01 * fft_error(span) * (math.sqrt(span) * norm(kernel) + 2.0 * float(kernel.sum()))


def _squared(kernel: FloatArray) -> FloatArray:
    """Return the kernel of twice as many steps on the same places, from below."""
    span = fft_size(2 * kernel.size)
    found = np.fft.irfft(np.fft.rfft(kernel, span) ** 2, span)[: kernel.size]
    error = _convolution_error(kernel, span) * norm(kernel)
    return np.asarray(np.maximum(found - error, 0.0) * (1.0 - 16.0 * U))
