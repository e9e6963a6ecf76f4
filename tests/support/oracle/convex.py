"""Exact output distributions of perturbed objectives in one and two dimensions.

Shares no code with accountant.learn.convex: losses are written out again, and the privacy profile
comes from the masses of cells of the output, not from any bound on the privacy loss.

In one dimension the output θ is a monotone function of the noise, b = -(Σ f'(θ) + λθ), so the mass
of a cell of θ is a difference of two values of the noise's distribution function: no Hessian and no
quadrature. Coarse-graining is post-processing, so ``profile_from_cells`` is a lower bound on the
true profile for every grid, and converges to it.
"""

import numpy as np
from scipy.special import ndtr


def logistic(y, x):
    return lambda t: -y * x / (1.0 + np.exp(np.clip(y * x * t, -700, 700)))


def huber_hinge(y, x, h):
    def slope(t):
        gap = 1.0 - y * x * t
        return -y * x * np.clip((gap + h) / (2 * h), 0.0, 1.0)

    return slope


def huber(y, x, threshold):
    return lambda t: x * np.clip(x * t - y, -threshold, threshold)


def poisson(y, x, top):
    return lambda t: x * (np.exp(np.minimum(x * t, top)) - y)


def normal_cdf(sigma):
    return lambda b: (ndtr(b / sigma), ndtr(-b / sigma))


def laplace_cdf(scale):
    def both(b):
        tail = 0.5 * np.exp(-np.abs(b) / scale)
        return np.where(b < 0, tail, 1 - tail), np.where(b < 0, 1 - tail, tail)

    return both


def cells(slopes, lam, cdf, theta):
    """Masses of the cells between the points of ``theta``, both tails included."""
    b = -(sum((s(theta) for s in slopes), np.zeros_like(theta)) + lam * theta)
    assert (np.diff(b) < 0).all()
    below, above = cdf(b)
    # Differences are taken in the tail where they do not cancel.
    inner = np.where(b[:-1] + b[1:] < 0, below[:-1] - below[1:], above[1:] - above[:-1])
    return np.concatenate(([above[0]], np.maximum(inner, 0.0), [below[-1]]))


def profile_from_cells(p, q, epsilon):
    return float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum())


def theta_grid(slopes_max, lam, spread, points=40_001):
    """A grid that covers all outputs for |b| <= spread; finer near the middle."""
    edge = (slopes_max + spread) / lam
    u = np.linspace(-1, 1, points)
    return edge * np.sinh(6 * u) / np.sinh(6)


def profile_2d(gradient_p, hessian_p, gradient_q, hessian_q, sigma, edge, epsilon, points=500):
    """The profile from both densities on a grid of (θ₁, θ₂), by the midpoint rule.

    ``gradient(a, b) -> (g1, g2)`` and ``hessian(a, b) -> (h11, h12, h22)`` of the objective without
    its noise term. Returns (profile, total mass of p), the second to judge the grid.
    """
    axis = (np.arange(points) + 0.5) / points * 2 * edge - edge
    a, b = np.meshgrid(axis, axis, indexing="ij")

    def density(gradient, hessian):
        g1, g2 = gradient(a, b)
        h11, h12, h22 = hessian(a, b)
        power = -(g1**2 + g2**2) / (2 * sigma**2)
        return np.exp(power) * (h11 * h22 - h12**2) / (2 * np.pi * sigma**2)

    cell = (2 * edge / points) ** 2
    p, q = density(gradient_p, hessian_p), density(gradient_q, hessian_q)
    return float(np.maximum(p - np.exp(epsilon) * q, 0).sum()) * cell, float(p.sum()) * cell
