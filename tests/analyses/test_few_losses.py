"""Sums of few losses against every outcome in ball arithmetic (Theorem G12)."""

import math
import random

import pytest

pytest.importorskip("flint")

from flint import arb

import accountant as ac
from accountant.analyses import few_losses
from accountant.analyses.direct import UNSEEN, Direct
from accountant.analyses.few_losses import sum_of_losses
from accountant.composition.problems import problems_of
from support.oracle import compositions as laws
from support.oracle.composed import precision
from support.oracle.random_compositions import CATEGORIES, equal, several, violation

EPSILONS = (0.0, 1e-9, 0.1, 1.0, 3.0, 12.5)


def law_of(name):
    """A mechanism and its law when the record is removed."""
    kind, number = name.split()
    number = float(number)
    if kind == "response":
        return ac.RandomizedResponse(number, k=4), laws.response(number, 4)
    if kind == "approximate":
        return ac.ApproximateDP(number, delta=1e-3), laws.response(number, 2, 1e-3)
    if kind == "laplace":
        mechanism = ac.DiscreteLaplace(number, sensitivity=3)
        return mechanism, laws.discrete_laplace(number, 3)
    p, q = (0.5, 0.375, 0.125), (0.25, 0.5, 0.25)
    return ac.DominatingPMFs(p, q), laws.masses(p, q)


NAMES = ("response 1.0", "response 1e-9", "response 40.0", "approximate 0.5", "laplace 0.3")
OTHERS = ("laplace 20.0", "masses 0")


@pytest.mark.long(keep=76)
@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("rate", [1.0, 1e-3])
@pytest.mark.parametrize("count", [1, 2, 7, 24])
@pytest.mark.parametrize("name", NAMES + OTHERS)
def test_every_outcome(name, count, rate, common):
    with precision(400):
        mechanism, law = law_of(name)
        if rate < 1.0:
            mechanism, law = ac.PoissonSampled(mechanism, rate), laws.sampled(law, rate, False)
        pair = mechanism.pairs()[0]
        found = sum_of_losses(((pair, count),), UNSEEN[common])
        whole = laws.power(law, count)
        for epsilon in (*EPSILONS, 0.999 * count * float(pair.support[1])):
            bracket, truth = found.profile(epsilon), laws.profile(whole, epsilon, None)
            # A ball of radius 1e-100 may hold an end itself.
            assert not arb(bracket.lower) > truth
            assert not arb(bracket.upper) < truth
            shift = found.losses.loss_error
            most = 1e-10 * bracket.upper + 2.0 * shift + 2.0 * UNSEEN[common]
            assert bracket.width <= most


@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12, 1e-13, 1e-40])
def test_the_inverse_of_different_kinds(delta):
    with precision(400):
        found = [law_of(name) for name in ("response 1.0", "laplace 0.3", "masses 0")]
        counted = [
            (mechanism.pairs()[0], n) for (mechanism, _), n in zip(found, (5, 3, 2), strict=True)
        ]
        law = laws.product(
            laws.power(each, n) for (_, each), n in zip(found, (5, 3, 2), strict=True)
        )
        bracket = Direct(tuple(counted)).epsilon_bounds(delta)
        assert laws.profile(law, bracket.upper, None) <= arb(delta)
        assert laws.profile(law, bracket.lower, None) > arb(delta)
        assert bracket.width <= 1e-11 * bracket.upper


def test_a_discrete_gaussian_leaves_out_what_the_parameter_allows():
    pair = ac.DiscreteGaussian(0.7).pairs()[0]
    small, large = (sum_of_losses(((pair, 3),), unseen) for unseen in (1e-6, 1e-285))
    assert small.losses.loss.size < large.losses.loss.size
    assert 1e-9 < small.unseen <= 1e-6
    with precision(400):
        law = laws.power(laws.discrete_gaussian(0.7, 1, 14), 3)
        for epsilon in EPSILONS:
            truth = laws.profile(law, epsilon, None)
            for found in (small, large):
                bracket = found.profile(epsilon)
                assert arb(bracket.lower) <= truth + 1e-50
                assert not arb(bracket.upper) < truth


def test_what_lacks_mass_is_as_likely_as_said():
    """The mass of the listed sums and ``unseen`` make one."""
    pair = ac.DiscreteGaussian(1.0).pairs()[0]
    for n in (1, 2, 3, 30, 127):
        found = sum_of_losses(((pair, n),), 1e-6)
        assert found is not None
        assert math.fsum(found.losses.p) + found.unseen >= 1.0 - 1e-11
        assert found.unseen <= 1e-6


def test_too_many_are_left_to_the_grid():
    response, masses = (law_of(name)[0].pairs()[0] for name in ("response 1.0", "masses 0"))
    gaussian = ac.Laplace(1.0).pairs()[0]
    assert sum_of_losses(((response, few_losses.MOST_RELEASES + 1),), 1e-26) is None
    assert sum_of_losses(((response, 1000),), 1e-285) is None
    assert sum_of_losses(((masses, 300),), 1e-26) is None
    assert sum_of_losses(((masses, 1), (gaussian, 1)), 1e-26) is None
    assert sum_of_losses(((masses, 80), (response, 80)), 1e-26) is None


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("first", [10_000, 20_000])
def test_random_compositions_as_a_user_asks(first):
    def ask(mechanism, question, at):
        return getattr(mechanism, question)(at)

    kinds = (equal, several)
    chosen = [k for k in range(first, first + 400) if CATEGORIES[k % 200] in kinds]
    rng = random.Random(first)
    assert not [found for k in rng.sample(chosen, 60) if (found := violation(k, ask))]


def test_each_direction_of_a_sample():
    mechanism = 20 * ac.PoissonSampled(law_of("masses 0")[0], 0.25)
    with precision(400):
        law = law_of("masses 0")[1]
        for add, parts in zip((False, True), problems_of(mechanism), strict=True):
            whole = laws.power(laws.sampled(laws.reverse(law) if add else law, 0.25, add), 20)
            bracket = Direct(parts).epsilon_bounds(1e-7)
            assert laws.profile(whole, bracket.upper, None) <= arb(1e-7)
            assert laws.profile(whole, bracket.lower, None) > arb(1e-7)


def test_losses_that_are_all_equal_lie_on_no_lattice():
    """All that is left of these, without masses below 1e-290, has the loss 0."""
    one = ac.DominatingPMFs([0.5, 0.5, 1e-300], [0.5, 0.5, 3e-300])
    found = (2 * one).delta_bounds(0.0)
    assert 0.0 <= found.lower <= 4e-300 <= found.upper <= 1e-12
    lost = ac.ApproximateDP(0.0, delta=1e-3)
    assert sum_of_losses(((lost.pairs()[0], 2),), UNSEEN[True]).profile(0.5).lower <= 1.999e-3


def test_sums_whose_masses_underflow_do_not_end_in_an_error():
    p = [0.4999898063154944, 0.4999898063154944, 2.03873690113255e-05, 3.2718071683357057e-121]
    q = [0.49999999747152013, 5.056959754484073e-09, 0.49999999747152013, 1.3949795301299084e-110]
    found = (5 * ac.DominatingPMFs(p, q)).epsilon_bounds(1e-300)
    # The largest loss that is not rarer than δ: five times the larger of the two directions'.
    assert found.lower <= 5.0 * math.log(p[1] / q[1]) <= found.upper * (1.0 + 1e-12)
