"""The rate of batches of a fixed size, rounded to either side, and what one record reaches."""

from fractions import Fraction

import pytest

import accountant as ac
from accountant.sampling import FixedSizeSampled, FixedSizeSampler


@pytest.mark.parametrize(("batch", "records"), [(1, 3), (7, 10), (5, 49), (1, 10**15 + 1), (2, 6)])
def test_the_rate_is_at_least_the_share_of_a_batch(batch, records):
    step = FixedSizeSampled(1.0, batch_size=batch, dataset_size=records)
    rate, exact = Fraction(step.pairs()[0].sampling_probability), Fraction(batch, records)
    assert exact <= rate <= exact * (1 + Fraction(1, 2**51))
    below = Fraction(step.from_below().pairs()[0].sampling_probability)
    assert exact * (1 - Fraction(1, 2**51)) <= below <= exact


@pytest.mark.parametrize("steps", [1, 4, 10_000])
def test_lower_ends_are_reached_by_a_record_that_stands_out(steps):
    sampler = FixedSizeSampler(dataset_size=1000, batch_size=3, steps=steps)
    found = sampler.epsilon_bounds(1.0, 1e-6)
    assert found == sampler.mechanism(1.0).epsilon_bounds(1e-6)
    alone = (steps * ac.PoissonSampled(ac.Gaussian(0.5), 0.003)).profile()
    remove = max(float(one.epsilon_bounds(1e-6).upper) for one in alone.solvers()[:1])
    assert found.lower >= remove * (1 - 1e-9)
    assert found.upper >= found.lower
