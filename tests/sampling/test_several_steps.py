"""Several of T steps: exact fractions, quadrature over all steps, and the values of the issue."""

import math
import random
import time
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from flint import acb, arb, ctx

import accountant as ac
from accountant.sampling import RandomAllocation, several_steps, several_sums
from accountant.sampling.several_steps import Law, removal_bounds
from accountant.sampling.several_sums import Sum
from support.oracle.samplers import two_of_several

# ε of removal at δ = 1e-6 and σ = 1 for k of 1000 steps: what moments in cells were worked out to
# give, the ends that blocks of one step had, and a simulation with its standard error.
VALUES = [
    (2, 0.36135, 0.36150, 0.361984, (0.358, 0.005)),
    (10, 1.9463, 1.9510, 1.964272, (1.9466, 0.0007)),
    (50, 11.1886, 11.2001, 11.479582, (11.1886, 0.0010)),
]


@pytest.mark.parametrize(("picks", "low", "high", "blocks", "simulated"), VALUES)
def test_several_of_a_thousand_steps_are_narrow(picks, low, high, blocks, simulated):
    sampler = RandomAllocation(dataset_size=100, steps_per_epoch=1000, participations=picks)
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert low <= found.lower <= found.upper <= high
    assert found.lower <= simulated[0] + 4.0 * simulated[1]
    assert found.upper >= simulated[0] - 4.0 * simulated[1]
    assert sampler.epsilon(1.0, 1e-6) == found.upper
    # The blocks dominate: nothing that they cost is known to be lost.
    mechanism = sampler.mechanism(1.0).epsilon_bounds(1e-6)
    assert mechanism.lower <= found.lower
    assert mechanism.upper >= blocks


def test_a_search_takes_a_fraction_of_a_second():
    """It took 1.2 s when every step was rounded to a lattice of a million places."""
    times = []
    for delta in (1.1e-6, 1.2e-6, 1.3e-6):
        start = time.process_time()
        removal_bounds(1.0, 1000, 10, delta, 1.96)
        times.append(time.process_time() - start)
    assert min(times) < 0.5


@pytest.mark.parametrize("noise", [1.5, 2.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.9])
def test_the_profile_is_enclosed(noise, epsilon):
    truth, doubt = two_of_several(noise, 5, epsilon)
    assert doubt < 1e-4 * truth
    for weight, points in ((0.2, 2**16), (0.4, 2**14)):
        law = Law(1.0 / noise, 5, 2, weight, 1e-3, points)
        assert law.removal(epsilon, upper=False)[0] <= truth + doubt
        assert law.removal(epsilon, upper=True)[0] >= truth - doubt
        assert law.removal(epsilon, upper=True)[0] <= 1.3 * truth
        assert law.removal(epsilon, upper=False)[0] >= 0.8 * truth


@pytest.mark.parametrize("noise", [1.0, 1.5])
def test_few_steps_are_bracketed(noise):
    found = removal_bounds(noise, 5, 2, 1e-2, (2 * ac.Gaussian(noise)).epsilon(1e-2))
    truths = [two_of_several(noise, 5, float(end)) for end in (found.lower, found.upper)]
    assert truths[0][0] + truths[0][1] >= 1e-2 >= truths[1][0] - truths[1][1]
    assert found.upper <= 1.05 * found.lower


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


# The transforms --------------------------------------------------------------------------------


def times(a, b):
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def power(a, count):
    found = (Fraction(1), Fraction(0))
    for _ in range(count):
        found = times(found, a)
    return found


@pytest.mark.parametrize(("steps", "picks"), [(5, 2), (7, 3), (6, 1), (90, 9)])
def test_mixtures_are_those_of_fractions(steps, picks):
    """Doubles of one step are taken as exact, and each error of theirs as its bound."""
    rng = np.random.default_rng(steps)
    values = [(1.0 - 0.1 * rng.random(4)) * np.exp(1j * rng.random(4)) for _ in range(3)]
    errors = [np.full(4, 1e-13) for _ in values]
    exact = [
        [(Fraction(z.real) + Fraction(1, 10**14), Fraction(z.imag)) for z in value.tolist()]
        for value in values
    ]
    all_ = math.comb(steps, picks)
    for order in range(3):
        found, bound = several_sums.mixed(values[: order + 1], errors[: order + 1], steps, picks)
        for k in range(4):
            zero, one, two = (each[k] for each in exact)
            if order < 2:
                want = times(power(zero, steps - order * picks), power(one, order * picks))
            else:
                want = (Fraction(0), Fraction(0))
                for j in range(picks + 1):
                    ways = math.comb(picks, j) * math.comb(steps - picks, picks - j)
                    term = times(power(two, j), power(one, 2 * (picks - j)))
                    term = times(term, power(zero, steps - 2 * picks + j))
                    want = tuple(
                        w + Fraction(ways, all_) * t for w, t in zip(want, term, strict=True)
                    )
            off = Fraction(found[k].real) - want[0], Fraction(found[k].imag) - want[1]
            assert off[0] ** 2 + off[1] ** 2 <= Fraction(float(bound[k])) ** 2
            assert bound[k] <= 1e-9


