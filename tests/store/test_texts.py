"""What a store keeps as text comes back unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant.errors import LedgerError
from accountant.ledger import Budget
from accountant.ledger.exact_sums import INFINITE
from accountant.store import texts

integers = st.one_of(
    st.sampled_from([0, 1, 2**1074, INFINITE, 2**53 * INFINITE]),
    st.integers(0, 2**2400),
    st.tuples(st.integers(0, 2**60), st.integers(0, 1100)).map(lambda p: p[0] << p[1]),
)


@given(st.lists(integers, min_size=1, max_size=12))
def test_sums(values):
    text = texts.text_of_sums(values)
    assert texts.sums_of(text) == tuple(values)
    assert texts.text_of_sums(texts.sums_of(text)) == text


def test_no_sums_and_damaged_ones():
    assert texts.sums_of("") == ()
    for wrong in ("x", "1pp1", " ", "1 ", "1p-1"):
        with pytest.raises(LedgerError, match="damaged"):
            texts.sums_of(wrong)


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
