"""Parameters of very many releases, rounded to the safe side."""

import json
import math

import pytest

import accountant as ac
from accountant.composition import composed
from accountant.report import spending, statement


@pytest.mark.parametrize("most", [2, 7, 64])
@pytest.mark.parametrize("costly", [True, False])
def test_rounding_goes_to_its_side(most, costly):
    settings = [(0.3 / k, 0.4 + 0.37 * k) for k in range(1, 200)]
    steps = [ac.PoissonSampled(ac.Gaussian(s), q) for q, s in settings]
    *others, last = spending.rounded([*steps, ac.Laplace(1.0)], most, costly)
    assert last == ac.Laplace(1.0)
    assert len(set(others)) <= max(most, 20)
    for step, made in zip(steps, others, strict=True):
        q = made.sampling_probability, step.sampling_probability
        sigma = made.mechanism.noise_multiplier, step.mechanism.noise_multiplier
        if costly:
            assert q[1] <= q[0] <= 1
            assert sigma[0] <= sigma[1]
        else:
            assert q[0] <= q[1]
            assert sigma[0] >= sigma[1]


KINDS = (
    lambda k: ac.Gaussian(5.0 + 0.37 * k),
    lambda k: ac.Laplace(5.0 + 0.37 * k),
    lambda k: ac.PureDP(0.001 * (1 + k)),
    lambda k: ac.RandomizedResponse(0.001 * (1 + k)),
    lambda k: ac.DiscreteLaplace(5.0 + 0.37 * k),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("costly", [True, False])
def test_every_family_is_rounded_to_its_side(kind, costly):
    releases = [kind(k) for k in range(300)]
    made = spending.rounded(releases, 64, costly)
    assert len(set(made)) <= 64
    for one, other in zip(releases, made, strict=True):
        at = 0.0 if one.epsilon(0.0) < math.inf else 1e-3
        costs = other.epsilon(at), one.epsilon(at)
        assert costs[0] >= costs[1] if costly else costs[0] <= costs[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_bracket_of_rounded_releases_holds_the_exact_one(kind):
    counts = tuple((kind(k), 1) for k in range(40))
    exact = composed(counts).epsilon_bounds(1e-5)
    for kept in (True, False):
        found = spending.Spending(counts, 8, kept).epsilon_bounds(1e-5)
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper
        if kind is KINDS[0]:
            assert found.upper <= (1.0 + 1e-6 if kept else 1.1) * exact.upper


@pytest.mark.parametrize("kind", KINDS[:2])
def test_ten_thousand_different_releases_are_all_stated(kind):
    ledger = ac.Accountant()
    for k in range(10_000):
        ledger.compose(kind(500 + k))
    made = statement(ledger, certificate=False)
    assert made.rounded
    assert len(json.loads(made.json())["statement"]["releases"]) == 10_000
    assert made.omitted_releases == 10_000 - len(made.listed_releases)
    assert "9,950 further kinds" in made.html()


def test_a_pure_budget_that_is_spent_is_stated_as_the_decimal_that_it_is():
    ledger = ac.Accountant(ac.ledger.Budget(1.0))
    ledger.compose(ac.PureDP(0.1), 10)
    made = statement(ledger, certificate=False)
    assert (made.headline.delta, made.headline.epsilon, made.budget.limit) == (
        0.0,
        1.0,
        "ε = 1 at δ = 0",
    )
    assert "By the ε above, 100 % of it is spent" in made.html()


@pytest.mark.parametrize("budget", [ac.ledger.Budget.rho(0.5), ac.ledger.Budget.mu(1.0)])
def test_budgets_of_rho_and_mu_are_stated(budget):
    ledger = ac.Accountant(budget)
    ledger.compose(ac.Gaussian(1.0))
    made = statement(ledger, certificate=False)
    assert f"beyond {budget.words}" in made.html()
    assert json.loads(made.json())["statement"]["budget"]["epsilon"] is None
