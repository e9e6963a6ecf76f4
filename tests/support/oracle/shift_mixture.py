"""Reference privacy profile of composed steps whose record shifts the noise at random.

P = w_0 N(0, s^2) + sum of w_j N(d_j, s^2) against Q = N(0, s^2), n steps; w_0 is what the other
weights leave of one, maybe nothing.

line          the contour integrals of psg.py with A(z) = E_Q[e^{zL}] of the mixture: a trapezoid
              sum on a vertical line, A by a trapezoid sum over real noise, in ball arithmetic.
              Discretisation and truncation are judged by a second computation with another line,
              other steps and cut-offs, which has to agree to 25 digits; the enclosure is widened
              to the larger of 10^-24 and 1000 times the disagreement.
two_steps     n = 2, also where events are rare and A decays slowly: the profile of one step, in
              closed form, integrated over the noise of the other, with mpmath at 33 digits, twice
              with different panels.
"""

import math

import mpmath
import numpy as np
from flint import acb, acb_mat, arb, ctx

from support.oracle.monotone_ratio import shifted, threshold
from support.oracle.shift_compositions import NotConverged, Saddle

DIGITS = 25
FRESH = 64


def _decays(losses, logs, n, c, ht, nats, most):
    """Tell, in floating point, whether some of the terms are small.

    It only saves the work on a sum that would not converge.
    """
    w = np.exp(logs - logs.max())
    w /= w.sum()
    near = -math.log(abs(2 * c * (c - 1))) - nats
    for k in range(2, most, 7):
        size = abs(np.dot(w, np.exp(1j * (ht * k * losses))))
        if size < 1e-13:  # of which floating point tells no more
            return True
        weight = abs(complex(c, ht * k) * complex(c - 1, ht * k))
        if n * math.log(size) - math.log(weight) < near + 3:
            return True
    return False


def _sum(s, shifts, weights, n, eps, remove, c, ht, hx, reach, nats, most):
    """The trapezoid sum over the line at c with steps ht and hx, the noise within reach."""
    S, E, C, HT, HX = arb(s), arb(eps), arb(c), arb(ht), arb(hx)
    D, W = [arb(d) for d in shifts], [arb(w) for w in weights]
    W0 = 1 - sum(W, arb(0))
    L, G = [], []
    for j in range(math.floor(-reach[0] / hx), math.ceil(reach[1] / hx) + 1):
        x = HX * j
        ratio = sum(
            (w * ((2 * x - d) * d / (2 * S * S)).exp() for d, w in zip(D, W, strict=True)), W0
        )
        L.append(ratio.log())
        G.append(C * L[-1] - x * x / (2 * S * S))
    losses, logs = (np.array([float(each.mid()) for each in one]) for one in (L, G))
    if not _decays(losses, logs, n, c, ht, nats, most):
        raise NotConverged("slow decay")
    G = [each.exp() for each in G]
    A0 = sum(G, arb(0))
    log_a = (A0 * HX / (S * (2 * arb.pi()).sqrt())).log()
    sign, lead = (-E, E) if remove else (E, arb(0))
    front = (n * log_a + sign * C + lead).exp()
    turn = acb(0, sign * HT).exp()
    rotations = _powers([acb(0, HT * each).exp() for each in L])
    total = 1 / (C * (C - 1)) / 2
    first, quiet = abs(float(total)), 0
    for start in range(0, most, FRESH):
        # Every block begins anew, so that radii do not grow with the number of terms.
        begin = [[g * acb(0, HT * start * each).exp()] for g, each in zip(G, L, strict=True)]
        sums, phase = rotations * acb_mat(begin), acb(0, sign * HT * start).exp()
        for k in range(start, start + FRESH):
            if k:
                z = acb(C, HT * k)
                term = (sums[k - start, 0] / A0) ** n * phase / (z * (z - 1))
                total += term.real
                quiet = quiet + 1 if float(term.abs_upper()) < math.exp(-nats) * first else 0
                if quiet == 6:
                    return front * total * HT / arb.pi()
            phase *= turn
    raise NotConverged("slow decay")


