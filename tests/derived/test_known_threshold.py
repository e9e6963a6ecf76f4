"""A threshold known beforehand, and configurations under one cap, against exact sums."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant.derived import AnyOf, FirstAboveThreshold
from accountant.learn.selection import draw_runs
from accountant.noise import SecureGenerator

BASE = ac.Gaussian(2.0)
REPLACE = ac.NeighbouringRelation.REPLACE_ONE


pytestmark = pytest.mark.usefixtures("sixty_digits")


def profile(p, q, epsilon):
    e = mp.e ** mpf(epsilon)
    return sum((max(a - e * b, 0) for a, b in zip(p, q, strict=True)), mpf(0))


def divergence(p, q, order):
    order = mpf(order)
    total = sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
    return mp.log(total) / (order - 1)


# A threshold known beforehand (Theorem P19), in rationals.


def first_above(law, accepted, gamma):
    """Return the exact law of the result, its last outcome "nothing": a sum over all runs."""
    reached = sum(law[i] for i in accepted)
    # (1-p)(1-γ) a run goes on.
    ends = 1 / (1 - (1 - reached) * (1 - gamma))
    return [law[i] * ends for i in accepted] + [gamma * (1 - reached) * ends]


def hockey_stick(p, q, factor):
    return sum((max(a - factor * b, 0) for a, b in zip(p, q, strict=True)), Fraction(0))


def dyadic_laws(rng, outcomes):
    """Yield two laws that floats hold exactly."""
    for _ in range(2):
        shares = rng.dirichlet(np.ones(outcomes))
        weights = 1 + rng.multinomial(2**12 - outcomes, shares)
        yield [Fraction(int(x), 2**12) for x in weights]


def above_exp(epsilon):
    """Return a rational next to e^ε and not below it, so that a profile there is not too large."""
    return Fraction(math.nextafter(math.exp(epsilon), math.inf))


def test_the_law_of_the_first_run_above_is_that_of_the_loop():
    law, gamma = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)], Fraction(1, 4)
    found, going = [Fraction(0)] * 3, Fraction(1)
    for _ in range(200):
        for place, outcome in enumerate((1, 2)):
            found[place] += going * law[outcome]
        found[2] += going * law[0] * gamma
        going *= law[0] * (1 - gamma)
    exact = first_above(law, (1, 2), gamma)
    assert all(0 <= a - b < Fraction(1, 10**50) for a, b in zip(exact, found, strict=True))


@pytest.mark.parametrize("gamma", [Fraction(1, 100), Fraction(1, 8), Fraction(1, 2)])
def test_a_threshold_against_exact_sums(gamma):
    rng = np.random.default_rng(gamma.denominator)
    for _ in range(4):
        p, q = dyadic_laws(rng, 4)
        base = ac.DominatingPMFs(tuple(map(float, p)), tuple(map(float, q)))
        search = FirstAboveThreshold(base, float(gamma))
        for least in range(5):
            accepted = range(least, 4)
            laws = [first_above(each, accepted, gamma) for each in (p, q)]
            for one, other in (laws, laws[::-1]):
                for epsilon in (0.0, 0.25, 1.0, 2.5):
                    exact = hockey_stick(one, other, above_exp(epsilon))
                    assert exact <= Fraction(search.delta(epsilon))
                seen = [
                    [mpf(x.numerator) / x.denominator for x in law if x] for law in (one, other)
                ]
                for order in (1.5, 4.0):
                    assert divergence(*seen, order) <= search.rdp(order)


def test_a_threshold_is_the_bound_of_its_theorem():
    p, q, gamma = (0.7, 0.2, 0.1), (0.4, 0.4, 0.2), 0.2
    base = ac.DominatingPMFs(p, q)

    def delta(epsilon):
        pairs = ((p, q), (q, p))
        return max(profile([mpf(x) for x in a], [mpf(x) for x in b], epsilon) for a, b in pairs)

    low, high = mpf(0), mpf(5)
    for _ in range(200):  # an independent c
        middle = (low + high) / 2
        holds = delta(middle) <= gamma * (mp.e**middle - 1) / (1 - gamma)
        low, high = (low, middle) if holds else (middle, high)
    bounds = FirstAboveThreshold(base, gamma).pairs()[0].bounds
    assert float(bounds.excess) == pytest.approx(float(high), rel=1e-9)
    assert bounds.excess >= high * (1 - mpf(10) ** -15)
    epsilon = float(high) + 0.1
    assert bounds.delta(epsilon) <= float(delta(0.1 - 1e-9) / mpf(gamma)) * (1 + 1e-9)


def test_a_threshold_costs_less_than_the_best():
    mean = 10.0
    best = ac.BestOfRuns.with_mean(BASE, mean)
    above = FirstAboveThreshold(BASE, best.stopping_probability)
    assert BASE.epsilon(1e-5) < above.epsilon(1e-5) < best.epsilon(1e-5)
    # Twice the ε of a pure run, however many runs there are (Liu, Talwar 2019).
    assert 0.99 < FirstAboveThreshold(ac.PureDP(0.5), 1e-6).epsilon(0.0) <= 1.0 + 1e-12
    assert FirstAboveThreshold(BASE, 1.0).epsilon(1e-5) == BASE.epsilon(1e-5)


def test_configurations_under_one_cap():
    members = [ac.Gaussian(2.0), ac.Laplace(1.5), ac.PoissonSampled(ac.Gaussian(1.0), 0.01)]
    cap = AnyOf(members)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        assert cap.delta(epsilon) >= max(each.delta(epsilon) for each in members)
    assert cap.rdp(3.0) >= max(each.rdp(3.0) for each in members)
    # It dominates any order of its members.
    assert (2 * cap).epsilon(1e-5) >= (members[0] + members[1]).epsilon(1e-5)
    search = ac.BestOfRuns(members, 0.1, eta=0.0)
    assert search == ac.BestOfRuns(cap, 0.1, eta=0.0)
    alone = [ac.BestOfRuns(each, 0.1, eta=0.0).epsilon(1e-5) for each in members]
    assert max(alone) <= search.epsilon(1e-5) <= max(alone) * 1.2
    assert ac.BestOfRuns([BASE, BASE], 0.1) == ac.BestOfRuns(BASE, 0.1)
    assert search.group(2).base.mechanisms[0] == members[0].group(2)
    assert AnyOf([BASE, ac.Gaussian(3.0)]).under(REPLACE).relation is REPLACE


@pytest.mark.parametrize(("p", "weights"), [(3, (1, 2)), (5, (4, 1))])
def test_a_setting_drawn_at_random_costs_no_more_than_the_cap(p, weights):
    rng = np.random.default_rng(p)
    pairs = [tuple(dyadic_laws(rng, 3)) for _ in weights]
    cap = AnyOf([ac.DominatingPMFs(tuple(map(float, a)), tuple(map(float, b))) for a, b in pairs])
    told = [
        [Fraction(w, sum(weights)) * x for w, pair in zip(weights, pairs, strict=True)
         for x in pair[side]]
        for side in (0, 1)
    ]  # fmt: skip
    for one, other in (told, told[::-1]):
        for epsilon in (0.0, 0.5, 1.0):
            exact = hockey_stick(one, other, above_exp(epsilon))
            assert exact <= Fraction(cap.delta(epsilon))


def test_runs_until_a_threshold_are_a_geometric_number():
    geometric = ac.BestOfRuns(BASE, 0.25, eta=1.0)
    above = FirstAboveThreshold(BASE, 0.25)
    for seed in range(30):
        one, other = (draw_runs(each, SecureGenerator(seed)) for each in (above, geometric))
        assert one == other