def exact_step(mu, weight, order, z):
    """E[Y^n (1 - w + wY)^z] by integration in ball arithmetic."""
    mu, weight = acb(mu), acb(weight)

    def integrand(x, _):
        y = (mu * x - mu * mu / 2).exp()
        return (z * (1 - weight + weight * y).log() - x * x / 2).exp() * y**order

    with ctx.extraprec(60):
        whole = acb.integral(integrand, acb(-22), acb(26), abs_tol=arb(2) ** -90, eval_limit=10**6)
    return whole / (2 * acb.pi()).sqrt()


@pytest.mark.parametrize(("mu", "weight", "spacing"), [(1.0, 0.01, 2.0**-5), (0.5, 0.3, 2.0**-4)])
def test_one_step_is_transformed_within_its_error(mu, weight, spacing):
    fine, frequencies = Sum(mu, weight, spacing, 13.0 + 2.0 * mu), np.array([0.0, 16.0, 32.0])
    turns = several_sums.turns_of(frequencies, fine).reshape(3, -1)
    for order, tilt in product(range(3), range(3)):
        masses = fine.tilted()[order, tilt]
        found = turns @ masses
        error = float(masses @ (fine.relative + 2.0 * fine.moved)) + frequencies * float(
            masses @ fine.moved
        )
        error += float(masses.sum()) * (fine.strip(32.0, 0.0) + 1e-36)
        for k, t in enumerate(frequencies.tolist()):
            z = acb(several_sums.TILTS[tilt], t)
            exact = exact_step(mu, weight, order, z)
            # A dot product's own round-off, which blocks keep small, is on top.
            off = abs(acb(found[k].real, found[k].imag) - exact)
            assert off <= error[k] + masses.size * 2.0**-53 * float(masses.sum())
            assert error[k] <= 1e-12 * float(masses.sum())


@pytest.mark.parametrize(("mu", "weight"), [(1.0, 0.01), (2.0, 0.3)])
def test_bounds_of_one_step_hold(mu, weight):
    coarse = Sum(mu, weight, 0.05 / mu, 37.0)
    tops = np.array([1.0, 20.0, 400.0])
    falls = coarse.falls(tops).min(axis=1)
    rates = np.array([0.1, 1.0, 5.0])
    ups, downs = coarse.logs(rates), coarse.logs(-rates)
    for order, tilt in product(range(3), range(3)):
        at = float(several_sums.TILTS[tilt])
        for k in range(3):
            for more in (1.0, 1.5, 4.0):
                exact = abs(exact_step(mu, weight, order, acb(at, more * tops[k])))
                assert math.exp(falls[k, order, tilt]) >= exact
            for found, rate in ((ups, rates[k]), (downs, -rates[k])):
                exact = exact_step(mu, weight, order, acb(at + rate)).real
                assert exact <= math.exp(found[k, order, tilt]) <= 1.001 * exact


@pytest.mark.parametrize(("steps", "picks"), [(5, 2), (40, 13), (2000, 900)])
def test_no_chance_of_shared_picks_is_lost_below_the_doubles(steps, picks):
    """Each weighs a second moment of its own, which may be as large as the doubles go."""
    found, all_ = several_sums.shared(steps, picks), math.comb(steps, picks)
    for j, share in enumerate(found.tolist()):
        exact = Fraction(math.comb(picks, j) * math.comb(steps - picks, picks - j), all_)
        assert Fraction(share) >= exact * (1 - Fraction(2) ** -53)
    assert found.sum() == pytest.approx(1.0)


# Faults that must be noticed -------------------------------------------------------------------


def test_one_participation_less_would_be_noticed():
    truth, doubt = two_of_several(1.5, 5, 0.3)
    law = Law(1.0 / 1.5, 5, 2, 0.2, 1e-3, 2**16)
    q, p, s = law._parts
    law._parts = [q, p, p]  # the second moment is taken for the first
    assert law.removal(0.3, upper=True)[0] < truth - doubt
    law._parts = [p, s, s]
    assert law.removal(0.3, upper=False)[0] > truth + doubt


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OUTSIDE", 3.0),  # a lattice too short
        ("NEGLIGIBLE", -2.0),  # a transform cut off
        ("COUNTS", np.array([40, 48])),  # noise that stands for what is cut off
    ],
)
def test_what_is_left_out_is_counted(monkeypatch, name, value):
    monkeypatch.setattr(several_steps, name, value)
    law = Law(1.0 / 1.5, 5, 2, 0.2, 1e-3, 2**14)
    truth, doubt = two_of_several(1.5, 5, 0.3)
    assert law.removal(0.3, upper=False)[0] <= truth + doubt
    assert law.removal(0.3, upper=True)[0] >= truth - doubt


def test_a_bound_that_is_not_improved_is_kept():
    found = removal_bounds(1.0, 1000, 10, 1e-6, 1.95)
    assert found.lower <= 1.951
    assert found.upper <= 1.95
