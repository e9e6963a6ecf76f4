"""How much the chords of finitely many losses add to a composition (Theorem G10).

A chord raises the profile of one release inside of its cell alone, by a bump. The composition
exceeds the truth by these bumps, averaged over the sum of the other releases' losses. A
band-limited function above each bump bounds that average by a sum over the characteristic
functions of the tilted losses, at frequencies up to π over the spacing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant._rounding import U
from accountant._typing import FloatArray
from accountant.analyses.pld.atom_grid import AtomsOnGrid
from accountant.analyses.pld.fft import Tilted, fft_error
from accountant.analyses.pld.loss_grid import LossGrid
from accountant.analyses.pld.phases import matrix_product, phases
from accountant.analyses.pld.spectrum import (
    between,
    direct_sums,
    direct_terms,
    log_moduli,
    loud_between,
    near,
    node_count,
    second_moment,
)

ComplexArray: TypeAlias = "NDArray[np.complex128]"
IntArray: TypeAlias = "NDArray[np.int64]"

# Tilted masses so rare, all together, are added to the error of the sum of the others.
RARE = 1e-20
# The exponent up to which a mass is tilted in one step, and how much farther in a second.
STEEP, BEYOND = 700.0, 60.0
# log of products of moduli that count as errors.
FAINT = -90.0
# log of the least modulus; it keeps quotients finite.
LEAST = -600.0
# log of the largest power of a law's mass that is looked at.
MOST_LOG = 600.0
# Direct sums of more terms, for each knot of the period, take longer than a transform.
DENSE = 64
# Phases that are held at a time: 32 megabytes.
MOST_PHASES = 2_000_000


class Tilt(NamedTuple):
    """Masses m at losses t stand for weights m·e^{tilt (t - centre) - log_scale}."""

    tilt: float
    centre: float
    log_scale: float

    def weigh(self, masses: FloatArray, distance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return masses at distances from the centre, tilted, and their relative errors."""
        exponent = self.tilt * distance - self.log_scale
        size = np.abs(distance) + 2.0 * abs(self.centre)
        error = U * (24.0 + 8.0 * abs(self.log_scale) + 8.0 * self.tilt * size)
        weights = masses * np.exp(np.minimum(exponent, STEEP))
        if exponent.max(initial=-math.inf) > STEEP:
            # The tilted mass is at most one: such a factor belongs to a mass below the normal
            # doubles, down to e^-745, or to none.
            weights *= np.exp(np.clip(exponent - STEEP, 0.0, BEYOND))
            weights[(exponent > STEEP + BEYOND) & (masses > 0.0)] = math.inf
        return weights, error


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

    frequency: FloatArray
    spectrum: ComplexArray
    error: float

    def at(self, distance: float, doubt: float) -> float:
        """Return the bound at an ε within ``doubt`` of ``distance`` from the sum of the origins."""
        frequency = self.frequency
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
    at_knot, error = tilt.weigh(atoms.mass, knots.offset + atoms.below * spacing - tilt.centre)
    # in the grid's cell everything but the factor of the knot is of order one
    weights = at_knot * np.exp(tilt.tilt * atoms.past)
    height = (np.expm1(-atoms.past) / np.expm1(-spacing)) * -np.expm1(atoms.past - spacing)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the doubles nothing is bounded
        end = np.exp((tilt.tilt + 1.0) * spacing) * (1.0 + 1e-12)
        bumps = at_knot * (1.0 + error) * height * end
    found = float(error.max(initial=0.0)) + U * (16.0 + 8.0 * tilt.tilt * spacing)
    distance = (atoms.below - (knots.first + origin)) * spacing + atoms.past
    return TiltedAtoms(distance, weights, bumps, found)


