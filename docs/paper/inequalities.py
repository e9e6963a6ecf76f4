"""Evaluate the inequalities of the paper's proof at random, extreme and degenerate arguments.

python docs/paper/inequalities.py     prints, for each, the instances tried and those that failed

Every function yields whether one instance holds. All is computed by mpmath with 30 digits, but for
the recurrence of Theorem 8, which is what a processor makes of it. No code of the library is used.
"""

import cmath
import math
import random
import sys

import numpy as np
from mpmath import arg, cos, erfc, exp, expm1, log, log1p, mp, mpc, mpf, ncdf, npdf, pi, quad, sin, sqrt

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
        yield mpf(QS[i % 8] if i < 40 else r.random()), mpf(SIGMAS[i % 5] if i < 40 else 10 ** r.uniform(-0.6, 1.5))


def loss(q, sigma, x):
    """L at a real or complex x, on the principal branch."""
    return log(1 - q + q * exp((2 * x - 1) / (2 * sigma**2)))


def noise(sigma, x):
    return exp(-x * x / (2 * sigma**2)) / (sigma * sqrt(2 * pi))


def inversion(r):
    """Theorem 1 for one loss, both directions: the part beyond Y is at most 1/(πY) of the scale."""
    for _ in range(40):
        ell, eps, b = (mpf(r.uniform(-3, 3)), mpf(r.uniform(-3, 3)), mpf(10 ** r.uniform(-0.5, 0.7)))
        for add in (False, True):
            def term(y, add=add, ell=ell, eps=eps, b=b):
                s = mpc(-b, -y) if add else mpc(1 + b, y)
                grow = s * (ell + eps) if add else s * ell - eps * (s - 1)
                return (exp(grow) / (s * (s - 1))).real

            scale = exp(-b * (ell + eps)) if add else exp((1 + b) * ell - b * eps)
            with mp.workdps(15):
                found = quad(term, np.linspace(0, 200, 101).tolist()) / pi
            exact = max(1 - exp(eps + ell), 0) if add else max(exp(ell) - exp(eps), 0)
            yield abs(found - exact) <= scale / (pi * 200) + 1e-9


def aliases(r):
    """Theorems 2 and 5: the trapezoid sum of an atom is the sum of profiles, each as bounded."""
    for _ in range(40):
        ell, eps, b = (mpf(r.uniform(-2, 2)), mpf(r.uniform(-2, 2)), mpf(10 ** r.uniform(-1, 0.7)))
        dy = mpf(10 ** r.uniform(-0.5, 0.5))
        period = 2 * pi / dy
        whole = sum(max(exp(ell) - exp(eps + k * period), 0) * exp(b * k * period) for k in range(-400, 40))
        count = 3000
        total = mpf(0)
        for k in range(count):
            s = mpc(1 + b, k * dy)
            total += (exp(s * ell - eps * (s - 1)) / (s * (s - 1))).real * (1 if k else mpf(1) / 2)
        scale = exp((1 + b) * ell - b * eps)
        yield abs(dy / pi * total - whole) <= scale / (pi * (count - 1) * dy) * 2 + EPS
        own, b1, b2 = max(exp(ell) - exp(eps), 0), b * r.random(), b * (1 + 3 * r.random())
        right = sum(max(exp(ell) - exp(eps + k * period), 0) * exp(b * k * period) for k in range(1, 40))
        left = sum(max(exp(ell) - exp(eps - k * period), 0) * exp(-b * k * period) for k in range(1, 400))

        def bound(other, gap, ell=ell, eps=eps, period=period):
            ratio = exp(-gap * period)
            return chernoff(other) * exp((1 + other) * ell - other * eps) * ratio / (1 - ratio)

        yield own <= chernoff(b2) * exp((1 + b2) * ell - b2 * eps)
        yield right <= bound(b2, b2 - b)
        yield left <= bound(mpf(b1), b - b1)
        yield left <= exp(ell) * exp(-b * period) / (1 - exp(-b * period))


