"""What makes a private sum public: the noise that is drawn covers what one record can move."""

import math

import numpy as np
from scipy import stats

from accountant.learn import AdaptiveQuantile, LogisticRegression
from accountant.learn.clipping import Rule
from accountant.learn.release import Privatiser, release_fraction
from accountant.noise import SecureGenerator


def test_the_count_has_the_noise_that_was_charged():
    """Theorem T8 charges a count that one record moves by 1 with noise of 2 count_noise."""
    generator, draws = SecureGenerator(3), 4000
    for noise in (3.0, 10.0):
        rule = AdaptiveQuantile(1.0, count_noise=noise)
        found = [release_fraction(rule, 30, 50, 40.0, generator) for _ in range(draws)]
        counts = (np.array(found) - 0.5) * 80.0 - 10.0
        spread = (counts**2).sum() / (2.0 * noise) ** 2
        # A twelfth more for rounding to integers.
        low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], draws)
        assert low < spread < high * (1.0 + 1.0 / 12.0 / (2.0 * noise) ** 2)


def test_the_noise_covers_the_rounding_of_every_coordinate():
    """Two sums one clipped record apart, each coordinate rounded away from its other."""
    size, norm = 10_000, 1.0
    for noise in ("gaussian", "discrete_gaussian"):
        privatiser = Privatiser(LogisticRegression(size, bias=False), noise, 1.0, 100.0)
        grid, deviation = privatiser.settings(Rule((norm,)))
        one = np.full(size, (0.5 - 2.0**-20) * grid.step)
        other = one + norm / math.sqrt(size) * (1.0 - 2.0**-40)
        assert np.linalg.norm(other - one) <= norm
        moved = float(np.linalg.norm(grid.round(other) - grid.round(one))) * grid.step
        assert moved > norm + 10.0 * grid.step, "the example is as bad as it is meant to be"
        assert deviation >= moved
