"""Inequalities of the paper about laws: decay, smoothing, chords, the certificate's rule."""
# ruff: noqa: B008, E731, E501

from formulas import EPS, loss, noise, steps
from mpmath import cos, exp, expm1, log, log1p, mp, mpc, mpf, ncdf, npdf, pi, quad, sin, sqrt


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
        size = (
            abs(sum(w * mpc(cos(y * x), sin(y * x)) for w, x in zip(mass, where, strict=True))) ** 2
        )
        drop = y**2 * (m[0] * m[2] - m[1] ** 2) - y**4 / 24 * (
            2 * m[0] * m[4] - 8 * m[1] * m[3] + 6 * m[2] ** 2
        )
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
            phi += (
                height[i]
                * (exp(mpc(0, far * ends[2 * i + 1])) - exp(mpc(0, far * ends[2 * i])))
                / mpc(0, far)
            )
        worst = [
            max([abs(sin(t) / t) for t in (y * d / 2 * (1 + mpf(k) / 50) for k in range(600))])
            for d in length
        ]
        yield (
            abs(phi)
            <= 1 - sum(h * d * (1 - s) for h, d, s in zip(height, length, worst, strict=True)) + EPS
        )


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
            phi = quad(
                lambda x, q=q, s=sigma, z=mpc(c, far): noise(s, x) * exp(z * loss(q, s, x)), ends
            )
            along = quad(
                lambda x, q=q, s=sigma, c=c, y=y, a=a: (
                    noise(s, x)
                    * abs(exp(loss(q, s, mpc(x, a)))) ** c
                    * exp(-y * loss(q, s, mpc(x, a)).imag)
                ),
                ends,
            ) * exp(theta * a / 2)
        grow = exp(-c * -log(cos(theta / 2))) if c < 0 and theta < pi else mpf(1)
        sides = sum(
            a * noise(sigma, x) * exp(theta * a / 2 + c * loss(q, sigma, x)) * grow
            for x in (lo, hi)
        )
        yield abs(phi) <= (along + sides) * (1 + mpf(10) ** -9) + mpf(10) ** -15
    for _ in range(100):
        b, dy, first = mpf(10 ** r.uniform(-2, 2)), mpf(10 ** r.uniform(-2, 1)), r.randint(1, 20)
        y, y1 = first * dy, first * dy * mpf(r.uniform(1.01, 20))
        total = sum(
            dy / pi / sqrt((b * b + t * t) * ((b + 1) ** 2 + t * t))
            for t in (k * dy for k in range(first + 1, int(y1 / dy) + 1))
        )
        yield total <= min(1 / y - 1 / y1 + dy / y**2, (y1 - y + dy) / (b * (b + 1))) / pi * (
            1 + EPS
        )


