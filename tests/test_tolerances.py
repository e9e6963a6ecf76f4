"""Grids are asked for few digits where few are shown."""

import accountant as ac
from accountant._basics.tolerances import TOLERANCES, relative_width, wanted_tolerances


def test_a_rough_answer_is_wider_and_certified():
    release = 700 * ac.PoissonSampled(ac.Laplace(1.0), 0.01)
    with relative_width(1e-4):
        assert wanted_tolerances() == (1e-4, 1e-2)
        rough = release.epsilon_bounds(1e-5)
    assert wanted_tolerances() == TOLERANCES
    fine = release.epsilon_bounds(1e-5)
    assert rough.lower <= fine.upper
    assert fine.lower <= rough.upper
    assert fine.width < rough.width <= 1e-4 * rough.upper
