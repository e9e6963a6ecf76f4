"""Random allocation: both ends against quadrature, enumeration and simulation; its kernel."""

import math
from collections import namedtuple
from fractions import Fraction
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from mpmath import log, mpf

import accountant as ac
from accountant import sampling
from accountant.pairs.atoms import AtomicPair
from support.oracle.samplers import allocation_moment, allocation_profile

Interval = namedtuple("Interval", "lower upper")
_CHUNK = 2_000_000
_PILOT = 1000
_COMPONENTS = tuple((t, m) for t in (0.0, 0.8, 1.6, 2.4, 3.2) for m in (0.0, 1.5, 3.0, 4.5))


# Total losses drawn from a proposal, the logarithms of their weights, and of the ratios of each
# component of the proposal to the law of interest.
_Sample = namedtuple("_Sample", "loss log_weight log_ratios")


def monte_carlo_delta(noise, *, steps, epochs, epsilon, samples, confidence=0.999, seed):
    """Return an interval of δ(epsilon) by the central limit theorem."""
    sample = _draw(noise, steps, epochs, epsilon, samples, seed)
    centre, half = _interval(sample, epsilon, _score(confidence))
    return Interval(max(centre - half, 0.0), min(centre + half, 1.0))


def monte_carlo_epsilon(noise, *, steps, epochs, delta, near, samples, confidence=0.999, seed):
    """Return where the ends of the interval of δ cross ``delta``; ``near`` is a rough answer."""
    sample = _draw(noise, steps, epochs, near, samples, seed)
    score = _score(confidence)

    def crossing(sign):
        low, high = 0.0, 4.0 * near + 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            centre, half = _interval(sample, middle, score)
            low, high = (middle, high) if centre + sign * half > delta else (low, middle)
        return 0.5 * (low + high)

    return Interval(crossing(-1.0), crossing(1.0))


def _score(confidence):
    return NormalDist().inv_cdf(0.5 + 0.5 * confidence)


def _interval(sample, epsilon, score):
    values = np.exp(sample.log_weight) * -np.expm1(np.minimum(epsilon - sample.loss, 0.0))
    return float(values.mean()), score * float(values.std(ddof=1)) / math.sqrt(values.size)


def _draw(noise, steps, epochs, epsilon, samples, seed):
    """Choose the proposal in a pilot run, then draw afresh from it."""
    rng = np.random.default_rng(seed)
    weights = np.full(len(_COMPONENTS), 1.0 / len(_COMPONENTS))
    for _ in range(2):
        pilot = _simulate(rng, noise, steps, epochs, weights, min(_PILOT, samples))
        value = np.exp(pilot.log_weight) * -np.expm1(np.minimum(epsilon - pilot.loss, 0.0))
        if not value.sum() > 0.0:
            break
        # Cross-entropy: components in proportion to what they explain of the integral.
        weights = weights * (value @ np.exp(pilot.log_ratios + pilot.log_weight[:, None]))
        weights = 0.9 * weights / weights.sum() + 0.1 / weights.size
    return _simulate(rng, noise, steps, epochs, weights, samples)


