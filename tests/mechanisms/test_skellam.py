"""Skellam noise: masses against Bessel functions, compositions against an independent contour."""

import math

import flint
import numpy as np
import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.mechanisms.discrete import SkellamPair
from support.oracle.contour_of_masses import delta_of_masses


def mass(variance, k):
    """Return e^-V I_k(V) from python-flint's balls, whose radius is far below the digits used."""
    with flint.ctx.workprec(400):
        ball = flint.arb(variance).bessel_i(abs(k), scaled=True)
        assert ball.rel_accuracy_bits() > 200
        return mpf(ball.str(60, radius=False))


@pytest.mark.parametrize("variance", [1e-120, 1e-3, 0.5, 7.0, 160.0, 30_000.0])
@pytest.mark.parametrize("shift", [1, 3])
def test_masses_and_losses_are_within_their_errors(variance, shift):
    atoms = SkellamPair(variance, shift).atoms()
    reach = (atoms.loss.size - 1 - shift) // 2
    places = {0, 1, reach - 1, reach, reach + shift, 2 * reach, 2 * reach + shift}
    with mp.workdps(60):
        for i in places:
            p, q = mass(variance, i - reach - shift), mass(variance, i - reach)
            for ours, truth in ((atoms.p[i], p), (atoms.q[i], q)):
                if truth > mpf(10) ** -300:
                    assert abs(mpf(float(ours)) / truth - 1) <= atoms.relative_error
            assert abs(mpf(float(atoms.loss[i])) - mp.log(p / q)) <= atoms.loss_error
        left_out = mass(variance, reach + 1)
    assert left_out < mpf(10) ** -300
    assert atoms.relative_error < 1e-10
    assert np.all(np.diff(atoms.loss) >= 0.0)


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 2.0])
@pytest.mark.parametrize(("variance", "shift"), [(0.4, 1), (5.0, 2), (90.0, 7)])
def test_one_release_contains_the_sum(variance, shift, epsilon):
    with mp.workdps(40):
        reach = 12 * math.ceil(math.sqrt(variance)) + 60
        truth = mp.fsum(
            max(mass(variance, x - shift) - mp.exp(mpf(epsilon)) * mass(variance, x), mpf(0))
            for x in range(-reach, reach + 1)
        )
        bounds = ac.Skellam(variance, sensitivity=shift).delta_bounds(epsilon)
        assert mpf(float(bounds.lower)) <= truth <= mpf(float(bounds.upper))


def test_a_hundred_clients_and_a_thousand_rounds():
    """The bracket, at most 1e-4 wide, contains δ from Bessel functions and plain quadrature."""
    rounds = 1000 * ac.Skellam(100 * 0.2)
    bounds = rounds.epsilon_bounds(1e-6)
    assert bounds.upper <= (1.0 + 1e-4) * bounds.lower
    masses = [mass(20.0, k) for k in range(-140, 142)]
    # One integer apart. The quadrature is good to some 1e-10.
    for epsilon, sign in ((bounds.upper, 1), (bounds.lower, -1)):
        truth = delta_of_masses(masses[:-1], masses[1:], 1000, float(epsilon))
        assert sign * (1e-6 - truth) >= -1e-15


def test_distance_relations_and_groups():
    release = ac.Skellam(50.0, sensitivity=2)
    assert release.under(Relation.REPLACE_ONE).epsilon(1e-6) == release.group(2).epsilon(1e-6)
    deltas = [ac.Skellam(50.0, sensitivity=k).delta(0.5) for k in (0, 1, 2, 3)]
    assert deltas == sorted(deltas)
    assert deltas[0] == 0.0
    assert ac.Skellam(1e-200).delta(3.0) == 1.0
    sampled = ac.PoissonSampled(release, 0.01).epsilon(1e-6)
    assert sampled < release.epsilon(1e-6)


@pytest.mark.parametrize(
    ("variance", "shift"), [(1e-140, 1), (1e-160, 1), (1e-250, 3), (1e-160, 40), (1e-310, 2)]
)
def test_noise_that_is_almost_always_zero_has_finite_losses(variance, shift):
    """All but 1e-140 of the mass is at loss log 1/P{X = Δ}: both ends fall there."""
    with mp.workdps(60):
        loss = shift * mp.log(2 / mpf(variance)) + mp.log(mp.factorial(shift))
    release = ac.Skellam(variance, sensitivity=shift)
    if variance > 1e-300:  # no lower end is promised of masses below
        assert release.delta_bounds(float(loss) * (1.0 - 1e-6) - 1.0).lower > 0.6
    for factor in (0.9, 1.0 - 1e-9, 1.0 + 1e-9, 1.1):
        epsilon = float(loss) * factor
        with mp.workdps(60):
            truth = max(1 - mp.exp(mpf(epsilon) - loss), mpf(0))
        bounds = release.delta_bounds(epsilon)
        assert mpf(float(bounds.lower)) <= truth + 10 * variance
        assert truth <= mpf(float(bounds.upper)) + 10 * variance
    found = release.epsilon_bounds(1e-6)
    with mp.workdps(60):
        truth = loss + mp.log1p(-mpf(1e-6))
    assert mpf(float(found.lower)) <= truth <= mpf(float(found.upper))
    assert variance < 1e-300 or found.upper <= found.lower * (1.0 + 1e-5)


@pytest.mark.long(keep=16)
@pytest.mark.parametrize("order", [1.5, 30.0, 100.0, 170.0, 1000.0, 1e5])
@pytest.mark.parametrize(("variance", "shift"), [(7.0, 1), (0.3, 2), (400.0, 5), (1e-160, 1)])
def test_divergences_of_high_orders_count_what_is_in_no_atom(variance, shift, order):
    """Some terms of E[e^{αL}] are less than all: at 1e5 most lies beyond the atoms."""
    with mp.workdps(40):
        centre = 2 * order if variance < 1 else 0
        places = {int(centre / k) for k in range(1, 60)} | set(range(-20, 200, 3))
        places |= (
            {int(order / k) for k in (1, 2, 4, 6, 8, 10, 12, 16, 24, 40)} if order > 99 else set()
        )
        total = mpf(0)
        for x in places:
            p, q = mass(variance, x - shift), mass(variance, x)
            total += p ** mpf(order) * q ** (1 - mpf(order))
        least = mp.log(total) / (mpf(order) - 1)
    assert mpf(ac.Skellam(variance, sensitivity=shift).rdp(order)) >= least


def test_divergences_of_high_orders_are_not_far_above():
    for order in (150.0, 175.0):
        assert ac.Skellam(7.0).rdp(order) == pytest.approx(2.1, abs=0.2)
    assert ac.Skellam(7.0).rdp(1e5) == pytest.approx(7.2, abs=0.2)


def test_noise_beyond_the_table_is_refused():
    with pytest.raises(ac.UnsupportedError, match="variance"):
        ac.Skellam(1e12).epsilon(1e-6)
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ac.DomainError, match="variance"):
            ac.Skellam(bad)
    with pytest.raises(ac.DomainError, match="sensitivity"):
        ac.Skellam(1.0, sensitivity=-1)