def kappa(r):
    """κ(m) from above, and that it is reached."""
    for _ in range(300):
        m, v = mpf(10 ** r.uniform(-6, 6)), mpf(10 ** r.uniform(-8, 3))
        yield -expm1(-v) * exp(-m * v) <= chernoff(m) * (1 + EPS)
    for m in (mpf("1e-6"), mpf(1), mpf("1e6")):
        v = log((m + 1) / m)
        yield abs(-expm1(-v) * exp(-m * v) / chernoff(m) - 1) < EPS


def window(r):
    """Theorem 3 for one step: the tail event's identity and its reverse term; A(-m) of all noise."""
    for q, sigma in steps(r, 60):
        lo, hi = -sigma * r.uniform(0.1, 6), mpf(0.5) + sigma * r.uniform(0.05, 6)
        m, eps = mpf(10 ** r.uniform(-1, 1)), loss(q, sigma, hi) * r.uniform(-1, 1.5)
        above = erfc(hi / sigma / sqrt(2)) / 2
        more = q * (erfc((hi - 1) / sigma / sqrt(2)) / 2 - above)
        x = sigma**2 * log(max((exp(eps) - 1 + q) / q, mpf("1e-60"))) + 0.5  # where L = ε
        cut = max(hi, x)
        q_far = erfc(cut / sigma / sqrt(2)) / 2
        p_far = q_far + q * (erfc((cut - 1) / sigma / sqrt(2)) / 2 - q_far)
        profile = p_far - exp(eps) * q_far
        reverse = profile - (above + more - exp(eps) * above)
        yield reverse >= -EPS * above
        yield reverse <= chernoff(m) * exp((m + 1) * eps - m * loss(q, sigma, hi)) * above * (1 + EPS)
        below = ncdf(lo / sigma)
        yield (1 - q) * below + q * ncdf((lo - 1) / sigma) <= below
        ends = [-16 * sigma, lo, 0, hi, 16 * sigma + 1]
        inside, whole = (quad(lambda t, q=q, s=sigma, m=m: noise(s, t) * exp(-m * loss(q, s, t)), each)
                         for each in ([lo, 0, hi], ends))
        outside = exp(-m * loss(q, sigma, hi)) * above + (1 - q) ** (-m) * below
        yield whole <= (inside + outside) * (1 + mpf(10) ** -12)


def ellipse(r):
    """Theorem 4(b): argument and modulus of e^L, at random points of the strips."""
    for q, sigma in steps(r, 200):
        x, theta = mpf(sigma * r.uniform(-8, 8)), mpf(r.uniform(0, 3 * math.pi))
        t = theta * r.random()
        w = (2 * x - 1) / (2 * sigma**2)
        odds = exp(w) * q / (1 - q)
        p = odds / (1 + odds)
        z = 1 + odds * mpc(cos(t), sin(t))
        if p < 0.5 or p > 0.5:
            turns = arg(z) if p < 0.5 else t + arg(1 + mpc(cos(t), -sin(t)) / odds)
            yield abs(turns) <= (theta * p if p < 0.5 else theta if theta <= pi else theta + pi / 2)
        if theta < pi:
            yield 0 <= arg(1 + odds * mpc(cos(t), sin(t))) <= t + EPS
        half = min(theta, pi) / 2
        yield (1 + odds) >= abs(z) * (1 - EPS)
        yield abs(z) >= (1 + odds) * sqrt(max(1 - 4 * p * (1 - p) * sin(half) ** 2, 0)) * (1 - EPS)


