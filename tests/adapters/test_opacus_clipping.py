"""What one record adds to opacus' sums, to the last bit: never more than the norm it is charged."""

import math
from fractions import Fraction
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

from opacus.optimizers import DPPerLayerOptimizer  # noqa: E402

from accountant.adapters._opacus_clipping import clip_and_sum, limit  # noqa: E402


def summed(*samples, bound=1.0, kind=SimpleNamespace, expected=None):
    """Return the sums of an optimiser whose parameters have these gradients, a row a record."""
    parameters = [torch.nn.Parameter(torch.zeros(rows.shape[1:])) for rows in samples]
    for p, rows in zip(parameters, samples, strict=True):
        p.grad_sample, p.summed_grad = rows, None
    made = kind()
    made.__dict__.update(params=parameters, max_grad_norm=bound, expected_batch_size=expected)
    if kind is SimpleNamespace:
        made.grad_samples = list(samples)
    else:
        made.max_grad_norms = bound
    clip_and_sum(made)
    return [p.summed_grad for p in parameters]


class Layers(DPPerLayerOptimizer):
    def __init__(self):
        pass

    params = property(lambda self: vars(self)["params"])
    grad_samples = property(lambda self: [p.grad_sample for p in self.params])


def square(*sums):
    """The exact square of a norm."""
    total = Fraction(0)
    for each in sums:
        values, counts = each.flatten().unique(return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            total += Fraction(value) ** 2 * count
    return total


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    ("size", "value"), [(10**6, 0.7), (10**6 + 1, 0.1), (3 * 10**6, 0.01), (1023, 1e4), (1, 3.0)]
)
def test_a_record_adds_no_more_than_its_norm(size, value, kind):
    assert square(*summed(torch.full((1, size), value, dtype=kind))) <= 1


def test_nor_over_several_parameters_or_layer_by_layer():
    rows = [torch.full((1, n), 0.7) for n in (10**6, 1, 2049)]
    assert square(*summed(*(each.clone() for each in rows))) <= 1
    bounds = [0.5, 0.25, 2.0]
    layered = summed(*(each.clone() for each in rows), bound=bounds, kind=Layers)
    for found, bound in zip(layered, bounds, strict=True):
        assert square(found) <= Fraction(bound) ** 2


@pytest.mark.parametrize("bound", [1e-18, 1e-3, 1e6])
@pytest.mark.parametrize("value", [1e-38, 1e-20, 1e-3, 1e15])
def test_nor_where_squares_vanish_or_are_huge(value, bound):
    assert square(*summed(torch.full((1, 5000), value), bound=bound)) <= Fraction(bound) ** 2


def test_the_sum_of_many_is_that_of_real_numbers():
    """In float32 it is off by the roundings of all other records, which depend on the order."""
    rows = torch.randn(3000, 3, generator=torch.Generator().manual_seed(0)) * 1e-3
    [found] = summed(rows.clone())
    for column, total in zip(rows.double().T.tolist(), found.tolist(), strict=True):
        exact = sum(map(Fraction, column))
        assert abs(Fraction(total) - exact) <= Fraction(3000 * 3000, 2**53 * 1000) / 10


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("expected", [None, 1, 256, 10**5])
def test_the_margin_covers_every_rounding_of_a_sum(expected, workers):
    made = SimpleNamespace(expected_batch_size=expected, world_size=workers)
    most = 1024 + 2 * (expected or 0) * workers
    # Two neighbours' sums of `most` records, rounded workers + 1 times; norms and float64.
    needed = (workers + 1) * 2 * most * Fraction(1, 2**24) + Fraction(1, 2**13)
    assert Fraction(limit(made, 3.0)) * (1 + needed) <= 3


def test_larger_batches_than_the_margin_covers_never_come():
    for step in range(400):
        mean = 10 ** (step / 50 - 1)
        most = 1024 + 2 * mean
        # Chernoff's bound for a sum of independent coins.
        assert most - mean + most * math.log(mean / most) < -1000


def test_a_lost_record_takes_nothing_from_the_others():
    rows = torch.tensor([[math.nan, 1.0], [math.inf, 0.0], [0.25, 0.25]])
    [found] = summed(rows)
    assert found.tolist() == [0.25, 0.25]
