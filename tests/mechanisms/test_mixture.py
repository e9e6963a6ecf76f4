"""The ends of the losses of a random shift, in exact arithmetic."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant._rounding import U


def _largest_loss(weights):
    exact = [Fraction(weight) for weight in weights]
    with mpmath.workdps(60):
        share = 1 - exact[0] / sum(exact)
        return -mpmath.log1p(-mpmath.mpf(share.numerator) / share.denominator)


@pytest.mark.parametrize("q", [1e-300, 1e-20, 1e-17, 1e-9, 0.01, 0.3, 0.7])
def test_no_loss_of_a_group_is_beyond_the_end(q):
    """The weight of no record is a double next to one, of which few digits are left."""
    remove, add = ac.PoissonSampled(ac.Gaussian(1.0), q).group(2).pairs()
    with mpmath.workdps(60):
        largest = -2 * mpmath.log1p(-mpmath.mpf(q))
    assert add.support[1] >= largest
    assert add.support[1] <= largest * (1 + mpmath.mpf(10) ** -13)
    assert remove.support[0] == -add.support[1]


@pytest.mark.parametrize(
    "weights", [(0.5, 0.5 + 9e-13), (0.5, 0.5 - 9e-13), (1e-9, 0.999999999), (0.9, 0.1 + 5e-13)]
)
def test_no_loss_is_beyond_the_end_where_weights_add_up_roughly(weights):
    mixture = ac.MixtureOfGaussians(1.0, sensitivities=[0.0, 1.0], probabilities=weights)
    largest = _largest_loss(weights)
    assert largest <= mixture.pairs()[1].support[1] <= largest + 1e-11


@pytest.mark.parametrize("noise", [1e-300, 1e-160, 1e-154, 1e-10])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_shifts_whose_squares_leave_the_doubles(noise):
    """The record is told as often as it is used: half of all times."""
    one = ac.MixtureOfGaussians(
        noise, sensitivities=[0.0, 1.0, 3e10], probabilities=[0.5, 0.25, 0.25]
    )
    for mechanism in (one, ac.PoissonSampled(ac.Laplace(1.0), 0.1) + one):
        found = mechanism.delta_bounds(1.0)
        assert found.lower <= 0.51
        assert found.upper >= 0.5 * (1.0 - 1e-12)
        assert mechanism.epsilon(1e-5) > 40.0


def test_many_edges_are_carried_back_as_few_are():
    """Of many edges most are inverted from between two others."""
    mixture = ac.PoissonSampled(ac.Gaussian(6.58), 1e-3).group(40).pairs()[0]
    edges = np.linspace(mixture.support[0] * 0.999, 30.0, 10_000)
    x = mixture._inverse(edges)
    loss, slope = mixture._loss(x)
    # Left of 80 standard deviations nothing is to be told apart.
    assert np.all(np.abs(loss - edges) <= mixture.loss_error + 8.0 * U * slope * (np.abs(x) + 1.0))
    few = mixture._inverse(edges[::97])
    assert np.all(np.abs(x[::97] - few) * slope[::97] <= mixture.loss_error)
