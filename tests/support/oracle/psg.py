"""Reference privacy profile of the composed Poisson-subsampled Gaussian.

With A(z) = E_Q[e^{zL}] as in moments.py, and n steps,

  remove:  H(eps) = E_{P^n}[(1 - e^{eps-L})_+]
                  = 1/(2 pi i) int A(z)^n e^{-eps (z-1)} / (z (z-1)) dz,
           the contour crossing the real axis at c > 1;
  add:     H(eps) = 1/(2 pi i) int A(z)^n e^{eps z} / (z (z-1)) dz,
           the contour crossing the real axis at c < 0.

A is entire, so contours may be deformed freely away from the poles 0 and 1.
c is taken near the real saddle point of the modulus of the integrand.

Two evaluations of these integrals, both with trapezoid sums (which converge
geometrically for analytic integrands, in z as well as in w):

psg_line.py   z on a vertical line, w real;
psg_bent.py   z on a curve that turns to where the integrand decays, w on a path of
              its own: for when A decays too slowly along vertical lines (few steps,
              rare events).

Closed forms (tests of the above, and used for n = 1 or q = 1): `closed_form`.

How convergence is judged.  Sums are computed in ball arithmetic, so rounding is
enclosed.  Discretisation and truncation are judged by computing twice, with
different c (and k, b), different steps in z and in w, different cut-offs and
different precision; the value is accepted if the two agree to 25 digits, and
the stored enclosure is widened to the larger of 10^-24 relative and 1000 times
the disagreement.
"""

import math

from flint import arb, ctx

from support.oracle.moments import normal_tail
from support.oracle.psg_bent import bent
from support.oracle.psg_line import NotConverged, line, log_modulus, saddle

DIGITS = 25  # required agreement of the two computations


def closed_form(q, s, n, eps, direction):
    """Exact profile for n = 1 or q = 1, as a ball (in the current precision)."""
    Q, S, E = arb(q), arb(s), arb(eps)
    if q == 1.0:
        mu = arb(n).sqrt() / S
        return normal_tail(E / mu - mu / 2) - E.exp() * normal_tail(E / mu + mu / 2)
    if n != 1:
        raise ValueError("no closed form")
    if direction == "remove":  # P(L > eps) - e^eps Q(L > eps)
        x = S * S * ((E.exp() - 1 + Q) / Q).log() + arb(1) / 2
        t0, t1 = normal_tail(x / S), normal_tail((x - 1) / S)
        return (1 - Q) * t0 + Q * t1 - E.exp() * t0
    y = (-E).exp() - 1 + Q  # Q(L < -eps) - e^eps P(L < -eps)
    if y <= 0:
        return arb(0)
    x = S * S * (y / Q).log() + arb(1) / 2
    t0, t1 = normal_tail(-x / S), normal_tail((1 - x) / S)
    return t0 - E.exp() * ((1 - Q) * t0 + Q * t1)


def estimate(q, s, n, eps, direction):
    """Rough log of the profile, only to decide how much accuracy to ask for."""
    c, kappa = saddle(q, s, n, eps, direction)
    guess = log_modulus(q, s, n, eps, direction, c) - math.log(kappa * 2.5)
    if n * q < 0.3:
        single = n * closed_form(q, s, 1, eps, direction)
        if single > 0:
            guess = min(guess, float(single.log()))
    return guess


def _agreement(a, b):
    """Relative disagreement, including both radii."""
    worst = abs(a - b).upper()
    low = abs(b).lower()
    return float(worst / low) if low > 0 else math.inf


def _twice(method, nats, first, second):
    """Run a method twice, raising the accuracy when cancellation demands it."""
    for _ in range(3):
        one = method(nats, **first)
        size = abs(float(one[0]))
        lost = one[1] - (math.log(size) if size > 0 else -1e3)
        if not lost <= nats - 64:  # digits relative to the value: nats - lost
            nats = max(nats + 15, 70 + lost)
            if nats > 260:
                raise NotConverged("cancellation")
            continue
        args = dict(second)
        if len(one) == 3:
            args["h"] = 0.95 * one[2]
        two = method(nats + 4, **args)
        return one[0], _agreement(one[0], two[0])
    raise NotConverged("cancellation")


# How each contour is computed: pairs of settings, of which the next is tried where one fails.
CONTOURS = {
    "line": (
        line,
        [
            (dict(), dict(shift=0.13, tweak=0.93)),
            (dict(shift=-0.1, tweak=0.8), dict(shift=0.2, tweak=0.7)),
        ],
    ),
    "bent": (
        bent,
        [
            (dict(k=0.4, shift=-0.12), dict(k=0.35, shift=-0.2, tweak=0.93, flavour=1)),
            (dict(k=0.3, shift=-0.25, tweak=0.8), dict(k=0.25, shift=-0.35, tweak=0.75, flavour=1)),
        ],
    ),
}


def _by_contour(name, problem, nats, why):
    """Enclosure by one contour, or None; the reasons are added to why."""
    contour, settings = CONTOURS[name]
    for first, second in settings:
        try:
            value, diff = _twice(lambda nt, **kw: contour(*problem, nt, **kw), nats, first, second)
        except NotConverged as err:
            why.append(f"{name}: {err}")
            if name == "line":
                return None
            continue
        if value > 0 and diff < 10.0**-DIGITS:
            margin = max(1e-24, 1000 * diff)
            return value + arb(0, (abs(value) * arb(margin)).upper())
        why.append(f"{name}: disagreement {diff:.1e}")
    return None


def profile(q, s, n, eps, direction, bits=200, methods=("closed", "line", "bent")):
    """(ball, method): enclosure of H(eps), relative radius at most 1e-21.

    bits is the precision of the closed forms and of the final arithmetic; the
    contour sums choose their own.
    """
    with ctx.workprec(bits):
        if "closed" in methods and (n == 1 or q == 1.0):
            value = closed_form(q, s, n, eps, direction)
            value += arb(0, (abs(value) * arb(10) ** -25).upper())
            if not (value > 0 and value.rad() < value.mid() * arb(10) ** -21):
                raise NotConverged("closed form")
            return value, "closed"
        c, kappa = saddle(q, s, n, eps, direction)
        lost = (
            log_modulus(q, s, n, eps, direction, c)
            - math.log(kappa)
            - estimate(q, s, n, eps, direction)
        )
        nats = 68 + max(0.0, lost) + 4
        why = []
        for name in methods:
            if (name == "line" and nats < 110) or (name == "bent" and q < 1.0):
                value = _by_contour(name, (q, s, n, eps, direction), nats, why)
                if value is not None:
                    return value, name
        raise NotConverged("; ".join(why))
