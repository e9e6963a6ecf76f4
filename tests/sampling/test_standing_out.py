"""The lattice law of a record that stands out: nowhere above the exact profile."""

import math

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from accountant.sampling.lattice_envelope import law_below, rare_loss
from support.oracle.monotone_ratio import shifted


def exact(weights, shift, epsilon):
    """Return H(ε) of Σ w_k N(ks, 1) against N(0, 1)."""
    with ctx.workprec(160):
        shifts = [k * arb(shift) for k in range(len(weights))]
        return shifted(arb(1), shifts, map(arb, weights))[0](epsilon)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("weights", "shift"),
    [((0.99, 0.01), 2.0), ((0.5, 0.5), 0.3), ((0.9, 0.09, 0.01), 1.0), ((0.999, 0.001), 4.0)],
)
def test_the_law_is_nowhere_above_the_record_and_hardly_below(weights, shift):
    spacing, size = 0.02, 300
    law, offset = law_below(weights, shift, 0.0, spacing, size)
    losses = offset + spacing * np.arange(size + 1)
    for epsilon in (-0.3, -0.05, 0.0, 0.01, 0.1, 0.5, 1.5, 3.0):
        # What is claimed: masses less their error, losses less theirs.
        gain = -np.expm1(epsilon - losses + law.loss_error)
        found = math.fsum(law.masses * np.maximum(gain, 0.0)) * (1.0 - law.mass_error)
        truth = float(exact(weights, shift, epsilon + 2.0 * law.loss_error))
        assert found <= truth + 1e-16
        assert found >= 0.9 * truth - 2e-3 * spacing
    assert law.infinite == 0.0


def test_the_offset_is_the_loss_where_most_mass_is():
    law, offset = law_below((0.99, 0.01), 2.0, 0.0, 0.02, 600)
    assert math.log(0.99) <= offset < math.log(0.99) + 0.01
    assert law.masses[0] > 0.5


@pytest.mark.parametrize("chance", [1e-3, 1e-9])
def test_a_rare_loss_is_exceeded_with_about_its_chance(chance):
    loss = rare_loss((0.9, 0.1), 2.0, chance)
    with mpmath.workdps(30):
        # N(2, 1) beyond the score whose ratio is e^loss, drawn with probability 0.1.
        score = mpmath.log((mpmath.exp(loss) - 0.9) / 0.1) / 2 + 1
        found = 0.1 * mpmath.ncdf(2 - score) + 0.9 * mpmath.ncdf(-score)
    assert 0.97 * chance <= float(found) <= chance * (1.0 + 1e-9)