def panel(r):
    """Theorem 4(a, b): the error of a panel, beside the bound that the code evaluates."""
    for q, sigma in steps(r, 60):
        mid, half = mpf(sigma * r.uniform(-4, 4)), mpf(sigma * r.uniform(0.2, 3))
        rho, c = mpf(r.uniform(1.6, 6)), mpf(r.choice([1 + 10 ** r.uniform(-2, 1), -(10 ** r.uniform(-2, 1))]))
        y = mpf(10 ** r.uniform(-2, 1.5))
        a, eta = half * (rho + 1 / rho) / 2, half * (rho - 1 / rho) / 2
        theta = eta / sigma**2
        if theta > 2.9:
            continue
        p = [q * exp((2 * x - 1) / (2 * sigma**2) - loss(q, sigma, x)) for x in (mid - a, mid + a)]
        turn = theta * p[1] if p[1] <= 0.5 else theta
        spread = max(p[i] * (1 - p[i]) for i in (0, 1)) if (p[0] > 0.5) == (p[1] > 0.5) else mpf(1) / 4
        fall = -log(1 - 4 * spread * sin(theta / 2) ** 2) / 2
        top = max(c * loss(q, sigma, x) - x * x / (2 * sigma**2) for x in
                  (mid - a + 2 * a * k / 200 for k in range(201)))
        most = exp(eta**2 / (2 * sigma**2) + y * turn + (-c * fall if c < 0 else 0) + top) / (sigma * sqrt(2 * pi))

        def f(x, q=q, sigma=sigma, s=mpc(c, y)):
            return noise(sigma, x) * exp(s * loss(q, sigma, x))

        for _ in range(4):
            angle = mpf(r.uniform(0, 2 * math.pi))
            yield abs(f(mid + mpc(a * cos(angle), eta * sin(angle)))) <= most * (1 + mpf("0.02"))
        rule = half * sum(w * f(mid + half * x) for x, w in zip(NODES, WEIGHTS, strict=True))
        exact = quad(f, [mid - half, mid, mid + half])
        yield abs(rule - exact) <= 8 * half * most * mpf("1.02") * rho**-39 / (rho - 1) + EPS * abs(exact)


def one_sign(r):
    """Theorem 4(d): the summands of A - 1 and A', as products of terms of one sign; Theorem 12's bounds."""
    e2 = lambda z: exp(z) - 1 - z  # noqa: E731
    for _ in range(300):
        ell = mpf(r.choice([-1, 1]) * 10 ** r.uniform(-8, 1))
        for c in (1 + mpf(10 ** r.uniform(-6, 2)), -mpf(10 ** r.uniform(-6, 2))):
            g = exp(c * ell) - 1 - c * expm1(ell)
            slope = ell * exp(c * ell) - expm1(ell)
            t = c - 1
            if c > 1:
                other = exp(ell) * (e2(t * ell) + t * e2(-ell)), exp(ell) * (e2(-ell) + ell * expm1(t * ell))
            else:
                other = e2(c * ell) - c * e2(ell), ell * expm1(c * ell) - e2(ell)
            size = 1 + exp(c * ell) + abs(c) * exp(ell)
            yield abs(g - other[0]) <= EPS * size * (1 + abs(ell))
            yield abs(slope - other[1]) <= EPS * size * (1 + abs(ell))
            yield g >= -EPS * size
            yield g <= abs(c * (c - 1)) * ell**2 / 2 * max(1, exp(c * ell), exp(ell)) + EPS * size


def moments(r):
    """Theorem 6, for random atoms and parts of them; and the logarithm of 1 - x as the code has it."""
    for _ in range(300):
        n = r.randint(1, 6)
        mass = [mpf(10 ** r.uniform(-6, 0)) for _ in range(n)]
        mass = [each / sum(mass) for each in mass]
        where = [mpf(r.gauss(0, 1) * 10 ** r.uniform(-2, 1)) for _ in range(n)]
        about, part = mpf(r.gauss(0, 1)), range(r.randint(1, n))
        m = [sum(mass[i] * (where[i] - about) ** k for i in part) for k in range(5)]
        y = mpf(10 ** r.uniform(-3, 2))
        size = abs(sum(w * mpc(cos(y * x), sin(y * x)) for w, x in zip(mass, where, strict=True))) ** 2
        drop = y**2 * (m[0] * m[2] - m[1] ** 2) - y**4 / 24 * (2 * m[0] * m[4] - 8 * m[1] * m[3] + 6 * m[2] ** 2)
        yield size <= 1 - drop + EPS * (1 + abs(drop))
    for x in (mpf(r.random()) for _ in range(50)):
        yield log1p(-x) / 2 <= -x * (0.5 + x * (0.25 + x * (mpf(1) / 6 + x * 0.125)))


