"""Budgets that are refused when they are made."""

import math
import pickle

import mpmath
import pytest

from accountant.errors import ArgumentTypeError, DomainError
from accountant.ledger import Budget
from accountant.mechanisms import Gaussian


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"delta": 0.0, "filter": "moments"},
        {"filter": "pure"},
        {"level": 1.0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"filter": "best"},
        {"orders": 1.0},
        {"orders": []},
        {"orders": [2.0, 2.0]},
        {"orders": [math.inf]},
        {"orders": [1.0001]},
        {"orders": [3.0], "filter": "gaussian"},
        {"share": -0.1},
        {"share": 0.5, "filter": "gaussian"},
        {"share": 1.0, "filter": "approximate"},
        {"epsilon": 1e-5, "delta": 1e-200},
    ],
)
def test_budgets_outside_their_domain(arguments):
    with pytest.raises(DomainError):
        Budget(**({"epsilon": 1.0, "delta": 1e-5} | arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": "1"},
        {"epsilon": True},
        {"epsilon": [1.0, 2.0]},
        {"delta": None},
        {"orders": "8"},
    ],
)
def test_budgets_of_the_wrong_type(arguments):
    with pytest.raises(ArgumentTypeError):
        Budget(**({"epsilon": 1.0, "delta": 1e-5} | arguments))


def test_orders_share_delta():
    """Theorem L4: without the split the choice of the order is unpaid."""
    budget = Budget(1.5, 1e-5, filter="renyi", orders=(6.0, 12.0, 40.0))
    orders, capacities = budget.renyi_capacities()
    with mpmath.workdps(40):
        for order, capacity in zip(orders, capacities, strict=True):
            a, part = mpmath.mpf(order), mpmath.mpf(1e-5) / 3
            allowed = mpmath.mpf(1.5) - mpmath.log(1 - 1 / a) + mpmath.log(part * a) / (a - 1)
            assert capacity <= allowed
            assert capacity >= allowed - mpmath.mpf("1e-12") * (1 + abs(allowed))


@pytest.mark.parametrize(
    "budget",
    [
        Budget(1.0),
        Budget(2.0, 1e-5, orders=[8.0, 16.0], share=0.25),
        Budget(1.0, 1e-6, "kinds", kinds=[Gaussian(40.0)]),
    ],
    ids=repr,
)
def test_budgets_are_pickled_whole(budget):
    again = pickle.loads(pickle.dumps(budget))
    assert again == budget
    assert again.packets == budget.packets