def chord_excess(
    parts: Sequence[GridPower], spacing: float, size: int, *, fits: bool = True
) -> ChordExcess | None:
    """Bound what the chords add to the tilted profile of the composition of ``parts``.

    None where it takes arrays of all knots and they do not fit (``fits`` is false).

    Parameters
    ----------
    parts : sequence of GridPower
        The laws that are composed.
    spacing : float
        Of the grid, in nats.
    size : int
        The grid's period in knots, 2^a or 3·2^a, no shorter than any law.
    """
    if not all(part.atoms is None or math.isfinite(part.atoms.bumps.sum()) for part in parts):
        return ChordExcess(np.zeros(1), np.zeros(1, dtype=np.complex128), math.inf)
    size += size * (size % 2)  # frequencies come in pairs, of either sign
    step, half = 2.0 * math.pi / (size * spacing), size // 2
    asked = _relevant(parts, spacing, size)
    if asked is None and not fits:
        return None
    found = [_transform(part, asked, step, spacing, size, fits=fits) for part in parts]
    index = np.arange(half) if asked is None else asked
    counts = [part.law.times for part in parts]
    log_all = sum(k * one.log_modulus for k, one in zip(counts, found, strict=True))
    spectrum, error = np.zeros(index.size, dtype=np.complex128), 0.0
    if not float(np.max(log_all)) < MOST_LOG:  # what is rare in the upper law rules the lower one
        return ChordExcess(np.zeros(1), spectrum[:1], math.inf)
    for place, (part, one) in enumerate(zip(parts, found, strict=True)):
        if part.atoms is None or one.bumps is None:
            continue
        envelope = log_all - one.log_modulus
        most = counts[place] * float(part.atoms.bumps.sum())
        # The weights of all frequencies together are at most 1 + 2/size.
        error += 1.5 * most * math.exp(FAINT)
        loud = np.flatnonzero(envelope > FAINT)
        # 1 - s/T, T = π/spacing, at frequencies of either sign
        fejer = (4.0 / size) * (1.0 - index[loud] / half)
        fejer[index[loud] == 0] *= 0.5
        relative = 32.0 * U * (sum(counts) + len(parts)) + sum(
            k * each.relative[loud] for k, each in zip(counts, found, strict=True)
        )
        gross = most * fejer * np.exp(envelope[loud])
        error += float((gross * np.expm1(np.minimum(relative, 60.0))).sum())
        error += RARE * counts[place] * math.exp(float(envelope[0])) * 1.01
        spectrum[loud] += fejer * one.bumps[loud] * _others(found, counts, place, loud)
    gross = np.abs(spectrum)
    if not float(gross.sum()) < math.inf:  # a power overflowed
        return ChordExcess(np.zeros(1), np.zeros(1, dtype=np.complex128), math.inf)
    # Every reading takes a sine for each frequency: those that add less than round-off are left.
    rare = max(1e-3 * error, 1e-24, U * float(gross.sum())) / index.size
    kept = np.flatnonzero(gross > rare)
    error += float(gross[gross <= rare].sum())
    frequency = step * index[kept].astype(np.float64)
    return ChordExcess(frequency, spectrum[kept], error * (1.0 + 1e-9))


