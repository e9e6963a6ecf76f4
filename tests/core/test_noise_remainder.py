"""How far polynomials in 1/sigma are from the transform of a step (Theorem 19, (a) and (b)).

The truth is in ball arithmetic: integrals over the window of u by python-flint's own integrator,
and Lagrange's interpolant of them at points that need not be the table's.
"""

import ctypes
import math
from itertools import pairwise

import pytest
from flint import acb, arb, ctx

from support.native import build, core_files

ELLIPSES = 6


class Range(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_double) for name in ("q", "least", "most", "lo", "hi"))


class Bound(ctypes.Structure):
    _fields_ = (
        ("log_size", ctypes.c_double * ELLIPSES),
        ("log_rho", ctypes.c_double * ELLIPSES),
        ("log_edge", ctypes.c_double),
    )


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    library = build(tmp_path_factory.mktemp("remainder"), core_files())
    library.acct_noise_remainder.restype = ctypes.c_double
    return library


def bound_of(core, given, order):
    bound = Bound()
    core.acct_noise_bound_set(
        ctypes.byref(bound), ctypes.byref(Range(*given)), ctypes.c_double(order)
    )
    return bound


def transform(q, beta, ends, s):
    """∫ G(β, u) e^{sL} du over a window, as a ball."""
    q, low, high = acb(q), *ends

    def integrand(u, _):
        return (s * (1 - q + q * u.exp()).log() - (u / beta + beta / 2) ** 2 / 2).exp()

    places = [low + (high - low) * i / 12 for i in range(13)]
    total = acb(0)
    for a, b in pairwise(places):
        total += acb.integral(integrand, acb(a), acb(b), rel_tol=2.0**-90, abs_tol=2.0**-110)
    return total / (beta * (2 * acb.pi()).sqrt())


def interpolated(q, ends, s, points, beta):
    """Lagrange's interpolant at β, and the sum of the moduli of the weights."""
    value, moduli = acb(0), arb(0)
    for j, at in enumerate(points):
        weight = arb(1)
        for i, other in enumerate(points):
            if i != j:
                weight *= (beta - other) / (at - other)
        value += weight * transform(q, at, ends, s)
        moduli += abs(weight)
    return value, moduli


# q, 1/sigma from and to, the window of u, s, interpolation points
RANGES = [
    (0.01, 0.7, 1.0, -9.0, 9.0, complex(10.2, 0.0), 4),
    (0.01, 0.7, 1.0, -9.0, 3.0, complex(10.2, 7.0), 7),
    (0.3, 0.2, 0.29, -1.8, 0.2, complex(-8.0, 3.0), 5),
    (0.9, 0.5, 0.7, -6.0, 1.5, complex(3.0, 4.0), 6),
    (0.95, 4.0, 4.2, -45.0, 30.0, complex(-2.0, 0.0), 4),
    (1e-6, 1.1, 1.3, -12.0, 1.5, complex(6.0, 1.0), 4),
]


@pytest.mark.parametrize("given", RANGES)
def test_no_interpolant_is_farther_than_the_remainder_says(core, given):
    ctx.prec = 120
    q, least, most, low, high, s, kinds = given
    log_remainder = core.acct_noise_remainder(
        ctypes.byref(bound_of(core, given[:5], s.real)), kinds
    )
    middle, half = (arb(least) + arb(most)) / 2, (arb(most) - arb(least)) / 2
    points = [middle + half * math.cos(math.pi * (j + 0.5) / kinds) for j in range(kinds)]
    seen = 0.0
    for beta in (arb(least), arb(least) + arb(0.43) * (arb(most) - arb(least)), arb(most)):
        value, moduli = interpolated(q, (low, high), acb(s), points, beta)
        distance = abs(transform(q, beta, (low, high), acb(s)) - value)
        assert distance <= (1 + moduli) * arb(log_remainder).exp()
        seen = max(seen, float(distance.mid()))
    # the bound is asked something: an interpolant is this far off
    assert seen >= 1e-4 * math.exp(log_remainder)


@pytest.mark.parametrize("given", RANGES)
def test_ends_that_move_change_no_transform_by_more(core, given):
    ctx.prec = 120
    q, least, most, low, high, s, _ = given
    log_edge = bound_of(core, given[:5], s.real).log_edge
    for beta in (least, (least + most) / 2, most):
        moved = arb(0)
        for end in (low, high):
            by = 16 * arb(2) ** -53 * (abs(end) + 1 + most * most)
            moved += transform(q, acb(beta), (arb(end), arb(end) + by), acb(s.real)).real
        assert moved <= arb(log_edge).exp()
