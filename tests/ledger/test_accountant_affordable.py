"""What a budget says is affordable is admitted, at once or in parts, and no more than that."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import accountant as ac
from accountant.errors import BudgetExceeded
from accountant.ledger import Accountant, Budget, evaluation, kinds
from accountant.ledger.filters import meter

MECHANISMS = {
    "gaussian": [ac.Gaussian(4.0), ac.Gaussian(30.0)],
    "approximate": [ac.PureDP(0.05), ac.ApproximateDP(0.1, delta=1e-8), ac.Laplace(8.0)],
    "renyi": [ac.Gaussian(6.0), ac.PoissonSampled(ac.Gaussian(1.0), 0.01), ac.Laplace(9.0)],
    "non-adaptive": [
        ac.Gaussian(6.0),
        ac.PoissonSampled(ac.Gaussian(1.5), 0.02),
        ac.RandomizedResponse(0.3, k=2),
        ac.Laplace(9.0),
    ],
}


def spend(ledger, data, mechanism, count):
    """Compose ``count`` releases in a few parts."""
    parts = data.draw(st.integers(1, 3))
    for _ in range(parts - 1):
        part = data.draw(st.integers(0, min(count, 40)))
        if part:
            ledger.compose(mechanism, part)
        count -= part
    if count:
        ledger.compose(mechanism, count)


@pytest.mark.long
@settings(max_examples=30)
@given(st.data(), st.sampled_from(sorted(MECHANISMS)), st.floats(0.3, 6.0), st.floats(1e-8, 1e-4))
def test_what_is_affordable_is_admitted_and_one_more_is_not(data, kind, epsilon, delta):
    ledger = Accountant(Budget(epsilon, delta, filter=kind))
    for _ in range(2):
        mechanism = data.draw(st.sampled_from(MECHANISMS[kind]))
        allowed = ledger.affordable(mechanism)
        before = len(ledger)
        part = data.draw(st.integers(0, allowed))
        spend(ledger, data, mechanism, part)
        assert ledger.affordable(mechanism) >= allowed - part
        spend(ledger, data, mechanism, allowed - part)
        assert len(ledger) == before + allowed
        assert ledger.epsilon(delta) <= epsilon * (1 + 1e-6)
        if kind != "non-adaptive" and allowed < 2**53:
            with pytest.raises(BudgetExceeded):
                ledger.compose(mechanism)
        # Something else may still fit: the next kind of release.


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_promise_is_kept_though_the_composition_answers_with_other_digits(monkeypatch, in_parts):
    # A grid answers within its tolerance, by what was asked before: here ever a little more.
    asked = []

    def epsilon(counts, delta):
        asked.append(counts)
        return sum(n for _, n in counts) * (1.0 + 1e-9 * len(asked))

    monkeypatch.setattr(evaluation, "epsilon", epsilon)
    ledger = Accountant(Budget(10.0 * (1.0 + 1e-9 * 8), 1e-5, filter="non-adaptive"))
    allowed = ledger.affordable(ac.Gaussian(5.0))
    assert allowed == 10
    for part in (3, 4, 3) if in_parts else (10,):
        ledger.compose(ac.Gaussian(5.0), part)
    assert len(ledger) == 10
    with pytest.raises(BudgetExceeded):
        ledger.compose(ac.Gaussian(5.0))


def test_a_promise_is_void_after_another_release():
    watch = meter(Budget(3.0, 1e-5, filter="non-adaptive"))
    assert isinstance(watch, kinds.FixedMeter)
    allowed = watch.affordable(ac.Gaussian(5.0))
    watch.add([(ac.Gaussian(6.0), 3)])
    assert not watch.admits([(ac.Gaussian(5.0), allowed)])


def test_no_more_is_promised_than_can_be_counted():
    ledger = Accountant(Budget(3.0, 1e-5))
    free = ac.PureDP(0.0)
    ledger.compose(free, 5)
    allowed = ledger.affordable(free)
    assert allowed == 2**53 - 5
    ledger.compose(free, allowed)
    assert ledger.affordable(free) == 0
