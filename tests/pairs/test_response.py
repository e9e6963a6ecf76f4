"""The pair of randomised response, at losses next to the largest double and beyond it."""

import math
import sys

import pytest

import accountant as ac
from accountant.pairs.atoms import ResponsePair


@pytest.mark.parametrize("others", [0, 3])
def test_a_loss_beyond_the_doubles_is_infinite_and_on_no_lattice(others):
    pair = ResponsePair(math.inf, others)
    assert pair.lattice is None
    assert pair.infinite_mass == 1.0
    assert pair.has_negative_infinite_loss
    assert pair.rdp(2.0) == math.inf


@pytest.mark.parametrize("bound", [1e308, sys.float_info.max])
def test_a_lattice_has_a_spacing_that_is_a_double(bound):
    pair = ResponsePair(bound)
    assert pair.lattice is None or pair.lattice[1] < math.inf
    found = ac.PureDP(bound).epsilon_bounds(0.0)
    assert found.lower <= bound <= found.upper


@pytest.mark.parametrize(
    "mechanism",
    [
        ac.ReportNoisyMax(5e-324, noise="exponential"),
        ac.ReportNoisyMax(5e-324, noise="laplace"),
        ac.AboveThreshold(5e-324, query_scale=1.0),
        ac.Laplace(5e-324),
    ],
)
@pytest.mark.filterwarnings("error")
def test_noise_below_every_sensitivity_protects_nothing(mechanism):
    for each in (mechanism, 3 * mechanism, mechanism + ac.Gaussian(1.0)):
        assert each.epsilon_bounds(1e-30).upper > sys.float_info.max / 2.0
        assert each.delta_bounds(3.0).upper == 1.0
