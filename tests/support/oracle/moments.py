"""Reference moments of the Poisson-subsampled Gaussian, in ball arithmetic.

One step of the mechanism is the pair

    P = (1-q) N(0, s^2) + q N(1, s^2),      Q = N(0, s^2).

With w = (2x-1)/(2 s^2) the privacy loss is L(w) = log(1-q + q e^w), and under
Q the variable w is Gaussian with mean -1/(2 s^2) and standard deviation 1/s.
The moment function is

    A(z) = E_Q[e^{z L}] = int g(w) e^{z L(w)} dw,
    g(w) = s/sqrt(2 pi) exp(-(s w + 1/(2 s))^2 / 2),

and A(0) = A(1) = 1.  For real z it is enclosed rigorously as follows.

Discretisation.  The integrand is analytic in |Im w| < pi.  On Im w = a we have
|g(v+ia)| = g(v) e^{s^2 a^2/2}, and

    cos(a/2) (1-q+q e^v) <= |1-q+q e^{v+ia}| <= 1-q+q e^v ,

so the integral of the modulus along Im w = +-a is at most A(z) M(a) with
M(a) = e^{s^2 a^2/2} for z >= 0 and M(a) = e^{s^2 a^2/2} cos(a/2)^z for z < 0.
The infinite trapezoid sum T with step h therefore satisfies

    |T - A(z)| <= A(z) * 2 M(a) / (e^{2 pi a/h} - 1)      for every a < pi.

Truncation.  L is increasing with slope in (0, 1) and L > log(1-q), so beyond
the last node W (or before the first) the integrand is at most a constant times
a Gaussian density, whose tail is an erfc.  See `_tails`.

Rounding.  Everything is evaluated in arb balls.
"""

import math

import numpy as np
from flint import arb, ctx

SQRT2PI = math.sqrt(2 * math.pi)


# --------------------------------------------------------------------------
# float helpers: they only choose parameters, no result depends on them


def loss_float(q, w):
    """L(w) in double precision, for an array of real w."""
    w = np.asarray(w, dtype=float)
    right = w > 0
    out = np.empty_like(w)
    out[~right] = np.log1p(q * np.expm1(w[~right]))
    wr = w[right]
    rest = (1 - q) * np.expm1(-wr)
    # Where next to nothing is left of 1, its parts are added.
    small = np.log(np.exp(-wr) - q * np.expm1(-wr))
    out[right] = wr + np.where(rest > -0.5, np.log1p(np.maximum(rest, -0.5)), small)
    return out


def log_integrand_float(q, s, z, w):
    return math.log(s / SQRT2PI) - 0.5 * (s * w + 0.5 / s) ** 2 + z * loss_float(q, w)


def peak_negative(q, s, z):
    lo, hi = (z - 0.5) / s**2, -0.5 / s**2
    for _ in range(200):
        w = 0.5 * (lo + hi)
        slope = 1.0 / (1.0 + (1 - q) / q * math.exp(-w)) if w > -700 else 0.0
        lo, hi = (lo, w) if s * s * w + 0.5 > z * slope else (w, hi)
        if hi - lo < 0.01 / s:
            break
    return 0.5 * (lo + hi)


def log_moment_float(q, s, z, nodes=1500):
    """log A(z), real z, double precision, accurate also when A(z) - 1 is tiny.

    Uses A - 1 = E_Q[expm1(zL) - z expm1(L)], which holds because E_Q[e^L] = 1.
    """
    peak = (z - 0.5) / s**2
    if z < 0:  # log-concave integrand: s^2 w + 1/2 = z L'(w) at its only peak
        peak = peak_negative(q, s, z)
    elif z * z / s**2 > 1e15:
        return math.inf
    lo = min(-0.5 / s**2, peak) - 11 / s
    hi = max(-0.5 / s**2, peak, 1.5 / s**2) + 11 / s
    w = np.linspace(lo, hi, int(nodes + min(20000, 8 * (hi - lo) * max(s, 2))))
    h = w[1] - w[0]
    L = loss_float(q, w)
    lg = math.log(s / SQRT2PI * h) - 0.5 * (s * w + 0.5 / s) ** 2
    top = np.max(lg + z * L)
    if top > 300 or np.max(z * L) > 600:
        return float(top + np.log(np.sum(np.exp(lg + z * L - top))))
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.expm1(z * L) - z * np.expm1(np.minimum(L, 700))
        val = float(np.sum(np.where(lg > -700, np.exp(lg) * terms, 0.0)))
    return math.log1p(val) if val > -1 else 0.0


# --------------------------------------------------------------------------
# rigorous enclosure of A(z), z real


def normal_tail(x):
    """P(N(0,1) > x) as a ball."""
    return (x / arb(2).sqrt()).erfc() / 2


def _step(s, z, nats):
    """Step h and strip half-width a with 2 M(a)/(e^{2 pi a/h}-1) ~ e^{-nats}."""
    a = np.linspace(0.005, 3.1, 700)
    log_m = 0.5 * (s * a) ** 2
    if z < 0:
        log_m = log_m + z * np.log(np.cos(a / 2))
    h = 2 * math.pi * a / (nats + 1 + log_m)
    k = int(np.argmax(h))
    return float(h[k]), float(a[k])


