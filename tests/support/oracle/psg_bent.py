"""The contour integral of psg.py along a curve that bends towards faster decay.

It serves where A decays too slowly along vertical lines (few steps, rare events):
z = c + b (k (cosh tau - 1) + i sinh tau), uniform in tau, which turns
to the right, where e^{-eps z} (1-q)^{nz} decays exponentially.
There A(z) on the real w axis would cancel badly, so w follows
   w(v) = v + i (y + g log(1 + e^{v - m})),
passing below the branch point log((1-q)/q) + i pi, with (y, g) chosen
to minimise the largest modulus of the integrand.
"""

import math

import numpy as np
from flint import acb, arb, ctx

from support.oracle.moments import log_moment_float, peak_negative
from support.oracle.psg_line import NotConverged, log_modulus, place, saddle

# --------------------------------------------------------------------------
# the path of w, on which A(z) is summed


def _softplus(x):
    """log(1+e^x), complex arrays, |Im x| < pi."""
    x = np.asarray(x, dtype=complex)
    out = np.empty_like(x)
    r = x.real > 0
    out[~r] = np.log1p(np.exp(x[~r]))
    out[r] = x[r] + np.log1p(np.exp(-x[r]))
    return out


class Path:
    """w(v) = v + i (y + g log(1+e^{v-m})) and the integrand of A(z) along it."""

    def __init__(self, q, s, y, g):
        self.q, self.s, self.y, self.g = q, s, y, g
        self.w0 = math.log1p(-q) - math.log(q)  # real part of the branch point
        self.m = self.w0 + 1.0

    def w(self, v):
        return v + 1j * (self.y + self.g * _softplus(v - self.m))

    def log_terms(self, z, v):
        """log |g(w(v)) e^{zL(w(v))}| for real or complex v (floats)."""
        w = self.w(v)
        r = w.real > self.w0
        L = np.empty_like(w)
        L[~r] = np.log(1 - self.q + self.q * np.exp(w[~r]))
        L[r] = w[r] + np.log(self.q + (1 - self.q) * np.exp(-w[r]))
        u = self.s * w + 0.5 / self.s
        return (-u * u / 2 + z * L).real

    def height(self):
        """Largest Im w where Re w <= w0 (must stay below pi)."""
        return self.y + self.g * math.log1p(math.exp(-1.0))


def _v_grid(q, s, z, nats):
    """Points covering everything that can matter, dense around both bumps."""
    w0 = math.log1p(-q) - math.log(q)
    reach = math.sqrt(2 * nats + 20) / s
    lo = -0.5 / s**2 - reach
    if z.real < 0:
        lo = min(lo, peak_negative(q, s, z.real) - reach)
    mid = max(w0, lo + 1) + 12.0
    hi = max(-0.5 / s**2 + reach, mid + reach + 5, (z.real - 0.5) / s**2 + reach)
    return np.concatenate((np.linspace(lo, mid, 400), mid + np.geomspace(0.1, hi - mid, 250)))


def choose_path(q, s, z, nats, flavour=0):
    """(y, g) for this z: nearly least maximum of the modulus, then fastest decay."""
    v = _v_grid(q, s, z, nats)
    dv = np.diff(v, append=v[-1])
    top = math.pi - (0.5 if flavour == 0 else 0.62)
    step = min(0.3, 1.0 / s)
    ys = np.arange(0.0, top if s < 4 else min(top, 15 * step), step)
    cands = []
    for g in (0.0, 0.45, 0.85) if flavour == 0 else (0.0, 0.35, 0.75):
        for y in ys:
            if y + 0.32 * g < top:
                lt = Path(q, s, y, g).log_terms(z, v)
                cands.append((float(np.max(lt)), y, g, lt))
    best = min(c[0] for c in cands)
    room = lambda c: min(1.0, (math.pi - 0.1 - c[1] - 0.32 * c[2]) / (1 + c[2])) if s < 4 else 1.0
    area = lambda c: float(np.sum(np.maximum(c[3] - best + nats, 0.0) * dv)) / nats
    cost = lambda c: c[0] - best + 0.3 * s * area(c) / room(c)
    _, y, g, _ = min((c for c in cands if c[0] < best + 2.0), key=cost)
    return Path(q, s, float(y), float(g))


def window_and_step(path, zs, nats):
    """Window where any of zs matters, and step in v from strip growth (floats)."""
    a_lo, a_hi, h = math.inf, -math.inf, math.inf
    for z in zs:
        v = _v_grid(path.q, path.s, z, nats)
        lt = path.log_terms(z, v)
        top = lt.max()
        keep = np.nonzero(lt > top - nats)[0]
        a_lo = min(a_lo, v[max(keep[0] - 1, 0)])
        a_hi = max(a_hi, v[min(keep[-1] + 1, len(v) - 1)])
        vv = v[keep[0] : keep[-1] + 1]
        for sign in (1, -1):
            best = 0.0
            for a in (0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.2):
                a = min(a, 4 * a / path.s)
                if path.height() + (a if sign > 0 else 0) * (1 + path.g) > math.pi - 0.1:
                    break
                rise = max(0.0, float(np.max(path.log_terms(z, vv + 1j * sign * a))) - top)
                best = max(best, 2 * math.pi * a / (nats + rise))
            h = min(h, best)
    return a_lo, a_hi, h


# --------------------------------------------------------------------------
# the contour of z


SCALE = 1.5  # of the contour's bend, in deviations of the saddle
LIMIT = 1.5e6  # nodes of all sums: what takes more is left out


