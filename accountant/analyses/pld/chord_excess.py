"""How much the chords of finitely many losses add to a composition (Theorem G10).

A chord raises the profile of one release inside of its cell alone, by a bump. The composition
exceeds the truth by these bumps, averaged over the sum of the other releases' losses. A
band-limited function above each bump bounds that average by a sum over the characteristic
functions of the tilted losses, at frequencies up to π over the spacing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import scipy.fft

from accountant._rounding import U
from accountant.analyses.pld.fft import Tilted, fft_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from accountant.analyses.pld.atom_grid import AtomsOnGrid
    from accountant.analyses.pld.loss_grid import LossGrid

__all__ = ["ChordExcess", "GridPower", "Tilt", "TiltedAtoms", "chord_excess", "tilted_atoms"]

FloatArray: TypeAlias = "NDArray[np.float64]"
ComplexArray: TypeAlias = "NDArray[np.complex128]"

# Tilted masses so rare, all together, are added to the error of the sum of the others.
RARE = 1e-20
# log of products of moduli that count as errors.
FAINT = -90.0
# log of the least modulus; it keeps quotients finite.
LEAST = -600.0


class Tilt(NamedTuple):
    """Masses m at losses t stand for weights m·e^{tilt (t - centre) - log_scale}."""

    tilt: float
    centre: float
    log_scale: float

    def factors(self, distance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the factors at distances from the centre, and their relative errors."""
        # more only where nothing is
        exponent = np.minimum(self.tilt * distance - self.log_scale, 700.0)
        size = np.abs(distance) + 2.0 * abs(self.centre)
        error = U * (24.0 + 8.0 * abs(self.log_scale) + 8.0 * self.tilt * size)
        return np.exp(exponent), error


class TiltedAtoms(NamedTuple):
    """Tilted weights of the losses of one release, and the largest values of their bumps."""

    distance: FloatArray  # of the losses from the knot ``origin``
    weights: FloatArray
    bumps: FloatArray
    error: float  # relative, of the weights; the bumps are rounded up


class GridPower(NamedTuple):
    """One part of a composition: its tilted law on the grid, and the losses its chords join."""

    law: Tilted
    origin: int  # the knot, counted from the law's first, from which distances are taken
    atoms: TiltedAtoms | None


class ChordExcess(NamedTuple):
    """A bound on what the chords add to the tilted profile, at every ε."""

    step: float  # between frequencies
    spectrum: ComplexArray
    error: float

    def at(self, distance: float, doubt: float) -> float:
        """Return the bound at an ε within ``doubt`` of ``distance`` from the sum of the origins."""
        frequency = self.step * np.arange(self.spectrum.size)
        phase = frequency * distance
        real, imaginary = self.spectrum.real, self.spectrum.imag
        value = float((real * np.cos(phase) - imaginary * np.sin(phase)).sum())
        gross = np.abs(real) + np.abs(imaginary)
        error = float(gross @ frequency) * (8.0 * abs(distance) * U + doubt)
        error += (gross.size + 16) * U * float(gross.sum())
        return max(value, 0.0) + error * (1.0 + 1e-9) + self.error


class _Transform(NamedTuple):
    """Characteristic functions of one part, Σ w e^{-i s t}, and bounds on moduli and errors."""

    chords: ComplexArray
    atoms: ComplexArray | None
    bumps: ComplexArray | None
    log_modulus: FloatArray  # of the larger one, with its error
    relative: FloatArray  # error over modulus


def tilted_atoms(atoms: AtomsOnGrid, knots: LossGrid, origin: int, tilt: Tilt) -> TiltedAtoms:
    """Return the weights of the losses and the largest values of their tilted bumps."""
    spacing = knots.spacing
    factors, error = tilt.factors(knots.offset + atoms.below * spacing - tilt.centre)
    # in the grid's cell everything but the factor of the knot is of order one
    weights = atoms.mass * factors * np.exp(tilt.tilt * atoms.past)
    end = math.exp((tilt.tilt + 1.0) * spacing) * (1.0 + 1e-12)
    height = (np.expm1(-atoms.past) / np.expm1(-spacing)) * -np.expm1(atoms.past - spacing)
    bumps = atoms.mass * factors * (1.0 + error) * height * end
    found = float(error.max(initial=0.0)) + U * (16.0 + 8.0 * tilt.tilt * spacing)
    distance = (atoms.below - (knots.first + origin)) * spacing + atoms.past
    return TiltedAtoms(distance, weights, bumps, found)


