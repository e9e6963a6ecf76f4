"""The finest grid that fits, in the place of the one that was planned."""

import pytest

from accountant.analyses.pld.composed import MEMORY_CAP, Composed
from accountant.analyses.pld.composed_law import TooLarge
from accountant.analyses.pld.grid_parts import GridPlan
from accountant.analyses.pld.saddle_point import saddle_at_delta
from accountant.analyses.pld.within_memory import FINER, WIDER, law_within
from accountant.mechanisms import Laplace
from accountant.sampling import PoissonSampled


@pytest.fixture(name="parts")
def laplace():
    return Composed([(PoissonSampled(Laplace(1.0), 0.01).pairs()[0], 30)])._parts


def plan_of(parts, spacing):
    return GridPlan(saddle_at_delta([part.law for part in parts], 1e-5), spacing, -40.0, -40.0)


def test_a_plan_that_fits_is_kept(parts):
    plan = plan_of(parts, 1e-4)
    assert law_within(parts, plan, MEMORY_CAP, 0.0)[1] == plan.spacing


def test_one_that_does_not_is_made_coarser_down_to_the_last(parts):
    cap, plan = 2**21, plan_of(parts, 1e-7)
    law, spacing = law_within(parts, plan, cap, 1e-3)
    assert spacing / plan.spacing in {WIDER**k for k in range(1, 20)}
    assert law.delta_lower(0.1) <= law.delta_upper(0.1)
    with pytest.raises(TooLarge):
        law_within(parts, plan._replace(spacing=spacing / WIDER), cap, 0.0)
    with pytest.raises(TooLarge):
        law_within(parts, plan, cap, 0.9 * spacing / FINER)
