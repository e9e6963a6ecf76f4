"""Several of T steps: exact fractions, quadrature over all steps, and the values of the issue."""

import math
import random
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import accountant as ac
from accountant.sampling import RandomAllocation, several_plan, several_steps
from accountant.sampling.several_steps import Kind, Law, removal_bounds
from support.oracle.samplers import two_of_several

# ε of removal at δ = 1e-6 and σ = 1 for k of 1000 steps: what moments in cells were worked out to
# give, and the ends that blocks of one step had.
VALUES = [
    (2, 0.36135, 0.36152, 0.361984),
    (10, 1.9463, 1.9510, 1.964272),
    (50, 11.1886, 11.2002, 11.479582),
]


@pytest.mark.parametrize(("picks", "low", "high", "blocks"), VALUES)
def test_several_of_a_thousand_steps_are_narrow(picks, low, high, blocks):
    sampler = RandomAllocation(dataset_size=100, steps_per_epoch=1000, participations=picks)
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert low <= found.lower <= found.upper <= high
    assert sampler.epsilon(1.0, 1e-6) == found.upper
    # The blocks dominate: nothing that they cost is known to be lost.
    mechanism = sampler.mechanism(1.0).epsilon_bounds(1e-6)
    assert mechanism.lower <= found.lower
    assert mechanism.upper >= blocks


@pytest.mark.parametrize("noise", [1.5, 2.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.9])
def test_the_profile_is_enclosed(noise, epsilon):
    truth, doubt = two_of_several(noise, 5, epsilon)
    assert doubt < 1e-4 * truth
    for kind in (Kind(2**16, 1.0), Kind(2**14, 1.4)):
        law = Law(1.0 / noise, 5, 2, 0.5, 1e-3, kind)
        assert law.removal(epsilon, upper=False)[0] <= truth + doubt
        assert law.removal(epsilon, upper=True)[0] >= truth - doubt
        assert law.removal(epsilon, upper=True)[0] <= 1.3 * truth
        assert law.removal(epsilon, upper=False)[0] >= 0.8 * truth


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("steps", "picks", "noise"), [(50, 20, 1.0), (100, 3, 0.5), (5000, 2, 8.0), (2000, 900, 3.0)]
)
def test_both_ends_are_in_order(steps, picks, noise):
    sampler = RandomAllocation(dataset_size=9, steps_per_epoch=steps, participations=picks)
    found = sampler.epsilon_bounds(noise, 1e-5)
    assert 0.0 < found.lower <= found.upper <= sampler.mechanism(noise).epsilon(1e-5)
    assert found.upper <= (picks * ac.Gaussian(noise)).epsilon(1e-5)


@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-14, 0.9])
@pytest.mark.parametrize("noise", [1e-3, 0.2, 1e3, math.inf])
def test_extremes_keep_the_bound_of_the_blocks(noise, delta):
    sampler = RandomAllocation(dataset_size=9, steps_per_epoch=30, participations=4)
    assert sampler.epsilon(noise, delta) <= sampler.mechanism(noise).epsilon(delta)
    if delta > 0.0:
        found = sampler.epsilon_bounds(noise, delta)
        assert 0.0 <= found.lower <= found.upper


def test_an_epoch_more_is_bounded_by_blocks():
    sampler = RandomAllocation(dataset_size=9, steps_per_epoch=40, participations=2, epochs=2)
    assert sampler.epsilon(1.0, 1e-5) == sampler.mechanism(1.0).epsilon(1e-5)


# The theorem, by enumeration -------------------------------------------------------------------


def exact_cells(law, steps, picks, function):
    """Return q, p and s of every value of Σ function, and E(LR - K)₊ as a function of K."""
    cells, ratios = {}, []
    all_ = math.comb(steps, picks)
    for outcome in product(range(len(law)), repeat=steps):
        mass = math.prod(law[i][1] for i in outcome)
        ratio = sum(
            math.prod(law[outcome[j]][0] for j in some)
            for some in combinations(range(steps), picks)
        )
        ratio = ratio / all_
        q, p, s = cells.get(sum(function[i] for i in outcome), (0, 0, 0))
        cells[sum(function[i] for i in outcome)] = (
            q + mass,
            p + mass * ratio,
            s + mass * ratio * ratio,
        )
        ratios.append((ratio, mass))
    return cells, lambda strike: sum(m * max(x - strike, 0) for x, m in ratios)


def random_law(draws):
    """Return ratios and their chances, of mean one: extreme and degenerate ones among them."""
    chances = [Fraction(draws.choice([1, 1, 5, 10**6]), 1) for _ in range(draws.randint(2, 3))]
    chances = [c / sum(chances) for c in chances]
    ratios = [Fraction(draws.choice([0, 1, 2, 7, 10**4, draws.randint(1, 90)])) for _ in chances]
    mean = sum(r * c for r, c in zip(ratios, chances, strict=True))
    return [(r / mean, c) for r, c in zip(ratios, chances, strict=True)] if mean else None


