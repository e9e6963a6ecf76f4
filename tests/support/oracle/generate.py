"""Write tests/support/data/psg_profile.jsonl: reference privacy profiles.

    PYTHONPATH=tests python -m support.oracle.generate START STOP [method ...]

appends one line per problem id in [START, STOP) that is not in the file yet, so
that an interrupted run can be resumed.  Problem `id` is drawn from a generator
seeded by the id alone; the parameters stored in the file are authoritative (the
choice of epsilon uses a floating-point search whose last digits may vary).  A problem for which
the two computations described in
psg.py do not agree is left out, never stored with fewer digits.

Line: {id, q, sigma, steps, epsilon, direction, lower, upper, method, family}.
q, sigma and epsilon are doubles written as shortest round-trip decimals; lower
and upper are decimal strings with lower <= H(epsilon) <= upper.
"""

import math
import random
import sys
import warnings

from flint import ctx

from support.oracle import stored
from support.oracle.moments import log_moment_float
from support.oracle.psg import closed_form, estimate, profile
from support.oracle.psg_saddle import place
from support.oracle.stored import log_uniform

FAMILIES = (
    "general", "general2", "few", "few-large-q", "rare", "small-sigma", "tiny-q", "small-eps",
    "zero-eps", "large-eps", "add", "large-delta", "rare-small-sigma", "special-q",
)  # fmt: skip


def at_saddle(q, s, n, direction, x):
    """(eps, log delta) of the saddle-point approximation whose saddle is place(x)."""
    c = place(direction, x)
    d = 0.02 * math.exp(x)
    k0, km, kp = (n * log_moment_float(q, s, c + e) for e in (0.0, -d, d))
    poles = 1 / c + 1 / (c - 1)
    curve = (kp - 2 * k0 + km) / d**2 + 1 / c**2 + 1 / (c - 1) ** 2
    slope = (kp - km) / (2 * d)
    if direction == "remove":
        eps = slope - poles
        lead = -eps * (c - 1)
    else:
        eps = poles - slope
        lead = eps * c
    ld = k0 + lead - math.log(c * (c - 1)) - 0.5 * math.log(2 * math.pi * max(curve, 1e-300))
    return eps, ld


def eps_for(q, s, n, direction, log_target):
    """eps with delta(eps) near the target by bisection on the saddle; nan if none."""
    lo, hi = -7.0, 20.0
    for _ in range(34):
        mid = 0.5 * (lo + hi)
        eps, ld = at_saddle(q, s, n, direction, mid)
        if math.isfinite(ld) and math.isfinite(eps) and ld > log_target:
            lo = mid
        else:
            hi = mid
    eps, ld = at_saddle(q, s, n, direction, lo)
    return eps if abs(ld - log_target) < 1.0 else math.nan


def eps_for_rare(q, s, n, direction, log_target):
    """The same from n times the single-step profile (n q small); nan if none."""

    def ld(eps):
        v = closed_form(q, s, 1, eps, direction)
        return math.log(n) + (float(v.log()) if v > 0 else -1e9)

    lo, hi = math.log(1e-7), math.log(1e4)
    if ld(1e-7) < log_target:
        return math.nan
    for _ in range(50):
        mid = 0.5 * (lo + hi)
        lo, hi = (mid, hi) if ld(math.exp(mid)) > log_target else (lo, mid)
    return math.exp(lo)


def parameters(rng, family):
    """(q, s, n, direction, log of the delta aimed at, whether more than one jump is rare)."""
    q = log_uniform(rng, 1e-9, 1)
    s = log_uniform(rng, 0.2, 100)
    n = int(log_uniform(rng, 1, 1e12))
    direction = "add" if rng.random() < 0.3 or family == "add" else "remove"
    target = rng.uniform(math.log(1e-30), math.log(0.9))
    if rng.random() < 0.35 or family == "large-delta":
        target = math.log(rng.uniform(0.01, 0.9))
    rare = False
    if family == "few":
        n = rng.randint(2, 20)
    elif family == "few-large-q":
        n, q = rng.randint(2, 20), log_uniform(rng, 3e-3, 1)
    elif family in ("rare", "rare-small-sigma"):
        rare = True
        n = int(log_uniform(rng, 2, 1e7))
        q = min(log_uniform(rng, 1e-5, 0.1) / n, 0.03)
        s = log_uniform(rng, 0.2, 1.0 if family == "rare-small-sigma" else 5.0)
    elif family == "small-sigma":
        s = log_uniform(rng, 0.2, 0.4)
    elif family == "tiny-q":
        q = log_uniform(rng, 1e-9, 1e-6)
        s = log_uniform(rng, 0.2, 5.0)
    elif family == "large-eps":
        q, s = log_uniform(rng, 0.01, 1), log_uniform(rng, 0.2, 3)
        n = int(log_uniform(rng, 3, 1e5))
    elif family == "special-q":
        q = rng.choice([1.0, 1.0, 1 - 1e-6, 0.5, 0.9, 1 - 1e-3, 1 - 1e-12, 2.0**-20, 2.0**-7])
    return q, s, n, direction, target, rare


def attempt(rng, family):
    """A problem of the family, or None where the draw has no fitting epsilon."""
    q, s, n, direction, target, rare = parameters(rng, family)
    if q < 1e-9:
        return None
    if family == "special-q" and rng.random() < 0.3:
        n = 1
    if rare or (n * q < 0.1 and s < 3):
        rare = True
        ceiling = math.log(n * q) - 1
        floor = max(math.log(1e-30), ceiling - 30)
        if ceiling < floor:
            return None
        target = rng.uniform(floor, ceiling)
    if family == "zero-eps":
        eps = 0.0
    elif family == "small-eps" or rng.random() < 0.04:
        eps = log_uniform(rng, 1e-6, 1e-3)
    elif rare:
        eps = eps_for_rare(q, s, n, direction, target)
    else:
        eps = eps_for(q, s, n, direction, target)
    if not 0 <= eps < 6000 or (0 < eps < 1e-7):
        return None
    if family == "large-eps" and eps < 30:
        return None
    if direction == "add" and q < 1 and eps >= -n * math.log1p(-q) * 0.999:
        return None
    guess = estimate(q, s, n, eps, direction)
    if not math.log(1e-31) < guess < math.log(2.0):
        return None
    return dict(q=q, sigma=s, steps=n, epsilon=eps, direction=direction)


def draw(i):
    """Problem number i, or None, and its family."""
    rng = random.Random(f"profile-{i}")
    family = FAMILIES[i % len(FAMILIES)]
    attempts = (attempt(rng, family) for _ in range(400))
    return next((problem for problem in attempts if problem is not None), None), family


def main(start, stop, *methods):
    warnings.simplefilter("ignore")

    def solve(number):
        ctx.prec = 100
        problem, family = draw(number)
        if problem is None:
            raise ValueError("no draw")
        value, method = profile(*problem.values(), methods=methods or ("closed", "line", "bent"))
        if not 1e-32 < float(value) < 0.999:
            raise ValueError("outside the range of delta")
        ctx.prec = 300
        return stored.line(number, problem, ball=value, method=method, family=family)

    stored.extend("psg_profile.jsonl", solve, start, stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
