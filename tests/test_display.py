"""Shortened numbers stay on their safe side."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant._basics.display import text_down, text_up

doubles = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)


@given(doubles, st.integers(1, 17))
def test_up_is_never_below_and_down_never_above(value, digits):
    up, down = Fraction(text_up(value, digits)), Fraction(text_down(value, digits))
    assert down <= Fraction(value) <= up
    # Tight: the two differ by at most one unit in the last digit shown.
    assert up - down <= Fraction(value) * Fraction(10) ** (1 - digits)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1e-5, 6, "0.0000100001"),  # the double lies above 1e-5
        (2.0**-17, 3, "7.63e-06"),
        (2.0**-16, 6, "0.0000152588"),
        (999999.0, 3, "1e+06"),
        (999999.0, 6, "999999"),
        (1e6, 6, "1e+06"),
        (99999.0, 2, "100000"),
        (12345678.0, 8, "12345678"),
        (123456789.0, 8, "1.2345679e+08"),
        (5e-324, 3, "4.95e-324"),
        (1.7976931348623157e308, 3, "1.8e+308"),
    ],
)
def test_numbers_are_written_plainly_where_they_are_short(value, digits, text):
    assert text_up(value, digits) == text
    assert float(text_down(value, digits)) <= value
