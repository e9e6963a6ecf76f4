"""Lower ends of the exponential mechanism, of which no pair is attained by compositions (M8)."""

import pytest

pytest.importorskip("flint")

from flint import arb

import accountant as ac
from accountant.analyses.attained import attained_parts
from support.oracle import compositions as laws
from support.oracle.composed import precision


@pytest.mark.parametrize("count", [2, 30, 300])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 4.0])
def test_what_is_attained_is_randomised_response(epsilon, count):
    release = count * ac.ExponentialMechanism(epsilon)
    (solver,) = release.profile().solvers()
    attained = solver._attained
    with precision(300):
        law = laws.power(laws.response(arb(epsilon) / 2), count)
        for delta in (1e-3, 1e-7):
            lower = attained.epsilon_bounds(delta).lower
            assert lower == 0.0 or laws.profile(law, lower, None) > arb(delta)
            assert lower <= release.epsilon_bounds(delta).upper
        for share in (0.1, 0.3, 0.49):
            at = share * count * epsilon
            assert not arb(attained.delta_bounds(at).lower) > laws.profile(law, at, None)


def test_there_is_a_lower_end_where_the_curve_rules():
    release = 30 * ac.ExponentialMechanism(1.0)
    found = release.epsilon_bounds(1e-5)
    assert 12.9 < found.lower < 13.0 < found.upper < 15.85
    assert found.lower <= (30 * ac.DominatingPMFs(*_halves())).epsilon(1e-5)
    sampled = 1000 * ac.PoissonSampled(ac.ExponentialMechanism(1.0), 0.05)
    assert 0.0 < sampled.epsilon_bounds(1e-5).lower < sampled.epsilon(1e-5)


def _halves():
    odds = 0.37754066879814546  # 1/(1 + e^{1/2})
    return (1.0 - odds, odds), (odds, 1.0 - odds)


def test_more_releases_keep_it():
    alone = 30 * ac.ExponentialMechanism(1.0)
    more = alone + ac.Laplace(2.0) + ac.PureDP(0.1)
    assert more.epsilon_bounds(1e-5).lower > alone.epsilon_bounds(1e-5).lower


def test_what_attains_nothing_is_left_out():
    noisy, other = ac.ExponentialMechanism(1.0).pairs()[0], ac.Laplace(1.0).pairs()[0]
    assert attained_parts(((other, 3),)) is None
    assert attained_parts(((noisy, 2), (other, 3))) == ((noisy.attained, 2), (other, 3))
    assert noisy.attained.support[1] <= 0.5
