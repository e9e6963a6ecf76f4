"""Random allocation of any mechanism: exact multinomial sums, and Gaussian noise, as the oracle."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import pytest
from flint import arb, ctx

import accountant as ac
from accountant.bounds import Bounds
from accountant.errors import AccountantError, UnsupportedError
from accountant.sampling import AllocatedMechanism
from accountant.sampling.allocated_mechanism import MechanismPair

# Exact as doubles, so that the mechanism and the oracle have the same masses.
P = tuple(x / 64 for x in (6, 22, 36))
Q = tuple(x / 64 for x in (34, 22, 8))


def mean_ratio(steps, p=P, q=Q):
    """Return the values of the mean ratio and their exact probabilities without the record."""
    law = {Fraction(0): Fraction(1)}
    for _ in range(steps):
        following = defaultdict(Fraction)
        for (value, mass), (a, b) in product(law.items(), zip(p, q, strict=True)):
            following[value + Fraction(a) / Fraction(b) / steps] += mass * Fraction(b)
        law = following
    return law


def exact_delta(law, epsilon, add):
    strike = Fraction(math.exp(epsilon))
    if add:
        return sum(m * max(1 - strike * s, 0) for s, m in law.items())
    return sum(m * max(s - strike, 0) for s, m in law.items())


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("steps", [2, 5, 40])
def test_brackets_contain_exact_sums(steps):
    one = AllocatedMechanism(ac.DominatingPMFs(P, Q), steps=steps)
    law = mean_ratio(steps)
    assert sum(law.values()) == 1
    assert sum(s * m for s, m in law.items()) == 1
    for add, pair in zip((False, True), one.pairs(), strict=True):
        for epsilon in (-0.3, 0.0, 0.05, 0.2, 0.5, 1.1, 1.5, 2.0):
            found = pair.profile(epsilon)
            truth = exact_delta(law, epsilon, add)
            # exp(ε) of the oracle is a double.
            assert found.lower <= float(truth) * (1 + 1e-13) + 1e-17
            assert found.upper >= float(truth) * (1 - 1e-13) - 1e-17
            if truth > 1e-5:
                assert found.upper <= float(truth) * (1 + 1e-4) + 1e-9


def profile_of_runs(p, q, steps, epochs, epsilon):
    """Return the exact δ of the composition of allocations, at the double e^ε, as a fraction."""
    one, law = mean_ratio(steps, p, q), {Fraction(1): Fraction(1)}
    for _ in range(epochs):
        following = defaultdict(Fraction)
        for (a, m), (b, w) in product(law.items(), one.items()):
            following[a * b] += m * w
        law = following
    return max(exact_delta(law, epsilon, add) for add in (False, True))


RARE = (0.00075, 0.99727, 0.00198), (0.29505, 0.69129, 0.01366)
CHANCE = 1 / (1 + Fraction(math.exp(1.0)))
RESPONSE = (1 - CHANCE, CHANCE), (CHANCE, 1 - CHANCE)


@pytest.mark.parametrize(
    ("mechanism", "masses", "steps", "epochs", "epsilon"),
    [
        (ac.DominatingPMFs(*RARE), RARE, 2, 2, 0.29),
        (ac.DominatingPMFs(*RARE), RARE, 2, 1, 0.29),
        (ac.DominatingPMFs(*RARE), RARE, 9, 1, 1.5),
        (ac.DominatingPMFs(P, Q), (P, Q), 2, 2, 0.3),
        *((ac.RandomizedResponse(1.0), RESPONSE, 2, 2, epsilon) for epsilon in (0.1, 0.29, 0.9)),
        pytest.param(ac.DominatingPMFs(P, Q), (P, Q), 20, 2, 0.6, marks=pytest.mark.long),
    ],
)
def test_few_losses_are_counted(mechanism, masses, steps, epochs, epsilon):
    """Tables of puts and calls had .5148 for the .2332 of the first."""
    # The mechanism divides masses by their sum.
    p, q = ([Fraction(x) / sum(map(Fraction, each)) for x in each] for each in masses)
    truth = profile_of_runs(p, q, steps, epochs, epsilon)
    found = (epochs * AllocatedMechanism(mechanism, steps=steps)).delta_bounds(epsilon)
    # exp(ε) of the oracle is a double, and so are the mechanism's quotients of masses.
    assert found.lower <= truth * (1 + Fraction(1, 10**14))
    assert truth * (1 - Fraction(1, 10**14)) <= found.upper
    assert found.upper - found.lower <= (1e-3 if steps < 20 else 0.01) * found.upper


def binomial_delta(epsilon, steps, strike):
    """Return δ at e^``strike`` of allocated randomised response, in ball arithmetic."""
    ctx.prec = 300
    up = arb(epsilon).exp()
    chance, gamma = 1 / (1 + up), arb(strike).exp()
    remove, add = arb(0), arb(0)
    for k in range(steps + 1):  # runs of the larger ratio
        mass = arb(math.comb(steps, k)) * chance**k * (1 - chance) ** (steps - k)
        mean = (k * up + (steps - k) / up) / steps
        remove += mass * max(mean - gamma, arb(0))
        add += mass * max(1 - gamma * mean, arb(0))
    return max(remove, add)


@pytest.mark.parametrize(
    ("epsilon", "steps", "delta"),
    [
        (3.0, 50, 1e-6),
        (0.0061556, 1000, 2.5e-36),
        (1.0, 1000, 1e-9),
        (0.2, 2, 0.01),
        (30.0, 7, 0.1),
    ],
)
def test_randomised_response_costs_no_more_than_one_run(epsilon, steps, delta):
    """It had 3.000181 for the first, and .00616 for the .00224 of the second."""
    found = AllocatedMechanism(ac.RandomizedResponse(epsilon), steps=steps).epsilon_bounds(delta)
    assert found.upper <= epsilon
    assert found.upper - found.lower <= 1e-3 * found.upper
    assert found.upper == epsilon or binomial_delta(epsilon, steps, found.upper) <= delta
    assert binomial_delta(epsilon, steps, found.lower) >= delta


def test_losses_that_nearly_vanish_keep_their_digits():
    found = AllocatedMechanism(ac.RandomizedResponse(1e-9), steps=30).epsilon_bounds(1e-11)
    assert found.upper <= found.lower * (1 + 1e-3)
    assert binomial_delta(1e-9, 30, found.lower) >= 1e-11 >= binomial_delta(1e-9, 30, found.upper)


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_epsilon_of_exact_sums(delta):
    law = mean_ratio(40)
    found = AllocatedMechanism(ac.DominatingPMFs(P, Q), steps=40).epsilon_bounds(delta)
    worst = max(float(exact_delta(law, found.upper, add)) for add in (False, True))
    assert worst <= delta * (1 + 1e-12)
    least = max(float(exact_delta(law, found.lower, add)) for add in (False, True))
    assert least >= delta * (1 - 1e-12)
    assert found.upper - found.lower < 0.02 * found.upper


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "remove", "add"), [(0.1, 1.4820690273e-4, 9.2833920491e-5)])
def test_gaussian_noise_has_the_values_of_its_own_transform(epsilon, remove, add):
    one = AllocatedMechanism(ac.Gaussian(1.0), steps=1000)
    for pair, truth in zip(one.pairs(), (remove, add), strict=True):
        found = pair.profile(epsilon)
        assert found.lower <= truth * (1 + 1e-10)
        assert truth * (1 - 1e-10) <= found.upper <= truth * (1 + 3e-4)
        assert found.lower >= 0.98 * truth


@pytest.mark.parametrize(
    ("mechanism", "wide"), [(ac.Laplace(1.0), 1e-4), (ac.DiscreteGaussian(3.0), 1e-4)]
)
def test_brackets_are_narrow(mechanism, wide):
    found = AllocatedMechanism(mechanism, steps=1000).epsilon_bounds(1e-6)
    assert 0.0 < found.lower < found.upper < found.lower * (1 + wide)


@pytest.mark.long
def test_below_is_below():
    one = AllocatedMechanism(ac.Laplace(1.0), steps=100)
    below = one.from_below()
    for high, low in zip(one.pairs(), below.pairs(), strict=True):
        for epsilon in (0.05, 0.2, 0.4):
            least = float(ac.pairs.atoms.AtomicPair.profile(low, epsilon).lower)
            most = float(ac.pairs.atoms.AtomicPair.profile(high, epsilon).upper)
            assert least <= high.profile(epsilon).upper
            assert most >= high.profile(epsilon).lower
            assert least >= 0.97 * most


def test_losses_are_bounded_as_those_of_one_run():
    one = AllocatedMechanism(ac.Laplace(2.0), steps=20)
    largest = 0.5
    assert one.epsilon(0.0) <= largest
    # All 20 runs may have their largest ratio: every smaller ε has some δ.
    assert one.delta(largest) == 0.0 < one.delta(0.9 * largest)
    assert (one + ac.PureDP(0.5)).delta(1.0) == 0.0


@pytest.mark.parametrize(
    "mechanism",
    [ac.Laplace(0.01), ac.Laplace(1e6), ac.Gaussian(0.05), ac.Gaussian(1e7), ac.Laplace(1e-3)],
)
@pytest.mark.parametrize("steps", [1, 2, 10**7])
def test_extreme_noise_keeps_its_own_bound(mechanism, steps):
    one = AllocatedMechanism(mechanism, steps=steps)
    for delta in (1e-12, 0.5):
        found = one.epsilon_bounds(delta)
        assert 0.0 <= found.lower <= found.upper
        assert found.upper <= mechanism.epsilon(delta) * (1 + 1e-9) + 1e-9


def test_mechanisms_without_a_loss_distribution_are_refused():
    with pytest.raises(UnsupportedError, match="loss distribution"):
        AllocatedMechanism(ac.ZCDP(0.1), steps=10)
    with pytest.raises(UnsupportedError, match="random allocation"):
        AllocatedMechanism(ac.Laplace(1.0, relation=ac.NeighbouringRelation.REPLACE_ONE), steps=10)
    with pytest.raises(AccountantError, match="mechanism must be a mechanism"):
        AllocatedMechanism(1.0, steps=10)


@pytest.mark.parametrize("steps", [3, 50])
def test_a_rare_ratio_too_far_from_the_others_leaves_the_pair_of_one_run(steps):
    one = ac.DominatingPMFs((0.01, 0.99), (1e-8, 1.0 - 1e-8))
    allocated = ac.sampling.AllocatedMechanism(one, steps=steps)
    for epsilon in (0.0, 0.3, 4.0):
        # The record's run has the rare outcome, whose mean ratio is far above e^ε.
        least = 0.01 - 1e-8 * steps * math.exp(epsilon)
        assert allocated.delta_bounds(epsilon).upper >= least
    assert allocated.epsilon(1e-3) <= one.epsilon(1e-3) * (1.0 + 1e-9)


@pytest.mark.parametrize("delta", [1e-5, 1e-305])
def test_a_profile_that_is_not_known_to_be_positive_has_no_lower_end(delta):
    """Where nothing is certified from below, and all of the profile from above."""
    unknown = SimpleNamespace(_at=lambda epsilon, tilts: Bounds(0.0, float(epsilon < 3.0)))
    assert MechanismPair._crossing(unknown, delta, (-1.0,), 0.0, 8.0, upper=False) == 0.0
    assert 3.0 <= MechanismPair._crossing(unknown, delta, (-1.0,), 0.0, 8.0, upper=True) < 3.001
