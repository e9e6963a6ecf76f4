"""Sums of discrete Gaussians: masses against exact convolution, compositions against a contour."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.mechanisms import integer_laws
from accountant.mechanisms.integer_laws import GaussianSumPair, correction
from support.oracle.contour_of_masses import delta_of_masses


def convolved(sigma, clients, reach):
    """Return the masses of the sum at -reach..reach, to 40 digits, by direct convolution."""
    with mp.workdps(40):
        span = math.ceil(20 * sigma) + 2
        one = [mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2)) for x in range(-span, span + 1)]
        # Integers in units of 2^-1000: numpy multiplies and adds them without rounding.
        scale = mpf(2) ** 1000
        units = np.array([int(scale * x / sum(one)) for x in one], dtype=object)
        law = units
        for _ in range(clients - 1):
            law = np.convolve(law, units) >> 1000
        middle = law.size // 2
        return [mpf(int(x)) / scale for x in law[middle - reach : middle + reach + 1]]


@pytest.mark.parametrize(
    ("sigma", "clients"),
    [(0.2, 9), (0.3, 7), (0.5, 16), (1.0, 6), (1.7, 5), (2.2, 3), (3.0, 4), (1.0, 1)],
)
def test_masses_and_losses_are_within_their_errors(sigma, clients):
    atoms = GaussianSumPair(sigma, 1, clients).atoms()
    reach = math.ceil(6.0 * sigma * math.sqrt(clients))
    truth = convolved(sigma, clients, reach)
    start = (atoms.loss.size - 1) // 2 - reach  # where x = -reach
    with mp.workdps(40):
        for i in range(1, len(truth)):
            p, q = truth[i - 1], truth[i]
            assert abs(mpf(float(atoms.q[start + i])) / q - 1) <= atoms.relative_error
            assert abs(mpf(float(atoms.p[start + i])) / p - 1) <= atoms.relative_error
            assert abs(mpf(float(atoms.loss[start + i])) - mp.log(p / q)) <= atoms.loss_error
    assert atoms.relative_error < 1e-10
    assert np.all(np.diff(atoms.loss) >= 0.0)


def test_what_is_left_out_of_a_correction_is_in_its_error(monkeypatch):
    """With a window that is far too short the stated error grows as the true one does."""
    exact = correction(0.5, 16)[0]
    correction.cache_clear()
    monkeypatch.setattr(integer_laws, "LEFT_OUT", 1.0)
    rough, error = correction(0.5, 16)
    correction.cache_clear()
    off = float(np.ptp(np.log(rough / exact)))
    assert 1e-10 < off <= 2.0 * error


def test_many_clients_keep_the_oscillation_as_an_error(monkeypatch):
    exact = correction(1.0, 64)[0]
    correction.cache_clear()
    monkeypatch.setattr(integer_laws, "MOST_WORK", 500)
    rough, error = correction(1.0, 64)
    correction.cache_clear()
    assert rough.size == 1
    assert float(np.ptp(np.log(exact))) <= 2.0 * error


@pytest.mark.long
def test_a_hundred_clients_and_a_thousand_rounds():
    bounds = (1000 * ac.DiscreteGaussianSum(0.5, contributors=100)).epsilon_bounds(1e-6)
    assert bounds.upper <= (1.0 + 1e-4) * bounds.lower
    masses = convolved(0.5, 100, 75)
    for epsilon, sign in ((bounds.upper, 1), (bounds.lower, -1)):
        truth = delta_of_masses(masses[:-1], masses[1:], 1000, float(epsilon))
        assert sign * (1e-6 - truth) >= -1e-15
    # The Gaussian of the same variance parameter would say 49.3.
    assert bounds.lower > 54.0


def test_a_law_that_is_not_known_is_refused(monkeypatch):
    correction.cache_clear()
    monkeypatch.setattr(integer_laws, "MOST_WORK", 100)
    with pytest.raises(ac.UnsupportedError, match="finer unit"):
        ac.DiscreteGaussianSum(0.5, contributors=64).epsilon(1e-6)
    correction.cache_clear()


def test_one_client_is_the_discrete_gaussian():
    for sigma, sensitivity in ((0.7, 1), (3.0, 4)):
        own = ac.DiscreteGaussianSum(sigma, contributors=1, sensitivity=sensitivity)
        known = ac.DiscreteGaussian(sigma, sensitivity=sensitivity)
        for epsilon in (0.0, 0.5, 3.0):
            assert own.delta(epsilon) == pytest.approx(known.delta(epsilon), rel=1e-9, abs=1e-290)


@pytest.mark.parametrize("order", [2.0, 15.0, 30.0, 1000.0, 1e6])
def test_divergences_of_high_orders_count_what_is_in_no_atom(order):
    """Of one client, and where the sum is a discrete Gaussian, they are αΔ²/2nσ²."""
    for sigma, clients in ((1.0, 1), (3.0, 4)):
        exact = order / (2 * sigma**2 * clients)
        found = ac.DiscreteGaussianSum(sigma, contributors=clients).rdp(order)
        assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-9)
    rough = ac.DiscreteGaussianSum(0.5, contributors=9).rdp(order)
    assert rough >= 0.9 * order / (2 * 0.25 * 9)


def test_more_clients_groups_and_relations():
    costs = [ac.DiscreteGaussianSum(2.0, contributors=n).epsilon(1e-6) for n in (1, 2, 5, 20)]
    assert costs == sorted(costs, reverse=True)
    release = ac.DiscreteGaussianSum(2.0, contributors=10)
    assert release.under(Relation.REPLACE_ONE).epsilon(1e-6) == release.group(2).epsilon(1e-6)


def test_what_is_out_of_reach_is_refused():
    with pytest.raises(ac.UnsupportedError, match=r"noise_multiplier >= 0\.2"):
        ac.DiscreteGaussianSum(0.1, contributors=5)
    with pytest.raises(ac.UnsupportedError, match="finer unit"):
        ac.DiscreteGaussianSum(0.2, contributors=1000).epsilon(1e-6)
    # Its variance is beyond the doubles, its cost is not 0; infinite noise costs nothing.
    for sigma in (1e100, 1e155, 1e300):
        with pytest.raises(ac.UnsupportedError, match="atoms"):
            ac.DiscreteGaussianSum(sigma, contributors=3).delta(0.0)
    assert ac.DiscreteGaussianSum(math.inf, contributors=3).delta(0.0) == 0.0
    for given in ({"contributors": 0}, {"contributors": 2.5}, {"sensitivity": -1}):
        with pytest.raises(ac.AccountantError, match=next(iter(given))):
            ac.DiscreteGaussianSum(1.0, **{"contributors": 3, **given})
