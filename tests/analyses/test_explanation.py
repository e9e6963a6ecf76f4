"""What an explanation says of each part: its account, its share of the width, and what helps."""

import math

import pytest

import accountant as ac
from accountant.analyses import explanation as accounts
from support import every_mechanism


def part_of(whole, mechanism, delta=1e-6):
    (found,) = [part for part in whole.explain(delta).contributions if part.mechanism == mechanism]
    return found


@pytest.mark.long(keep=10)
@pytest.mark.parametrize(
    ("mechanism", "others", "account"),
    [
        (ac.Gaussian(2.0), ac.Gaussian(3.0), accounts.CLOSED),
        (ac.PoissonSampled(ac.Gaussian(2.0), 0.1), ac.Gaussian(3.0), accounts.CONTOUR),
        (ac.Gaussian(2.0), ac.PoissonSampled(ac.Gaussian(2.0), 0.1), accounts.CONTOUR),
        (ac.Laplace(2.0), ac.Gaussian(3.0), accounts.DENSITY),
        (ac.RandomizedResponse(1.0), ac.Gaussian(3.0), accounts.LATTICE),
        (ac.DominatingPMFs((0.5, 0.3, 0.2), (0.2, 0.4, 0.4)), ac.Laplace(2.0), accounts.ATOMS),
        (ac.ZCDP(0.1), ac.Laplace(2.0), accounts.CURVE),
        (ac.ZCDP(0.1), ac.RenyiCurve.from_table((2.0, 4.0), (0.1, 0.2)), accounts.CURVE),
        (ac.ApproximateDP(0.0, delta=1e-9), ac.Laplace(2.0), accounts.FAILS),
        (
            ac.PoissonSampled(ac.Laplace(2.0) + ac.Gaussian(5.0), 0.1),
            ac.Laplace(2.0),
            accounts.UPPER_PAIR,
        ),
    ],
    ids=repr,
)
def test_the_account_of_a_part(mechanism, others, account):
    found = part_of(2 * mechanism + others, mechanism)
    assert found.account == account.account
    assert found.narrower in (account.narrower, accounts.EXACT, accounts.OTHERS)
    assert found.width is None or 0.0 <= found.width <= 1.0


def test_the_width_is_what_is_gone_without_the_part():
    curve, rest = ac.ZCDP(0.1), ac.Laplace(2.0) + ac.Gaussian(5.0)
    whole = curve + rest
    wide, narrow = (float(each.epsilon_bounds(1e-6).width) for each in (whole, rest))
    assert part_of(whole, curve).width == 1.0 - narrow / wide
    assert part_of(whole, curve).narrower == accounts.CURVE.narrower
    assert part_of(whole, ac.Gaussian(5.0)).narrower == accounts.OTHERS
    # As advised: noise with this curve and a loss distribution.
    advised = ac.Gaussian(math.sqrt(5.0)) + rest
    assert float(advised.epsilon_bounds(1e-6).width) < 1e-3 * wide


def test_a_guarantee_that_mechanisms_differ_in_is_what_makes_a_bracket_wide():
    private = ac.ExponentialMechanism(0.1)
    (part,) = (100 * private).explain(1e-5).contributions
    assert part.account == accounts.ATTAINED.account
    assert part.narrower == accounts.ATTAINED.narrower
    (part,) = ac.PoissonSampled(private, 0.01).explain(1e-5).contributions
    assert part.account != accounts.ATTAINED.account


def test_one_release_inverts_its_own_profile():
    (part,) = ac.Laplace(1.0).explain(1e-5).contributions
    assert part.account == accounts.PROFILE.account
    assert part.narrower == accounts.EXACT


def test_a_single_part_has_all_of_the_width():
    (part,) = (10 * ac.Laplace(2.0)).explain(1e-6).contributions
    assert part.width == 1.0
    (part,) = (10 * ac.Gaussian(2.0)).explain(1e-6).contributions
    assert part.narrower == accounts.EXACT


def test_nothing_is_said_of_an_infinite_width_or_of_many_parts():
    failing = ac.ApproximateDP(0.1, delta=1e-3) + ac.ZCDP(0.1)
    assert {part.width for part in failing.explain(1e-6).contributions} == {None}
    many = sum((ac.Gaussian(1.0 + i) for i in range(10)), 1 * ac.Gaussian(0.5))
    assert {part.width for part in many.explain(1e-6).contributions} == {None}


@pytest.mark.long(keep=10)
@pytest.mark.parametrize("mechanism", every_mechanism.EVERY[::7], ids=lambda m: type(m).__name__)
def test_every_kind_is_explained(mechanism):
    found = (2 * mechanism).explain(1e-4)
    for part in found.contributions:
        assert part.account
        assert part.narrower
    assert str(found).count("narrower by: ") == len(found.contributions)
