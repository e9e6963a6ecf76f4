"""Every triple of a unit ball is below a corner, and divergences move as Theorem S18 says."""

import numpy as np
import pytest

from accountant.sampling import replacement_laws
from accountant.sampling.replacement_laws import Corner, bands

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
