"""A composition by few frequencies (Theorem G11), against powers of polynomials in balls."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from flint import arb, arb_poly, ctx
from mpmath import mp

import accountant as ac
from accountant.analyses import pld
from accountant.analyses.pld import spectrum
from accountant.analyses.pld.fft import Tilted, compose, fft_size, product_of, reading, total_sums
from accountant.analyses.pld.spectrum import (
    direct_sums,
    few_frequencies,
    log_moduli,
    loud_between,
    loud_frequencies,
    second_moment,
)


@pytest.fixture(autouse=True)
def balls(monkeypatch):
    monkeypatch.setattr(spectrum, "LEAST", 2)
    monkeypatch.setattr(spectrum, "SHARE", 1.0)
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


def weights(generator, size, kind):
    """Return weights of sum one to rounding: spread, a few heavy ones, or every other knot."""
    a = np.array([generator.random() ** 3 for _ in range(size)])
    if kind == "heavy":
        a *= 1e-6
        a[[0, size // 3, size - 1]] += [0.5, 0.2, 0.3]
    if kind == "gaps":
        a[1::2] = 0.0
    if kind == "far":
        a[1:-1] *= 1e-12
        a[-1] = 1e-4
    return a / a.sum()


def power(parts, size):
    """Return the exact cyclic convolution, as balls from the sum of the first knots on."""
    total = arb_poly([1])
    for part in parts:
        total *= arb_poly([arb(float(w)) for w in part.weights]) ** part.times
    wrapped = [arb(0)] * size
    for i in range(total.degree() + 1):
        wrapped[i % size] += total[i]
    return wrapped


def truth(wrapped, start, law, count, index, nearest, spacing, tilt):
    """Return Σ over ``count`` knots from ``index`` on, as :meth:`Spectrum.sums` defines it."""
    found = arb(0)
    for m in range(count):
        v = m * arb(spacing)
        weight = (-(arb(tilt) * v)).exp() * (1 - (-(v + arb(nearest))).exp())
        found += wrapped[(index + m - start) % law.size] * weight
    return found


def check(parts, first, size, tilt, spacing, epsilon):
    """Assert all ways to evaluate one composition at one ε; return the error of the narrowest."""
    start = sum(part.first * part.times for part in parts)
    product, exact, errors = product_of(parts, size), None, []
    few = few_frequencies(parts, first, size, 0.0)
    loud = loud_frequencies(product, first, size, 0.0)
    full = compose(parts, first, size, 0.0)
    for law in (few, loud, full):
        if law is None:
            continue
        given = 0.0, spacing, tilt, epsilon, 2**60
        value, error, _, nearest = total_sums(law, *given) if law is full else law.sums(*given)
        if exact is None:
            index = round((nearest + epsilon) / spacing)
            window = first + size - index, index, nearest, spacing, tilt
            exact = truth(power(parts, size), start, law, *window)
        assert abs(arb(value) - exact) <= arb(error), (type(law), value, error, exact)
        errors.append(error)
    assert loud is not None
    return few, min(errors)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("kind", ["spread", "heavy", "gaps", "far"])
@pytest.mark.parametrize(("length", "times"), [(2, 900), (9, 400), (40, 60), (150, 7)])
def test_a_power_is_within_the_error(kind, length, times):
    generator = random.Random(f"{kind} {length} {times}")
    parts = [Tilted(weights(generator, length, kind), -length // 3, times)]
    size = fft_size(length * times)
    start = parts[0].first * times
    spacing, tilt = 10.0 ** generator.uniform(-4, -1), 10.0 ** generator.uniform(-1, 1.5)
    mean = parts[0].weights @ np.arange(length)
    middle = start + times * mean
    for shift in (0.0, -0.03, 0.04):
        epsilon = (middle + shift * length * times) * spacing
        _, error = check(parts, start, size, tilt, spacing, epsilon)
        assert error <= 1e-10


def test_several_parts_and_a_window_narrower_than_the_law():
    generator = random.Random(5)
    parts = [
        Tilted(weights(generator, 30, "spread"), -4, 80),
        Tilted(weights(generator, 12, "heavy"), 3, 50),
    ]
    start = sum(part.first * part.times for part in parts)
    middle = sum(p.times * (p.first + p.weights @ np.arange(p.weights.size)) for p in parts)
    for size in (512, 1536):
        first = round(middle) - size // 2
        few, error = check(parts, first, size, 0.7, 0.03, middle * 0.03)
        assert error <= 1e-10
        assert few is None or few.whole == (first <= start)


def test_the_same_as_a_transform_and_its_inverse():
    generator = random.Random(9)
    part = Tilted(weights(generator, 60, "spread"), 0, 300)
    size = fft_size(60 * 300)
    few = few_frequencies([part], 0, size, 1e-9)
    full = compose([part], 0, size, 1e-9)
    assert few.frequencies.size < size // 20
    assert few.size == full.size
    for knot in (5000, 8000, 12000):
        given = 0.0, 1e-3, 3.0, knot * 1e-3 + 3e-4, 60 * 300
        one, other = few.sums(*given), total_sums(full, *given)
        assert one[0] == pytest.approx(other[0], abs=1e-13)
        assert one[2] == pytest.approx(other[2], abs=1e-13)
        assert one[3] == other[3]
        assert one[1] >= 1e-9 * math.exp(-3.0 * 20.0)
    # beyond the last knot that carries anything
    assert few.sums(0.0, 1e-3, 3.0, 20.0, 60 * 300)[0] == 0.0


def test_where_most_frequencies_matter_there_is_none(monkeypatch):
    part = Tilted(np.array([0.5, 0.0, 0.5]), 0, 400)
    product = product_of([part], 1024)
    assert few_frequencies([part], 0, 1024, 0.0) is not None
    monkeypatch.setattr(spectrum, "MOST", 10)
    assert few_frequencies([part], 0, 1024, 0.0) is None
    assert loud_frequencies(product, 0, 1024, 0.0) is None
    monkeypatch.setattr(spectrum, "LEAST", 2**13)
    assert few_frequencies([part], 0, 1024, 0.0) is None
    assert loud_frequencies(product, 0, 1024, 0.0) is None
    # no narrower than the sum
    assert few_frequencies([Tilted(np.full(2**12, 2.0**-12), 0, 4)], 0, 2**14, 0.0) is None


@pytest.mark.parametrize("tilt", [0.05, 2.0, 900.0])
@pytest.mark.parametrize("spacing", [1e-5, 0.03])
@pytest.mark.parametrize("first", [0.01, 1.0, 7.0])
def test_what_an_error_of_one_does(tilt, spacing, first):
    """The bound is above the sum over frequencies of the weights' transforms."""
    for size, count in ((64, 64), (96, 40), (512, 3), (512, 512)):
        nearest = first * spacing
        m = np.arange(count)
        w = np.exp(-tilt * m * spacing) * -np.expm1(-nearest - m * spacing)
        gross = np.abs(np.fft.fft(w, size)).sum() / size
        assert gross <= reading(tilt, spacing, size, nearest, count)
        if count == size and first == 1.0 and tilt * spacing * size >= 4.0 and tilt < 10.0:
            assert reading(tilt, spacing, size, nearest, count) <= 4.0 * gross


