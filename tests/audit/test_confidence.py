"""Confidence bounds on proportions are rounded to the safe side."""

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.audit.two_sample import binomial_mode, binomial_tail, clopper_pearson_upper


def binomial_terms(n, p, last):
    """P{Bin(n, p) = j} for j up to ``last``, to 40 digits, each from the one before."""
    p = mpmath.mpf(p)
    if p == 1:
        return [mpmath.mpf(int(j == n)) for j in range(last + 1)]
    terms = [(1 - p) ** n]
    for j in range(last):
        terms.append(terms[-1] * (n - j) / (j + 1) * p / (1 - p))
    return terms


@given(st.integers(1, 300), st.data(), st.sampled_from([0.5, 0.05, 0.025, 1e-3, 1e-6]))
def test_clopper_pearson_is_rounded_to_the_safe_side(n, data, error):
    k = data.draw(st.integers(0, n))
    assert_clopper_pearson(k, n, error)


@pytest.mark.parametrize("n", [10**5, 10**7])
@pytest.mark.parametrize("k", [0, 1, 17, 2000])
def test_clopper_pearson_with_many_observations(n, k):
    assert_clopper_pearson(k, n, 0.025)


def assert_clopper_pearson(k, n, error):
    upper = clopper_pearson_upper(k, n, error)
    if k == n:
        assert upper == 1.0
        return
    with mpmath.workdps(40):
        # At the bound so few successes have probability at most the error; it is no looser than
        # that.
        assert sum(binomial_terms(n, upper, k)) <= mpmath.mpf(error)
        tighter = mpmath.mpf(upper) * (1 - mpmath.mpf("1e-8"))
        assert sum(binomial_terms(n, tighter, k)) > mpmath.mpf(error)


@given(st.integers(0, 200), st.data(), st.floats(0.0, 1.0))
def test_binomial_tails_are_rounded_up(n, data, p):
    v = data.draw(st.integers(0, n + 1))
    with mpmath.workdps(40):
        terms = binomial_terms(n, p, n)
        exact, mode = min(1, sum(terms[v:], mpmath.mpf(0))), max(terms)
        assert exact <= binomial_tail(v, n, p) <= exact * (1 + mpmath.mpf("1e-8")) + 1e-290
        assert mode <= binomial_mode(n, p) <= mode * (1 + mpmath.mpf("1e-6"))


@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize("error", [0.05, 0.3])
def test_a_bound_on_a_proportion_covers_it(n, error):
    """Whatever the proportion: just above the bound of k, k and fewer are that improbable."""
    with mpmath.workdps(40):
        for k in range(n):
            p = mpmath.mpf(clopper_pearson_upper(k, n, error))
            few = sum(mpmath.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1))
            assert few <= error
            assert few >= error * (1 - mpmath.mpf("1e-6"))
    assert clopper_pearson_upper(n, n, error) == 1.0
