"""Evaluate the inequalities of the paper's proof at random, extreme and degenerate arguments.

python docs/paper/inequalities.py     prints, for each, the instances tried and those that failed

Every function yields whether one instance holds. All is computed by mpmath with 30 digits, but for
the recurrence of Theorem 8, which is what a processor makes of it. No code of the library is used.
"""
# ruff: noqa: B008, E731, E501

import math
import random
import sys

import numpy as np
from formulas import EPS, NODES, WEIGHTS, U, chernoff, loss, noise, steps
from laws import by_moduli, chords, minorant, moments, path, shifted_rule, smoothing
from mpmath import arg, cos, erfc, exp, expm1, log, mp, mpc, mpf, ncdf, pi, quad, sin, sqrt


def inversion(r):
    """Theorem 1 for one loss, both directions: the part beyond Y is at most 1/(πY) of the scale."""
    for _ in range(40):
        ell, eps, b = (
            mpf(r.uniform(-3, 3)),
            mpf(r.uniform(-3, 3)),
            mpf(10 ** r.uniform(-0.5, 0.7)),
        )
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
        whole = sum(
            max(exp(ell) - exp(eps + k * period), 0) * exp(b * k * period) for k in range(-400, 40)
        )
        count = 3000
        total = mpf(0)
        for k in range(count):
            s = mpc(1 + b, k * dy)
            total += (exp(s * ell - eps * (s - 1)) / (s * (s - 1))).real * (1 if k else mpf(1) / 2)
        scale = exp((1 + b) * ell - b * eps)
        yield abs(dy / pi * total - whole) <= scale / (pi * (count - 1) * dy) * 2 + EPS
        own, b1, b2 = max(exp(ell) - exp(eps), 0), b * r.random(), b * (1 + 3 * r.random())
        right = sum(
            max(exp(ell) - exp(eps + k * period), 0) * exp(b * k * period) for k in range(1, 40)
        )
        left = sum(
            max(exp(ell) - exp(eps - k * period), 0) * exp(-b * k * period) for k in range(1, 400)
        )

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
        yield reverse <= chernoff(m) * exp((m + 1) * eps - m * loss(q, sigma, hi)) * above * (
            1 + EPS
        )
        below = ncdf(lo / sigma)
        yield (1 - q) * below + q * ncdf((lo - 1) / sigma) <= below
        ends = [-16 * sigma, lo, 0, hi, 16 * sigma + 1]
        inside, whole = (
            quad(lambda t, q=q, s=sigma, m=m: noise(s, t) * exp(-m * loss(q, s, t)), each)
            for each in ([lo, 0, hi], ends)
        )
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
        rho, c = (
            mpf(r.uniform(1.6, 6)),
            mpf(r.choice([1 + 10 ** r.uniform(-2, 1), -(10 ** r.uniform(-2, 1))])),
        )
        y = mpf(10 ** r.uniform(-2, 1.5))
        a, eta = half * (rho + 1 / rho) / 2, half * (rho - 1 / rho) / 2
        theta = eta / sigma**2
        if theta > 2.9:
            continue
        p = [q * exp((2 * x - 1) / (2 * sigma**2) - loss(q, sigma, x)) for x in (mid - a, mid + a)]
        turn = theta * p[1] if p[1] <= 0.5 else theta
        spread = (
            max(p[i] * (1 - p[i]) for i in (0, 1)) if (p[0] > 0.5) == (p[1] > 0.5) else mpf(1) / 4
        )
        fall = -log(1 - 4 * spread * sin(theta / 2) ** 2) / 2
        top = max(
            c * loss(q, sigma, x) - x * x / (2 * sigma**2)
            for x in (mid - a + 2 * a * k / 200 for k in range(201))
        )
        most = exp(eta**2 / (2 * sigma**2) + y * turn + (-c * fall if c < 0 else 0) + top) / (
            sigma * sqrt(2 * pi)
        )

        def f(x, q=q, sigma=sigma, s=mpc(c, y)):
            return noise(sigma, x) * exp(s * loss(q, sigma, x))

        for _ in range(4):
            angle = mpf(r.uniform(0, 2 * math.pi))
            yield abs(f(mid + mpc(a * cos(angle), eta * sin(angle)))) <= most * (1 + mpf("0.02"))
        rule = half * sum(w * f(mid + half * x) for x, w in zip(NODES, WEIGHTS, strict=True))
        exact = quad(f, [mid - half, mid, mid + half])
        yield abs(rule - exact) <= 8 * half * most * mpf("1.02") * rho**-39 / (rho - 1) + EPS * abs(
            exact
        )


