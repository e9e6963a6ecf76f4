"""When the remove direction alone decides ε of both."""

import ctypes

import pytest

from accountant._core import answers as core
from support.native import build, core_files

QUESTIONS = [
    (0.01, 1.0, 1000, 1e-6),
    (0.5, 4.0, 20, 1e-3),
    (0.9, 3.0, 7, 0.05),
    (1e-3, 0.6, 1000, 1e-9),
    (0.3, 0.2, 40, 1e-9),
]


@pytest.fixture(scope="module")
def remove_decides(tmp_path_factory):
    library = build(tmp_path_factory.mktemp("decides"), core_files())
    library.acct_psg_remove_decides.argtypes = [ctypes.c_double] * 4 + [ctypes.c_void_p]

    def ask(q, sigma, steps, delta, lower, upper):
        bracket = (ctypes.c_double * 2)(lower, upper)
        return library.acct_psg_remove_decides(q, sigma, steps, delta, bracket)

    return ask


@pytest.mark.parametrize(("q", "sigma", "steps", "delta"), QUESTIONS)
def test_where_the_remove_direction_decides_the_bracket_is_that_of_both(
    remove_decides, q, sigma, steps, delta
):
    asked = q, sigma, float(steps), delta
    remove = core.epsilon_bounds(*asked, core.REMOVE)
    assert remove_decides(*asked, *remove)
    assert core.epsilon_bounds(*asked, core.EITHER) == remove


@pytest.mark.parametrize(("q", "sigma", "steps", "delta"), QUESTIONS)
def test_a_remove_direction_below_the_add_direction_decides_nothing(
    remove_decides, q, sigma, steps, delta
):
    """No run is known whose add direction costs more; a bracket is made up for one."""
    asked = q, sigma, float(steps), delta
    add = core.epsilon_bounds(*asked, core.ADD)
    assert not remove_decides(*asked, 0.999 * add[0], 0.999 * add[1])
    assert remove_decides(*asked, 1.001 * add[1], 1.001 * add[1] * (1.0 + 1e-9))


def test_what_a_closed_form_may_be_below_is_asked_in_full(remove_decides):
    near_one = 0.9995, 3.0, 7.0, 0.05
    assert not remove_decides(*near_one, *core.epsilon_bounds(*near_one, core.REMOVE))
    asked = 0.01, 1.0, 1000.0, 1e-6
    lower, upper = core.epsilon_bounds(*asked, core.REMOVE)
    assert not remove_decides(*asked, lower, upper * (1.0 + 1e-5))


def test_an_epsilon_of_zero_and_closed_forms_are_asked_in_full(remove_decides):
    assert not remove_decides(0.01, 1.0, 1000.0, 1e-6, 0.0, 1e-9)
    assert not remove_decides(0.01, 1.0, 1.0, 1e-6, 1.0, 1.0)
    assert not remove_decides(1.0, 1.0, 10.0, 1e-6, 30.0, 30.0)
    assert not remove_decides(0.01, float("inf"), 10.0, 1e-6, 30.0, 30.0)
    assert not remove_decides(1e-301, 1.0, 10.0, 1e-6, 30.0, 30.0)