def chord_excess(parts: Sequence[GridPower], spacing: float, size: int) -> ChordExcess:
    """Bound what the chords add to the tilted profile of the composition of ``parts``.

    Parameters
    ----------
    parts : sequence of GridPower
        The laws that are composed.
    spacing : float
        Of the grid, in nats.
    size : int
        The grid's period in knots, 2^a or 3·2^a, no shorter than any law.
    """
    size += size * (size % 2)  # frequencies come in pairs, of either sign
    step, half = 2.0 * math.pi / (size * spacing), size // 2
    found = [_transform(part, step, spacing, size) for part in parts]
    counts = [part.law.times for part in parts]
    log_all = sum(k * one.log_modulus for k, one in zip(counts, found, strict=True))
    spectrum, error = np.zeros(half, dtype=np.complex128), 0.0
    for place, (part, one) in enumerate(zip(parts, found, strict=True)):
        if part.atoms is None or one.bumps is None:
            continue
        envelope = log_all - one.log_modulus
        most = counts[place] * float(part.atoms.bumps.sum())
        # The weights of all frequencies together are at most 1 + 2/size.
        error += 1.5 * most * math.exp(FAINT)
        loud = np.flatnonzero(envelope > FAINT)
        # 1 - s/T, T = π/spacing, at frequencies of either sign
        fejer = (4.0 / size) * (1.0 - loud / half)
        fejer[loud == 0] *= 0.5
        relative = 32.0 * U * (sum(counts) + len(parts)) + sum(
            k * each.relative[loud] for k, each in zip(counts, found, strict=True)
        )
        gross = most * fejer * np.exp(envelope[loud])
        error += float((gross * np.expm1(np.minimum(relative, 60.0))).sum())
        error += RARE * counts[place] * math.exp(float(envelope[0])) * 1.01
        spectrum[loud] += fejer * one.bumps[loud] * _others(found, counts, place, loud)
    gross = np.abs(spectrum)
    tail = np.cumsum(gross[::-1])[::-1]
    kept = int(np.searchsorted(-tail, -max(1e-3 * error, 1e-24)))
    error += float(tail[kept]) if kept < half else 0.0
    return ChordExcess(step, spectrum[: max(kept, 1)].copy(), error * (1.0 + 1e-9))


def _others(
    found: Sequence[_Transform], counts: Sequence[int], place: int, at: NDArray[np.intp]
) -> ComplexArray:
    """Return the transform of the sum over j of what surrounds the release that is exchanged.

    Releases before it have their own losses, those after it are on the grid.
    """
    part = found[place]
    chords = part.chords[at]
    product = _telescoped(chords if part.atoms is None else part.atoms[at], chords, counts[place])
    for other, (one, k) in enumerate(zip(found, counts, strict=True)):
        if other != place:
            exact = one.atoms if other < place else None
            product *= _power((one.chords if exact is None else exact)[at], k)
    return product


def _telescoped(a: ComplexArray, b: ComplexArray, count: int) -> ComplexArray:
    """Return Σ_j a^j b^{count-1-j}, j = 0, …, count - 1, by doubling."""
    total, a_power, b_power = np.ones_like(a), a, b  # of one
    for bit in bin(count)[3:]:
        total = total * (a_power + b_power)
        a_power, b_power = a_power * a_power, b_power * b_power
        if bit == "1":
            total = a_power + b * total
            a_power, b_power = a_power * a, b_power * b
    return total


def _power(base: ComplexArray, count: int) -> ComplexArray:
    found = base
    for bit in bin(count)[3:]:
        found = found * found
        if bit == "1":
            found = found * base
    return found


def _transform(part: GridPower, step: float, spacing: float, size: int) -> _Transform:
    half, weights, origin = size // 2, part.law.weights, part.origin
    around = np.zeros(size)
    around[: weights.size - origin] = weights[origin:]
    if origin:
        around[-origin:] += weights[:origin]
    chords = scipy.fft.rfft(around, overwrite_x=True)[:half]
    mass = float(weights.sum())
    error: float | FloatArray = fft_error(size) * math.sqrt(size) * float(np.linalg.norm(weights))
    modulus = _modulus(chords)
    exact = bumps = None
    if part.atoms is not None:
        exact, bumps = _sums(part.atoms, step, half)
        mass = max(mass, float(part.atoms.weights.sum()))
        # of phases, of sines and cosines, of products and sums, and of the weights
        moment = float(part.atoms.weights @ np.abs(part.atoms.distance)) + mass * spacing
        rounding = mass * (8.0 * U * (part.atoms.weights.size + 24.0) + part.atoms.error)
        error = np.maximum(error, 8.0 * U * moment * step * np.arange(half) + rounding + RARE)
        modulus = np.maximum(modulus, _modulus(exact))
    modulus = np.minimum(modulus + error, mass * (1.0 + 1e-12)) + math.exp(LEAST)
    return _Transform(chords, exact, bumps, np.log(modulus) + 1e-14, 1.01 * error / modulus)


def _modulus(z: ComplexArray) -> FloatArray:
    return np.asarray(np.sqrt(z.real**2 + z.imag**2) * (1.0 + 8.0 * U))


def _sums(atoms: TiltedAtoms, step: float, count: int) -> tuple[ComplexArray, ComplexArray]:
    """Return Σ w e^{-ist} for weights and bumps at s = 0, step, …."""
    size = np.maximum(atoms.weights, atoms.bumps)
    order = np.argsort(size)
    kept = order[int(np.searchsorted(np.cumsum(size[order]), RARE)) :]
    t = atoms.distance[kept]
    block = max(math.isqrt(count), 1)
    blocks = count // block + 1
    inner = np.exp(-1j * np.outer(t, step * np.arange(block)))
    outer = np.exp(-1j * np.outer(step * block * np.arange(blocks), t))
    weights = np.asarray((outer * atoms.weights[kept]) @ inner, dtype=np.complex128)
    bumps = np.asarray((outer * atoms.bumps[kept]) @ inner, dtype=np.complex128)
    return weights.ravel()[:count], bumps.ravel()[:count]
