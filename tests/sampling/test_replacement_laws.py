"""Laws of one step under replace-one are above every choice of contributions (S18, S20)."""

import math

import numpy as np
import pytest

from accountant.sampling import replacement_laws
from accountant.sampling.lattice_envelope import Lattice, options_of
from accountant.sampling.replacement_laws import Corner, bands, laws_above
from accountant.sampling.replacement_pair import Draws

EPSILONS = np.array([-1.0, -0.3, -0.05, 0.0, 0.02, 0.1, 0.4, 1.0, 2.0])
LATTICE = Lattice(0.005, 4, 600)


def profiles(laws):
    losses = LATTICE.losses()
    for law in laws:
        gain = np.maximum(-np.expm1(EPSILONS[:, None] - losses), 0.0)
        yield gain @ law.masses + law.infinite


def profile_of(weights, first, second):
    """Return the profile of Σ w_k N(A_k, I) against Σ w_k N(B_k, I) by a plain sum."""
    x, y = np.meshgrid(np.linspace(-12, 12, 601), np.linspace(-12, 12, 601), indexing="ij")
    noise = np.exp(-(x * x + y * y) / 2) / (2 * math.pi) * 0.04**2

    def density(means):
        return sum(
            w * np.exp(a * x + b * y - (a * a + b * b) / 2)
            for w, (a, b) in zip(weights, means, strict=True)
        )

    u, v = density(first), density(second)
    return np.array([(noise * np.maximum(u - math.exp(e) * v, 0.0)).sum() for e in EPSILONS])


def once(q, a, b):
    """Return the profile of (1-q)N(0) + qN(a) against (1-q)N(0) + qN(b), one integral by hand."""
    strikes = np.exp(EPSILONS)[:, None]
    length = max(np.linalg.norm(a), np.linalg.norm(b))
    axis = (a if np.linalg.norm(a) > 0 else b) / (np.linalg.norm(a) or length)
    own, along = a @ axis, b @ axis
    across = math.sqrt(max(b @ b - along * along, 0.0))
    if across < 1e-9:
        x = np.linspace(-12, 14, 2**18)
        u, v = (1 - q + q * np.exp(c * x - c * c / 2) for c in (own, along))
        inside = np.maximum(u - strikes * v, 0.0)
    else:
        x = np.linspace(-12, 14, 4001)
        u = 1 - q + q * np.exp(own * x - own * own / 2)
        moved = q * np.exp(along * x - along * along / 2)
        # v = 1 - q + moved·e^{across·y - across²/2} is u/γ at one y.
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.maximum(u / strikes - (1 - q), 0.0) / moved
            y = np.log(ratio) / across + across / 2
        below = np.vectorize(lambda t: 0.5 * math.erfc(-t / math.sqrt(2)))
        inside = (u - strikes * (1 - q)) * below(y) - strikes * moved * below(y - across)
    noise = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    return inside @ noise


def in_ball(rng):
    point = rng.normal(size=2)
    return point / np.linalg.norm(point) * rng.choice([1.0, 1.0, 0.6])


def configurations(seed, count):
    rng = np.random.default_rng(seed)
    corner = np.array([1.0, 0.0])
    yield corner, -corner, -corner, -corner  # stands out
    yield -corner, corner, -corner, corner
    yield corner, np.array([0.28, 0.96]), -corner, -corner
    for _ in range(count):
        yield tuple(in_ball(rng) for _ in range(4))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("unit", [0.5, 1.0])
def test_some_law_is_above_every_pair_of_a_fixed_size(unit):
    q = 0.1
    above = list(profiles(laws_above(Draws((1 - q, q), unit), LATTICE)))
    for x, other, z, _ in configurations(1, 5):
        found = once(q, (x - z) * unit, (other - z) * unit)
        assert any((each >= found - 1e-9).all() for each in above), (x, other, z)


