"""Optimal composition against exact rational arithmetic, brute force and mpmath."""

import itertools
import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.analyses.optimal import (
    optimal_delta,
    optimal_delta_bounds,
    optimal_epsilon,
    optimal_epsilon_bounds,
)
from accountant.errors import ArgumentTypeError, DomainError
from support.oracle import compositions as laws
from support.strategies import log_uniform

WIDTH = 1e-6  # the documented width of a bracket, relatively


@ctx.workprec(400)
def exact_profile(parts, epsilon):
    """The hockey-stick divergence by enumeration, in balls."""
    finite = math.prod(((1 - arb(d)) ** k for _, d, k in parts), start=arb(1))
    law = laws.product([laws.power(laws.response(e), k) for e, _, k in parts])
    return 1 - finite + finite * laws.profile(law, epsilon)


def rational_profile(ratio, delta, k, gamma):
    """Σ (P - γQ)₊ of k runs with e^ε = ratio, all rational."""
    p, finite = ratio / (1 + ratio), (1 - delta) ** k
    total = sum(
        max(math.comb(k, i) * (p ** (k - i) * (1 - p) ** i - gamma * p**i * (1 - p) ** (k - i)), 0)
        for i in range(k + 1)
    )
    return 1 - finite + finite * total


@pytest.mark.parametrize("k", [1, 2, 3, 7, 20, 40])
@pytest.mark.parametrize("ratio", [Fraction(3, 2), Fraction(21, 20), Fraction(20)])
def test_rational_oracle(k, ratio):
    # e^ε is rational only for ε = log(ratio), which is no double: bracket it by doubles, and use
    # that δ increases with the parts' ε and falls with the composition's.
    up = math.nextafter(math.log(ratio), 9.0)
    down = math.nextafter(math.log(ratio), -9.0)
    delta = Fraction(1, 2**20)
    for gamma in [Fraction(1), Fraction(11, 10), ratio, ratio ** max(k // 2, 1), ratio**k]:
        truth = rational_profile(ratio, delta, k, gamma)
        at = math.log(gamma)
        upper = optimal_delta_bounds([(up, float(delta), k)], max(at * (1 - 1e-15), 0.0)).upper
        lower = optimal_delta_bounds([(down, float(delta), k)], at * (1 + 1e-15)).lower
        assert Fraction(lower) <= truth <= Fraction(upper)
        if gamma < ratio**k:  # at the largest loss the profile falls to (nearly) zero
            assert upper - lower <= WIDTH * upper
        epsilon = optimal_epsilon_bounds([(up, float(delta), k)], float(truth) * (1 - 1e-15)).upper
        assert epsilon >= at * (1 - 1e-15)


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("seed", range(30))
def test_zero_tolerance_homogeneous(seed):
    draw = random.Random(seed)
    k = draw.randint(1, 60)
    e = 10 ** draw.uniform(-6, 1.3)
    d = draw.choice([0.0, 10 ** draw.uniform(-18, -2)])
    parts = [(e, d, k)]
    for share in [0.0, 1e-9, draw.random(), draw.random(), 1 - 1e-12, 1.0, 1.5]:
        epsilon = share * k * e
        truth = exact_profile(parts, epsilon)
        lower, upper = optimal_delta_bounds(parts, epsilon)
        assert not lower > truth
        assert not truth > upper
        if share < 0.999:
            assert upper - lower <= WIDTH * upper
        delta = min(math.nextafter(max(float(truth), 0.0), 1.0), 0.99)
        inverse = optimal_epsilon_bounds(parts, delta)
        assert not exact_profile(parts, inverse.upper) > delta
        assert inverse.lower == 0.0 or not exact_profile(parts, inverse.lower) < delta


@ctx.workprec(200)
def test_exact_between_lattice_points():
    # The published lattice is (k - 2i) ε; between, δ is linear in e^ε, not constant.
    e, k = 0.7, 9
    for i in range(4):
        at = [(k - 2 * i) * e, (k - 2 * i - 2) * e]
        d = [exact_profile([(e, 0.0, k)], x) for x in at]
        middle = float((d[0] + d[1]) / 2)
        share = (d[1] - middle) / (d[1] - d[0])
        a, b = (arb(x).exp() for x in at)
        truth = (b + (a - b) * share).log()
        bracket = optimal_epsilon_bounds([(e, 0.0, k)], middle)
        assert bracket.lower <= truth <= bracket.upper
        assert bracket.width <= WIDTH
        assert at[1] < bracket.lower < bracket.upper < at[0]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("e", "epsilon"), [(1e-3, 4.0), (1e-3, 0.0), (0.01, 160.0), (1.0, 465916.0), (1e-6, 0.004)]
)
def test_a_million_runs(e, epsilon):
    k = 10**6
    lower, upper = optimal_delta_bounds([(e, 0.0, k)], epsilon)
    with mpmath.workdps(50):
        x = mpmath.mpf(e)
        p = 1 / (1 + mpmath.exp(x))
        most = int(mpmath.ceil((k - epsilon / x) / 2)) + 1
        while (k - 2 * most) * x <= epsilon:
            most -= 1
        # Downwards from the largest number of flips that counts, in exact ratios.
        mass = mpmath.exp(
            mpmath.loggamma(k + 1)
            - mpmath.loggamma(most + 1)
            - mpmath.loggamma(k - most + 1)
            + most * mpmath.log(p)
            + (k - most) * mpmath.log1p(-p)
        )
        total, growth, peak = mpmath.mpf(0), mpmath.exp(x), mpmath.mpf(0)
        for flips in range(most, -1, -1):
            total += mass * -mpmath.expm1(epsilon - (k - 2 * flips) * x)
            peak = max(peak, mass)
            if mass < mpmath.mpf(10) ** -25 * peak:
                break
            mass *= growth * flips / mpmath.mpf(k - flips + 1)
        slack = total * mpmath.mpf(10) ** -20
    assert lower <= total + slack
    assert upper >= total
    assert upper - lower <= 10.0 * WIDTH * upper


@pytest.mark.parametrize("delta", [1e-5, 1e-15, 1e-30, 1e-200])
def test_small_delta(delta):
    for parts in ([(0.3, 0.0, 50)], [(0.3, 0.0, 10), (0.21, 0.0, 8)]):
        lower, upper = optimal_epsilon_bounds(parts, delta)
        assert 0.0 < lower <= upper
        assert exact_profile(parts, upper) <= delta
        assert exact_profile(parts, lower) >= delta * (1 - 1e-12) or delta == 1e-200
    lower, upper = optimal_epsilon_bounds([(0.3, 0.0, 400)], delta)
    assert upper - lower <= WIDTH * upper


@pytest.mark.parametrize("seed", range(12))
def test_heterogeneous(seed):
    draw = random.Random(seed)
    parts = [
        (10 ** draw.uniform(-3, 0.5), draw.choice([0.0, 1e-9]), draw.randint(1, 4))
        for _ in range(draw.randint(2, 4))
    ]
    total = sum(e * k for e, _, k in parts)
    for share in (0.0, 0.3, 0.8, 0.999):
        truth = exact_profile(parts, share * total)
        lower, upper = optimal_delta_bounds(parts, share * total)
        assert lower <= truth <= upper
        if share < 0.99:
            assert upper - lower <= 30.0 * WIDTH * upper


@pytest.mark.long
def test_the_grid_agrees_with_one_epsilon(monkeypatch):
    # Distinct doubles, practically one ε: compare a thousand parts with the exact answer.
    exact = optimal_epsilon_bounds([(0.05, 0.0, 1000)], 1e-6)
    parts = [(0.05 * (1 + 1e-9 * i), 0.0) for i in range(1000)]
    lower, upper = optimal_epsilon_bounds(parts, 1e-6)
    assert lower <= exact.upper * (1 + 1e-6)
    assert exact.lower <= upper <= exact.upper * (1 + 2e-3)
    assert lower >= 0.97 * exact.lower


def test_brute_force_over_outcomes():
    parts = [(0.4, 0.01, 2), (1.1, 0.0, 1)]
    flat = [(e, d) for e, d, k in parts for _ in range(k)]
    for epsilon in (0.0, 0.5, 1.5):
        total = mpmath.mpf(0)
        with mpmath.workdps(50):
            for outcome in itertools.product(range(3), repeat=len(flat)):
                p = q = mpmath.mpf(1)
                for (e, d), o in zip(flat, outcome, strict=True):
                    grown = mpmath.exp(mpmath.mpf(e))
                    t = (1 - mpmath.mpf(d)) / (1 + grown)
                    p *= (mpmath.mpf(d), t * grown, t)[o]
                    q *= (0, t, t * grown)[o]
                total += max(p - mpmath.exp(mpmath.mpf(epsilon)) * q, 0)
        lower, upper = optimal_delta_bounds(parts, epsilon)
        assert lower <= total <= upper


@given(
    e=log_uniform(1e-6, 700.0, 1e-300, 1e-3, 1.0, 650.0),
    k=st.integers(1, 3000),
    delta=log_uniform(1e-200, 0.99, 1e-15, 1e-5),
)
def test_laws(e, k, delta):
    lower, upper = optimal_epsilon_bounds([(e, 0.0, k)], delta)
    assert 0.0 <= lower <= upper <= k * e * (1 + 1e-15)
    assert optimal_delta_bounds([(e, 0.0, k)], upper).lower <= delta
    assert optimal_epsilon([(e, 0.0, k + 1)], delta) >= lower
    again = optimal_epsilon([(e, 0.0, 1)] * k if k < 50 else [(e, 0.0, k)], delta)
    assert upper <= again <= upper * (1.0 + WIDTH)


def test_limits():
    assert optimal_epsilon([], 0.0) == 0.0
    assert optimal_epsilon([(1.0, 1e-3, 0)], 0.0) == 0.0
    assert optimal_epsilon([(1.0, 1e-3, 2)], 1e-4) == math.inf
    assert optimal_delta([(1.0, 0.5, 10**6)], 1e9) == 1.0
    assert optimal_delta([(1.0, 0.0, 4)], math.inf) == 0.0
    assert optimal_epsilon([(0.5, 0.0, 4)], 0.0) == 2.0
    assert optimal_epsilon([(0.5, 0.0, 4), (0.25, 0.0)], 0.0) == 2.25
    assert optimal_epsilon([(0.0, 1e-3, 3)], 0.01) == 0.0


VALUES = [
    [(-0.1, 0.0)], [(math.nan, 0.0)], [(math.inf, 0.0)], [(1.0, 1.0)], [(1.0, -1e-9)],
    [(1.0, 0.0, -1)], [(1.0, 0.0, 2**53 + 1)], [(1.0, 0.0, 2**53), (1.0, 0.0, 1)],
]  # fmt: skip
TYPES = [
    1.0, "ab", [1.0], [[1.0, 0.0]], [()], [(1.0, 0.0, 1, 1)], [(1.0, 0.0, 2.0)],
    [(1.0, 0.0, True)], [("1", 0.0)], [(np.array([1.0]), 0.0)],
]  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "error"),
    [*((parts, DomainError) for parts in VALUES), *((x, ArgumentTypeError) for x in TYPES)],
)
def test_refuses(parts, error):
    with pytest.raises(error):
        optimal_epsilon(parts, 1e-5)


def test_refuses_what_does_not_fit():
    assert optimal_epsilon([(1e-8, 0.0, 2**53)], 1e-5) < 1e-8 * 2**53
    with pytest.raises(DomainError, match="delta"):
        optimal_epsilon([(1.0, 0.0)], 1.0)
