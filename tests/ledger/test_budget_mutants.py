"""Budgets: what mutation testing asked for (docs/hardening.md)."""

from fractions import Fraction

import pytest

from accountant.analyses import renyi_conversion
from accountant.errors import DomainError
from accountant.ledger import Accountant, Budget, limits
from accountant.ledger.limits import CANDIDATES
from support.toy_mechanisms import Noise


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
            patch.setattr(limits, "capacity_lower", noting)
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
