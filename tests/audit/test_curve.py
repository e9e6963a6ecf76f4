"""Trade-off curves of audits are below the exact ones."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant.audit.report import TradeoffCurve


@given(st.floats(0.05, 6.0), st.floats(0.0, 1.0))
def test_the_curve_of_a_gaussian_is_below_the_exact_one(mu, fpr):
    curve = TradeoffCurve.of(ac.Gaussian(1.0 / mu))
    with mpmath.workdps(30):
        x = mpmath.mpf(fpr)
        exact = mpmath.ncdf(-mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1) - mu) if 0 < x < 1 else 1 - x
        assert curve(fpr) <= exact
        assert curve(fpr) >= exact - mpmath.mpf("0.01")


def test_the_curve_is_its_own_inverse_and_vectorised():
    curve = TradeoffCurve.of_dp_sgd(0.1, 1.0, 50)
    x = np.linspace(0.0, 1.0, 101)
    y = curve(x)
    assert y.shape == x.shape
    assert (np.diff(y) <= 0).all()
    assert curve(curve(0.2)) == pytest.approx(0.2, abs=1e-9)
    assert [curve(v) for v in x] == y.tolist()
