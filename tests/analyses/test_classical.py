"""Basic and advanced composition, against mpmath and against the optimum they must not undercut."""

import math
import random

import mpmath
import pytest

from accountant.analyses.classical import advanced_epsilon, basic_epsilon
from accountant.analyses.concentrated import compose_rdp, compose_tcdp, compose_zcdp
from accountant.analyses.optimal import optimal_epsilon_bounds
from accountant.errors import ArgumentTypeError, DomainError

FORMS = ("original", "hyperbolic", "kairouz")


def drawn(seed):
    draw = random.Random(seed)
    parts = [
        (10 ** draw.uniform(-4, 0.5), draw.choice([0.0, 1e-9]), draw.randint(1, 200))
        for _ in range(draw.randint(1, 3))
    ]
    return parts, 10 ** draw.uniform(-6, -0.1) + sum(d * k for _, d, k in parts)


def formulas(parts, delta):
    """The published formulas, in 50 digits."""
    mp = mpmath.mpf
    squares = sum(k * mp(e) ** 2 for e, _, k in parts)
    mean = sum(k * mp(e) * mpmath.tanh(mp(e) / 2) for e, _, k in parts)
    old_mean = sum(k * mp(e) * mpmath.expm1(mp(e)) for e, _, k in parts)
    kept = mpmath.fprod((1 - mp(d)) ** k for _, d, k in parts)
    slack = 1 - (1 - mp(delta)) / kept
    old_slack = mp(delta) - sum(k * mp(d) for _, d, k in parts)
    hyperbolic = mean + mpmath.sqrt(2 * squares * mpmath.log(1 / slack))
    return {
        "original": old_mean + mpmath.sqrt(2 * squares * mpmath.log(1 / old_slack)),
        "hyperbolic": hyperbolic,
        "kairouz": min(
            hyperbolic,
            sum(k * mp(e) for e, _, k in parts),
            mean + mpmath.sqrt(2 * squares * mpmath.log(mpmath.e + mpmath.sqrt(squares) / slack)),
        ),
    }


@pytest.mark.parametrize("seed", range(40))
def test_formulas_rounded_up(seed):
    parts, delta = drawn(seed)
    with mpmath.workdps(50):
        for form, truth in formulas(parts, delta).items():
            value = advanced_epsilon(parts, delta, form=form)
            assert truth <= value <= truth * (1 + mpmath.mpf(2) ** -51)


@pytest.mark.long(keep=30)
@pytest.mark.parametrize("seed", range(40))
def test_never_below_the_optimum(seed):
    parts, delta = drawn(seed)
    optimum = optimal_epsilon_bounds(parts, delta).lower
    original, hyperbolic, kairouz = (advanced_epsilon(parts, delta, form=f) for f in FORMS)
    assert optimum <= kairouz <= hyperbolic <= original
    assert kairouz <= basic_epsilon(parts, delta)


@pytest.mark.parametrize("delta", [1e-15, 1e-30, 1e-300])
def test_small_delta(delta):
    value = advanced_epsilon([(1e-3, 0.0, 10**6)], delta)
    assert optimal_epsilon_bounds([(1e-3, 0.0, 10**6)], delta).lower <= value < 1000.0


def test_limits():
    for form in FORMS:
        assert advanced_epsilon([], 0.0, form=form) == 0.0
        assert advanced_epsilon([(1.0, 1e-3, 2)], 1e-3, form=form) == math.inf
        assert advanced_epsilon([(1.0, 0.5, 10**6)], 0.999, form=form) == math.inf
    assert advanced_epsilon([(1.0, 0.0, 2)], 0.0) == 2.0
    assert advanced_epsilon([(1.0, 0.0, 2)], 0.0, form="hyperbolic") == math.inf
    assert advanced_epsilon([(1e6, 0.0, 2)], 1e-9, form="original") == math.inf
    assert advanced_epsilon([(1e6, 0.0, 2)], 1e-9) == 2e6
    assert basic_epsilon([(1.0, 1e-3, 2)], 2e-3) == 2.0
    assert basic_epsilon([(1.0, 1e-3, 2)], math.nextafter(2e-3, 0.0)) == math.inf
    assert basic_epsilon([(0.1, 0.0, 3)], 0.0) > 0.3 - 1e-16


def test_refuses():
    with pytest.raises(DomainError, match="form"):
        advanced_epsilon([(1.0, 0.0)], 0.1, form="best")
    with pytest.raises(DomainError, match="delta"):
        basic_epsilon([(1.0, 0.0)], math.nan)
    with pytest.raises(ArgumentTypeError):
        basic_epsilon([(1.0, 0.0, 1.0)], 0.1)
    with pytest.raises(ArgumentTypeError, match="one number"):
        basic_epsilon([(1.0, 0.0)], [0.1, 0.2])


def test_concentrated_parts_add_up():
    with mpmath.workdps(50):
        truth = 3 * mpmath.mpf(0.1) + 7 * mpmath.mpf(0.3)
        assert truth <= compose_zcdp([(0.1, 3), (0.3, 7)]) <= truth * (1 + mpmath.mpf(2) ** -51)
    assert compose_zcdp([]) == 0.0
    assert compose_zcdp([(math.inf, 1)]) == math.inf
    assert compose_zcdp([(math.inf, 0)]) == 0.0
    assert compose_tcdp([(0.5, 3.0, 1), (0.5, math.inf, 1)]) == (1.0, 3.0)
    curve = compose_rdp([(lambda a: 0.1 * a, 3), (lambda a: math.inf if a > 2 else 1.0, 1)])
    assert 1.6 <= curve(2.0) <= 1.6 + 1e-15
    assert curve(3.0) == math.inf
    for bad in [(-1.0, 1)], [(math.nan, 1)]:
        with pytest.raises(DomainError, match="rho"):
            compose_zcdp(bad)
    for bad in [(1.0,)], [(1.0, 2.0)], 3.0, "ab", [[1.0, 1]]:
        with pytest.raises(ArgumentTypeError):
            compose_zcdp(bad)
    with pytest.raises(DomainError, match="omega"):
        compose_tcdp([(1.0, 1.0, 1)])
    with pytest.raises(ArgumentTypeError, match="curve"):
        compose_rdp([(1.0, 1)])
    with pytest.raises(DomainError, match="order"):
        curve(1.0)
