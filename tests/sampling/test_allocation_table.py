"""Laws of one epoch on a lattice: both sides of many digits, and their compositions."""

import math
from fractions import Fraction

import numpy as np
import pytest

import accountant as ac
from accountant import sampling
from accountant.analyses.pld import Composed
from accountant.composition.problems import problems_of
from accountant.pairs.atoms import AtomicPair
from accountant.sampling import allocation_law
from accountant.sampling.allocation_pair import AllocationPair
from accountant.sampling.allocation_profile import AllocationProfile
from accountant.sampling.allocation_table import Table, chord_law, make_table, tangent_law
from sampling.test_allocation_profile import CASES

SOME = [case for case in CASES if case[1] in (30, 100) or case[2] == 0.3]


@pytest.mark.parametrize("case", SOME)
def test_many_digits_lie_between(case):
    noise, steps, epsilon, add, digits = case
    above = AtomicPair.profile(AllocationPair(noise, steps, add, upper=True), epsilon)
    below = AtomicPair.profile(AllocationPair(noise, steps, add, upper=False), epsilon)
    truth = Fraction(digits)
    assert below.lower <= truth <= above.upper
    if truth > 1e-10:
        assert above.upper <= below.lower * (1.0 + 1e-3)


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 1000), (3.0, 50)])
def test_laws_enclose_between_knots(noise, steps):
    table = make_table(noise, steps, 1200)
    above, below = chord_law(table), tangent_law(table)
    one = AllocationProfile(noise, steps)
    unit = 200.0 * table.spacing
    rng = np.random.default_rng(3)
    for epsilon in (unit * rng.uniform(-6.0, 6.0, 12)).tolist():
        strike = math.exp(epsilon)
        truth = one.delta_bounds(epsilon, False)
        high = float(above.masses @ np.maximum(above.values - strike, 0.0)) + above.escaped
        low = float(below.masses @ np.maximum(below.values - strike, 0.0))
        assert high * (1.0 + above.mass_error) >= truth.lower
        assert low * (1.0 - below.mass_error) <= truth.upper
        truth = one.delta_bounds(-epsilon, True)
        high = float(above.masses @ np.maximum(strike - above.values, 0.0))
        low = float(below.masses @ np.maximum(strike - below.values, 0.0))
        assert high * (1.0 + above.mass_error) >= truth.lower * strike * (1.0 - 1e-13)
        assert low * (1.0 - below.mass_error) <= truth.upper * strike * (1.0 + 1e-13)


@pytest.mark.parametrize(
    ("steps", "epochs", "width"), [(1000, 10, 1e-5), (1000, 100, 1e-5), (100, 10, 1e-5)]
)
def test_epochs_are_narrow(steps, epochs, width):
    sampler = sampling.RandomAllocation(dataset_size=10_000, steps_per_epoch=steps, epochs=epochs)
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert found.lower <= found.upper <= found.lower * (1.0 + width)


def test_one_epoch_on_the_lattice_meets_the_transform():
    one = AllocationProfile(1.0, 1000)
    for add in (False, True):
        for epsilon in (0.02, 0.1, 0.2):
            truth = one.delta_bounds(epsilon, add)
            above, below = (
                AtomicPair.profile(AllocationPair(1.0, 1000, add, upper=upper), epsilon)
                for upper in (True, False)
            )
            assert below.lower <= truth.upper
            assert above.upper >= truth.lower
            assert above.upper <= below.lower * (1.0 + 3e-4)


def test_chords_in_place_of_tangents_would_be_noticed(monkeypatch):
    monkeypatch.setattr(allocation_law, "tangent_law", chord_law)
    allocation_law.mean_law.cache_clear()
    noise, steps, epsilon, add, digits = CASES[6]
    pair = AllocationPair(noise, steps, add, upper=False, points=601)
    assert AtomicPair.profile(pair, epsilon).lower > Fraction(digits)


@pytest.mark.long
def test_no_table_where_lines_fail():
    assert make_table(0.3, 5, 1200) is None
    found = sampling.RandomAllocation(dataset_size=9, steps_per_epoch=5, epochs=2).epsilon_bounds(
        0.3, 1e-5
    )
    assert 0.0 < found.lower <= found.upper


def test_lines_that_are_negative_at_an_end_of_their_cell():
    """The put of two values is zero up to the first, within a cell, and straight from there."""
    spacing, first, chance = 0.1, math.exp(-0.87), 0.6
    second = (1.0 - chance * first) / (1.0 - chance)
    places = np.arange(-20, 25)

    def options(strike):
        put = chance * np.maximum(strike - first, 0.0)
        put += (1.0 - chance) * np.maximum(strike - second, 0.0)
        call = chance * np.maximum(first - strike, 0.0)
        call += (1.0 - chance) * np.maximum(second - strike, 0.0)
        return np.where(strike < 1.0, put, call)

    exact = options(np.exp(0.5 * spacing * places))
    table = Table(spacing, places, exact * (1.0 - 1e-12), exact * (1.0 + 1e-12) + 1e-300)
    below = tangent_law(table)
    strikes = np.exp(np.linspace(-1.0, 1.2, 2201))
    apart = strikes[:, None] - below.values
    found = np.maximum(np.where(strikes[:, None] < 1.0, apart, -apart), 0.0) @ below.masses
    assert (found * (1.0 - below.mass_error) <= options(strikes) + 1e-11).all()
    assert found.max() > 0.1


RUNS = (
    15 * ac.sampling.AllocatedMechanism(ac.Laplace(1.3), steps=26),
    5 * ac.sampling.AllocatedMechanism(ac.Laplace(2.2), steps=19),
)


@pytest.mark.long
def test_one_grid_has_the_losses_of_two_allocations():
    below = (RUNS[0] + RUNS[1]).from_below()
    for parts in problems_of(below):
        whole = Composed(parts)
        assert whole._spacings.pure
        assert whole._spacings.finest is not None
        found = whole.epsilon_bounds(1e-7)
        # Nothing is left of the spacing but round-off.
        assert found.upper - found.lower < 1e-8 * found.upper
        assert whole._done[0].size <= 2**17
