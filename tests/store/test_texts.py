"""What a store keeps as text comes back unchanged."""

import pytest

import accountant as ac
from accountant.errors import LedgerError
from accountant.ledger import Budget
from accountant.store import texts


@pytest.mark.parametrize(
    "budget",
    [
        Budget(1.0, 1e-6),
        Budget(3.0, 1e-9, orders=(12.0, 70.5), share=0.25),
        Budget(1.0, 1e-6, filter="gaussian"),
        Budget(1.0, 1e-6, filter="approximate", share=0.1),
        Budget(1.0, 1e-6, filter="non-adaptive"),
    ],
)
def test_budgets(budget):
    text = texts.text_of_budget(budget)
    assert texts.budget_of(text) == budget
    assert texts.text_of_budget(texts.budget_of(text)) == text
    for wrong in ("[]", "{}", "{", text.replace("delta", "beta")):
        with pytest.raises(LedgerError):
            texts.budget_of(wrong)


def test_mechanisms():
    step = ac.PoissonSampled(ac.Gaussian(1.5), 0.01)
    for mechanism in (step, 3 * step + ac.Laplace(2.0), ac.ApproximateDP(1.0, delta=1e-9)):
        assert texts.mechanism_of(texts.text_of_mechanism(mechanism)) == mechanism