def _window(q, s, z, log_a, nats):
    """Window [lo, hi] for which the bounds of `_tails` are below A(z) e^{-nats}."""
    goal = log_a - nats - 6 - math.log(1 + s)
    loss = lambda w: float(loss_float(q, np.array([w]))[0])
    fall = lambda x: 0.5 * max(0.0, x) ** 2

    def above(w):
        if z < 0:
            return z * loss(w) - fall(s * w + 0.5 / s)
        return z * (loss(w) - w) + z * (z - 1) / (2 * s * s) - fall(s * w - (z - 0.5) / s)

    def below(w):
        return z * (loss(w) if z >= 0 else math.log1p(-q)) - fall(-(s * w + 0.5 / s))

    def search(bound, sign):
        good = 1.0 / s
        while bound(sign * good) > goal:
            good *= 2
        bad = -good
        while bound(sign * bad) <= goal:
            bad *= 2
        while abs(good - bad) > 0.05 / s:
            mid = 0.5 * (good + bad)
            if mid in (good, bad):
                break
            good, bad = (mid, bad) if bound(sign * mid) <= goal else (good, mid)
        return sign * good

    return search(below, -1), search(above, 1)


def _tails(q, s, z, lo, hi, h):
    """Bound, at both ends, the omitted integral plus the omitted part of the sum.

    On w >= hi:  z >= 0: L(w) <= L(hi) + (w - hi);   z < 0: L(w) >= L(hi).
    On w <= lo:  z >= 0: L(w) <= L(lo);              z < 0: L(w) >= log(1-q).
    A constant times a Gaussian with mean m and deviation 1/s remains, decreasing
    away from the window once past m, so that its sum (times h) is at most its
    integral plus h times its largest value.
    """

    def bound(slope, const, w, sign):
        # int of g(w') e^{const + slope (w'-w)} over sign*(w'-w) >= 0
        mean = (slope - arb(1) / 2) / s**2
        u = sign * s * (w - mean)
        scale = (const - slope * w + slope * (slope - 1) / (2 * s**2)).exp()
        peak = s / (2 * arb.pi()).sqrt()
        if u > 0:
            peak = peak * (-u * u / 2).exp()
        return scale * (2 * normal_tail(u) + h * peak)

    loss = lambda w: (1 - q + q * w.exp()).log()
    zero = arb(0)
    if z >= 0:
        return bound(z, z * loss(hi), hi, 1) + bound(zero, z * loss(lo), lo, -1)
    return bound(zero, z * loss(hi), hi, 1) + bound(zero, z * (1 - q).log(), lo, -1)


def moment(q, s, z, bits=128):
    """Ball containing A(z), for doubles q < 1, s and real z (a float or an exact arb)."""
    zf = float(z)
    log_a = log_moment_float(q, s, zf)
    with ctx.workprec(bits + 40 + int(math.log2(1 + abs(log_a) + zf * zf / s**2 + 1 / s**2))):
        nats = bits * math.log(2)
        h, a = _step(s, zf, nats)
        lo, hi = _window(q, s, zf, log_a, nats)
        j0, j1 = math.floor(lo / h), math.ceil(hi / h)
        Q, S, Z, H, a = arb(q), arb(s), arb(z), arb(h), arb(a)
        total = arb(0)
        half = 1 / (2 * S)
        for j in range(j0, j1 + 1):
            w = H * j
            u = S * w + half
            total += (Z * (1 - Q + Q * w.exp()).log() - u * u / 2).exp()
        total *= H * S / (2 * arb.pi()).sqrt()
        # truncation
        total += arb(0, _tails(Q, S, Z, H * j0, H * j1, H).upper())
        # discretisation:  |T - A| <= A r  =>  A in T [1/(1+r), 1/(1-r)]
        M = (S * S * a * a / 2).exp()
        if zf < 0:
            M *= ((a / 2).cos()) ** Z
        r = 2 * M / ((2 * arb.pi() * a / H).exp() - 1)
        return total / (1 + arb(0, r.upper()))


def renyi(q, s, alpha, direction, digits=28):
    """Ball containing the Renyi divergence of order alpha > 1 of one step.

    remove: D_alpha(P||Q) = log A(alpha)/(alpha-1);
    add:    D_alpha(Q||P) = log A(1-alpha)/(alpha-1).
    The precision is raised until the relative radius is below 10^-digits.
    """
    bits = 110
    while True:
        with ctx.workprec(bits + 80):
            a = arb(alpha)
            if q == 1.0:
                return a / (2 * arb(s) ** 2)
            A = moment(q, s, a if direction == "remove" else 1 - a, bits)
            D = A.log() / (a - 1)
            if D > 0 and D.rad() < D.mid() * arb(10) ** (-digits):
                return D
            if D.is_finite() and D.mid() > 0:
                lost = float((D.rad() / D.mid() * arb(10) ** digits).log()) / math.log(2)
                bits += max(16, int(lost) + 8)
            else:
                bits += 64
        if bits > 4000:
            raise ArithmeticError("no convergence")


def enclosing_decimals(ball, digits=32):
    """Two decimal strings lower <= ball <= upper."""
    m, r, e = (int(v) for v in ball.mid_rad_10exp(digits))
    return f"{m - r}e{e}", f"{m + r}e{e}"
