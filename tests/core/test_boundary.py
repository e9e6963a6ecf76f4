"""The native core's status codes become exceptions in one place."""

import numpy as np
import pytest

from accountant import DomainError, PrecisionError
from accountant._core import answers as core


def rows(*values):
    return [np.array(value, dtype=np.float64) for value in values]


@pytest.mark.parametrize(
    "arguments",
    [
        (core.epsilon_bounds, 2.0, 1.0, 10.0, 0.5, core.EITHER),
        (core.epsilon_bounds, 0.5, -1.0, 10.0, 0.5, core.EITHER),
        (core.epsilon_bounds, 0.5, float("nan"), 10.0, 0.5, core.EITHER),
        (core.epsilon_bounds, 0.5, 1.0, 10.5, 0.5, core.EITHER),
        (core.epsilon_bounds, 0.5, 1.0, -1.0, 0.5, core.EITHER),
        (core.epsilon_bounds, 0.5, 1.0, 10.0, 1.0, core.EITHER),
        (core.epsilon_bounds, 0.5, 1.0, 10.0, 0.5, 3),
        (core.delta_bounds, 0.5, 1.0, 10.0, -1.0, core.EITHER),
        (core.delta_bounds, 0.5, 1.0, 10.0, float("nan"), core.EITHER),
        (core.renyi_bounds, 0.5, 1.0, 1.0, core.EITHER),
        (core.renyi_bounds, 0.5, 0.0, 2.0, core.EITHER),
        (core.epsilon_renyi_upper, 0.5, 1.0, 10.0, 0.0),
    ],
)
def test_the_core_checks_its_domain_too(arguments):
    function, *values = arguments
    with pytest.raises(DomainError, match="native core"):
        function(*values)


def test_every_code_has_its_exception():
    core.check_statuses(np.zeros(3, dtype=np.intc))
    core.check_statuses(np.zeros(0, dtype=np.intc))
    expected = {-1: DomainError, -2: MemoryError, -3: PrecisionError, -99: SystemError}
    for code, error in expected.items():
        statuses = np.array([0, 0, code, 0, code], dtype=np.intc)
        with pytest.raises(error, match="2 of 5 elements, the first at flat index 2"):
            core.check_statuses(statuses)


def test_an_array_call_counts_its_failures():
    q, sigma, steps, epsilon = rows([0.5, 2.0, 0.5, 3.0], [1.0] * 4, [10.0] * 4, [0.5] * 4)
    lower, upper, statuses = np.empty(4), np.empty(4), np.empty(4, dtype=np.intc)
    core.fill_delta_bounds(q, sigma, steps, epsilon, core.EITHER, lower, upper, statuses)
    assert statuses.tolist() == [0, -1, 0, -1]
    assert lower[0] == lower[2] <= upper[0] == upper[2]
    with pytest.raises(DomainError, match="2 of 4 elements, the first at flat index 1"):
        core.check_statuses(statuses)


def test_lengths_must_agree():
    four, three = rows([0.5] * 4, [0.5] * 3)
    out, statuses = np.empty(4), np.empty(4, dtype=np.intc)
    with pytest.raises(ValueError, match="differ in length"):
        core.fill_delta_bounds(four, three, four, four, core.EITHER, out, out, statuses)


def test_each_direction_is_at_most_either():
    for function, last in ((core.epsilon_bounds, 1e-5), (core.delta_bounds, 1.0)):
        remove, add, either = (
            function(0.01, 1.0, 1000.0, last, d) for d in (core.REMOVE, core.ADD, core.EITHER)
        )
        assert max(remove[0], add[0]) <= either[1]
        assert either[0] <= max(remove[1], add[1])