class _Bent:
    """The integrand on one bent contour, and trapezoid sums of it in tau."""

    def __init__(self, q, s, n, eps, direction, nats, k=0.55, shift=0.0, tweak=1.0, flavour=0):
        self.q, self.s, self.n, self.nats = q, s, n, nats
        self.k, self.tweak, self.flavour = k, tweak, flavour
        c, kappa = saddle(q, s, n, eps, direction)
        c = place(direction, math.log(abs(c - 1) if direction == "remove" else abs(c)) + shift)
        # The far part of A(z), about q^z e^{z (z-1)/(2 s^2)}, grows to the right at the
        # rate c/s^2 + log q - eps.  Where it stands for less than a few jumps, the saddle
        # can lie where that rate is large; stay left of that, at little cost.
        edge = s * s * (eps - math.log(q)) + 2.5 * s
        far = math.log(n) + c * math.log(q) + c * (c - 1) / (2 * s * s)
        if direction == "remove" and c > edge > 1.0 and far < 1.0:
            c = max(edge, 1.2) * (1 + shift / 4) if edge > 2 else max(edge, 1.2)
            kappa = 1 / (c - 1)
        self.b = min(SCALE / kappa, 2.0 * SCALE * s) if kappa > 0.1 / s else SCALE / kappa
        self.c = c
        self.scale = log_modulus(q, s, n, eps, direction, c) + math.log(self.b)
        size = abs(log_moment_float(q, s, c)) * n + eps * abs(c) + 2
        self.prec = int((nats + math.log(n) + math.log(size)) / math.log(2)) + 70
        self.work = 0
        self.peak = -math.inf  # largest modulus met, relative to scale
        ctx.prec = self.prec
        self.Q, self.S, E = arb(q), arb(s), arb(eps)
        self.lead = E if direction == "remove" else arb(0)
        self.sgn = -E if direction == "remove" else E

    def contour(self, tau):
        e = tau.exp()
        ch, sh = (e + 1 / e) / 2, (e - 1 / e) / 2
        b, bk = arb(self.b), arb(self.b) * arb(self.k)
        return acb(self.c + bk * (ch - 1), b * sh), acb(bk * sh, b * ch)

    def nodes(self, zf, need):
        """Nodes (L, weight) of the w-path serving all z in zf."""
        path = choose_path(self.q, self.s, zf[len(zf) // 2], need, self.flavour)
        lo, hi, hv = window_and_step(path, (zf[0], zf[-1]), need)
        hv *= self.tweak
        self.work += (hi - lo) / hv * len(zf)
        if not self.work < LIMIT:
            raise NotConverged(f"bent: too many nodes {self.work:.3g} at z={zf[0]}")
        Q, P1, S, HV, Y, G, M = (arb(x) for x in (self.q, 0, self.s, hv, path.y, path.g, path.m))
        P1 = 1 - Q
        half = 1 / (2 * S)
        out = []
        for i in range(math.floor(lo / hv), math.ceil(hi / hv) + 1):
            v = HV * i
            ev = (v - M).exp()
            w = acb(v, Y + G * (1 + ev).log())
            L = w + (Q + P1 * (-w).exp()).log() if float(v) > path.w0 else (P1 + Q * w.exp()).log()
            u = S * w + half
            out.append((L, (-u * u / 2).exp() * acb(1, G * ev / (1 + ev))))
        return out, HV * S / (2 * arb.pi()).sqrt()

    def sum(self, h, offset, last=None):
        """h * sum over tau = (j + offset) h, j >= 0 (j = 0 halved if offset = 0)."""
        H = arb(h)
        group = min(15, max(3, int(0.4 / h)))  # z sharing one w-path
        total = arb(0)
        j, quiet, level = 0, 0, 0.0
        while quiet < 5 if last is None else (j + offset) * h <= last:
            zz = [self.contour(H * (i + arb(offset))) for i in range(j, j + group)]
            zf = [complex(float(z.real), float(z.imag)) for z, _ in zz]
            need = max(25.0, self.nats + math.log(self.n) + level + 8)
            nodes, weight = self.nodes(zf, need)
            for z, dz in zz:
                A = sum([(z * L).exp() * g for L, g in nodes], acb(0)) * weight
                F = A**self.n * (self.sgn * z + self.lead).exp() / (z * (z - 1)) * dz
                total += F.imag / 2 if j == 0 and offset == 0 else F.imag  # Re(F/i)
                mod = F.abs_upper()
                level = float(mod.log()) - self.scale if mod > 0 else -1e9
                if not level < 1e300:
                    raise NotConverged("bent: lost all precision")
                self.peak = max(self.peak, level)
                quiet = quiet + 1 if level < -self.nats else 0
                j += 1
            if self.peak > 30:
                raise NotConverged("bent: integrand grows along the contour")
            level = max(level, -self.nats)
        self.last = (j - 1 + offset) * h
        return total * H / arb.pi()


def bent(*problem, h=None, **settings):
    """Profile by the bent contour.  Returns (ball, log of integrand scale, step h).

    Without h the step is halved until the last change is below the square root of
    the accuracy wanted (geometric convergence: the error squares at every halving).
    """
    with ctx.workprec(ctx.prec):
        B = _Bent(*problem, **settings)
        if h is not None:
            return B.sum(h, 0), B.scale + max(B.peak, 0), h
        h = 0.12
        value = B.sum(h, 0)
        last = B.last
        for _ in range(5):
            new = (value + B.sum(h, 0.5, last)) / 2
            change, value, h = abs(float((new - value) / new)), new, h / 2
            if change < 3e-14:
                enough = 2 * h * -math.log(change + 1e-40) / 66
                return value, B.scale + max(B.peak, 0), min(enough, 1.2 * h)
            if value.rad() > 1e-20 * abs(value):
                return value, B.scale + max(B.peak, 0), h
        raise NotConverged(f"bent: step in tau, last change {change:.1e}")