def minorant(r):
    """Theorem 7: the supremum of |sin t/t| as the code has it, and mixtures of uniform laws and atoms."""
    for _ in range(200):
        t0 = mpf(r.uniform(0.01, 12))
        bound = 1 / t0 if t0 > 4.6 else max(mpf("0.2173"), sin(t0) / t0 if t0 < 2.6 else 0)
        yield all(abs(sin(t) / t) <= bound for t in (t0 + mpf(k) / 40 for k in range(400)))
    for _ in range(100):
        n, y = r.randint(1, 4), mpf(10 ** r.uniform(-1, 1.5))
        ends = sorted(mpf(r.uniform(-3, 3)) for _ in range(2 * n))
        length = [ends[2 * i + 1] - ends[2 * i] for i in range(n)]
        height = [mpf(r.random()) for _ in range(n)]
        scale = mpf(r.random()) / sum(h * d for h, d in zip(height, length, strict=True))
        height = [scale * h for h in height]
        rest = 1 - sum(h * d for h, d in zip(height, length, strict=True))
        far = y * (1 + 3 * r.random())
        phi = rest * exp(mpc(0, far * r.uniform(-2, 2)))
        for i in range(n):
            phi += height[i] * (exp(mpc(0, far * ends[2 * i + 1])) - exp(mpc(0, far * ends[2 * i]))) / mpc(0, far)
        worst = [max([abs(sin(t) / t) for t in (y * d / 2 * (1 + mpf(k) / 50) for k in range(600))]) for d in length]
        yield abs(phi) <= 1 - sum(h * d * (1 - s) for h, d, s in zip(height, length, worst, strict=True)) + EPS


def recurrence(r):
    """Theorem 8(a): e^{ikt} - 1 and e^{ikt} - 1 - ikt by the recurrence, in binary64."""
    for _ in range(300):
        t1, first = float(r.choice([-1, 1]) * 10 ** r.uniform(-6, 1.5)), r.choice([0, 16, 16 * r.randint(1, 500)])
        weight = float(r.random())

        def direct(t, weight=weight):
            s, c = math.sin(0.5 * t), math.cos(0.5 * t)
            w = t * t
            series = t * sum((-1) ** k * w**k / math.factorial(2 * k + 1) for k in range(1, 9))
            return weight * (-2.0 * s * s), weight * (2.0 * s * c), weight * (series if w <= 0.5 else 2.0 * s * c - t)

        exact_t1 = mpf(t1)
        wr1, wi1, wv1 = direct(t1)
        c1r, c1i = -2.0 * math.sin(0.5 * t1) ** 2, 2.0 * math.sin(0.5 * t1) * math.cos(0.5 * t1)
        dr, di, v = direct(float(first) * t1) if first else (0.0, 0.0, 0.0)
        start = mpf(float(first) * t1)  # the computed angle; its rounding counts with the loss
        for j in range(17):
            t = start + j * exact_t1
            true_r, true_v = cos(t) - 1, sin(t) - t
            size = min(t * t, 2 + abs(t))
            off = sqrt((dr / mpf(weight) - true_r) ** 2 + (v / mpf(weight) - true_v) ** 2)
            yield off <= (64 * j + 112) * U * size
            p = dr * c1i + di * c1r
            v = v + (wv1 + p)
            dr, di = dr + (wr1 + (dr * c1r - di * c1i)), di + (wi1 + p)


def losses(r):
    """The lemma on the loss, in units of roundoff: what three forms may err by, and what is counted."""
    for i in range(4000):
        q = r.choice((r.random(), 10 ** r.uniform(-12, 0), 1 - 10 ** r.uniform(-12, -1), r.uniform(0.6, 0.72)))
        w = r.choice((r.uniform(-3, 3), r.uniform(-50, 60), -math.log(2) - r.random() / 100))
        ell, odds = math.log1p(q * math.expm1(w)), (1 - q) / q
        p = q * math.exp(w - ell)
        beta = math.exp(w) / odds
        if q > 0.5 and w <= -math.log(2) and beta < 1:
            need = 4 * abs(math.log1p(-q)) + 7 * p + 5 * math.log1p(beta) + abs(ell)
        elif q * math.exp(w) >= math.e or (q > 0.5 and w <= -math.log(2)):
            need = 5 * abs(math.log(q)) + abs(math.log(q) + w) + 8 / (1 + beta) + 5 * math.log1p(1 / beta) + abs(ell)
        else:
            need = 6 * abs(q * math.expm1(w)) / math.exp(ell) + 5 * abs(ell)
        yield need + 3 * p * abs(w) <= 24 * abs(ell) + 12 * p * abs(w)


