"""What a plan fixes in public before a run begins."""

import math
from dataclasses import replace

import pytest

from accountant.learn.plan import Plan
from accountant.learn.release import MOST_RECORDS, batch_cap

SETTINGS = Plan("poisson", 0.5, 20.0, 10, "gaussian", 1.0, 1e-5, 3.0)


@pytest.mark.parametrize("q", [1e-6, 1e-3, 0.1, 0.5])
def test_a_secret_size_has_the_cap_of_the_most_records(q):
    """Chernoff: as many as the cap are drawn from the most records with probability e^-700."""
    cap = replace(SETTINGS, sampling_probability=q).batch_cap
    mean = q * MOST_RECORDS
    assert cap > mean
    assert cap * math.log(cap / mean) - cap + mean >= 700.0
    assert cap <= 1.1 * mean + 6000.0


def test_all_records_may_be_drawn():
    assert replace(SETTINGS, sampling_probability=1.0).batch_cap == MOST_RECORDS


def test_a_public_size_has_the_cap_of_its_batches():
    assert replace(SETTINGS, records=40).batch_cap == batch_cap(20.0) < 400