def smoothing(r):
    """Theorem 21 for one loss: what the smoothing adds, and its bound; the transforms' identities."""
    for _ in range(300):
        s, t = mpf(10 ** r.uniform(-4, 0.5)), mpf(r.gauss(0, 1) * 10 ** r.uniform(-4, 1))
        with mp.workdps(60):
            gap = exp(t) * ncdf(t / s + s / 2) - ncdf(t / s - s / 2) - max(expm1(t), 0)
            most = s * exp(t / 2) * npdf(t / s)
            yield -(mpf(10) ** -50) <= gap <= most + mpf(10) ** -50
    for _ in range(10):
        sigma, shift = mpf(r.uniform(0.3, 3)), r.randint(1, 4)
        v, z = (shift / sigma) ** 2, mpc(r.uniform(-1, 3), r.uniform(-20, 20))
        reach = int(60 * sigma) + 12 + abs(int(shift * z.real))
        norm = sum(exp(-(mpf(k) ** 2) / (2 * sigma**2)) for k in range(-reach, reach + 1))
        with mp.workdps(60):
            masses = (
                sum(
                    exp((z * (mpf(k) ** 2 - (k - shift) ** 2) - mpf(k) ** 2) / (2 * sigma**2))
                    for k in range(-reach, reach + 1)
                )
                / norm
            )
            theta = lambda x, s=sigma, d=shift: (
                1
                + 2
                * sum(exp(-2 * pi**2 * s**2 * m**2) * cos(2 * pi * m * d * x) for m in range(1, 40))
            )
            found = exp(v * z * (z - 1) / 2) * theta(z) / theta(0)
            yield abs(found - masses) <= mpf(10) ** -15 * (
                abs(masses) + exp(v * z.real * (z.real - 1) / 2)
            )
    for _ in range(20):
        lam, z = mpf(10 ** r.uniform(-1, 0.7)), mpc(r.uniform(-1, 3), r.uniform(-5, 5))
        found = (
            exp((z - 1) * lam) * (1 + 1 / (2 * z - 1)) / 2
            + exp(-z * lam) * (1 - 1 / (2 * z - 1)) / 2
        )
        middle = quad(
            lambda x, z=z, lam=lam: exp(-abs(x) + z * (abs(x) - abs(x - lam))) / 2, [0, lam]
        )
        exact = middle + (exp(-z * lam) + exp((z - 1) * lam)) / 2
        yield abs(found - exact) <= EPS * (1 + abs(exact))


def profile_of(law, x):
    """Σ p (1 - x/e^t)_+ of masses at losses."""
    return sum(p * max(1 - x / exp(t), 0) for t, p in law)


def chords(r):
    """G2 and G3: laws on knots above and below the law of random atoms inside the grid."""
    for _ in range(60):
        spacing, count, low = (
            mpf(10 ** r.uniform(-1.5, 0)),
            r.randint(3, 9),
            mpf(r.uniform(-2, 0.5)),
        )
        knots = [low + i * spacing for i in range(count + 1)]
        atoms = [
            (knots[0] + spacing * count * mpf(r.random()), mpf(10 ** r.uniform(-3, 0)))
            for _ in range(5)
        ]
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
            y = exp(
                knots[i]
                if i == 0
                else knots[i + 1]
                if i == count - 1
                else (knots[i] + knots[i + 1]) / 2
            )
            slope = -sum(p * exp(-t) for t, p in atoms if exp(t) > y)
            tangent.append((profile_of(atoms, y) - slope * y, slope))
        lower = [
            min(a + s * x for a, s in tangent[max(i - 1, 0) : i + 1]) for i, x in enumerate(values)
        ]
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
        f = lambda z, q=q, g=sigma, o=mpc(c, y): noise(g, z) * exp(o * loss(q, g, z))
        most = lambda x, q=q, g=sigma, c=c, s=s, a=a: (
            exp(2 * a**2 / g**2) * noise(g, x) * exp(c * loss(q, g, x - s))
        )
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
        yield tail[1] <= (
            tail[0] if m >= n else tail[0] ** (mpf(m) / n) * (pi * y) ** (mpf(m) / n - 1)
        ) * (1 + EPS)
        v, big = mpf(10 ** r.uniform(-3, 2)), mpf(10 ** r.uniform(-3, 3))
        u = mpf(r.random()) * min(24 * v / big, 1 / v)
        size = (1 - v * u + big * u * u / 24) ** (mpf(n) / 2)
        c2, c3 = mpf(n) / 4 * max(big / 12 - v * v, 0), mpf(n) / 48 * v * big
        h = exp(c2 * u**2 + c3 * u**3)
        yield size <= exp(-mpf(n) / 2 * v * u) * h * (1 + EPS)
        atoms = [(mpf(r.gauss(0, 1)), mpf(r.random())) for _ in range(4)]
        e0, e1, e2 = sorted(mpf(r.uniform(0, 2)) for _ in range(3))
        d0, d1, d2 = (profile_of(atoms, exp(e)) for e in (e0, e1, e2))
        if e2 > e1:
            yield d0 >= d1 + (d1 - d2) * -expm1(e0 - e1) / expm1(e2 - e1) - EPS
