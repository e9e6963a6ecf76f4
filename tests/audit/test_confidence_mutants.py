"""What mutation testing (support/hardening) found nobody watching in confidence bounds."""

import math

import mpmath
import pytest
from flint import arb, ctx

from accountant.audit import Guesses, one_run_epsilon
from accountant.audit.two_sample import binomial_mode, binomial_tail, clopper_pearson_upper
from accountant.errors import DomainError
from support.exact_laws import pmf, tail

mp = mpmath.mpf


pytestmark = pytest.mark.usefixtures("sixty_digits")


def assert_margin(found, truth, least, most):
    """The trusted functions are a billionth off at most: that much is left free."""
    assert truth * (1 + mp(least)) <= found <= truth * (1 + mp(most))


@pytest.mark.long(keep=10)
@pytest.mark.parametrize(("k", "n"), [(0, 1), (0, 50), (1, 2), (3, 17), (40, 60), (59, 60)])
@pytest.mark.parametrize("error", [0.4, 0.025, 1e-6])
def test_confidence_bounds_leave_room_for_the_library(k, n, error):
    found = clopper_pearson_upper(k, n, error)
    # Where so few successes have probability ``error``: bisection on the exact tail.
    low, high = mp(0), mp(1)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - tail(n, middle, k + 1) > error else (low, middle)
    assert_margin(found, high, "0.9e-9", "1.1e-9") if high < 1 - 1e-8 else found == 1.0


def test_confidence_bounds_at_the_ends():
    assert clopper_pearson_upper(5, 5, 0.05) == clopper_pearson_upper(1, 1, 0.5) == 1.0
    assert clopper_pearson_upper(0, 1, 1e-12) <= 1.0
    for k, n in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(DomainError):
            clopper_pearson_upper(k, n, 0.05)
    for error in (0.0, 1.0):
        with pytest.raises(DomainError):
            clopper_pearson_upper(1, 5, error)


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (2, 0.9), (7, 0.3), (40, 0.5), (60, 0.01)])
def test_binomial_probabilities_leave_room_for_the_library(n, p):
    for v in range(1, n + 1):
        exact = tail(n, p, v)
        if exact < 1 - 1e-8:
            assert_margin(binomial_tail(v, n, p) - 1e-300, exact, "0.9e-9", "1.1e-9")
        assert binomial_tail(v, n, p) <= 1.0
    mode = max(pmf(n, p, j) for j in range(n + 1))
    assert_margin(binomial_mode(n, p), mode, "0.9e-9", "1.1e-9")


def test_binomial_probabilities_at_the_ends():
    assert binomial_tail(0, 5, 0.0) == binomial_tail(-1, 5, 0.3) == 1.0
    assert binomial_tail(6, 5, 1.0) == binomial_tail(1, 5, 0.0) == 0.0
    assert binomial_tail(5, 5, 1.0) == 1.0
    assert binomial_tail(1, 1, 0.25) == pytest.approx(0.25, rel=2e-9)
    assert 1e-300 <= binomial_tail(2000, 2000, 1e-3) <= 2e-300
    assert binomial_mode(0, 0.3) == binomial_mode(5, 0.0) == binomial_mode(5, 1.0) == 1.0
    assert binomial_mode(1, 0.5) == pytest.approx(0.5, rel=2e-9)
    assert binomial_tail(1, 5, math.nan) == 1.0


@pytest.mark.parametrize("n", [10**4, 10**6, 10**9, 2**40])
@pytest.mark.parametrize("p", [0.5, 0.731, 0.99999, 1 - 2.0**-40])
def test_binomial_modes_of_many_trials(n, p):
    # lgamma's rounding, absolute in the logarithm, grows with n log n.
    j = int(mpmath.floor((n + 1) * mp(p)))
    log = mpmath.loggamma(n + 1) - mpmath.loggamma(j + 1) - mpmath.loggamma(n - j + 1)
    powers = j * mpmath.log(mp(p)), (n - j) * mpmath.log(1 - mp(p))
    size = mpmath.loggamma(n + 1) + mpmath.loggamma(j + 1) + abs(mpmath.loggamma(n - j + 1))
    size = (size - sum(powers)) * mp(2) ** -53
    found = mp(binomial_mode(n, p))
    assert found == 1 or 12 * size + mp("0.9e-9") <= mpmath.log(found) - log - sum(powers)
    assert mpmath.log(found) - log - sum(powers) <= 20 * size + mp("1.1e-9")


@pytest.mark.parametrize("n", [10**6, 10**9, 2**40])
@pytest.mark.parametrize("p", [0.5, 0.731])
def test_binomial_tails_of_many_trials(n, p):
    for deviations in (0, 5):
        v = int(n * p + deviations * math.sqrt(n * p * (1 - p)))
        with ctx.workprec(160):
            exact = arb(p).beta_lower(arb(v), arb(n - v + 1), regularized=True)
            assert exact <= arb(binomial_tail(v, n, p)) <= exact * (1 + arb("2e-9"))
            upper = clopper_pearson_upper(v, n, 0.025)
            fewer = 1 - arb(upper).beta_lower(arb(v + 1), arb(n - v), regularized=True)
            assert fewer <= arb(0.025)
    with pytest.raises(DomainError):
        clopper_pearson_upper(1, 2**40 + 1, 0.025)
    with pytest.raises(DomainError):
        one_run_epsilon(Guesses(2**40 + 1, 10, 10), delta=0.0)
