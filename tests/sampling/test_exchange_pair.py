"""Pairs of noise on Poisson samples under replace-one, against every pair of contributions (E15).

The oracle enumerates contributions and outcomes in exact rational arithmetic.
"""

import itertools
import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.mechanisms.laplace import LaplacePair
from accountant.sampling.exchange_pair import ExchangedLaplace

REPLACE = ac.NeighbouringRelation.REPLACE_ONE
EPSILONS = [0.0, 0.05, 0.2, 0.7, 1.5, 3.0]
FAR = 90


def sampled(law, q, v):
    """Return (1-q)·f + q·f(· - v) on the integers of reach, exactly."""
    return {x: (1 - q) * law(x) + q * law(x - v) for x in range(-FAR, FAR + 1)}


def divergence(p, q, gamma):
    return sum((max(p[x] - gamma * q[x], Fraction(0)) for x in p), Fraction(0))


def worst(law, q, size, epsilon):
    gamma = Fraction(math.exp(epsilon))
    laws = [sampled(law, q, v) for v in range(-size, size + 1)]
    return max(divergence(a, b, gamma) for a, b in itertools.permutations(laws, 2))


def discrete_laplace(scale):
    r = Fraction(math.exp(-1.0 / scale))
    return lambda x: (1 - r) / (1 + r) * r ** abs(x)


def discrete_gaussian(sigma):
    weights = [Fraction(math.exp(-0.5 * (x / sigma) ** 2)) for x in range(2 * FAR)]
    total = weights[0] + 2 * sum(weights[1:])
    return lambda x: weights[abs(x)] / total if abs(x) < 2 * FAR else Fraction(0)


def skellam(variance):
    weights = [
        Fraction(float(mpmath.besseli(k, variance) * mpmath.exp(-variance))) for k in range(2 * FAR)
    ]
    return lambda x: weights[abs(x)] if abs(x) < 2 * FAR else Fraction(0)


def sum_of_two(sigma):
    one = discrete_gaussian(sigma)
    weights = [sum(one(y) * one(x - y) for y in range(-40, 41)) for x in range(2 * FAR)]
    return lambda x: weights[abs(x)] if abs(x) < 2 * FAR else Fraction(0)


NOISES = {
    "gaussian": (ac.DiscreteGaussian, discrete_gaussian, 1.3),
    "laplace": (ac.DiscreteLaplace, discrete_laplace, 1.7),
    "skellam": (ac.Skellam, skellam, 2.0),
    "sum": (partial(ac.DiscreteGaussianSum, contributors=2), sum_of_two, 0.8),
}


@pytest.mark.parametrize("q", [0.03, 0.4, 0.9])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", list(NOISES))
def test_a_step_is_the_worst_of_all_contributions(name, size, q):
    make, law_of, parameter = NOISES[name]
    step = ac.PoissonSampled(make(parameter, sensitivity=size, relation=REPLACE), q)
    assert step.from_below() is None
    law = law_of(parameter)
    for epsilon in EPSILONS:
        truth = worst(law, Fraction(q), size, epsilon)
        low, high = step.delta_bounds(epsilon)
        # Doubles in the oracle's laws, and what lies beyond its reach.
        assert float(truth) <= high * (1.0 + 1e-13) + 1e-15
        assert float(truth) >= low * (1.0 - 1e-13) - 1e-15
        assert high <= float(truth) * (1.0 + 1e-9) + 1e-12
        assert high - low <= 1e-9 * high + 1e-12


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("seed", range(12))
def test_opposite_contributions_are_the_worst_for_any_unimodal_law(seed):
    """The theorem itself, in exact arithmetic: steps, ties and plateaus, orders on either side."""
    rng = np.random.default_rng(seed)
    falls = [int(k) for k in rng.integers(0, 6, size=6)] + [1]
    weights = list(itertools.accumulate(reversed(falls)))[::-1]
    total = Fraction(weights[0] + 2 * sum(weights[1:]))
    law = lambda x: weights[abs(x)] / total if abs(x) < len(weights) else Fraction(0)  # noqa: E731
    size, q = 3, Fraction(int(rng.integers(1, 20)), 20)
    laws = {v: sampled(law, q, v) for v in range(-size, size + 1)}
    for gamma in (Fraction(k, 7) for k in (0, 2, 5, 7, 8, 11, 20, 60)):
        most = divergence(laws[size], laws[-size], gamma)
        for a, b in itertools.permutations(laws.values(), 2):
            assert divergence(a, b, gamma) <= most


