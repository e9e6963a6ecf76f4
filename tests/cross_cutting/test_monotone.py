"""Laws between answers: more releases, larger q, less noise, smaller δ never cost less.

Two certified brackets of numbers a <= b obey ``b.upper >= a.lower``, with no tolerance: this is
the law to the last bit of the brackets. That ``a.upper <= b.upper`` then fails by no more than the
width of a's bracket, which is asserted to be small, so that an answer that gave up shows.
"""

import functools
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountant as ac
from accountant import sampling
from accountant.analyses import optimal
from accountant.analyses.solvers import Grid
from accountant.mechanisms import DiscreteLaplace, ShuffledResponses, SmoothSensitivityGaussian

# By what a bracket, relative to its upper end or absolutely, may be wide; Rényi has no lower end.
WIDE, NEGLIGIBLE = 0.02, 1e-7

# Mechanisms by a noise scale that is public and never costs more when it grows.
FAMILIES = {
    "gaussian": ac.Gaussian,
    "laplace": ac.Laplace,
    "discrete gaussian": lambda s: ac.DiscreteGaussian(s),
    "discrete laplace": lambda s: DiscreteLaplace(s),
    "gdp": lambda s: ac.GDP(1.0 / s),
    "pure": lambda s: ac.PureDP(1.0 / s),
    "response": lambda s: ac.RandomizedResponse(1.0 / s),
    "approximate": lambda s: ac.ApproximateDP(1.0 / s, delta=1e-9 / s),
    "zcdp": lambda s: ac.ZCDP(0.5 / s / s),
    "curve": lambda s: ac.TruncatedCDP(0.5 / s / s, omega=40.0),
    "exponential": lambda s: ac.ExponentialMechanism(1.0 / s),
    "noisy max": lambda s: ac.ReportNoisyMax(s),
    "sampled gaussian": lambda s: ac.PoissonSampled(ac.Gaussian(s), 0.1),
    "sampled laplace": lambda s: ac.PoissonSampled(ac.Laplace(s), 0.1),
    "sampled atoms": lambda s: ac.PoissonSampled(ac.RandomizedResponse(1.0 / s), 0.1),
    "fixed size": lambda s: sampling.FixedSizeSampled(s, batch_size=10, dataset_size=100),
    "allocated": lambda s: sampling.Allocated(s, steps=10),
    "mix": lambda s: 2 * ac.Laplace(3.0 * s) + ac.PoissonSampled(ac.Gaussian(s), 0.01),
    "parallel": lambda s: ac.parallel(ac.Laplace(2.0 * s), ac.Gaussian(s)),
}
SLOW = ("sampled laplace", "fixed size", "allocated", "mix", "parallel")


def ordered(cheap, dear, *, tight=True):
    """Check the law between two brackets."""
    assert dear.upper >= cheap.lower
    if tight:
        assert cheap.upper <= dear.upper * (1.0 + WIDE) + NEGLIGIBLE


def epsilons(mechanism, delta=1e-5):
    return mechanism.epsilon_bounds(delta)


def trivial(mechanism, bounds, delta):
    """Check an answer against what is known without an analysis."""
    with_none = mechanism.epsilon_bounds(0.0)
    assert bounds.upper <= with_none.upper
    for order in (2.0, 8.0):
        try:
            divergence = mechanism.rdp(order)
        except ac.UnsupportedError:
            break
        plain = divergence - math.log(delta) / (order - 1.0)  # Mironov 2017
        assert bounds.upper <= plain * (1.0 + WIDE) + NEGLIGIBLE
        assert bounds.lower <= plain * (1.0 + 1e-12)


@pytest.mark.long(keep=9)
@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=[pytest.mark.slow] * (f in SLOW)) for f in FAMILIES]
)
def test_every_mechanism_obeys_the_laws(family):
    make = FAMILIES[family]
    ask = functools.cache(lambda noise, count, delta: epsilons(count * make(noise), delta))
    for noise in (0.9, 2.5):
        base = ask(noise, 3, 1e-5)
        trivial(3 * make(noise), base, 1e-5)
        assert base.upper <= 3 * ask(noise, 1, 1e-5 / 3.0).upper * (1.0 + WIDE)
        for count in (1, 2, 4, 9):
            cheap, dear = sorted([(3, base), (count, ask(noise, count, 1e-5))], key=lambda x: x[0])
            ordered(cheap[1], dear[1])
        ordered(base, ask(noise, 3, 1e-7))
        ordered(ask(noise, 3, 1e-3), base)
        ordered(ask(noise * 1.3, 3, 1e-5), base)
        ordered(base, ask(noise * 0.999, 3, 1e-5))
        # Another release costs no less, whatever it is; δ(ε) leads back to δ.
        ordered(base, epsilons(3 * make(noise) + ac.PureDP(0.01, relation=make(noise).relation)))
        assert (3 * make(noise)).delta_bounds(base.upper).lower <= 1e-5


@pytest.mark.parametrize("inner", [ac.Gaussian(1.3), ac.RandomizedResponse(1.2), ac.PureDP(0.7)])
def test_a_larger_sample_costs_no_less(inner):
    rates = [0.0, 1e-9, 1e-6, 1e-3, 0.03, 0.5, 0.999, 1.0 - 1e-12, 1.0]
    found = [epsilons(5 * ac.PoissonSampled(inner, q), 1e-6) for q in rates]
    for cheap, dear in itertools.pairwise(found):
        ordered(cheap, dear)
    assert found[0].upper == found[1].upper == 0.0
    for q in (1e-3, 0.5):
        mechanism = 5 * ac.PoissonSampled(inner, q)
        assert mechanism.delta(0.0) <= (1.0 - (1.0 - q) ** 5) * (1.0 + 1e-12)


