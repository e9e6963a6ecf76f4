"""What the count of adaptive clipping costs, in exact fractions."""

import math
import random
from fractions import Fraction

import pytest

from accountant import errors
from accountant.learn import AdaptiveQuantile


def test_gradient_and_count_cost_no_more_than_the_step():
    """Rounding let a count that takes nearly all of the step take a little more than that."""
    rng = random.Random(1)
    for _ in range(3000):
        sigma = math.exp(rng.uniform(-5.0, 5.0))
        count = sigma / 2.0 * (1.0 + math.exp(rng.uniform(-34.0, 3.0)))
        gradient = AdaptiveQuantile(1.0, count_noise=count).gradient_noise(sigma)
        spent = 1 / Fraction(gradient) ** 2 + 1 / (2 * Fraction(count)) ** 2
        assert spent <= 1 / Fraction(sigma) ** 2
        exact = 1 / Fraction(sigma) ** 2 - 1 / (2 * Fraction(count)) ** 2
        assert gradient**-2.0 >= float(exact) * (1.0 - 1e-11) - 2e-15 / sigma**2


@pytest.mark.parametrize(
    ("sigma", "count"), [(1e-300, 10.0), (1e-200, 1e-200), (1e300, 1e300), (5e-324, 1.0)]
)
def test_squares_that_leave_the_doubles(sigma, count):
    gradient = AdaptiveQuantile(1.0, count_noise=count).gradient_noise(sigma)
    spent = 1 / Fraction(gradient) ** 2 + 1 / (2 * Fraction(count)) ** 2
    assert spent <= 1 / Fraction(sigma) ** 2
    assert gradient <= 1.2 * sigma + 5e-324


def test_a_count_that_costs_the_whole_step_is_refused():
    for sigma, count in [(2.0, 1.0), (1e300, 1e-300), (math.inf, 1.0)]:
        with pytest.raises(errors.DomainError, match="count alone would spend the whole step"):
            AdaptiveQuantile(1.0, count_noise=count).gradient_noise(sigma)