@pytest.mark.long
@pytest.mark.parametrize(
    ("unit", "weights"),
    [
        (0.5, (0.81, 0.18, 0.01)),  # two draws from ten records
        (1.0, (0.81, 0.18, 0.01)),
        # Rare: they hide among steps without a draw.
        (1.0, (0.94933975, 0.04995, 0.00071025)),
        (0.6, (0.94933975, 0.04995, 0.00071025)),
    ],
)
def test_some_law_is_above_every_pair_with_replacement(unit, weights):
    laws = laws_above(Draws(weights, unit), LATTICE)
    above = list(profiles(laws))
    for x, other, one, two in configurations(2, 5):
        first = ((0, 0), (x - one) * unit, (2 * x - one - two) * unit)
        second = ((0, 0), (other - one) * unit, (2 * other - one - two) * unit)
        found = profile_of(weights, first, second)
        assert any((each >= found - 1e-9).all() for each in above), (x, other, one, two)


def test_draws_that_are_left_out_are_infinite_loss():
    laws = laws_above(Draws((0.9, 0.09), 1.0, 0.0, 0.01), LATTICE)
    assert min(law.infinite for law in laws) >= 0.01


@pytest.mark.parametrize("unit", [0.5, 2.0])
@pytest.mark.parametrize("corner", [Corner(4.0, 0.0, 0.0), Corner(2.5, 1.7, 0.0)])
def test_draws_that_hide_have_the_profile_of_the_farthest(unit, corner):
    draws = Draws((0.949, 0.05, 9e-4, 1e-4), unit, 0.0, 0.0)
    others, weight = draws.hidden(0.02)
    found = options_of(replacement_laws._line(others, corner, 2.0), LATTICE)
    shares = np.array([0.02 * 0.949, 9e-4, 1e-4])
    assert weight >= shares.sum()
    assert weight == pytest.approx(shares.sum(), rel=1e-11)
    x = np.linspace(-30, 30, 120_001)

    def density(sign, first):
        means = sign * unit * np.array([0.0, math.sqrt(first) + 2.0, math.sqrt(first) + 4.0])
        return (shares / shares.sum()) @ np.exp(-((x - means[:, None]) ** 2) / 2)

    unit_mass = (x[1] - x[0]) / math.sqrt(2 * math.pi)
    p, q = density(1, corner.first) * unit_mass, density(-1, corner.second) * unit_mass
    for place in (-160, -20, 0, 2, 12, 120, 800):
        strike = math.exp(LATTICE.spacing * place)
        (knot,) = np.flatnonzero(LATTICE.places() == place)
        plain = np.maximum(p - strike * q, 0.0).sum()
        call = found.values[knot] + (1.0 - strike if place < 0 else 0.0)
        assert call >= plain * (1 - 1e-9) - 1e-12
        assert call <= plain * 1.02 + 1e-6


HALF = [corner for band in bands((4.0, 2.5, 0.0)) for corner in band]
CORNERS = HALF + [Corner(c.second, c.first, c.product) for c in HALF]


def below(gram, corner):
    """Tell whether |a|² grows by s, |b|² by t and ⟨a, b⟩ by √(st) at most, up to the corner."""
    s, t = corner.first - gram[0], corner.second - gram[1]
    return s >= 0.0 and t >= 0.0 and corner.product - gram[2] <= np.sqrt(s * t)


def canonical(a, b):
    """Return the Gram matrix after the two moves of Theorem S18 (iii)."""
    first, second, product = a @ a, b @ b, a @ b
    if product < 0.0:
        first, second, product = first - product, second - product, 0.0
    if first + second < 4.0:
        first, product = min(4.0 - second, 4.0), 0.0
    return first, second, product


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_corners_cover_the_ball(dimension):
    rng = np.random.default_rng(dimension)
    points = rng.normal(size=(4000, 3, dimension))
    radius = rng.choice([1.0, 1.0, 0.7], size=(4000, 3, 1)) * (1.0 - 1e-9)
    points *= radius / np.linalg.norm(points, axis=2, keepdims=True)
    for x, other, z in points:
        gram = canonical(x - z, other - z)
        assert gram[0] <= 4.0 + 1e-9
        assert gram[1] <= 4.0 + 1e-9
        gram = min(gram[0], 4.0), min(gram[1], 4.0), gram[2]
        assert any(below(gram, corner) for corner in CORNERS), gram