def _relevant(parts: Sequence[GridPower], spacing: float, size: int) -> IntArray | None:
    """Return the frequencies where the moduli need not be negligible; None where most need not."""
    nodes = node_count(max(part.law.weights.size for part in parts), size)
    if nodes is None:
        return None
    envelope: FloatArray = np.zeros(nodes // 2)
    least = np.zeros(nodes // 2)
    for part in parts:
        log_modulus = log_moduli(part.law.weights, nodes)
        if part.atoms is not None:
            log_modulus = np.maximum(log_modulus, _log_moduli(part, part.atoms, spacing, nodes))
            least = np.minimum(least, log_modulus)
        envelope += part.law.times * log_modulus
    # One release of some part is exchanged: its modulus is left out.
    found = loud_between(envelope - least > FAINT, nodes, size)
    return None if found is None else found[found < size // 2]


def _log_moduli(part: GridPower, atoms: TiltedAtoms, spacing: float, nodes: int) -> FloatArray:
    """Bound the logarithm of the modulus of the losses themselves between the nodes."""
    core, place = near(part.law.weights, nodes), atoms.distance / spacing + part.origin
    inside = (place >= core.start - 1) & (place <= core.stop)
    mass = float(atoms.weights.sum()) * (1.0 + 1e-12 + atoms.error)
    far = float(atoms.weights[~inside].sum()) * (1.0 + 1e-12 + atoms.error)
    step, kept = 2.0 * math.pi / (nodes * spacing), place[inside] - float(core.start)
    shown = TiltedAtoms(kept * spacing, atoms.weights[inside], np.zeros(kept.size), atoms.error)
    sums = _sums(shown, step, nodes // 2 + 1)[0]
    reach = (core.stop - core.start + 2.0) * math.pi
    farthest = float(np.abs(place).max(initial=0.0))
    reach += 4.0 * farthest  # its rounding, and that of the phase
    error = mass * (8.0 * U * (reach + kept.size + 24.0) + atoms.error) + RARE
    moment = second_moment(shown.weights, kept, 8.0 * U * farthest)
    return between(_modulus(sums) + error, mass, moment, far, nodes)


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


def _transform(
    part: GridPower, asked: IntArray | None, step: float, spacing: float, size: int, *, fits: bool
) -> _Transform:
    weights, origin = part.law.weights, part.origin
    mass = float(weights.sum())
    error: float | FloatArray
    index = np.arange(size // 2) if asked is None else asked
    if asked is not None and (not fits or direct_terms(weights) * asked.size <= DENSE * size):
        chords, error = direct_sums(weights, origin, asked, size)
    else:
        around = np.zeros(size)
        around[: weights.size - origin] = weights[origin:]
        if origin:
            around[-origin:] += weights[:origin]
        every = np.fft.rfft(around)
        chords = every[: size // 2] if asked is None else every[asked]
        error = fft_error(size) * mass * (1.0 + 1e-12)
    modulus = _modulus(chords)
    exact: ComplexArray | None = None
    bumps: ComplexArray | None = None
    if part.atoms is not None:
        if asked is None:
            exact, bumps = _sums(part.atoms, step, index.size)
        else:
            exact, bumps = _sums_at(part.atoms, step * asked)
        mass = max(mass, float(part.atoms.weights.sum()))
        # of phases, of sines and cosines, of products and sums, and of the weights
        moment = float(part.atoms.weights @ np.abs(part.atoms.distance)) + mass * spacing
        rounding = mass * (8.0 * U * (part.atoms.weights.size + 24.0) + part.atoms.error)
        error = np.maximum(error, 8.0 * U * moment * step * index + rounding + RARE)
        modulus = np.maximum(modulus, _modulus(exact))
    modulus = np.minimum(modulus + error, mass * (1.0 + 1e-12)) + math.exp(LEAST)
    return _Transform(chords, exact, bumps, np.log(modulus) + 1e-14, 1.01 * error / modulus)


def _modulus(z: ComplexArray) -> FloatArray:
    return np.asarray(np.sqrt(z.real**2 + z.imag**2) * (1.0 + 8.0 * U))


def _sums_at(
    atoms: TiltedAtoms, frequency: NDArray[np.floating]
) -> tuple[ComplexArray, ComplexArray]:
    """Return Σ w e^{-ist} for weights and bumps at the given s, some rows of phases at a time."""
    both = np.stack([atoms.weights, atoms.bumps], axis=1)
    rows = max(MOST_PHASES // max(atoms.distance.size, 1), 1)
    found = np.empty((frequency.size, 2), dtype=np.complex128)
    for first in range(0, frequency.size, rows):
        turned = phases(np.outer(frequency[first : first + rows], atoms.distance))
        found[first : first + rows] = matrix_product(turned, both)
    return found[:, 0].copy(), found[:, 1].copy()


def _sums(atoms: TiltedAtoms, step: float, count: int) -> tuple[ComplexArray, ComplexArray]:
    """Return Σ w e^{-ist} for weights and bumps at s = 0, step, …."""
    size = np.maximum(atoms.weights, atoms.bumps)
    order = np.argsort(size)
    kept = order[int(np.searchsorted(np.cumsum(size[order]), RARE)) :]
    t = atoms.distance[kept]
    block = max(math.isqrt(count), 1)
    blocks = count // block + 1
    inner = phases(np.outer(t, step * np.arange(block)))
    outer = phases(np.outer(step * block * np.arange(blocks), t))
    weights = matrix_product(outer * atoms.weights[kept], inner)
    bumps = matrix_product(outer * atoms.bumps[kept], inner)
    return weights.ravel()[:count], bumps.ravel()[:count]
