"""What a rule bounds a record by, and what adaptive clipping's count costs: in exact fractions."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from accountant import errors
from accountant.learn import AdaptiveQuantile, Automatic, Flat, MultilayerPerceptron, PerLayer
from accountant.learn.clipping import Rule


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


def test_the_sensitivity_of_several_norms_is_the_root_of_their_squares():
    """The largest of them would cover one layer, and a record moves all layers at once."""
    rng = random.Random(2)
    for _ in range(2000):
        norms = tuple(math.exp(rng.uniform(-20.0, 20.0)) for _ in range(rng.randint(1, 6)))
        exact = sum(Fraction(norm) ** 2 for norm in norms)
        found = Fraction(Rule(norms).sensitivity) ** 2
        assert exact <= found <= exact * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize(
    "clipping",
    [
        Flat(0.7),
        Automatic(0.7),
        Automatic(0.7, stability=1e-6),
        AdaptiveQuantile(0.7),
        PerLayer(0.7),
    ],
    ids=repr,
)
def test_no_record_adds_more_than_the_rules_sensitivity(clipping):
    model = MultilayerPerceptron((3, 5, 4, 2))
    rule = clipping.rule(len(model.groups))
    assert rule.sensitivity <= 0.7 * (1.0 + 1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1.0, 1e3, 1e9):
        for label in (0, 1):
            model.parameters[:] = rng.normal(size=model.size)
            record = size * rng.normal(size=(1, 3))
            moved = model.clipped_gradient_sum(record, [label], clipping)
            assert math.fsum(moved**2) <= rule.sensitivity**2 * (1.0 + 1e-9)
            if len(rule.norms) > 1:
                for part, norm in zip(model.groups, rule.norms, strict=True):
                    assert math.fsum(moved[part] ** 2) <= norm**2 * (1.0 + 1e-9)


def test_an_adaptive_norm_moves_by_no_more_than_its_rate():
    """A noisy fraction is far outside [0, 1] when batches are small."""
    for fraction in (-1e300, -1.0, 0.0, 0.5, 1.0, 7.0, math.inf):
        for norm in (1e-18, 1.0, 1e18):
            moved = AdaptiveQuantile(norm).updated(fraction).clipping_norm
            assert 1e-18 <= moved <= 1e18
            assert abs(math.log(moved / norm)) <= 0.1 * (1.0 + 1e-12)
