"""Every exception is reachable by its builtin and by the root."""

import pytest

import accountant as ac


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ac.DomainError, ValueError),
        (ac.ArgumentTypeError, TypeError),
        (ac.UnsupportedError, TypeError),
        (ac.PrecisionError, ArithmeticError),
        (ac.BudgetExceeded, Exception),
    ],
)
def test_each_error_is_caught_both_ways(error, builtin):
    for base in (builtin, ac.AccountantError):
        with pytest.raises(base):
            raise error("reason")
