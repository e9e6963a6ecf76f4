"""Where the contours of psg.py cross the real axis: near the saddle of the integrand's modulus.

All in floating point: it chooses parameters only, and no result depends on it.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar

from support.oracle.moments import log_moment_float


class NotConverged(ArithmeticError):
    pass


def log_modulus(q, s, n, eps, direction, c):
    """log |integrand| at real c (c > 1 for remove, c < 0 for add)."""
    lead = -eps * (c - 1) if direction == "remove" else eps * c
    return n * log_moment_float(q, s, c) + lead - math.log(abs(c)) - math.log(abs(c - 1))


def place(direction, x):
    """Map log-distance x from the pole to c."""
    return 1 + math.exp(x) if direction == "remove" else -math.exp(x)


def saddle(q, s, n, eps, direction):
    """(c, kappa): minimiser of log_modulus and square root of its curvature."""
    f = lambda x: min(log_modulus(q, s, n, eps, direction, place(direction, x)), 1e300)
    grid = np.arange(-12.0, 24.0, 2.0)
    vals = []
    for x in grid:
        vals.append(f(x))
        if len(vals) > 2 and vals[-1] > vals[-2] > vals[-3]:
            break
    i = int(np.argmin(vals))
    res = minimize_scalar(
        f, bounds=(grid[i] - 2, grid[i] + 2), method="bounded", options=dict(xatol=1e-4)
    )
    x = float(res.x)
    c = place(direction, x)
    d = 0.02 * math.exp(x)
    g = lambda cc: log_modulus(q, s, n, eps, direction, cc)
    curv = (g(c + d) - 2 * g(c) + g(c - d)) / d**2
    if not math.isfinite(curv):
        raise NotConverged("saddle point out of range")
    return c, math.sqrt(max(curv, 0.1 * math.exp(-2 * x)))
