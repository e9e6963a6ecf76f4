"""Exact output densities of convex training, compared with stated privacy profiles."""

import numpy as np

from accountant.learn.convex.losses import BoundedPoisson, Huber, HuberHinge, Logistic
from support.oracle import convex as oracle

EPSILONS = (-2.0, -0.5, 0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)

# Cell masses carry the round-off of the normal distribution function only.
ROUNDOFF = 1 + 1e-12


def worst_excess(slopes, extra, lam, cdf, stated, spread, slope_max):
    """Return the largest exact / stated over both directions and EPSILONS; <= 1 is sound."""
    theta = oracle.theta_grid(slope_max * (len(slopes) + 1), lam, spread)
    small = oracle.cells(slopes, lam, cdf, theta)
    large = oracle.cells([*slopes, extra], lam, cdf, theta)
    worst = 0.0
    for epsilon in EPSILONS:
        for p, q in ((large, small), (small, large)):
            exact = oracle.profile_from_cells(p, q, epsilon)
            # Where the stated profile is exactly zero the cells may still hold round-off.
            worst = max(worst, (exact - 1e-15) / max(stated(epsilon), 1e-300))
    return worst


def signs(rng):
    # Half of the records at full norm, where the bounds are attained.
    return rng.choice([1.0, 1.0, rng.uniform(-1, 1)]), rng.choice([-1.0, 1.0])


def reals(rng):
    return rng.choice([1.0, rng.uniform(-1, 1)]), rng.uniform(-3, 3)


def counts(rng):
    return rng.choice([1.0, rng.uniform(-1, 1)]), float(rng.integers(0, 4))


CASES = {
    "logistic": (Logistic(), oracle.logistic, signs),
    "huber hinge .5": (HuberHinge(0.5), lambda y, x: oracle.huber_hinge(y, x, 0.5), signs),
    "huber hinge .1": (HuberHinge(0.1), lambda y, x: oracle.huber_hinge(y, x, 0.1), signs),
    "huber": (Huber(0.7), lambda y, x: oracle.huber(y, x, 0.7), reals),
    "poisson": (BoundedPoisson(0.5, 3.0), lambda y, x: oracle.poisson(y, x, 0.5), counts),
}


def two_dimensions(x, y, lam):
    def gradient(a, b):
        g1, g2 = lam * a, lam * b
        for (x1, x2), yy in zip(x, y, strict=True):
            s = -yy / (1 + np.exp(np.clip(yy * (x1 * a + x2 * b), -700, 700)))
            g1, g2 = g1 + s * x1, g2 + s * x2
        return g1, g2

    def hessian(a, b):
        h11, h12, h22 = lam + 0 * a, 0 * a, lam + 0 * a
        for x1, x2 in x:
            s = 1 / (1 + np.exp(np.clip(x1 * a + x2 * b, -700, 700)))
            c = s * (1 - s)
            h11, h12, h22 = h11 + c * x1 * x1, h12 + c * x1 * x2, h22 + c * x2 * x2
        return h11, h12, h22

    return gradient, hessian


def softmax_in_the_plane(x, y, lam):
    """d = 1, K = 3, in orthonormal coordinates of the columns that sum to zero."""
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])

    def probabilities(a, b, xx):
        u = [xx * (basis[0, j] * a + basis[1, j] * b) for j in range(3)]
        top = np.maximum(np.maximum(u[0], u[1]), u[2])
        e = [np.exp(v - top) for v in u]
        return [v / (e[0] + e[1] + e[2]) for v in e]

    def gradient(a, b):
        g = [lam * a, lam * b]
        for xx, yy in zip(x, y, strict=True):
            p = probabilities(a, b, xx)
            for i in range(2):
                g[i] = g[i] + xx * sum(basis[i, j] * (p[j] - (j == yy)) for j in range(3))
        return g

    def hessian(a, b):
        h = [lam + 0 * a, 0 * a, lam + 0 * a]
        for xx in x:
            p = probabilities(a, b, xx)
            mean = [sum(basis[i, j] * p[j] for j in range(3)) for i in range(2)]
            for n, (i, k) in enumerate(((0, 0), (0, 1), (1, 1))):
                second = sum(basis[i, j] * basis[k, j] * p[j] for j in range(3))
                h[n] = h[n] + xx * xx * (second - mean[i] * mean[k])
        return h

    return gradient, hessian


def planted(make, records, lam, cdf, stated, spread, slope_max):
    """The check over a few data sets; a value above one is a violation found."""
    rng = np.random.default_rng(8)
    worst = 0.0
    for x, y in [(slope_max, 1.0), (slope_max, -1.0)]:
        for count in records:
            data = [make(rng.choice([-1.0, 1.0]), slope_max) for _ in range(count)]
            worst = max(worst, worst_excess(data, make(y, x), lam, cdf, stated, spread, slope_max))
    return worst
