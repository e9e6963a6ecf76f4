"""One part on a grid, law by law: nothing is lost, and stated errors are covered."""

import numpy as np
import pytest

from accountant.analyses.pld.loss_grid import LossGrid, discretise
from accountant.mechanisms import Gaussian, Laplace
from accountant.pairs.base import DominatingPair, Masses

ERROR = 1e-3


def profile(law, masses, infinite, epsilon):
    losses = law.knots.losses()
    return float((masses * np.maximum(-np.expm1(epsilon - losses), 0.0)).sum()) + infinite


@pytest.mark.parametrize("first", [-40, -5, 0])
@pytest.mark.parametrize("last", [5, 40])
@pytest.mark.parametrize("mechanism", [Laplace(0.7), Gaussian(0.8)])
def test_no_mass_is_lost_at_either_end(mechanism, first, last):
    """The grid may be shorter than the loss: what is below goes to its first knot."""
    pair = mechanism.pairs()[0]
    law = discretise(pair, LossGrid(0.0, 0.125, first, last), isinstance(mechanism, Laplace))
    assert law.upper.sum() + law.infinite_upper >= 1.0
    assert law.lower.sum() + law.infinite_lower <= 1.0
    for epsilon in (-3.0, -0.5, 0.0, 0.4):
        exact = mechanism.delta(epsilon) if epsilon >= 0.0 else None
        found = profile(law, law.upper, law.infinite_upper, epsilon - law.loss_error)
        if exact is not None:
            assert found >= exact * (1 - 1e-9)
        else:
            # H(ε) = 1 - e^ε + e^ε H(-ε): both pairs are their own reverses.
            reverse = -np.expm1(epsilon) + np.exp(epsilon) * mechanism.delta(-epsilon)
            assert found >= reverse * (1 - 1e-9)


class Blurred(DominatingPair):
    """A pair whose masses are off by all of the error it states, in the unsafe direction."""

    def __init__(self, pair, sign):
        self.pair, self.sign = pair, sign

    @property
    def support(self):
        return self.pair.support

    def masses(self, edges):
        found = self.pair.masses(edges)
        off = self.sign * ERROR
        return Masses(found.p / (1.0 + off), found.q / (1.0 - off), ERROR * (1.0 + 1e-9))


@pytest.mark.parametrize("spacing", [0.5, 0.125, 0.03])
def test_masses_off_by_their_stated_error_are_covered(spacing):
    mechanism = Gaussian(0.8)
    knots = LossGrid(0.0, spacing, -round(12.0 / spacing), round(12.0 / spacing))
    for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0):
        exact = mechanism.delta(epsilon)
        law = discretise(Blurred(mechanism.pairs()[0], 1.0), knots, False)
        assert profile(law, law.upper, law.infinite_upper, epsilon - law.loss_error) >= exact
        law = discretise(Blurred(mechanism.pairs()[0], -1.0), knots, False)
        assert profile(law, law.lower, law.infinite_lower, epsilon + law.loss_error) <= exact
