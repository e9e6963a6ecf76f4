"""Amplification of one (ε, δ) by sampling, against the formula in high precision."""

from fractions import Fraction

import pytest
from mpmath import mp, mpf

from accountant import sampling


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 1.0, 20.0, 800.0])
@pytest.mark.parametrize("q", [1e-9, 0.01, 0.9])
@pytest.mark.parametrize("sampler", ["poisson", "fixed size"])
def test_amplify(epsilon, q, sampler):
    from mpmath import expm1, log1p

    found = sampling.amplify(epsilon, delta=1e-5, sampling_probability=q, sampler=sampler)
    with mp.workdps(40):
        exact = log1p(mpf(q) * expm1(mpf(epsilon)))
        assert mpf(found.epsilon) >= exact
        assert mpf(found.epsilon) <= exact * (1 + mpf(10) ** -9)
    assert Fraction(found.delta) >= Fraction(q) * Fraction(1e-5)


def test_amplify_at_the_ends():
    assert sampling.amplify(1.0, delta=1e-5, sampling_probability=1.0)[:2] == (1.0, 1e-5)
    assert sampling.amplify(1.0, delta=1e-5, sampling_probability=0.0)[:2] == (0.0, 0.0)
    assert sampling.amplify(0.0, delta=0.5, sampling_probability=0.5)[:2] == (0.0, 0.25)
