"""The contour integral of psg.py along a vertical line.

z = c + it, uniform in t; A(z) by a trapezoid sum over real w.  The
steps in t and w come from strip estimates: on Re z = c + d the
integrand is at most its value at c + d, so the aliasing error is about
F(c+d) e^{-2 pi |d|/h}; the bound for A is that of moments.py with an
additional factor e^{|t| a}.

Where both contours cross the real axis, near the saddle of the integrand's modulus, is found in
floating point: it chooses parameters only, and no result depends on it.
"""

import math

import numpy as np
from flint import acb, arb, ctx
from scipy.optimize import minimize_scalar

from support.oracle.moments import log_integrand_float, log_moment_float, loss_float, peak_negative


def _t_step(q, s, n, eps, direction, c, nats):
    """Step in t with aliasing error about e^{-nats} relative to the integrand at c."""
    base = log_modulus(q, s, n, eps, direction, c)
    dist = abs(c - 1) if direction == "remove" else abs(c)
    away = 1 if direction == "remove" else -1  # direction leading away from the poles
    best_in = best_out = 0.0
    for r in (0.3, 0.5, 0.7, 0.85, 0.95, 0.99):
        d = r * dist
        rise = log_modulus(q, s, n, eps, direction, c - away * d) - base
        best_in = max(best_in, 2 * math.pi * d / (nats + max(rise, 0.0)))
    d, worse = 0.25 * dist, 0
    while worse < 3:
        h = (
            2
            * math.pi
            * d
            / (nats + max(log_modulus(q, s, n, eps, direction, c + away * d) - base, 0.0))
        )
        worse = worse + 1 if not h >= best_out or h == 0 else 0
        best_out = max(best_out, h)
        d *= 1.35
    return min(best_in, best_out)


def _w_step(s, c, T, nats):
    a = np.linspace(0.005, 3.1, 700)
    need = nats + 0.5 * (s * a) ** 2 + T * a
    if c < 0:
        need = need + c * np.log(np.cos(a / 2))
    return float(np.max(2 * math.pi * a / need))


def _window(q, s, c, nats):
    log_a = log_moment_float(q, s, c)
    reach = (math.sqrt(2 * (nats + 10 + abs(log_a))) + 2) / s
    peak = (c - 0.5) / s**2 if c >= 0 else peak_negative(q, s, c)
    lo = min(-0.5 / s**2, peak) - reach
    hi = max(-0.5 / s**2, peak) + reach
    w = np.linspace(lo, hi, 40001)
    keep = np.nonzero(log_integrand_float(q, s, c, w) > log_a - nats - 3)[0]
    return float(w[max(keep[0] - 1, 0)]), float(w[min(keep[-1] + 1, len(w) - 1)])


def _extent(q, s, n, c, kappa, nats):
    """Rough T with |integrand(c+iT)| < e^{-nats} |integrand(c)|, or inf (floats)."""
    lo, hi = _window(q, s, c, 38.0)
    T = 6.0 / kappa
    for _ in range(14):
        h = min(_w_step(s, c, T, 38.0), (hi - lo) / 50)
        if (hi - lo) / h > 60000:
            return math.inf
        w = np.arange(lo, hi, h)
        L = loss_float(q, w)
        lg = log_integrand_float(q, s, c, w)
        g = np.exp(lg - lg.max())
        fall = n * math.log(max(abs(np.sum(g * np.exp(1j * T * L))) / g.sum(), 1e-17))
        fall -= math.log(abs(complex(c, T)) / abs(c)) + math.log(
            abs(complex(c - 1, T)) / abs(c - 1)
        )
        if fall < -min(nats, 30.0):
            return T * (1.0 if nats <= 30 else max(1.0, math.sqrt(nats / -fall)))
        T *= 1.4
    return math.inf


def line(q, s, n, eps, direction, nats, shift=0.0, tweak=1.0, limit=6e5):
    """Profile by a vertical line.  Returns (ball, log of the integrand's scale).

    nats: accuracy wanted relative to the integrand at c; shift moves c (in the
    logarithm of its distance from the pole), tweak < 1 refines both steps.
    """
    c, kappa = saddle(q, s, n, eps, direction)
    c = place(direction, math.log(abs(c - 1) if direction == "remove" else abs(c)) + shift)
    ht = tweak * _t_step(q, s, n, eps, direction, c, nats)
    T = _extent(q, s, n, c, kappa, nats)
    scale = log_modulus(q, s, n, eps, direction, c)
    wnats = nats + math.log(n) + 4
    for _ in range(4):
        if not T / ht < 1500:
            raise NotConverged("line: slow decay")
        hw = tweak * _w_step(s, c, 1.1 * T, wnats)
        lo, hi = _window(q, s, c, wnats)
        if (hi - lo) / hw * T / ht > limit:
            raise NotConverged("line: too many nodes")
        out = _sum(q, s, n, eps, direction, c, ht, hw, lo, hi, 1.1 * T, nats)
        if out is not None:
            return out, scale
        T *= 1.4
    raise NotConverged("line: slow decay")


def _sum(q, s, n, eps, direction, c, ht, hw, lo, hi, T, nats):
    size = abs(log_moment_float(q, s, c)) * n + eps * abs(c) + 2
    with ctx.workprec(int((nats + math.log(n) + math.log(size)) / math.log(2)) + 40):
        Q, S, E, C, HW, HT = arb(q), arb(s), arb(eps), arb(c), arb(hw), arb(ht)
        half = 1 / (2 * S)
        G, R = [], []
        for j in range(math.floor(lo / hw), math.ceil(hi / hw) + 1):
            w = HW * j
            u = S * w + half
            L = (1 - Q + Q * w.exp()).log()
            G.append(acb((C * L - u * u / 2).exp()))
            R.append(acb(0, HT * L).exp())
        A0 = sum(G, acb(0))
        logA0 = (A0.real * HW * S / (2 * arb.pi()).sqrt()).log()
        lead = E if direction == "remove" else arb(0)
        sgn = -E if direction == "remove" else E
        front = (n * logA0 + sgn * C + lead).exp()
        turn = acb(0, sgn * HT).exp()
        phase = acb(1)
        total = 1 / (C * (C - 1)) / 2
        tiny = math.exp(-nats)
        first = abs(float(total))
        quiet, k = 0, 0
        while quiet < 5:
            k += 1
            if k * ht > 1.3 * T:
                return None
            G = [a * b for a, b in zip(G, R, strict=False)]
            phase *= turn
            z = acb(C, HT * k)
            term = (sum(G, acb(0)) / A0) ** n * phase / (z * (z - 1))
            total += term.real
            quiet = quiet + 1 if float(term.abs_upper()) < tiny * first else 0
        return front * total * HT / arb.pi()


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
