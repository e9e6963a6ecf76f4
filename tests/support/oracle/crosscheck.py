"""Independent checks of psg.py.

    PYTHONPATH=tests python -m support.oracle.crosscheck [count]

1. n = 1: the contour integrals against Gaussian tails.
2. n = 2: against a real-space integral that uses no transform,
       H_2(eps) = E_{x ~ P}[H_1(eps - L(x))]           (remove),
       H_2(eps) = E_{x ~ Q}[H_1(eps + L(x))]           (add),
   H_1 the closed single-step form for any real argument.  The integrand has one
   essential (log-normal type) singular point, where the argument reaches the end
   of the support; the range is split there and tanh-sinh quadrature is used.
3. Stored values computed on a vertical line against the bent contour.

Prints the largest relative disagreement of each kind, and fails above 1e-20.
"""

import math
import random
import sys
import warnings

from flint import ctx
from mpmath import erfc, exp, expm1, log, mp, mpf, pi, quad, sqrt

from support.oracle import stored
from support.oracle.psg import NotConverged, closed_form, profile


def _tail(x):
    return erfc(x / sqrt(mpf(2))) / 2


def single(q, s, e, direction):
    """Closed form for n = 1 and any real e (mpmath)."""
    if direction == "remove":
        y = expm1(e) + q
        if y <= 0:
            return -expm1(e)
        x = s * s * log(y / q) + mpf(1) / 2
        t0, t1 = _tail(x / s), _tail((x - 1) / s)
        return (1 - q) * t0 + q * t1 - exp(e) * t0
    y = expm1(-e) + q
    if y <= 0:
        return mpf(0)
    x = s * s * log(y / q) + mpf(1) / 2
    t0, t1 = _tail(-x / s), _tail((1 - x) / s)
    return t0 - exp(e) * ((1 - q) * t0 + q * t1)


def two_steps(q, s, eps, direction, digits=55):
    """H(eps) for n = 2 by one real integral."""
    with mp.workdps(digits):
        q, s, eps = mpf(q), mpf(s), mpf(eps)
        # the argument of H_1 reaches log(1-q) (remove) or -log(1-q) (add) at x = edge
        edge_loss = eps - log(1 - q) if direction == "remove" else -log(1 - q) - eps
        edge = (s * s * log((expm1(edge_loss) + q) / q) + mpf(1) / 2) / s
        density = lambda u: exp(-u * u / 2) / sqrt(2 * pi)

        def f(u):
            r = 1 - q + q * exp(u / s - 1 / (2 * s * s))
            if direction == "remove":
                return density(u) * r * single(q, s, eps - log(r), direction)
            return density(u) * single(q, s, eps + log(r), direction)

        reach = 17 + 1 / s
        cuts = sorted({-reach, edge, reach} | {mpf(k) / 2 for k in range(-34, int(2 * reach) + 1)})
        cuts = [
            c for c in cuts if -reach <= c <= reach and (c == edge or abs(c - edge) > mpf("1e-3"))
        ]
        if not -reach <= edge <= reach:
            cuts = [c for c in cuts if c != edge]
        cuts = [c for c in cuts if direction == "remove" or c <= edge]
        return quad(f, cuts, maxdegree=7)


def random_problem(rng, n):
    q = 10 ** rng.uniform(-6, -0.05)
    s = 10 ** rng.uniform(-0.6, 0.7)
    direction = rng.choice(["remove", "add"])
    eps = 10 ** rng.uniform(-4, 0.6)
    if direction == "add":
        eps = min(eps, -n * math.log1p(-q) * rng.uniform(0.05, 0.9))
    return q, s, n, eps, direction


def check_contours(count, n, exact, rng):
    worst, done, tries = 0.0, 0, 0
    while done < count and tries < 4 * count:
        tries += 1
        p = random_problem(rng, n)
        ctx.prec = 250
        if not closed_form(p[0], p[1], 1, p[3] / n, p[4]) > 1e-28:
            continue
        try:
            value, method = profile(*p, methods=("line", "bent"))
        except NotConverged:
            continue
        with mp.workdps(50):
            ref = exact(*p)
            got = mpf(value.mid().str(40, radius=False))
            rel = float(abs(got / ref - 1))
        worst = max(worst, rel)
        done += 1
        if rel > 1e-20:
            print("DISAGREES", p, method, got, ref)
    print(
        f"n = {n}: {done} problems, {tries - done} skipped, worst relative difference {worst:.1e}",
        flush=True,
    )
    return worst


def check_line_against_bent(count, rng):
    rows = [r for r in stored.rows("psg_profile.jsonl") if r["method"] == "line"]
    worst, done = 0.0, 0
    for r in rng.sample(rows, 3 * count):
        if done == count:
            break
        try:
            value, _ = profile(
                r["q"], r["sigma"], r["steps"], r["epsilon"], r["direction"], methods=("bent",)
            )
        except NotConverged:
            continue
        with mp.workdps(50):
            mid = (mpf(r["lower"]) + mpf(r["upper"])) / 2
            rel = float(abs(mpf(value.mid().str(40, radius=False)) / mid - 1))
        worst = max(worst, rel)
        done += 1
        if rel > 1e-20:
            print("DISAGREES", r, value)
    print(f"line against bent: {done} problems, worst relative difference {worst:.1e}", flush=True)
    return worst


def main(count=20):
    warnings.simplefilter("ignore")
    rng = random.Random("crosscheck")
    as_mp = lambda b: mpf(b.mid().str(45, radius=False))
    bad = check_contours(count, 1, lambda q, s, n, e, d: as_mp(closed_form(q, s, 1, e, d)), rng)
    bad = max(bad, check_contours(count, 2, lambda q, s, n, e, d: two_steps(q, s, e, d), rng))
    bad = max(bad, check_line_against_bent(count, rng))
    sys.exit(bad > 1e-20)


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
