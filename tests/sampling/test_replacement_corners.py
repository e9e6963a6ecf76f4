"""Every triple of a unit ball is below a corner, and divergences move as Theorem S18 says."""

import numpy as np
import pytest

from accountant.sampling.replacement_corners import Corner, bands

CORNERS = [corner for band in bands((4.0, 2.5, 0.0)) for corner in band]
CORNERS += [Corner(c.second, c.first, c.product) for c in CORNERS]


def below(gram, corner):
    """Tell whether the corner is reached by growing |a|², |b|² and lowering ⟨a, b⟩ only."""
    first, second, product = gram
    return corner.first >= first and corner.second >= second and corner.product <= product


def canonical(a, b):
    """Return the Gram matrix after the two moves of Theorem S18 (iii)."""
    first, second, product = a @ a, b @ b, a @ b
    if product < 0.0:
        first, second, product = first - product, second - product, 0.0
    if first + second < 4.0:
        first, product = min(4.0 - second, 4.0), 0.0
    return first, second, product


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