rates = st.one_of(
    st.floats(-9.0, 0.0).map(lambda x: 10.0**x), st.floats(-15.0, -1.0).map(lambda x: 1 - 10.0**x)
)
noises = st.floats(-1.2, 1.3).map(lambda x: 10.0**x)
counts = st.one_of(st.integers(1, 50), st.floats(1.0, 6.0).map(lambda x: int(10.0**x)))
deltas = st.floats(-12.0, -0.1).map(lambda x: 10.0**x)
shares = st.floats(-15.0, -0.1).map(lambda x: 10.0**x)


@settings(max_examples=40)
@given(rates, noises, counts, deltas, shares)
def test_steps_of_dp_sgd_obey_the_laws(q, sigma, steps, delta, share):
    base = ac.epsilon_bounds(q, sigma, steps, delta)
    narrow = base.upper - base.lower <= WIDE * base.upper + NEGLIGIBLE
    larger = min(q * (1.0 + share), 1.0)
    ordered(base, ac.epsilon_bounds(larger, sigma, steps, delta), tight=narrow)
    ordered(base, ac.epsilon_bounds(q, sigma * (1.0 - share), steps, delta), tight=narrow)
    ordered(base, ac.epsilon_bounds(q, sigma, steps, delta * (1.0 - share)), tight=narrow)
    for more in (steps + 1, steps + int(steps * share), 2 * steps):
        ordered(base, ac.epsilon_bounds(q, sigma, more, delta), tight=narrow)
    assert base.upper <= ac.get_epsilon(1.0, sigma, steps, delta)
    assert base.lower <= ac.get_epsilon(q, sigma, steps, delta, method="rdp")
    if steps < 1e5:
        once = ac.get_epsilon(q, sigma, 1, delta / steps)
        assert base.lower <= steps * once * (1.0 + 1e-12)
    used = -math.expm1(steps * math.log1p(-q)) if q < 1.0 else 1.0
    if used * (1.0 + 1e-12) < delta:
        assert base.upper == 0.0
    if base.upper < math.inf:
        at = ac.delta_bounds(q, sigma, steps, base.upper)
        assert at.lower <= delta
        assert at.upper <= used * (1.0 + 1e-12) + 1e-290


@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
def test_routes_to_the_same_answer_meet(delta):
    for q, sigma, steps in ((1.0, 2.0, 3), (0.1, 1.0, 40), (0.01, 0.8, 500)):
        mechanism = steps * ac.PoissonSampled(ac.Gaussian(sigma), q)
        native = ac.epsilon_bounds(q, sigma, steps, delta)
        both = [mechanism.epsilon_bounds(delta)]
        if steps < 100:
            pairs = mechanism.parts[0][0].pairs()
            grids = [Grid(((pair, steps),)).epsilon_bounds(delta) for pair in pairs]
            both.append(ac.Bounds(*(max(e[i] for e in map(tuple, grids)) for i in (0, 1))))
        for other in both:
            assert native.lower <= other.upper
            assert other.lower <= native.upper


@pytest.mark.parametrize(("epsilon", "count"), [(1.31, 1000), (3.0, 500), (20.0, 50), (0.5, 5000)])
@pytest.mark.parametrize("delta", [1e-8, 0.1])
def test_losses_far_beyond_the_exponentials_range_stay_exact(epsilon, count, delta):
    # Beyond a mean loss of 300 the grid was given up, and the lower end was 0.
    exact = optimal.optimal_epsilon_bounds([(epsilon, 0.0, count)], delta)
    found = (count * ac.PureDP(epsilon)).epsilon_bounds(delta)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper
    assert found.upper - found.lower <= 1e-5 * found.upper


def test_brackets_that_miss_a_tolerance_are_kept():
    # The grid of 1e-2 missed by a hair, and the answer was Rényi's, .276: 50 releases cost .165.
    mechanism = 20 * ac.PoissonSampled(ac.DiscreteGaussian(2.0), 0.01)
    for pair in mechanism.parts[0][0].pairs():
        found = Grid(((pair, 20),), tolerances=(1e-2,)).epsilon_bounds(1e-6)
        assert 0.05 < found.lower <= found.upper < 0.115


@pytest.mark.slow
def test_rare_large_losses_beside_many_small_ones():
    mechanism = ac.PoissonSampled(ac.Gaussian(0.2), 1e-6) + 10 * ac.Laplace(50.0)
    found = mechanism.epsilon_bounds(1e-5)
    # Without the sampled release, which has a total variation of 1e-6; and with it.
    assert (10 * ac.Laplace(50.0)).epsilon_bounds(1e-5).lower <= found.upper <= 0.2
    assert found.upper - found.lower <= 1e-3 * found.upper


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda n: n * ac.PoissonSampled(ac.DiscreteGaussian(2.0), 0.01),
        lambda n: n * ac.sampling.WithReplacementSampled(2.0, batch_size=3, dataset_size=100),
        lambda n: n * ShuffledResponses(1.0, dataset_size=200),
        lambda n: n * SmoothSensitivityGaussian(0.1, smoothness=20.0),
    ],
)
def test_more_releases_cost_no_less_on_grids(make):
    found = [make(n).epsilon_bounds(1e-6) for n in (1, 2, 5, 20, 50)]
    for cheap, dear in itertools.pairwise(found):
        ordered(cheap, dear)
