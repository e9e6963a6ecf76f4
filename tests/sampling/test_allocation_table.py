"""The spacings of tables of options: few enough that one grid has the losses of several."""

from itertools import combinations

import pytest

import accountant as ac
from accountant.analyses.pld import Composed
from accountant.analyses.pld.loss_grid import common_spacing
from accountant.composition.problems import problems_of
from accountant.sampling.allocation_table import shared_spacing

WIDTHS = [1e-13, 7.1e-5, 3.0e-4, 0.9e-3, 1e-3, 1.2e-3, 1.25, 1.7, 1.999, 2.0]


@pytest.mark.parametrize("most", WIDTHS)
def test_a_spacing_is_nearly_as_wide_as_it_may_be(most):
    assert 0.8 * most < shared_spacing(most) <= most
    assert shared_spacing(2.0 * most) == 2.0 * shared_spacing(most)


def test_any_two_spacings_have_a_third_that_is_hardly_finer():
    for some in combinations([shared_spacing(width) for width in WIDTHS[1:6]], 3):
        common = common_spacing(some)
        assert common is not None
        assert common >= min(some) / 7.0


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
