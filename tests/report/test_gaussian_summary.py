"""μ holds down to its δ and the regret bounds the gap, against mpmath at 40 digits."""

import math

import mpmath as mp
import pytest

import accountant as ac
from accountant.report import statement
from accountant.report.gaussian_summary import Point, gaussian_summary


def shifted(mu, epsilon):
    """Return the profile of N(mu, 1) against N(0, 1)."""
    with mp.workdps(40):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def made(mechanism, count=1, delta=1e-5):
    ledger = ac.Accountant()
    ledger.compose(mechanism, count)
    return ledger, statement(ledger, delta).gaussian


CASES = {
    "dp-sgd": (ac.PoissonSampled(ac.Gaussian(1.1), 0.01), 1000),
    "little noise": (ac.PoissonSampled(ac.Gaussian(0.5), 0.001), 5),
    "large": (ac.PoissonSampled(ac.Gaussian(0.8), 0.2), 300),
    "laplace": (ac.Laplace(4.0), 5),
}


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
def test_mu_is_nowhere_below_where_it_is_claimed(name, delta):
    ledger, found = made(*CASES[name], delta)
    if found is None:
        assert ledger.delta(0.0) <= delta
        return
    assert found.delta == delta
    most = ledger.epsilon_bounds(delta).lower
    gaps = []
    for k in range(151):
        epsilon = most * k / 150
        truth = ledger.delta_bounds(epsilon).lower
        theirs = shifted(found.mu, epsilon)
        assert theirs >= truth
        gaps.append((theirs - ledger.delta_bounds(epsilon).upper) / (1 + mp.exp(epsilon)))
    assert max(gaps) <= found.regret
    # No looser than a few times what was seen.
    assert found.regret <= 3 * max(gaps) + 0.02


def test_gaussian_noise_has_its_own_mu_and_no_regret():
    _, found = made(ac.Gaussian(2.0), 9)
    assert (found.mu, found.delta) == (pytest.approx(1.5, rel=1e-12), 0.0)
    assert found.mu >= 1.5
    assert found.regret <= 1e-8


def test_the_least_mu_is_nearly_found():
    nodes = [Point(2.5 * k / 96, *[float(shifted(0.5, 2.5 * k / 96))] * 2) for k in range(97)]
    found = gaussian_summary(
        [Point(p.epsilon, p.lower, p.upper * (1 + 1e-12)) for p in nodes], 1e-5
    )
    assert 0.5 <= found.mu <= 0.5005
    assert found.regret <= 1e-3


def test_what_has_no_mu():
    assert gaussian_summary([Point(0.0, 1.0, 1.0), Point(1.0, 0.0, 0.0)], 1e-5) is None
    assert gaussian_summary([Point(0.0, 0.1, 0.1), Point(1.0, 0.1, 0.1)], 1e-5) is None
    assert gaussian_summary([Point(0.0, 0.0, 1e-6)], 1e-5) is None
    _, infinite = made(ac.ApproximateDP(1.0, delta=0.1))
    assert infinite is None


def test_extreme_profiles_do_not_break():
    for points in (
        [Point(0.0, 0.0, 1e-300), Point(700.0, 0.0, 0.0)],
        [Point(0.0, 0.5, 1.0 - 1e-16), Point(700.0, 0.0, 1e-300)],
    ):
        for delta in (1e-300, 0.9):
            found = gaussian_summary(points, delta)
            assert found is None or (0.0 <= found.mu < math.inf and 0.0 <= found.regret <= 1.0)
