"""Numbers of a statement are the upper ends of their brackets, also where those are wide."""

import pytest

import accountant as ac
from accountant.report import Deployment, numbers, statement

WIDE = [100 * ac.ZCDP(0.001), 3 * ac.BestOfRuns(ac.Laplace(3.0), 0.5)]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("run", WIDE, ids=["Rényi", "a search"])
def test_upper_ends_are_told(run):
    ledger = ac.Accountant()
    ledger.compose(run)
    told = statement(ledger, 1e-5, deployment=Deployment(user_records=3), certificate=False)
    assert told.headline.epsilon >= ledger.epsilon(1e-5) * (1 - 1e-12)
    person = ac.Composition(ledger.counts).group(3).epsilon_bounds(1e-5)
    assert told.user.epsilon == float(person.upper) > float(person.lower)
    for row in told.table:
        assert row.epsilon >= ledger.epsilon(row.delta) * (1 - 1e-9)


def test_a_bracket_bounds_the_profile_from_above_and_from_below():
    """ε(δ) below the upper end is no bound on δ, and above it δ is one."""
    found = numbers._points_of(numbers.Row(1e-5, 2.0, 1.5))
    assert [(point.epsilon, point.lower, point.upper) for point in found] == [
        (2.0, 0.0, 1e-5),
        (1.5, 1e-5, 1.0),
    ]
    assert numbers._points_of(numbers.Row(1e-5, float("inf"), 0.0)) == []