def _simulate(rng, noise, steps, epochs, weights, samples):
    """Simulate runs with the record present, from a mixture of shifted laws.

    A component (t, m) shifts every release by t/√(all steps) standard deviations and the record's
    own release in one epoch by m more.
    """
    total = steps * epochs
    component = rng.choice(weights.size, size=samples, p=weights)
    drift, jump = (np.array(column)[component] for column in zip(*_COMPONENTS, strict=True))
    where = rng.integers(epochs, size=samples)
    loss, sums = np.zeros(samples), np.zeros(samples)
    own = np.zeros((samples, epochs))
    rows = max(1, _CHUNK // steps)
    for start in range(0, samples, rows):
        part = slice(start, min(start + rows, samples))
        for epoch in range(epochs):
            score = rng.standard_normal((part.stop - part.start, steps))
            score += (drift[part] / math.sqrt(total))[:, None]
            # By symmetry the record picks the first step.
            score[:, 0] += jump[part] * (where[part] == epoch)
            sums[part] += score.sum(axis=1)
            own[part, epoch] = score[:, 0]
            score[:, 0] += 1.0 / noise
            ratio = np.exp(score / noise - 0.5 / noise**2)
            loss[part] += np.log(ratio.mean(axis=1))
    columns = []
    for t, m in _COMPONENTS:
        shift = t / math.sqrt(total)
        jumped = np.exp(m * own - m * shift - 0.5 * m * m).mean(axis=1)
        columns.append(shift * sums - 0.5 * t * t + np.log(jumped))
    log_ratios = np.stack(columns, axis=1)
    log_weight = -np.logaddexp.reduce(log_ratios + np.log(weights), axis=1)
    return _Sample(loss, log_weight, log_ratios)


EPSILONS = [0.0, 0.1, 0.7, 2.0, 5.0]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("add", [False, True])
def test_allocation_encloses_quadrature(steps, noise, add):
    one = sampling.Allocated(noise, steps=steps)
    above, below = one.pairs()[add], one.from_below().pairs()[add]
    nodes = 1000
    for epsilon in EPSILONS:
        truth = allocation_profile(noise, steps, epsilon, add, nodes)
        coarse = allocation_profile(noise, steps, epsilon, add, nodes - 300)
        # What the oracle itself is sure of; both ends are strict beyond it.
        sure = 8.0 * abs(truth - coarse) + 1e-10
        if truth < 1e-11:
            continue
        high = float(above.profile(epsilon).upper)
        low = float(below.profile(epsilon).lower)
        assert low <= truth + sure
        assert high >= truth - sure
        assert high - low <= 0.05 * truth + 1e-12


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(("steps", "order"), [(2, 2), (3, 4), (6, 5), (5, 6), (2, 9)])
@pytest.mark.parametrize("noise", [0.4, 1.0, 7.0])
def test_allocation_moments_by_enumeration(steps, order, noise):
    exact = log(allocation_moment(noise, steps, order)) / (order - 1)
    found = sampling.Allocated(noise, steps=steps).pairs()[0].rdp(float(order))
    assert mpf(found) >= exact
    assert found <= float(exact) * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize("noise", [0.5, 1.0, 4.0])
def test_allocation_renyi_of_adding(noise):
    # E S^(1-α) for two steps, by a two-dimensional rule.
    z, w = np.polynomial.hermite_e.hermegauss(120)
    w = w / w.sum()
    y = np.exp(z / noise - 0.5 / noise**2)
    mean = 0.5 * np.add.outer(y, y)
    add = sampling.Allocated(noise, steps=2).pairs()[1]
    for order in (1.5, 2.0, 5.0):
        exact = math.log(float(w @ mean ** (1.0 - order) @ w)) / (order - 1.0)
        assert add.rdp(order) >= exact * (1.0 - 1e-9)
        assert add.rdp(order) <= 1.05 * exact


def test_one_step_is_plain():
    plain = ac.Gaussian(1.3)
    assert sampling.Allocated(1.3, steps=1).epsilon(1e-5) == plain.epsilon(1e-5)
    assert sampling.RandomAllocation(dataset_size=10, steps_per_epoch=1, epochs=4).epsilon(
        1.3, 1e-5
    ) == (4 * plain).epsilon(1e-5)


def test_the_documented_problem():
    # A simulation of 400,000 runs (the interval has 99.9% confidence).
    low, high = 0.531395943737895, 0.5453984088239063
    found = sampling.RandomAllocation(
        dataset_size=100_000, steps_per_epoch=1000, epochs=10
    ).epsilon_bounds(1.0, 1e-6)
    assert low <= found.upper <= 1.02 * high
    assert found.lower <= high
    assert found.width <= 0.01 * found.upper


@pytest.mark.long
def test_simulation_agrees():

    sampler = sampling.RandomAllocation(dataset_size=1000, steps_per_epoch=50, epochs=3)
    bracket = sampler.epsilon_bounds(0.8, 1e-5)
    near = float(bracket.upper)
    estimate = monte_carlo_epsilon(
        0.8, steps=50, epochs=3, delta=1e-5, near=near, samples=30_000, seed=4
    )
    assert estimate.lower <= bracket.upper
    assert estimate.upper >= bracket.lower
    delta = monte_carlo_delta(0.8, steps=50, epochs=3, epsilon=near, samples=30_000, seed=5)
    assert delta.lower <= 1e-5 * 1.01
    assert delta.upper >= 0.98e-5


@pytest.mark.long
def test_allocation_beats_poisson_and_several_picks_cost_more():
    poisson = ac.get_epsilon(0.01, 1.0, 500, 1e-6)
    one = sampling.RandomAllocation(dataset_size=1000, steps_per_epoch=100, epochs=5).epsilon(
        1.0, 1e-6
    )
    two = sampling.RandomAllocation(
        dataset_size=1000, steps_per_epoch=100, epochs=5, participations=2
    ).epsilon_bounds(1.0, 1e-6)
    assert one < poisson
    assert one < two.upper
    assert two.lower <= two.upper


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("noise", [0.1, 0.15, 0.4, 3.0, 1e3, 1e6, math.inf])
@pytest.mark.parametrize("steps", [2, 1000, 10**6])
def test_allocation_over_all_magnitudes(noise, steps):
    """Never dearer than telling which step was picked, never cheaper than its own lower end."""
    one = sampling.Allocated(noise, steps=steps)
    plain = ac.Gaussian(noise)
    for pair, low in zip(one.pairs(), one.from_below().pairs(), strict=True):
        for epsilon in (0.0, 0.5, 3.0):
            bounds = pair.profile(epsilon)
            assert float(low.profile(epsilon).lower) <= float(bounds.upper)
            assert float(bounds.upper) <= plain.delta(epsilon) * (1 + 1e-2) + 1e-25
        assert 0.0 <= pair.rdp(2.5) <= plain.rdp(2.5) * (1 + 1e-12)


def test_exchanging_the_two_laws_would_be_noticed():
    """The merged law as an upper bound, and the spread one as a lower, fail the enclosure."""
    for add in (False, True):
        one = sampling.Allocated(0.6, steps=3, points=300)
        truth = allocation_profile(0.6, 3, 1.0, add, 400)
        below, above = one.from_below().pairs()[add], one.pairs()[add]
        assert AtomicPair.profile(below, 1.0).upper < truth * (1 - 1e-6)
        assert AtomicPair.profile(above, 1.0).lower > truth * (1 + 1e-6)


# The kernel ------------------------------------------------------------------------------------


def test_the_kernel_against_exact_rationals():
    from accountant._core import tools

    rng = np.random.default_rng(12)
    s, t = (np.sort(rng.uniform(0.0, 5.0, 20)) for _ in range(2))
    p, r = (rng.dirichlet(np.ones(20)) for _ in range(2))
    grid = np.concatenate([[0.0], np.sort(rng.uniform(0.5, 8.0, 12))])
    out, escaped, terms = tools.spread(s, p, t, r, grid)
    mass, moment, _ = tools.merge(s, p, t, r, grid)
    exact = [Fraction(0)] * grid.size
    cells = [[Fraction(0), Fraction(0)] for _ in grid]
    over = Fraction(0)
    knots = [Fraction(x) for x in grid.tolist()]
    for (a, w), (b, v) in product(
        zip(s.tolist(), p.tolist(), strict=True), zip(t.tolist(), r.tolist(), strict=True)
    ):
        value, weight = Fraction(a) + Fraction(b), Fraction(w) * Fraction(v)
        k = max(i for i, knot in enumerate(knots) if knot <= value)
        cells[k][0] += weight
        cells[k][1] += weight * value
        if k == grid.size - 1:
            exact[k] += weight
            over += weight * (value - knots[k])
        else:
            share = (value - knots[k]) / (knots[k + 1] - knots[k])
            exact[k] += weight * (1 - share)
            exact[k + 1] += weight * share
    assert 1 <= terms <= 400
    assert np.allclose(out, [float(x) for x in exact], rtol=1e-13)
    assert escaped == pytest.approx(float(over), rel=1e-13)
    assert np.allclose(mass, [float(c[0]) for c in cells], rtol=1e-13)
    assert np.allclose(moment, [float(c[1]) for c in cells], rtol=1e-13)
    with pytest.raises(ValueError, match="must match"):
        tools.spread(s, p[:-1], t, r, grid)


# One epoch of 1000 steps at σ = 1: δ of the attained pair in both directions, by
# support/oracle/allocation.py.
@pytest.mark.parametrize(
    ("epsilon", "remove", "add"),
    [
        (0.05, 0.0024551576878627873, 0.0022386310589639774),
        (0.1, 1.4820690272741130e-4, 9.283392049103952e-5),
        (0.2, 2.0372492970773789e-7, 2.0102432631167296e-9),
    ],
)
def test_brackets_enclose_the_attained_pair(epsilon, remove, add):
    # Both ends were those of the computed law, 0.9 percent above the pair at ε = 0.1.
    one = sampling.Allocated(1.0, steps=1000)
    bounds = one.delta_bounds(epsilon)
    assert bounds.lower <= max(remove, add) <= bounds.upper <= (1.0 + 1e-9) * bounds.lower
    assert one.delta(epsilon) == bounds.upper
    inverse = one.epsilon_bounds(max(remove, add))
    assert inverse.lower <= epsilon <= inverse.upper <= (1.0 + 1e-9) * inverse.lower
    assert one.epsilon(max(remove, add)) == inverse.upper


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_mechanism_itself_is_bracketed(epsilon):
    truth = max(allocation_profile(1.0, 3, epsilon, add, 2000) for add in (False, True))
    one = sampling.Allocated(1.0, steps=3)
    bounds = one.delta_bounds(epsilon)
    # The oracle is sure of some nine digits.
    assert bounds.lower * (1.0 - 1e-9) <= truth <= bounds.upper * (1.0 + 1e-9)
    inverse = one.epsilon_bounds(truth)
    assert inverse.lower * (1.0 - 1e-8) <= epsilon <= inverse.upper * (1.0 + 1e-8)


@pytest.mark.long
def test_lower_ends_of_what_is_made_of_allocations():
    one = sampling.Allocated(1.0, steps=100)
    plain = ac.Gaussian(10.0).epsilon_bounds(1e-5)
    for mechanism in (2 * one, one + ac.Gaussian(10.0), ac.PoissonSampled(one, 0.9)):
        bounds = mechanism.epsilon_bounds(1e-5)
        assert 0.0 < bounds.lower < bounds.upper * (1.0 - 1e-6)
        assert mechanism.epsilon(1e-5) == bounds.upper
    assert ac.parallel(one, ac.Gaussian(10.0)).epsilon_bounds(1e-5).lower >= plain.lower


@pytest.mark.parametrize("participations", [2, 3, 5])
def test_a_record_takes_part_in_as_many_steps_as_it_picks(participations):
    """No step is picked twice, and every set of steps is as likely."""
    sampler = sampling.RandomAllocation(
        dataset_size=6000, steps_per_epoch=5, epochs=2, participations=participations
    )
    batches = list(sampler.batches(1))
    assert len(batches) == 10
    for epoch in (batches[:5], batches[5:]):
        table = np.zeros((6000, 5), dtype=int)
        for step, batch in enumerate(epoch):
            np.add.at(table[:, step], batch, 1)
        assert table.max() == 1
        assert (table.sum(axis=1) == participations).all()
        _, counts = np.unique(table, axis=0, return_counts=True)
        sets = math.comb(5, participations)
        assert counts.size == sets
        mean = 6000 / sets
        assert np.abs(counts - mean).max() <= 6.0 * math.sqrt(mean)