def one_sign(r):
    """Theorem 4(d): the summands of A - 1 and A', as products of terms of one sign; Theorem 12's bounds."""
    e2 = lambda z: exp(z) - 1 - z
    for _ in range(300):
        ell = mpf(r.choice([-1, 1]) * 10 ** r.uniform(-8, 1))
        for c in (1 + mpf(10 ** r.uniform(-6, 2)), -mpf(10 ** r.uniform(-6, 2))):
            g = exp(c * ell) - 1 - c * expm1(ell)
            slope = ell * exp(c * ell) - expm1(ell)
            t = c - 1
            if c > 1:
                other = (
                    exp(ell) * (e2(t * ell) + t * e2(-ell)),
                    exp(ell) * (e2(-ell) + ell * expm1(t * ell)),
                )
            else:
                other = e2(c * ell) - c * e2(ell), ell * expm1(c * ell) - e2(ell)
            size = 1 + exp(c * ell) + abs(c) * exp(ell)
            yield abs(g - other[0]) <= EPS * size * (1 + abs(ell))
            yield abs(slope - other[1]) <= EPS * size * (1 + abs(ell))
            yield g >= -EPS * size
            yield g <= abs(c * (c - 1)) * ell**2 / 2 * max(1, exp(c * ell), exp(ell)) + EPS * size


def losses(r):
    """The lemma on the loss, in units of roundoff: what three forms may err by, and what is counted."""
    for _ in range(4000):
        q = r.choice(
            (
                r.random(),
                10 ** r.uniform(-12, 0),
                1 - 10 ** r.uniform(-12, -1),
                r.uniform(0.6, 0.72),
            )
        )
        w = r.choice((r.uniform(-3, 3), r.uniform(-50, 60), -math.log(2) - r.random() / 100))
        ell, odds = math.log1p(q * math.expm1(w)), (1 - q) / q
        p = q * math.exp(w - ell)
        beta = math.exp(w) / odds
        if q > 0.5 and w <= -math.log(2) and beta < 1:
            need = 4 * abs(math.log1p(-q)) + 7 * p + 5 * math.log1p(beta) + abs(ell)
        elif q * math.exp(w) >= math.e or (q > 0.5 and w <= -math.log(2)):
            need = (
                5 * abs(math.log(q))
                + abs(math.log(q) + w)
                + 8 / (1 + beta)
                + 5 * math.log1p(1 / beta)
                + abs(ell)
            )
        else:
            need = 6 * abs(q * math.expm1(w)) / math.exp(ell) + 5 * abs(ell)
        yield need + 3 * p * abs(w) <= 24 * abs(ell) + 12 * p * abs(w)


def recurrence(r):
    """Theorem 8(a): e^{ikt} - 1 and e^{ikt} - 1 - ikt by the recurrence, in binary64."""
    for _ in range(300):
        t1, first = (
            float(r.choice([-1, 1]) * 10 ** r.uniform(-6, 1.5)),
            r.choice([0, 16, 16 * r.randint(1, 500)]),
        )
        weight = float(r.random())

        def direct(t, weight=weight):
            s, c = math.sin(0.5 * t), math.cos(0.5 * t)
            w = t * t
            series = t * sum((-1) ** k * w**k / math.factorial(2 * k + 1) for k in range(1, 9))
            return (
                weight * (-2.0 * s * s),
                weight * (2.0 * s * c),
                weight * (series if w <= 0.5 else 2.0 * s * c - t),
            )

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


def powers(r):
    """Theorem 8(d): what an error of V does to a power of 1 + V."""
    for _ in range(300):
        z = mpc(r.uniform(-1, 1), r.uniform(-1, 1))
        n, off = r.choice([1, 2, 7, 1000, 10**9]), mpf(10 ** r.uniform(-16, -1)) * abs(z)
        other = z + off * exp(mpc(0, r.uniform(0, 6)))
        grow = n * off / (abs(z) - off)
        if n * abs(log(abs(z))) < 600 and grow < 600:
            yield abs(z**n - other**n) <= abs(z) ** n * expm1(grow) * (1 + mpf(10) ** -12)


ALL = (
    inversion,
    aliases,
    kappa,
    window,
    ellipse,
    panel,
    one_sign,
    losses,
    recurrence,
    powers,
    moments,
    minorant,
    path,
    smoothing,
    chords,
    shifted_rule,
    by_moduli,
)


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
