"""What a plan leaves to Gaussian releases, against products of pairs in many digits."""

from fractions import Fraction

import mpmath
import pytest

import accountant as ac
from accountant.errors import BudgetExceeded
from accountant.ledger import Accountant, Budget
from accountant.ledger.filters import squared_mu_beside


def gaussian_profile(mu, epsilon):
    """Return the profile at any real ε of N(μ, 1) against N(0, 1)."""
    first = mpmath.ncdf(mu / 2 - epsilon / mu)
    return first - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def product_profile(coins, loss, mu, epsilon):
    """Return the profile of so many randomised responses times a Gaussian: a binomial sum."""
    p = mpmath.exp(loss) / (1 + mpmath.exp(loss))
    return mpmath.fsum(
        mpmath.binomial(coins, k)
        * p**k
        * (1 - p) ** (coins - k)
        * gaussian_profile(mu, epsilon - (2 * k - coins) * loss)
        for k in range(coins + 1)
    )


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("coins", "loss", "epsilon", "delta"),
    [(1, 0.5, 1.0, 1e-5), (7, 0.1, 1.0, 1e-6), (3, 0.01, 0.2, 1e-9), (20, 0.25, 8.0, 0.01)],
)
def test_the_residue_beside_coins_meets_the_budget_and_no_more(coins, loss, epsilon, delta):
    found = squared_mu_beside([(ac.RandomizedResponse(loss), coins)], epsilon, delta)
    with mpmath.workdps(40):
        mu = mpmath.sqrt(mpmath.mpf(found.numerator) / found.denominator)
        arguments = mpmath.mpf(loss), mpmath.mpf(epsilon)
        assert product_profile(coins, arguments[0], mu, arguments[1]) <= mpmath.mpf(delta)
        assert product_profile(coins, arguments[0], mu * (1 + 2e-3), arguments[1]) > delta


def test_beside_a_training_run_queries_get_what_the_exact_composition_leaves():
    step, query = ac.PoissonSampled(ac.Gaussian(1.1), 0.01), ac.Gaussian(20.0)
    ledger = Accountant(Budget(3.0, 1e-5, filter="gaussian"))
    ledger.plan(step, 3000)
    queries = ledger.affordable(query)
    assert (3000 * step + queries * query).epsilon(1e-5) <= 3.0
    assert (3000 * step + (queries + 2) * query).epsilon(1e-5) > 3.0
    # Far more than where every step is charged by its μ, or all by Rényi divergences.
    renyi = Accountant(Budget(3.0, 1e-5))
    renyi.plan(step, 3000)
    assert renyi.affordable(query) < queries
    for sigma in (20.0, 30.0, 45.0):
        ledger.compose(ac.Gaussian(sigma))
        ledger.compose(step, 700)
    with pytest.raises(BudgetExceeded):
        ledger.compose(query, queries)
    again = Accountant.from_json(ledger.to_json())
    assert again.affordable(query) == ledger.affordable(query)
    # A sampled step that is not planned has no better μ than 1/σ.
    assert ledger.affordable(ac.PoissonSampled(ac.Gaussian(2.0), 0.01)) < 5


def test_a_plan_of_gaussians_is_charged_by_its_sum():
    ledger = Accountant(Budget(1.0, 1e-6, filter="gaussian"))
    whole = ledger.affordable(ac.Gaussian(40.0))
    ledger.plan(ac.Gaussian(40.0), whole - 3)
    assert ledger.affordable(ac.Gaussian(40.0)) == whole


@pytest.mark.long
def test_degenerate_menus():
    nothing = squared_mu_beside([(ac.PureDP(0.0), 5)], 1.0, 1e-6)
    alone = 1 / Fraction(ac.calibrate_sigma(1.0, 1e-6)) ** 2
    assert alone * Fraction(999, 1000) < nothing <= alone
    assert squared_mu_beside([(ac.PureDP(1.0), 1)], 1.0, 1e-300) == 0
    assert squared_mu_beside([(ac.PureDP(1.1), 1)], 1.0, 1e-300) is None
    assert squared_mu_beside([(ac.ApproximateDP(0.0, delta=1.0), 1)], 1.0, 0.5) is None
    leak = squared_mu_beside([(ac.ApproximateDP(0.0, delta=5e-7), 1)], 1.0, 1e-6)
    half = 1 / Fraction(ac.calibrate_sigma(1.0, 5e-7)) ** 2
    assert half * Fraction(999, 1000) < leak <= half * (1 + Fraction(1, 10**6))