@pytest.mark.parametrize(
    ("noise", "epsilon"),
    [
        (ac.DiscreteGaussian(3.0, relation=REPLACE), 0.643689),
        (ac.DiscreteLaplace(3.0, relation=REPLACE), 0.537693),
        (ac.Laplace(3.0, relation=REPLACE), 0.527229),
    ],
)
def test_ten_steps_cost_what_the_opposite_contributions_cost(noise, epsilon):
    low, high = (10 * ac.PoissonSampled(noise, 0.1)).epsilon_bounds(1e-4)
    assert abs(high - epsilon) <= 1e-6
    assert high - low <= 1e-4


def on_a_lattice(reach, q, left, right, epsilon, cells=240):
    """Bound δ of two contributions from below: Laplace noise, cell by cell of a fine lattice."""

    def tail(x, mean):
        y = x - mean
        return 0.5 * np.exp(-np.abs(y)) if y > 0 else 1.0 - 0.5 * np.exp(-np.abs(y))

    edges = np.arange(-cells, cells + 1) * (reach / 40.0)
    column = {
        mean: np.abs(np.diff([1.0, *(tail(x, mean) for x in edges), 0.0]))
        for mean in (0.0, left, right)
    }
    p = (1.0 - q) * column[0.0] + q * column[right]
    other = (1.0 - q) * column[0.0] + q * column[left]
    return float(np.maximum(p - math.exp(epsilon) * other, 0.0).sum())


@pytest.mark.long(keep=8)
@pytest.mark.parametrize("q", [0.01, 0.2, 0.8])
@pytest.mark.parametrize("reach", [0.1, 1.0, 5.0])
def test_laplace_noise_is_the_worst_of_all_contributions(reach, q):
    step = ac.PoissonSampled(ac.Laplace(1.0 / reach, relation=REPLACE), q)
    for epsilon in (0.0, 0.01, 0.1, 0.5):
        low, high = step.delta_bounds(epsilon)
        contributions = [reach * part for part in (-1.0, -0.5, 0.0, 0.5, 1.0)]
        found = max(
            on_a_lattice(reach, q, a, b, epsilon)
            for a, b in itertools.permutations(contributions, 2)
        )
        assert found <= high * (1.0 + 1e-12) + 1e-14
        # The lattice holds the two contributions, so that it loses of the second order alone.
        assert found >= low * (1.0 - 2e-3) - 1e-14


@pytest.mark.parametrize("q", [0.05, 0.5])
def test_laplace_noise_on_two_numbers_costs_no_more(q):
    """Contributions of ℓ1 norm one in the plane, on the cells of a lattice."""
    edges = np.arange(-32, 33) / 4.0
    tail = np.concatenate([[-np.inf], edges, [np.inf]])

    def masses(mean):
        y = tail - mean
        cdf = np.where(y < 0.0, 0.5 * np.exp(np.minimum(y, 0.0)), 1.0 - 0.5 * np.exp(-np.abs(y)))
        return np.diff(cdf)

    def law(v):
        still = np.outer(masses(0.0), masses(0.0))
        return (1.0 - q) * still + q * np.outer(masses(v[0]), masses(v[1]))

    step = ac.PoissonSampled(ac.Laplace(1.0, relation=REPLACE), q)
    points = [(1.0, 0.0), (0.5, 0.5), (-1.0, 0.0), (0.25, -0.75), (0.0, 1.0), (-0.5, -0.5)]
    for a, b in itertools.permutations([law(v) for v in points], 2):
        for epsilon in (0.0, 0.1, 0.4):
            found = float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum())
            assert found <= step.delta(epsilon) * (1.0 + 1e-12)


@pytest.mark.parametrize("q", [1e-6, 0.3, 0.999])
@pytest.mark.parametrize("reach", [1e-9, 0.01, 2.0, 400.0])
def test_the_masses_of_laplace_noise_are_a_law_and_its_reflection(reach, q):
    pair = ExchangedLaplace(LaplacePair(reach), q)
    top = pair.support[1]
    edges = np.concatenate([-np.linspace(0.0, 1.2 * top, 40)[:0:-1], np.linspace(0.0, top, 20)[1:]])
    p, other, error = pair.masses(edges)
    assert abs(p.sum() - 1.0) <= error * 2
    assert abs(other.sum() - 1.0) <= error * 2
    back = pair.masses(-edges[::-1])
    np.testing.assert_allclose(back.p[::-1], other, rtol=2e-13, atol=1e-300)
    ratio = p[1:-1] / np.maximum(other[1:-1], 1e-300)
    inside = p[1:-1] > 1e-290
    slack = pair.loss_error + 1e-12
    assert np.all(np.log(ratio[inside]) <= edges[1:][inside] + slack)
    assert np.all(np.log(ratio[inside]) >= edges[:-1][inside] - slack)