def test_corners_on_the_rim_cover_inscribed_triangles():
    # Acute triangles in the unit circle, where nothing is to spare, and right ones.
    rng = np.random.default_rng(5)
    first, second = rng.uniform(1e-3, np.pi / 2 - 1e-3, size=(2, 20_000))
    second = np.maximum(second, np.pi / 2 - first + 1e-9)
    second[::4] = np.pi / 2 - first[::4]
    x, y = 4.0 * np.sin(first) ** 2, 4.0 * np.sin(second) ** 2
    product = -4.0 * np.sin(first) * np.sin(second) * np.cos(first + second)
    covered = np.zeros(x.size, dtype=bool)
    for corner in CORNERS:
        s, t = corner.first - x, corner.second - y
        grown = np.sqrt(np.maximum(s, 0.0) * np.maximum(t, 0.0))
        covered |= (s >= 0.0) & (t >= 0.0) & (corner.product - product <= grown)
    assert covered.all()


@pytest.mark.parametrize(
    ("first", "second"),
    [((3.993, 4.0), (0.0, 0.01)), ((3.05, 3.35), (0.85, 1.15)), ((2.7, 3.05), (2.3, 2.7))],
)
def test_the_corner_of_a_box_is_as_near_as_may_be(first, second):
    found = replacement_laws._product(first, second)
    x, y = np.meshgrid(np.linspace(*first, 201), np.linspace(*second, 201), indexing="ij")
    angles = np.arcsin(np.sqrt(x) / 2), np.arcsin(np.sqrt(y) / 2)
    product = -np.sqrt(x * y) * np.cos(angles[0] + angles[1])
    largest = product + np.sqrt((first[1] - x) * (second[1] - y))
    largest = largest[x + y >= 4.0].min()
    assert found <= largest
    assert found >= largest - 0.1 * (first[1] - first[0] + second[1] - second[0])


def test_corners_are_positive_semidefinite():
    assert all(c.product**2 <= c.first * c.second for c in CORNERS)


def divergence(gram, q, gamma):
    """Return E(u - γv)₊ by a plain sum over the plane."""
    first, second, product = gram
    x, y = np.meshgrid(np.linspace(-8, 12, 801), np.linspace(-8, 12, 401), indexing="ij")
    weight = np.exp(-(x * x + y * y) / 2) / (2 * np.pi) * (20 / 800) * (20 / 400)
    a, along = np.sqrt(first), product / np.sqrt(first)
    across = np.sqrt(max(second - along**2, 0.0))
    u = 1 - q + q * np.exp(a * x - first / 2)
    v = 1 - q + q * np.exp(along * x + across * y - second / 2)
    return float((weight * np.maximum(u - gamma * v, 0.0)).sum())


@pytest.mark.parametrize("gamma", [0.5, 0.97, 1.02, 3.0])
def test_divergences_grow_in_the_stated_directions(gamma):
    rng = np.random.default_rng(7)
    for _ in range(12):
        vectors = rng.uniform(-1.2, 1.2, size=(2, 2))
        gram = vectors[0] @ vectors[0] + 0.1, vectors[1] @ vectors[1] + 0.1, vectors[0] @ vectors[1]
        s, t = rng.uniform(0.0, 0.6, size=2)
        r = np.sqrt(s * t) * rng.uniform(-1.0, 1.0)
        more = gram[0] + s, gram[1] + t, gram[2] + r
        assert divergence(more, 0.1, gamma) >= divergence(gram, 0.1, gamma) * (1 - 1e-4) - 1e-9
