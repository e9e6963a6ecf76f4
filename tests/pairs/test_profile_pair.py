"""The pair of a profile that bounds both directions is above both, and as near as symmetry gives.

The oracle sums fractions over the outcomes of discrete laws; it shares no code with the pair.
"""

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import pytest

from accountant.errors import UnsupportedError
from accountant.pairs.profile_pair import TwoSidedPair, lower_hull


def hockey_stick(p, q, ratio):
    return sum((max(a - ratio * b, 0) for a, b in zip(p, q, strict=True)), Fraction(0))


@dataclass(frozen=True)
class Exact:
    """The larger profile of two laws, a little raised; ``blind`` is the ε up to which it is 1."""

    p: tuple
    q: tuple
    blind: float = 0.0

    def delta(self, epsilon):
        if epsilon < self.blind:
            return 1.0
        ratio = Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**51))
        most = max(hockey_stick(self.p, self.q, ratio), hockey_stick(self.q, self.p, ratio))
        return min(math.nextafter(float(most), 2.0), 1.0)

    def rdp(self, order):
        raise UnsupportedError("none")

    @property
    def pure_epsilon(self):
        ratios = [a / b for a, b in zip(self.p, self.q, strict=True)]
        most = max(max(ratios), 1 / min(ratios))
        return math.log(most) * (1.0 + 1e-13)


def laws(seed, size):
    draw = random.Random(seed)
    p, q = ([draw.randint(1, 50) for _ in range(size)] for _ in range(2))
    return tuple(tuple(Fraction(w, sum(weights)) for w in weights) for weights in (p, q))


@pytest.mark.long(keep=6)
@pytest.mark.parametrize("blind", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_above_both_directions_at_every_real_epsilon(seed, size, blind):
    p, q = laws(seed, size)
    pair = TwoSidedPair(Exact(p, q, blind))
    atoms = pair.loss_atoms
    assert math.fsum(atoms.p) + atoms.infinite_p == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(atoms.q) + atoms.infinite_q == pytest.approx(1.0, abs=1e-12)
    for epsilon in (-3.0, -1.0, -0.4, -0.1, 0.0, 1e-3, 0.1, 0.2, 0.5, 1.0, 2.5):
        ratio = Fraction(math.exp(epsilon)) * (1 - Fraction(1, 2**51))
        found = Fraction(pair.profile(epsilon).upper)
        # The exponential at ε may be an ulp off either way.
        ratio += Fraction(1, 2**50) * ratio
        assert found >= hockey_stick(p, q, ratio)
        assert found >= hockey_stick(q, p, ratio)


def test_an_unknown_profile_near_zero_is_that_of_symmetry():
    """Randomised response, of which nothing is known but its largest loss."""
    yes = Fraction(3, 4)
    pair = TwoSidedPair(Exact((yes, 1 - yes), (1 - yes, yes), blind=1.09))
    for epsilon in (0.0, 0.4, 1.0):
        # The exponential at ε may be an ulp off.
        ratio = Fraction(math.exp(epsilon)) * (1 + Fraction(1, 2**50))
        exact = hockey_stick((yes, 1 - yes), (1 - yes, yes), ratio)
        assert exact <= Fraction(pair.profile(epsilon).upper) <= exact * (1 + Fraction(1, 1000))
    assert pair.infinite_mass < 1e-12


def test_nothing_known_is_a_mass_at_infinity():
    p, q = laws(0, 2)
    pair = TwoSidedPair(Exact(p, q, blind=1e9))
    assert pair.profile(0.5).upper >= 1.0 - 1e-12


def highest_below(points, at):
    """Return the least value of all chords over an abscissa: the hull there."""
    values = [y for x, y, _ in points if x == at]
    for (x, y, _), (s, t, _) in combinations(points, 2):
        if x < at < s:
            values.append(y + (t - y) * (at - x) / (s - x))
    return min(values)


@pytest.mark.parametrize("seed", range(20))
def test_vertices_are_the_points_below_all_chords(seed):
    """Also where denominators have nothing in common, and where points are in line."""
    rng = random.Random(seed)
    across = sorted({Fraction(rng.randint(1, 400), rng.choice([1, 3, 7, 2**60])) for _ in range(9)})
    flat = seed % 2
    points = [
        (x, 3 * x - 1 if flat else Fraction(rng.randint(-50, 50), rng.choice([1, 11, 2**70])), 0.0)
        for x in across
    ]
    kept = lower_hull(points)
    for point in points:
        others = [each for each in points if each is not point]
        end = point in (points[0], points[-1])
        below = end or point[1] < highest_below(
            [*others, (point[0], Fraction(10**9), 0.0)], point[0]
        )
        assert (point in kept) == below
