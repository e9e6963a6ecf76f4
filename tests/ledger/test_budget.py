"""Budgets that are refused when they are made."""

import math
import pickle
from fractions import Fraction

import mpmath
import pytest

from accountant.analyses import renyi_conversion
from accountant.errors import ArgumentTypeError, DomainError
from accountant.ledger import Accountant, Budget, meters
from accountant.ledger.meters import CANDIDATES
from accountant.mechanisms import Gaussian
from support.toy_mechanisms import Noise

OUTSIDE = [
    *({"epsilon": epsilon} for epsilon in (0.0, -1.0, math.inf, math.nan)),
    *({"delta": delta} for delta in (1.0, math.nan)),
    *({"filter": name} for name in ("pure", "best")),
    *({"orders": orders} for orders in (1.0, [], [2.0, 2.0], [math.inf], [1.0001])),
    *({"level": 1.0}, {"share": -0.1}, {"delta": 0.0, "filter": "moments"}),
    *({"orders": [3.0], "filter": "gaussian"}, {"share": 0.5, "filter": "gaussian"}),
    *({"share": 1.0, "filter": "approximate"}, {"epsilon": 1e-5, "delta": 1e-200}),
]
WRONG = [*({"epsilon": e} for e in ("1", True, [1.0, 2.0])), {"delta": None}, {"orders": "8"}]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [*((each, DomainError) for each in OUTSIDE), *((each, ArgumentTypeError) for each in WRONG)],
    ids=repr,
)
def test_budgets_outside_their_domain_or_of_the_wrong_type(arguments, error):
    with pytest.raises(error):
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


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_the_orders_parts_of_delta_add_up_to_no_more_than_there_is(count, monkeypatch):
    parts = []

    def noting(order, epsilon, delta):
        parts.append(delta)
        return renyi_capacity(order, epsilon, delta)

    renyi_capacity = renyi_conversion.capacity_lower
    for k in range(1, 200):
        whole = Budget(2.0, k / 3e6, orders=[20.0 + j for j in range(count)])
        with monkeypatch.context() as patch:
            patch.setattr(meters, "capacity_lower", noting)
            parts.clear()
            whole.renyi_capacities()
        assert len(parts) == count
        assert sum(map(Fraction, parts)) <= Fraction(whole.losses_delta) <= Fraction(whole.delta)
        # Nothing is given away: one order has it all, several miss an ulp each.
        assert sum(map(Fraction, parts)) >= Fraction(whole.losses_delta) * (
            1 - (count > 1) * Fraction(2, 2**52)
        )


def test_orders_without_anything_to_spend_are_refused():
    with pytest.raises(DomainError, match="leave something to spend"):
        Budget(1e-3, 1e-5, orders=2.0)
    with pytest.raises(DomainError, match="leave something to spend"):
        Budget(1e-3, 1e-5, orders=(2.0, 3.0))
    # One of several is enough.
    assert Budget(1e-1, 1e-5, orders=(2.0, 1024.0)).orders == (2.0, 1024.0)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("noise", "epsilon"), [(40.0, 2.0), (4.0, 0.5), (300.0, 8.0), (9.0, 3.0)])
def test_the_order_suited_to_a_mechanism_is_the_best_of_all(noise, epsilon):
    found = Accountant(Budget.suited_to(Noise(noise), epsilon, 1e-6)).affordable(Noise(noise))
    for order in CANDIDATES:
        try:
            other = Budget(epsilon, 1e-6, orders=order)
        except DomainError:
            continue
        assert Accountant(other).affordable(Noise(noise)) <= found
