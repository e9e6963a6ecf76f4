"""What the checks of the paper's inequalities share: the loss, the noise and a quadrature rule."""

import numpy as np
from mpmath import exp, log, mp, mpf, pi, sqrt

mp.dps = 30
EPS = mpf(10) ** -20  # what two sides of an equation may differ by, of their size
U = 2.0**-53
QS = (1e-9, 1e-4, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-9)
SIGMAS = (0.25, 0.5, 1.0, 3.0, 20.0)
NODES, WEIGHTS = (list(map(mpf, each)) for each in np.polynomial.legendre.leggauss(20))


def sharp_rule():
    """The rule of 20 nodes on [-1, 1], to all digits, by Newton's method."""
    for i, x in enumerate(NODES):
        for _ in range(3):
            before, value = mpf(1), x
            for k in range(2, 21):
                before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
            slope = 20 * (x * value - before) / (x * x - 1)
            x -= value / slope
        NODES[i], WEIGHTS[i] = x, 2 / ((1 - x * x) * slope**2)


sharp_rule()


def chernoff(m):
    """κ(m), the supremum of (1 - e^{-v}) e^{-mv}."""
    return m**m / (1 + m) ** (1 + m)


def steps(r, count):
    """Random q and σ, the extremes first."""
    for i in range(count):
        yield (
            mpf(QS[i % 8] if i < 40 else r.random()),
            mpf(SIGMAS[i % 5] if i < 40 else 10 ** r.uniform(-0.6, 1.5)),
        )


def loss(q, sigma, x):
    """L at a real or complex x, on the principal branch."""
    return log(1 - q + q * exp((2 * x - 1) / (2 * sigma**2)))


def noise(sigma, x):
    return exp(-x * x / (2 * sigma**2)) / (sigma * sqrt(2 * pi))