def _powers(turns):
    """The matrix whose row k has the k-th powers, for k < FRESH."""
    rows = [[acb(1)] * len(turns)]
    for _ in range(FRESH - 1):
        rows.append([a * b for a, b in zip(rows[-1], turns, strict=True)])
    return acb_mat(rows)


def line(s, shifts, weights, n, eps, remove, most=1500, digits=DIGITS):
    """An enclosure of H(eps); of fewer ``digits`` than the stored ones it is wider."""
    value, c, spread = Saddle([(s, shifts, weights, n)], remove).find(eps)
    b = abs(c - 1) if remove else abs(c)
    nats, found = 70.0, []
    with ctx.workprec(200 + int(1.5 * abs(value))):
        for shift, fine in ((1.0, 1.0), (0.9, 0.83)):
            bb = b * shift
            cc = 1 + bb if remove else -bb
            # Aliases fall as e^{-2 pi d/h} within distance d < b of the line.
            ht = fine * min(
                2 * math.pi * 0.6 * bb / (nats + 20),
                math.pi / (spread * math.sqrt(2 * nats)) * 0.55,
            )
            hx = fine * s * 0.11 * min(1.0, 3 * s / shifts[-1] + 0.25)
            z = math.sqrt(2 * (nats + 40 + math.log(n)))
            far = max(cc, 1.0) * shifts[-1] + z * s
            low = z * s + max(-cc, 0.0) * shifts[-1]
            found.append(
                _sum(s, shifts, weights, n, eps, remove, cc, ht, hx, (low, far), nats, most)
            )
        one, two = found
        apart = (
            float(abs(one - two).upper() / abs(two).lower()) if abs(two).lower() > 0 else math.inf
        )
        if not apart < 10.0**-digits:
            raise NotConverged(f"disagreement {apart:.1e}")
        return one + arb(0, (abs(one) * arb(max(1e-24, 1000 * apart))).upper())


def two_steps(s, shifts, weights, eps, remove, digits=30):
    """(lower, upper) mpf bracket of H(eps) for n = 2, judged by two sets of panels."""
    with mpmath.workdps(digits + 15), ctx.workprec(mpmath.mp.prec + 40):
        S, E, front = arb(s), arb(eps), 1 / (arb(s) * (2 * arb.pi()).sqrt())
        moving = [(arb(d), arb(w)) for d, w in zip(shifts, weights, strict=True)]
        w0 = 1 - sum((w for _, w in moving), arb(0))
        D, W = zip((arb(0), w0), *moving, strict=True)
        one = shifted(S, D, W)[0 if remove else 1]

        def as_mp(value):
            return mpmath.mpf(value.mid().str(digits + 20, radius=False))

        def integrand(x):
            """The profile of one step, closed, at what the other's noise leaves of eps."""
            at = arb(mpmath.nstr(x, digits + 25))
            ratio = sum((w * (d * (2 * at - d) / (2 * S * S)).exp() for d, w in moving), w0)
            inner = ratio * one(E - ratio.log()) if remove else one(E + ratio.log())
            return as_mp(inner * (-at * at / (2 * S * S)).exp() * front)

        lo, hi = -15 * mpmath.mpf(s), shifts[-1] + 15 * mpmath.mpf(s)
        # the integrand has a kink in its derivatives where the inner set becomes everything
        cuts = [lo, hi]
        if w0 > 0 and (level := (E if remove else -E).exp() / w0 - w0) > 0:
            cuts.append(min(max(as_mp(threshold(S, moving, level.log())), lo), hi))
        found = []
        for parts in (14, 19):
            points = sorted({*cuts, *(lo + (hi - lo) * i / parts for i in range(1, parts))})
            found.append(mpmath.quad(integrand, points, maxdegree=7))
        one, two = found
        gap = 100 * abs(one - two) + mpmath.mpf(10) ** -60
        if not gap < mpmath.mpf(10) ** -16 * abs(one):
            raise NotConverged(f"disagreement {mpmath.nstr(gap / one, 3)}")
        return one - gap, one + gap