def test_windows_larger_than_memory_are_read_by_few_frequencies():
    pair = ac.PoissonSampled(ac.Laplace(1.0), 0.001).pairs()[0]
    found = pld.epsilon_bounds([(pair, 100_000)], 1e-5, memory_cap=2**25)
    assert found.upper - found.lower <= 1e-6 * found.upper
    # a finer grid of the same problem, by transforms of all knots
    assert 1.104251 < found.lower <= found.upper < 1.104253


def test_short_laws_to_a_high_power_have_few_frequencies():
    """Their moduli are next to one, from which a transform of their length cannot tell them."""
    heavy = np.zeros(400)
    heavy[[0, 173, 399]] = [0.5, 0.3, 0.2]
    part = Tilted(heavy, 0, 10**6)
    size, middle = 2**24, round(10**6 * float(heavy @ np.arange(400)))
    law = few_frequencies([part], middle - size // 2, size, 0.0)
    assert law is not None
    assert law.frequencies.size < 5000


def test_second_moments_are_least_about_the_mean():
    weights, place = np.array([0.25, 0.5, 0.25]), np.array([10, 12, 18])
    assert second_moment(weights, place) == 9.0
    assert second_moment(weights, place, 1e-3) > second_moment(weights, place)
    assert second_moment(np.zeros(3), place) == 0.0


@pytest.mark.parametrize("mass", [1e-145, 1e-160, 1e-300])
def test_moduli_whose_squares_underflow_are_bounded(mass):
    heavy = np.zeros(400)
    heavy[[0, 173, 399]] = mass * np.array([0.5, 0.3, 0.2])
    bounds = log_moduli(heavy, 2**13)
    assert np.all(np.isfinite(bounds))
    angle = (np.arange(2**12) + 0.5) * (2.0 * math.pi / 2**13)
    exact = np.abs(np.exp(-1j * np.outer(angle, np.arange(400))) @ (heavy / mass))
    assert np.all(np.log(exact) + math.log(mass) <= bounds + 1e-9)


@pytest.mark.parametrize(("tilt", "spacing"), [(10.0, 1.0), (2.0, 3.0), (0.3, 0.1), (40.0, 0.01)])
def test_mass_outside_may_lie_at_the_first_knot(tilt, spacing):
    """Also where ε is so far below it that the weights fall from there on."""
    part = Tilted(np.array([0.5, 0.3, 0.2]), 0, 300)
    outside = 1e-3
    law = few_frequencies([part], 0, 1024, outside)
    for nearest in (spacing, 0.25 * spacing, 3.0 * spacing):
        _, error, _, found = law.sums(0.0, spacing, tilt, -nearest, 2**60)
        assert found == nearest
        v = nearest + np.linspace(0.0, 30.0 * spacing, 3001)
        assert error >= outside * (np.exp(-tilt * (v - nearest)) * -np.expm1(-v)).max()


def test_turns_are_the_shorter_way_round():
    size = 2**30
    for decay in (1e-12, 1e-3):
        for turns in (1, 7, size // 2, size - 7, size - 1):
            found = spectrum._complement(decay, np.array([turns]), size)[0]
            angle = 2 * arb.pi() * turns / size
            shrunk = (-arb(decay)).exp()
            real, imaginary = 1 - shrunk * angle.cos(), -shrunk * angle.sin()
            off = (arb(found.real) - real) ** 2 + (arb(found.imag) - imaginary) ** 2
            assert off.sqrt() <= 16.0 * 2.0**-53 * (real**2 + imaginary**2).sqrt()


def test_turns_beyond_the_integers_are_refused():
    last = np.arange(2**21) == 2**21 - 1
    found = loud_between(last, 2**22, 2**31)
    assert found is not None
    assert int(found[-1]) == 2**30
    assert loud_between(last, 2**22, 2**34) is None


@pytest.mark.parametrize("carrying", [1, 5, 33, 600, 1500])
def test_few_knots_are_summed_alone(carrying):
    rng = np.random.default_rng(carrying)
    size, length, centre = 2**24, 50_000, 20_000
    weights = np.zeros(length)
    weights[rng.choice(length, carrying, replace=False)] = rng.random(carrying)
    loud = np.array([0, 1, 12345, size // 2])
    found, error = direct_sums(weights, centre, loud, size)
    with mp.workdps(30):
        for frequency, value in zip(loud.tolist(), found.tolist(), strict=True):
            places = np.flatnonzero(weights).tolist()
            turns = [mp.mpf(-2 * frequency * (i - centre)) / size for i in places]
            exact = sum(
                mp.mpf(float(weights[i])) * mp.expjpi(turn)
                for i, turn in zip(places, turns, strict=True)
            )
            assert abs(mp.mpc(value) - exact) <= error
    assert error <= 1e-12 * carrying


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("finer", [1, 2, 4, 16])
def test_moduli_are_bounded_between_few_nodes(finer):
    """As many nodes as knots suffice for a bound, though for a rough one."""
    rng = np.random.default_rng(finer)
    weights = rng.random(400) * np.exp(-0.5 * ((np.arange(400) - 120) / 30.0) ** 2)
    weights /= weights.sum()
    nodes = 512 * finer
    bounds = log_moduli(weights, nodes, finer)
    angle = np.linspace(0.0, math.pi, 20_001)[1:-1]
    exact = np.abs(np.exp(-1j * np.outer(angle, np.arange(400))) @ weights)
    at = np.minimum((angle * nodes / (2.0 * math.pi)).astype(int), bounds.size - 1)
    assert np.all(np.log(exact) <= bounds[at] + 1e-12)


def test_a_quarter_of_the_nodes_mostly_tells_which_frequencies_matter(monkeypatch):
    asked = []
    monkeypatch.setattr(
        spectrum, "log_moduli", lambda *given: asked.append(given[1]) or log_moduli(*given)
    )
    part = Tilted(np.full(500, 1.0 / 500), 0, 10**5)
    size = 2**21
    law = few_frequencies([part], 10**5 * 250 - size // 2, size, 0.0)
    assert law is not None
    assert asked == [spectrum.node_count(500, size) // 4]
    # two knots, whose moduli are next to one at frequencies that few nodes do not tell apart
    asked.clear()
    two = np.zeros(500)
    two[[0, 499]] = 0.5
    few_frequencies([Tilted(two, 0, 3)], 0, 2**16, 0.0)
    assert asked == [spectrum.node_count(500, 2**16) // 4, spectrum.node_count(500, 2**16)]