def powers(r):
    """Theorem 8(d): what an error of V does to a power of 1 + V."""
    for _ in range(300):
        z = mpc(r.uniform(-1, 1), r.uniform(-1, 1))
        n, off = r.choice([1, 2, 7, 1000, 10**9]), mpf(10 ** r.uniform(-16, -1)) * abs(z)
        other = z + off * exp(mpc(0, r.uniform(0, 6)))
        grow = n * off / (abs(z) - off)
        if n * abs(log(abs(z))) < 600 and grow < 600:
            yield abs(z**n - other**n) <= abs(z) ** n * expm1(grow) * (1 + mpf(10) ** -12)


def path(r):
    """Theorem 9: the transform beyond y, by the sum on a shifted path; and the tail of the sum."""
    for q, sigma in steps(r, 40):
        a = min(mpf(0.9) * pi * sigma**2 / 2, sigma * mpf(r.uniform(0.2, 1)))
        c = mpf(r.choice([1 + 10 ** r.uniform(-2, 0.7), -(10 ** r.uniform(-2, 0.7))]))
        lo, hi, y = -5 * sigma, 5 * sigma + 1, mpf(10 ** r.uniform(-1, 1))
        far = y * (1 + r.random())
        theta = a / sigma**2
        with mp.workdps(20):
            ends = [lo + (hi - lo) * k / 8 for k in range(9)]
            phi = quad(lambda x, q=q, s=sigma, z=mpc(c, far): noise(s, x) * exp(z * loss(q, s, x)), ends)
            along = quad(lambda x, q=q, s=sigma, c=c, y=y, a=a: noise(s, x) * abs(exp(loss(q, s, mpc(x, a)))) ** c
                         * exp(-y * loss(q, s, mpc(x, a)).imag), ends) * exp(theta * a / 2)
        grow = exp(-c * -log(cos(theta / 2))) if c < 0 and theta < pi else mpf(1)
        sides = sum(a * noise(sigma, x) * exp(theta * a / 2 + c * loss(q, sigma, x)) * grow for x in (lo, hi))
        yield abs(phi) <= (along + sides) * (1 + mpf(10) ** -9) + mpf(10) ** -15
    for _ in range(100):
        b, dy, first = mpf(10 ** r.uniform(-2, 2)), mpf(10 ** r.uniform(-2, 1)), r.randint(1, 20)
        y, y1 = first * dy, first * dy * mpf(r.uniform(1.01, 20))
        total = sum(dy / pi / sqrt((b * b + t * t) * ((b + 1) ** 2 + t * t)) for t in
                    (k * dy for k in range(first + 1, int(y1 / dy) + 1)))
        yield total <= min(1 / y - 1 / y1 + dy / y**2, (y1 - y + dy) / (b * (b + 1))) / pi * (1 + EPS)


