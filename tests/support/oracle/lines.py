"""Laws of losses in ball arithmetic, and brackets of lines to compare with their profiles."""

import math

from flint import arb

from accountant.analyses.smoothed_line import SmoothedLine
from support.oracle import compositions as laws
from support.oracle.composed import ball


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


# The laws of the losses in ball arithmetic: each loss and its mass under P.


def losses(law):
    return [((p / q).log(), p) for p, q in law]


def gaussian_law(sigma, shift=1):
    return losses(laws.discrete_gaussian(sigma, shift, math.ceil(14 * sigma + shift)))


def laplace_law(scale, shift=1):
    return losses(laws.discrete_laplace(scale, shift))


def response_law(epsilon):
    return losses(laws.response(epsilon))


def product(several):
    found = [(arb(0), arb(1))]
    for law in several:
        found = [(x + y, p * w) for x, p in found for y, w in law if float((p * w).mid()) > 1e-40]
    return found


def profile(several, epsilon, tail=None):
    """Enclose H(ε) of a product of laws, beside one Laplace release of reach ``tail``."""
    e, total = ball(epsilon), arb(0)
    for loss, mass in product(several):
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


def size(several):
    return math.prod(len(law) for law in several)
