"""Laws of losses in ball arithmetic, and brackets of lines to compare with their profiles."""

import math
from fractions import Fraction

from flint import arb

from accountant.analyses.smoothed_line import SmoothedLine


def parts_of(*mechanisms):
    merged = {}
    for mechanism, count in mechanisms:
        (pair,) = mechanism.pairs() if len(mechanism.pairs()) == 1 else mechanism.pairs()[:1]
        merged[pair] = merged.get(pair, 0) + count
    return tuple(merged.items())


def line_of(parts):
    def never(_):
        raise AssertionError("another analysis was asked")

    return SmoothedLine(parts, never)


def ball(fraction):
    fraction = Fraction(fraction)
    return arb(fraction.numerator) / arb(fraction.denominator)


# The laws of the losses in ball arithmetic: {loss: mass under P}, and the mass that is left out.


def gaussian_law(sigma, shift=1):
    s2 = ball(sigma) ** 2
    reach = math.ceil(14 * sigma + shift)
    total = arb(0)
    weights = {x: (-arb(x * x) / (2 * s2)).exp() for x in range(-reach, reach + 1)}
    total = sum(weights.values(), arb(0))
    law = {}
    for x in range(-reach, reach + 1):
        loss = arb(shift * (2 * x + shift)) / (2 * s2)  # x is the distance from P's centre
        law[x] = (loss, weights[x] / total)
    return list(law.values())


def laplace_law(scale, shift=1):
    b = ball(scale)
    e = (-1 / b).exp()
    law = []
    for x in range(shift + 1):
        low = (-arb(shift - x) / b).exp() * (1 - e) / (1 + e)
        if x == 0:
            low = (-arb(shift) / b).exp() / (1 + e)
        elif x == shift:
            low = 1 / (1 + e)
        law.append((arb(2 * x - shift) / b, low))
    return law


def response_law(epsilon):
    e = ball(epsilon)
    return [(e, 1 / (1 + (-e).exp())), (-e, 1 / (1 + e.exp()))]


def product(laws):
    found = [(arb(0), arb(1))]
    for law in laws:
        found = [(x + y, p * w) for x, p in found for y, w in law if float((p * w).mid()) > 1e-40]
    return found


def profile(laws, epsilon, tail=None):
    """Enclose H(ε) of a product of laws, beside one Laplace release of reach ``tail``."""
    e, total = ball(epsilon), arb(0)
    for loss, mass in product(laws):
        x = e - loss
        if tail is None:
            value = 1 - x.exp()
            total += mass * value if float(x.mid()) < 0 else arb(0)
            continue
        a = ball(tail)
        if float(x.mid()) >= float(a.mid()):
            continue
        total += mass * (1 - x.exp() if x < -a else 1 - ((x - a) / 2).exp())
    return total


def holds(bounds, truth, left_out=1e-30):
    low, high = float(truth.mid() - truth.rad()), float(truth.mid() + truth.rad())
    # the doubles nearest to the ends of the enclosure, moved by what was left out of it
    assert bounds.upper >= low * (1 - 1e-15)
    assert bounds.lower <= high * (1 + 1e-15) + left_out


def size(laws):
    return math.prod(len(law) for law in laws)