def smoothing(r):
    """Theorem 21 for one loss: what the smoothing adds, and its bound; the transforms' identities."""
    for _ in range(300):
        s, t = mpf(10 ** r.uniform(-4, 0.5)), mpf(r.gauss(0, 1) * 10 ** r.uniform(-4, 1))
        with mp.workdps(60):
            gap = exp(t) * ncdf(t / s + s / 2) - ncdf(t / s - s / 2) - max(expm1(t), 0)
            most = s * exp(t / 2) * npdf(t / s)
            yield -mpf(10) ** -50 <= gap <= most + mpf(10) ** -50
    for _ in range(10):
        sigma, shift = mpf(r.uniform(0.3, 3)), r.randint(1, 4)
        v, z = (shift / sigma) ** 2, mpc(r.uniform(-1, 3), r.uniform(-20, 20))
        reach = int(60 * sigma) + 12 + abs(int(shift * z.real))
        norm = sum(exp(-mpf(k) ** 2 / (2 * sigma**2)) for k in range(-reach, reach + 1))
        with mp.workdps(60):
            masses = sum(exp((z * (mpf(k) ** 2 - (k - shift) ** 2) - mpf(k) ** 2) / (2 * sigma**2))
                         for k in range(-reach, reach + 1)) / norm
            theta = lambda x, s=sigma, d=shift: 1 + 2 * sum(  # noqa: E731
                exp(-2 * pi**2 * s**2 * m**2) * cos(2 * pi * m * d * x) for m in range(1, 40))
            found = exp(v * z * (z - 1) / 2) * theta(z) / theta(0)
            yield abs(found - masses) <= mpf(10) ** -15 * (abs(masses) + exp(v * z.real * (z.real - 1) / 2))
    for _ in range(20):
        lam, z = mpf(10 ** r.uniform(-1, 0.7)), mpc(r.uniform(-1, 3), r.uniform(-5, 5))
        found = exp((z - 1) * lam) * (1 + 1 / (2 * z - 1)) / 2 + exp(-z * lam) * (1 - 1 / (2 * z - 1)) / 2
        middle = quad(lambda x, z=z, lam=lam: exp(-abs(x) + z * (abs(x) - abs(x - lam))) / 2, [0, lam])
        exact = middle + (exp(-z * lam) + exp((z - 1) * lam)) / 2
        yield abs(found - exact) <= EPS * (1 + abs(exact))


def profile_of(law, x):
    """Σ p (1 - x/e^t)_+ of masses at losses."""
    return sum(p * max(1 - x / exp(t), 0) for t, p in law)


def chords(r):
    """G2 and G3: laws on knots above and below the law of random atoms inside the grid."""
    for _ in range(60):
        spacing, count, low = mpf(10 ** r.uniform(-1.5, 0)), r.randint(3, 9), mpf(r.uniform(-2, 0.5))
        knots = [low + i * spacing for i in range(count + 1)]
        atoms = [(knots[0] + spacing * count * mpf(r.random()), mpf(10 ** r.uniform(-3, 0))) for _ in range(5)]
        upper = [mpf(0)] * (count + 1)
        for i in range(count):
            cell = [(t, p) for t, p in atoms if knots[i] < t <= knots[i + 1]]
            p, q = sum(m for _, m in cell), sum(m * exp(-t) for t, m in cell)
            up = (p - q * exp(knots[i])) / -expm1(-spacing)
            yield -EPS <= up <= p + EPS
            upper[i + 1] += up
            upper[i] += p - up
        values = [exp(t) for t in knots]
        h = [profile_of(atoms, x) for x in values]
        tangent = []
        for i in range(count):
            y = exp(knots[i] if i == 0 else knots[i + 1] if i == count - 1 else (knots[i] + knots[i + 1]) / 2)
            slope = -sum(p * exp(-t) for t, p in atoms if exp(t) > y)
            tangent.append((profile_of(atoms, y) - slope * y, slope))
        lower = [min(a + s * x for a, s in tangent[max(i - 1, 0): i + 1]) for i, x in enumerate(values)]
        for _ in range(20):
            x = exp(knots[0] + spacing * count * mpf(r.random()))
            true = profile_of(atoms, x)
            yield profile_of(zip(knots, upper, strict=True), x) >= true - EPS
            i = next(j for j in range(count) if x <= values[j + 1])
            part = (x - values[i]) / (values[i + 1] - values[i])
            yield lower[i] + part * (lower[i + 1] - lower[i]) <= true + EPS
        gaps = [h[i] - lower[i] for i in range(count + 1)]
        yield min(gaps) >= -EPS


