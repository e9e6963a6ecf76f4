"""The transforms of all parts of a composition on real orders, for :mod:`smoothed_line`."""

from __future__ import annotations

import math

import numpy as np

from accountant._basics.arrays import FloatArray
from accountant._basics.rounding import U
from accountant.errors import PrecisionError
from accountant.pairs.base import Parts
from accountant.pairs.line import ATOMS, GAUSSIAN, LAPLACE, LATTICE, RESPONSE, LineLaw
from accountant.pairs.product import infinite_mass

# Distances b = c - 1 that are looked at, for the line itself and for the bounds on aliases.
DISTANCES = np.geomspace(1e-4, 1e9, 400)
# So many runs of randomised response have losses as good as dense beside their deviation.
MANY = 10**9


class Laws:
    """The laws of all parts, as arrays."""

    def __init__(self, parts: Parts) -> None:
        laws = [(_many(law, n), float(n)) for pair, n in parts if (law := pair.line) is not None]
        # Those that decay come first: a node is left out as soon as their product is small.
        laws.sort(key=lambda each: (each[0].kind, -each[0].spread * each[1]))
        self.infinite = infinite_mass(parts)
        self.shift = math.fsum(law.loss_error * n for law, n in laws) * (1.0 + 1e-9)
        self.mass_error = math.fsum(law.relative_error * n for law, n in laws) * (1.0 + 1e-9)
        self.unlisted = math.fsum(law.unlisted * n for law, n in laws) * (1.0 + 1e-9)
        if not self.mass_error < 0.1:
            raise PrecisionError("the masses of the losses have no digits")
        self.smooth = [(law, n) for law, n in laws if law.kind != ATOMS]
        self.atoms = [(law, n) for law, n in laws if law.kind == ATOMS]
        columns = np.array([(law.kind, n, *law[1:4]) for law, n in self.smooth]).reshape(-1, 5)
        self.kind, self.runs, self.spread, self.damping, self.distance = columns.T
        self._on_distances: FloatArray | None = None

    def log_transform(self, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return K(1 + b) = log F(1 + b) of all parts, and a bound on its error, for an array."""
        total, error = np.zeros(b.size), np.zeros(b.size)
        for start in range(0, self.runs.size, 256):
            part = slice(start, start + 256)
            columns = (self.kind, self.spread, self.damping, self.distance)
            kind, spread, damping, distance = (each[part, None] for each in columns)
            value, doubt = _of_smooth(b, kind, spread, damping, distance)
            total += self.runs[part] @ value
            error += self.runs[part] @ doubt
        for law, n in self.atoms:
            exponents = np.log(law.p)[:, None] + b * law.loss[:, None]
            top = exponents.max(axis=0)
            size = np.abs(exponents).max(axis=0)
            value = top + np.log(np.exp(exponents - top).sum(axis=0))
            total += n * value
            error += n * (32.0 + law.p.size + 8.0 * size) * U
        count = self.runs.size + len(self.atoms)
        return total, (error + (count + 2.0) * U * np.abs(total)) * (1.0 + 1e-9)

    def on_distances(self) -> FloatArray:
        """Return K on the distances that are looked at; computed once."""
        if self._on_distances is None:
            with np.errstate(over="ignore", invalid="ignore"):
                self._on_distances = self.log_transform(DISTANCES)[0]
        return self._on_distances

    def saddle(self, epsilon: float) -> float:
        """Return the b at which the integrand is least, among those that are looked at."""
        b = DISTANCES
        return float(b[np.nanargmin(self.on_distances() - b * epsilon - np.log(b * (1.0 + b)))])

    def guess(self, delta: float) -> tuple[float, float]:
        """Return the distance b of the line, and ε, by the saddle-point approximation."""
        b, value = DISTANCES, self.on_distances()
        with np.errstate(all="ignore"):
            slope = np.gradient(value, b)
            epsilon = slope - 1.0 / b - 1.0 / (1.0 + b)
            bend = np.gradient(slope, b) + b**-2.0 + (1.0 + b) ** -2.0
            log_delta = value - b * epsilon - np.log(b * (1.0 + b) * np.sqrt(2.0 * np.pi * bend))
        good = np.isfinite(log_delta)
        # δ falls as b grows
        where = np.flatnonzero(good & (log_delta >= math.log(delta)))
        if where.size == 0 or where[-1] + 1 >= b.size or not good[where[-1] + 1]:
            raise PrecisionError("no line is known to be near the saddle point")
        i = int(where[-1])
        share = (log_delta[i] - math.log(delta)) / (log_delta[i] - log_delta[i + 1])
        guess = epsilon[i] + share * (epsilon[i + 1] - epsilon[i])
        return float(b[i] * (b[i + 1] / b[i]) ** share), float(guess)


def _of_smooth(
    b: FloatArray, kind: FloatArray, spread: FloatArray, damping: FloatArray, distance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log F(1 + b) of every law without atoms, and a bound on its error."""
    value = 0.5 * spread * b * (1.0 + b)
    error = 16.0 * U * np.abs(value)
    lattice, laplace = kind == LATTICE, kind == LAPLACE
    # Theta differs from one by less than 1e-25 where 2π²σ² is above 60.
    near = np.flatnonzero(lattice[:, 0] & (damping[:, 0] < 60.0))
    if near.size:
        g, d = damping[near], distance[near]
        at_c, at_zero = np.ones((near.size, b.size)), np.ones(g.shape)
        doubt = np.full(at_c.shape, 32.0)
        for m in range(1, 7):
            small, angle = np.exp(-g * m * m), 2.0 * np.pi * m * d * (1.0 + b)
            at_c += 2.0 * small * np.cos(angle)
            at_zero += 2.0 * small
            doubt += small * (32.0 + 16.0 * (angle + g * m * m))
        value[near] += np.log(at_c) - np.log(at_zero)
        # Theta is at least 0.6, so that an error of it is at most doubled.
        error[near] += 4.0 * doubt * U
    error = error + np.where(lattice, 1e-19, 0.0)
    response = kind == RESPONSE
    if response.any():
        # F = 1 + 2 sinh(cv/2) sinh(bv/2) / cosh(v/2), of which every digit counts
        with np.errstate(over="ignore", invalid="ignore"):
            excess = 2.0 * np.sinh(0.5 * (1.0 + b) * spread) * np.sinh(0.5 * b * spread)
            exact = np.log1p(excess / np.cosh(0.5 * spread))
        value = np.where(response, exact, value)
        error = np.where(response, 32.0 * U * exact, error)
    if laplace.any():
        twice = 1.0 + 2.0 * b
        far = np.exp(-twice * spread)
        at_c = 1.0 + 1.0 / twice + far * (1.0 - 1.0 / twice)
        exact = b * spread + np.log(0.5 * at_c)
        value = np.where(laplace, exact, value)
        error = np.where(laplace, (64.0 + 8.0 * b * spread + 8.0 * twice * spread * far) * U, error)
    return value, error


def _many(law: LineLaw, count: int) -> LineLaw:
    """Return the law, by its logarithms where it runs very often."""
    if law.kind == ATOMS and law.spread > 0.0 and count >= MANY:
        return LineLaw(RESPONSE, law.spread)
    return law


def rows_of(laws: Laws, b: float, s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the parts, with the smoothing first, as the native core takes them."""
    rows = [(GAUSSIAN, 1.0, s * s, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)]
    for law, n in laws.smooth:
        turns = law.spread / (2.0 * math.pi * law.distance) if law.kind == LATTICE else 0.0
        rows.append((law.kind, n, law.spread, law.damping, law.distance, turns, 0.0, 0.0, 0.0))
    losses, weights = [np.zeros(1)], [np.zeros(1)]
    first = 1
    for law, n in laws.atoms:
        exponents = np.log(law.p) + b * law.loss
        tilted = np.exp(exponents - exponents.max())
        # A weight carries the round-off of its exponent and of the sum.
        doubt = (64.0 + law.p.size + 8.0 * float(np.abs(exponents).max())) * U
        losses.append(law.loss)
        weights.append(tilted / tilted.sum())
        rows.append((ATOMS, n, 0.0, 0.0, 0.0, 1.0, first, law.p.size, doubt))
        first += law.p.size
    return np.array(rows), np.concatenate(losses), np.concatenate(weights)
