"""The ends of the losses of a random shift, in exact arithmetic."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.errors import PrecisionError
from accountant.mechanisms.mixture import MixturePair


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


@pytest.mark.long(keep=3)
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


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("count", [4097, 4200, 4775, 6635, 9001])
@pytest.mark.parametrize("beyond", [0, 1, 2, 40])
def test_edges_beyond_the_end_of_the_losses_do_not_mislead_others(count, beyond):
    """Next to the end the loss is flat, and a tangent leads so far that the way back has no digits.

    The oracle is the normal distribution function at the point that bisection finds.
    """
    chances = (0.96059601, 0.03881196, 0.0005880600000000001, 3.96e-06, 1e-08)
    mixture = ac.MixtureOfGaussians(1.0, sensitivities=[0, 1, 2, 3, 4], probabilities=chances)
    add = mixture.pairs()[1]
    end = add.support[1]
    spacing = (end + 7.9) / (count - 1 - beyond)
    edges = -7.9 + spacing * np.arange(count) + (0.0 if beyond else -0.5 * spacing)
    masses = add.masses(edges)
    for i in (count // 2, *range(count - 60 - beyond, count - beyond - 1, 7)):
        below = masses.p[: i + 1].sum(), masses.q[: i + 1].sum()
        for found, exact in zip(below, _mass_below(chances, -edges[i]), strict=True):
            assert abs(found - exact) <= 1e-10 * exact


def test_an_edge_that_is_not_inverted_is_told(monkeypatch):
    mixture = ac.MixtureOfGaussians(1.0, sensitivities=[0, 2], probabilities=[0.99, 0.01])
    remove = mixture.pairs()[0]
    edges = np.linspace(np.nextafter(remove.support[0], 1.0), 8.0, 5000)
    # From the left of an inverse Newton's method does not find it.
    monkeypatch.setattr(MixturePair, "_right_of", lambda pair, edges: np.full(edges.shape, -9.0))
    with pytest.raises(PrecisionError, match="one is off by"):
        remove.masses(edges)


def _mass_below(chances, loss):
    """Return the masses right of the point with that loss under the noise and the mixture."""
    low, high = mpmath.mpf(-60), mpmath.mpf(60)
    with mpmath.workdps(30):
        for _ in range(90):
            at = (low + high) / 2
            ratio = mpmath.fsum(c * mpmath.exp(k * at - k * k / 2.0) for k, c in enumerate(chances))
            low, high = (at, high) if mpmath.log(ratio) < loss else (low, at)
        tails = [mpmath.erfc((at - k) / mpmath.sqrt(2)) / 2 for k in range(len(chances))]
        return tails[0], mpmath.fsum(c * tail for c, tail in zip(chances, tails, strict=True))


@pytest.mark.parametrize("noise", [1e200, 1e300, 1.7e308])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_shifts_that_vanish_beside_the_noise_have_no_loss(noise):
    """No loss of theirs is as small as the weight of no shift allows: all of it is next to 0."""
    chances = [0.999994601390415, 5.398609585e-06]
    mixture = ac.MixtureOfGaussians(
        noise, sensitivities=[0.0, 6.66e-111], probabilities=[chances[0], 1.0 - chances[0]]
    )
    for pair in mixture.pairs():
        p, q, _ = pair.masses(np.array([-1e-6, -1e-300, 1e-300, 1e-6]))
        assert p[0] <= 1e-290
        assert q[-1] <= 1e-290
        assert p[1:4].sum() == pytest.approx(1.0, rel=1e-12)
