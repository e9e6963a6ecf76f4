"""Profiles of small compositions in ball arithmetic, outcome by outcome.

A *law* lists the masses (p, q) of outcomes under both distributions, as balls. A composition is a
law of finitely many outcomes and at most one loss with a density, whose profile is in closed form.
Shares no code with the package. Parameters are doubles, taken to be exact.
"""

from math import comb

from flint import arb, arb_poly

from support.oracle.composed import ball, positive

ZERO, ONE = arb(0), arb(1)


def response(epsilon, k=2, failing=0.0):
    """Randomised response among k answers, replaced by the truth with probability ``failing``."""
    odds, fails = arb(epsilon).exp(), arb(failing)
    total = (odds + (k - 1)) / (1 - fails)
    law = [(odds / total, 1 / total), (1 / total, odds / total)]
    if k > 2:
        law.append(((k - 2) / total, (k - 2) / total))
    return law + ([(fails, ZERO), (ZERO, fails)] if failing else [])


def masses(p, q):
    """Two lists of masses."""
    return [(ball(a), ball(b)) for a, b in zip(p, q, strict=True)]


def discrete_laplace(scale, distance):
    """Noise ∝ e^{-|x|/scale} on the integers, at 0 and at ``distance``.

    Up to 0 and from ``distance`` on the ratio does not change, so each side is one outcome.
    """
    a = (-1 / arb(scale)).exp()
    first, last = 1 / (1 + a), a**distance / (1 + a)
    centre = (1 - a) / (1 + a)
    inside = [(centre * a**x, centre * a ** (distance - x)) for x in range(1, distance)]
    return [(first, last), *inside, (last, first)]


def discrete_gaussian(sigma, distance, reach):
    """Noise ∝ e^{-x²/2σ²} on the integers; what lies beyond ``reach`` is left out of both."""
    scale = -1 / (2 * arb(sigma) ** 2)
    weight = {x: (scale * x * x).exp() for x in range(-reach - distance, reach + distance + 1)}
    total = 2 * sum(((scale * x * x).exp() for x in range(1, 4 * reach)), ZERO) + 1
    return [
        (weight[x] / total, weight[x - distance] / total) for x in range(-reach, reach + distance)
    ]


def reverse(law):
    """Exchange both distributions."""
    return [(b, a) for a, b in law]


def sampled(law, rate, add):
    """Sample the record with probability ``rate``: (remove) mixture first, or (add) second."""
    r = arb(rate)
    if add:
        return [(a, (1 - r) * a + r * b) for a, b in law]
    return [((1 - r) * b + r * a, b) for a, b in law]


def power(law, count):
    """``count`` independent outcomes, those that differ in their order alone merged."""
    rows = [(ONE, ONE, count)]
    for place, (a, b) in enumerate(law):
        last = place == len(law) - 1
        rows = [
            (x * comb(left, n) * a**n, y * comb(left, n) * b**n, left - n)
            for x, y, left in rows
            for n in ([left] if last else range(left + 1))
        ]
    return [(x, y) for x, y, _ in rows]


def on_lattice(law, count):
    """The same of a law whose losses are equally far apart, merged by their sum."""
    rows = sorted(law, key=lambda row: float((row[0] / row[1]).log()))
    columns = (list((arb_poly(list(c)) ** count).coeffs()) for c in zip(*rows, strict=True))
    return list(zip(*columns, strict=True))


def product(laws):
    """The joint law."""
    rows = [(ONE, ONE)]
    for law in laws:
        rows = [(x * a, y * b) for x, y in rows for a, b in law]
    return rows


def profile(law, epsilon, density=None):
    """Return Σ (p - e^ε q)₊ over a law, or with a further loss of profile ``density`` added."""
    grown = arb(epsilon).exp()
    if density is None:
        return sum((positive(a - grown * b) for a, b in law), ZERO)
    total = ZERO
    for a, b in law:
        if a == 0:
            continue
        total += a if b == 0 else a * density(arb(epsilon) - (a / b).log())
    return total