def shifted_rule(r):
    """K1: the trapezoid rule on a shifted path, with its bound."""
    for q, sigma in steps(r, 30):
        c = mpf(r.choice([1 + 10 ** r.uniform(-2, 0.5), -(10 ** r.uniform(-2, 0.3))]))
        a = min(mpf(0.9) * pi * sigma**2 / (2 if c > 0 else 4), sigma * mpf(r.uniform(0.1, 0.8)))
        lo, count, y = -6 * sigma, r.randint(20, 90), mpf(10 ** r.uniform(-1, 1))
        hi = 6 * sigma + 1 + max(c, 0)
        h = (hi - lo) / count
        s = mpf(0) if c > 0 else -(sigma**2) * log(cos(2 * a / sigma**2))
        f = lambda z, q=q, g=sigma, o=mpc(c, y): noise(g, z) * exp(o * loss(q, g, z))  # noqa: E731
        most = lambda x, q=q, g=sigma, c=c, s=s, a=a: (  # noqa: E731
            exp(2 * a**2 / g**2) * noise(g, x) * exp(c * loss(q, g, x - s)))
        with mp.workdps(20):
            ends = [lo + (hi - lo) * k / 8 for k in range(9)]
            exact, whole = quad(f, ends), quad(most, ends)
        found = h * sum(f(lo + (j + mpf(0.5)) * h + mpc(0, a)) for j in range(count))
        bound = 2 * whole / expm1(2 * pi * a / h) + 2 * a * (most(lo) + most(hi))
        yield abs(exact - found) <= bound * (1 + mpf(10) ** -9) + mpf(10) ** -14
        for _ in range(5):
            z = mpc(r.uniform(float(lo), float(hi)), 2 * a * mpf(r.random()))
            yield abs(f(z)) <= most(z.real) * (1 + EPS)


def by_moduli(r):
    """Theorems 18 and 20(b): chords of a profile, powers of a tail, and h."""
    for _ in range(100):
        n, m, y = r.randint(2, 9), r.randint(1, 9), mpf(10 ** r.uniform(-1, 1))
        phi = [mpf(r.random()) for _ in range(20)]
        f = [y / (pi * (y * (k + 2)) ** 2) for k in range(20)]
        tail = [sum(w * p**e for w, p in zip(f, phi, strict=True)) for e in (n, m)]
        yield tail[1] <= (tail[0] if m >= n else tail[0] ** (mpf(m) / n) * (pi * y) ** (mpf(m) / n - 1)) * (1 + EPS)
        v, big = mpf(10 ** r.uniform(-3, 2)), mpf(10 ** r.uniform(-3, 3))
        u, b = mpf(r.random()) * min(24 * v / big, 1 / v), mpf(10 ** r.uniform(-2, 2))
        size = (1 - v * u + big * u * u / 24) ** (mpf(n) / 2)
        c2, c3 = mpf(n) / 4 * max(big / 12 - v * v, 0), mpf(n) / 48 * v * big
        h = exp(c2 * u**2 + c3 * u**3)
        yield size <= exp(-mpf(n) / 2 * v * u) * h * (1 + EPS)
        atoms = [(mpf(r.gauss(0, 1)), mpf(r.random())) for _ in range(4)]
        e0, e1, e2 = sorted(mpf(r.uniform(0, 2)) for _ in range(3))
        d0, d1, d2 = (profile_of(atoms, exp(e)) for e in (e0, e1, e2))
        if e2 > e1:
            yield d0 >= d1 + (d1 - d2) * -expm1(e0 - e1) / expm1(e2 - e1) - EPS


ALL = (inversion, aliases, kappa, window, ellipse, panel, one_sign, losses, moments, minorant, recurrence,
       powers, path, smoothing, chords, shifted_rule, by_moduli)


def run(names=()):
    """Return, for each inequality, the instances tried and the number of those that failed."""
    found = {}
    for each in ALL:
        if not names or each.__name__ in names:
            held = [bool(one) for one in each(random.Random(each.__name__))]
            found[each.__name__] = len(held), held.count(False)
    return found


if __name__ == "__main__":
    done = run(sys.argv[1:])
    for name, (count, wrong) in done.items():
        print(f"{name}: {count}, {wrong} failed")
    sys.exit(any(wrong for _, wrong in done.values()))