def test_moments_in_cells_bracket_by_enumeration():
    draws, judged = random.Random(1), 0
    while judged < 60:
        law = random_law(draws)
        if law is None:
            continue
        judged += 1
        steps = draws.randint(2, 5)
        picks = draws.randint(1, steps)
        function = [draws.randint(-2, 2) for _ in law]
        cells, call = exact_cells(law, steps, picks, function)
        for strike in (Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(40)):
            upper = Fraction(0)
            for q, p, s in cells.values():
                r = draws.choice([Fraction(1, 100), Fraction(1, 2), abs(strike - p / q) or 1, 9])
                parabola = (s - 2 * (strike - r) * p + (strike - r) ** 2 * q) / (4 * r)
                upper += draws.choice([parabola, p, s / (4 * strike)])
            lower = sum(max(p - strike * q, 0) for q, p, _ in cells.values())
            assert lower <= call(strike) <= upper
        # The moments themselves are convolutions (k of T, and the picks that two of them share).
        ways = [
            Fraction(
                math.comb(picks, j) * math.comb(steps - picks, picks - j), math.comb(steps, picks)
            )
            for j in range(picks + 1)
        ]
        second = sum(r * r * c for r, c in law)
        total = sum(w * second**j for j, w in enumerate(ways))
        assert sum(s for _, _, s in cells.values()) == total
        assert sum(p for _, p, _ in cells.values()) == 1


# The convolutions ------------------------------------------------------------------------------


def times(a, b):
    found = [Fraction(0)] * 32
    for (i, x), (j, y) in product(enumerate(a), enumerate(b)):
        found[(i + j) % 32] += x * y
    return found


def power(a, count):
    found = [Fraction(1)] + [Fraction(0)] * 31
    for _ in range(count):
        found = times(found, a)
    return found


@pytest.mark.parametrize(("steps", "picks"), [(5, 2), (7, 3), (6, 1)])
def test_convolutions_are_those_of_fractions(steps, picks):
    rng = np.random.default_rng(steps)
    laws = [rng.integers(0, 2**20, 40) / 2.0**24 for _ in range(3)]
    laws[1][:3] = 0.0
    folded = []
    for law in laws:
        around = [Fraction(0)] * 32
        for i, x in enumerate(law.tolist()):
            around[i % 32] += Fraction(x)
        folded.append(around)
    counts = several_plan.shared(steps, picks)
    exact = [
        power(folded[0], steps),
        times(power(folded[0], steps - picks), power(folded[1], picks)),
        [Fraction(0)] * 32,
    ]
    for j, share in enumerate(counts.tolist()):
        term = times(power(folded[2], j), power(folded[1], 2 * (picks - j)))
        term = times(term, power(folded[0], steps - 2 * picks + j))
        exact[2] = [x + Fraction(share) * y for x, y in zip(exact[2], term, strict=True)]
    for order in range(3):
        found, error = several_steps._convolved(laws[: order + 1], counts, steps, picks, 32)
        squares = sum(
            (Fraction(x) - y) ** 2 for x, y in zip(found.tolist(), exact[order], strict=True)
        )
        assert squares <= Fraction(error) ** 2
        assert error <= 1e-10 * float(max(exact[order]))


@pytest.mark.parametrize(("steps", "picks"), [(5, 2), (40, 13), (2000, 900)])
def test_no_chance_of_shared_picks_is_lost_below_the_doubles(steps, picks):
    """Each weighs a second moment of its own, which may be as large as the doubles go."""
    found, all_ = several_plan.shared(steps, picks), math.comb(steps, picks)
    for j, share in enumerate(found.tolist()):
        exact = Fraction(math.comb(picks, j) * math.comb(steps - picks, picks - j), all_)
        assert Fraction(share) >= exact * (1 - Fraction(2) ** -53)
    assert found.sum() == pytest.approx(1.0)


# Faults that must be noticed -------------------------------------------------------------------


def test_one_participation_less_would_be_noticed():
    truth, doubt = two_of_several(1.5, 5, 0.3)
    law = Law(1.0 / 1.5, 5, 2, 0.5, 1e-3, Kind(2**16, 1.0))
    q, p, s = law._parts
    law._parts = [q, p, p]  # the second moment is taken for the first
    assert law.removal(0.3, upper=True)[0] < truth - doubt
    law._parts = [p, s, s]
    assert law.removal(0.3, upper=False)[0] > truth + doubt


def test_a_lattice_too_short_is_counted(monkeypatch):
    monkeypatch.setattr(several_plan, "OUTSIDE", 3.0)
    law = Law(1.0 / 1.5, 5, 2, 0.5, 1e-3, Kind(2**14, 1.0))
    truth, doubt = two_of_several(1.5, 5, 0.3)
    assert law.removal(0.3, upper=False)[0] <= truth + doubt
    assert law.removal(0.3, upper=True)[0] >= truth - doubt


def test_a_bound_that_is_not_improved_is_kept():
    found = removal_bounds(1.0, 1000, 10, 1e-6, 1.95)
    assert found.lower <= 1.951
    assert found.upper <= 1.95
