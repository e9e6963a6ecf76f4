"""Ratios rounded on cells: the integrals of Theorem X8 (i) with mpmath at 40 digits."""

import mpmath
import numpy as np
import pytest

from accountant.sampling import score_cells

mpmath.mp.dps = 40
SLOPES = (0.02, 0.3, 0.9, 2.0)
SHAPES = ((6, 0.0), (14, 3.0), (60, 4.5))


def mass(low, high, mean=0):
    return mpmath.ncdf(high - mpmath.mpf(mean)) - mpmath.ncdf(low - mpmath.mpf(mean))


def ratio(x, slope):
    return mpmath.exp(slope * x - mpmath.mpf(slope) ** 2 / 2)


def crossing(value, slope, low, high):
    """Where the exact ratio is the value, or the nearer end of the cell."""
    return min(max(mpmath.log(value) / slope + mpmath.mpf(slope) / 2, low), high)


@pytest.mark.long(keep=11)
@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize(("count", "far"), SHAPES)
def test_values_for_calls_have_more_beyond_every_point(slope, count, far):
    right = 6.0 + slope
    edges = score_cells.edges_of(count, slope, far, "calls", right)
    values = score_cells.above_calls(edges, slope, right)
    assert (np.diff(values) >= 0.0).all()
    assert values[0] > 0.0
    ends = [-mpmath.inf, *map(mpmath.mpf, edges.tolist()), mpmath.mpf(right)]
    beyond = (mpmath.mpf(values[-1]) - ratio(right, slope)) * mass(right, mpmath.inf)
    assert beyond >= 0
    for k in range(len(values) - 1, -1, -1):
        low, high, value = ends[k], ends[k + 1], mpmath.mpf(values[k])
        # The integral is least where the two cross.
        x = crossing(value, slope, low, high)
        assert beyond + value * mass(x, high) - mass(x, high, slope) >= 0
        beyond += value * mass(low, high) - mass(low, high, slope)
    if count == 60:
        assert beyond < 1e-2 * slope


@pytest.mark.long(keep=11)
@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize(("count", "far"), SHAPES)
def test_values_for_puts_have_less_up_to_every_point(slope, count, far):
    left = -7.0
    edges = score_cells.edges_of(count, slope, far, "puts", left)
    values = score_cells.above_puts(edges, slope, left)
    assert (np.diff(values) >= 0.0).all()
    assert values[0] > 0.0
    ends = [mpmath.mpf(left), *map(mpmath.mpf, edges.tolist()), mpmath.inf]
    so_far = mpmath.mpf(0)
    for k, number in enumerate(values.tolist()):
        low, high, value = ends[k], ends[k + 1], mpmath.mpf(number)
        x = crossing(value, slope, low, high)
        assert so_far + value * mass(low, x) - mass(low, x, slope) <= 0
        so_far += value * mass(low, high) - mass(low, high, slope)
    assert so_far <= 0
    if count == 60:
        assert so_far > -1e-2 * slope


@pytest.mark.parametrize("slope", SLOPES)
def test_means_of_cells_from_below(slope):
    edges = score_cells.edges_of(40, slope, 4.0, "below", 0.0)
    ends = [-mpmath.inf, *map(mpmath.mpf, edges.tolist()), mpmath.inf]
    for k, value in enumerate(score_cells.below(edges, slope).tolist()):
        exact = mass(ends[k], ends[k + 1], slope) / mass(ends[k], ends[k + 1])
        assert exact * (1 - mpmath.mpf(3e-9)) <= value <= exact


def test_a_tail():
    for x in (-3.0, 0.0, 1.0, 7.0, 20.0):
        assert score_cells.tail(x) == pytest.approx(float(mpmath.ncdf(-x)), rel=1e-12)