def exact_renyi(law, q, size, order):
    """Bound the divergence from below: outcomes out of reach are left out."""

    def log(part):
        return math.log(part.numerator) - math.log(part.denominator)

    p, other = sampled(law, q, size), sampled(law, q, -size)
    terms = [order * log(p[x]) + (1.0 - order) * log(other[x]) for x in p if p[x] and other[x]]
    return math.log(math.fsum(math.exp(min(term, 700.0)) for term in terms)) / (order - 1.0)


@pytest.mark.long(keep=11)
@pytest.mark.parametrize("order", [1.5, 2.0, 5.0])
@pytest.mark.parametrize("name", list(NOISES))
def test_divergences_are_not_below_the_truth(name, order):
    make, law_of, parameter = NOISES[name]
    law, noise = law_of(parameter), make(parameter, sensitivity=2, relation=REPLACE)
    for q in (0.05, 0.6):
        truth = exact_renyi(law, Fraction(q), 2, order)
        assert ac.PoissonSampled(noise, q).rdp(order) >= truth * (1.0 - 1e-10)


@pytest.mark.parametrize(
    "noise",
    [
        ac.DiscreteGaussian(1e-160, relation=REPLACE),
        ac.Skellam(1e-310, relation=REPLACE),
        ac.DiscreteLaplace(1e-309, relation=REPLACE),
    ],
)
def test_without_noise_a_draw_is_seen(noise):
    bounds = ac.PoissonSampled(noise, 0.25).delta_bounds(1.0)
    assert bounds.lower <= 0.25 <= bounds.upper <= 0.25 * (1.0 + 1e-12)


@pytest.mark.parametrize("scale", [0.01, 1.0, 1e250, math.inf])
def test_extreme_scales_are_answered(scale):
    for noise in (ac.Laplace(scale, relation=REPLACE), ac.DiscreteLaplace(scale, relation=REPLACE)):
        step = ac.PoissonSampled(noise, 0.1)
        assert 0.0 <= step.epsilon(1e-3) <= noise.epsilon(1e-3)
        assert step.delta(0.1) <= 0.1 * (1.0 + 1e-9)


@pytest.mark.parametrize("q", [1e-5, 0.3])
@pytest.mark.parametrize(
    "noise",
    [
        ac.Skellam(1e-305, sensitivity=2, relation=REPLACE),
        ac.DiscreteGaussian(0.02, sensitivity=2, relation=REPLACE),
        ac.DiscreteGaussian(0.3, sensitivity=60, relation=REPLACE),
    ],
)
def test_losses_far_apart_are_answered(noise, q):
    """Next to no noise: δ is the chance of a draw at every ε that is looked at."""
    step = ac.PoissonSampled(noise, q)
    for epsilon in (0.0, 2.0, 40.0):
        low, high = step.delta_bounds(epsilon)
        assert low <= q * (1.0 + 1e-9)
        assert q * (1.0 - 1e-2) <= high <= q * (1.0 + 1e-9)


@pytest.mark.parametrize("q", [0.1, 0.95])
def test_vectors_of_discrete_laplace_noise_are_no_worse_than_one_coordinate(q):
    """All pairs of integer vectors of ℓ1 norm at most 2 (Theorem E15); the rate is log 2."""
    noise = ac.DiscreteLaplace(1.0 / math.log(2.0), sensitivity=2, relation=REPLACE)
    told = ac.PoissonSampled(noise, q)
    reach, rate = range(-14, 15), Fraction(q)
    vectors = [v for v in itertools.product(range(-2, 3), repeat=2) if abs(v[0]) + abs(v[1]) <= 2]

    def law(v):
        return [Fraction(1, 9 * 2 ** (abs(x - v[0]) + abs(y - v[1]))) for x in reach for y in reach]

    still, laws = law((0, 0)), {v: law(v) for v in vectors}
    release = {
        v: [(1 - rate) * s + rate * m for s, m in zip(still, laws[v], strict=True)] for v in vectors
    }
    for epsilon in (0.0, 0.2, 1.0):
        grown = Fraction(math.exp(epsilon)) * (1 + Fraction(1, 2**50))
        upper = Fraction(told.delta_bounds(epsilon).upper)
        for one, other in itertools.combinations(vectors, 2):
            pair = zip(release[one], release[other], strict=True)
            # Outcomes beyond the table are left out: the sum is a lower bound.
            assert sum(max(p - grown * r, 0) for p, r in pair) <= upper, (one, other)
