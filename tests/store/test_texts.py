"""What a store keeps as text comes back unchanged, and needs no import in the middle of a call."""

import subprocess
import sys

import pytest

from accountant.errors import LedgerError
from accountant.ledger import Budget
from accountant.store import texts


@pytest.mark.parametrize(
    "budget",
    [
        Budget(1.0, 1e-6),
        Budget(1.0),
        Budget.rho(0.5),
        Budget.mu(0.5),
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


CALLS = """
import sys
import accountant as ac
from accountant import store
from accountant.ledger import Budget
kinds = [ac.Gaussian(20.0), ac.Laplace(40.0), ac.PoissonSampled(ac.Gaussian(2.0), 0.001)]
with store.open(sys.argv[1], create=True) as shared:
    before = set(sys.modules)
    for name in ("moments", "approximate", "gaussian", "non-adaptive"):
        shared.add_blocks(f"a/{name}/1", Budget(1.0, 1e-6, name))
        for kind in kinds:
            try:
                shared.charge(f"a/{name}/1", kind)
            except ac.AccountantError:  # a filter that cannot charge it, or not so much
                pass
    shared.add_blocks("a/planned/1", Budget(1.0, 1e-6))
    shared.plan("a/planned/1", kinds[2])
    shared.reserve("a/planned/1", kinds[2], 2, key="r")
    shared.commit("r", 1)
    shared.expire()
    shared.ledger("a/planned/1")
    assert shared.verify().passed
    print(sorted(set(sys.modules) - before))
"""


def test_a_call_imports_nothing_that_a_fork_could_leave_half_made(url):
    made = subprocess.run(
        [sys.executable, "-c", CALLS, url], capture_output=True, text=True, check=False
    )
    assert (made.stdout, made.stderr) == ("[]\n", "")
