"""Releases that share a sample, against laws written out in full.

The oracle enumerates outcomes, or integrates densities, and shares no code with the package.
"""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mpf

import accountant as ac
from accountant.analyses.solvers import Renyi
from accountant.composition.problems import directions
from accountant.derived.joint import JointRelease
from support.oracle.finite_laws import EPSILONS, geometric, hockey, mix, product

pytestmark = pytest.mark.usefixtures("sixty_digits")


# Noise on integers in several coordinates.


@pytest.mark.parametrize(
    ("rate", "shifts"), [(0.5, (1, 1)), (0.3, (2, 3)), (1.5, (1, 2)), (0.2, (0, 4))]
)
def test_discrete_laplace_noise_on_two_integers_is_dominated_by_one(rate, shifts):
    p = product(*(geometric(rate, s) for s in shifts))
    q = product(*(geometric(rate, 0) for _ in shifts))
    one = ac.DiscreteLaplace(1.0 / rate, sensitivity=sum(shifts))
    for epsilon in [*EPSILONS, *(k * rate for k in range(sum(shifts) + 1))]:
        assert hockey(p, q, epsilon) <= one.delta(epsilon)


# One sample, several releases.

INNER = [((0.5, 1), (0.8, 2)), ((0.2, 3), (0.4, 1))]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("parts", INNER, ids=str)
@pytest.mark.parametrize("q", [0.02, 0.5])
def test_releases_on_one_poisson_sample(parts, q):
    base = ac.Composition([(ac.DiscreteLaplace(1.0 / a, sensitivity=s), 1) for a, s in parts])
    found = ac.PoissonSampled(JointRelease(base), q)
    out = product(*(geometric(a, 0) for a, _ in parts))
    hit = product(*(geometric(a, s) for a, s in parts))
    sampled = mix((1 - mpf(q), out), (mpf(q), hit))
    for epsilon in EPSILONS:
        truth = max(hockey(sampled, out, epsilon), hockey(out, sampled, epsilon))
        assert truth <= found.delta(epsilon)
        if found.delta_bounds(epsilon).lower > 0.0:  # a grid answered: within the chords
            assert found.delta(epsilon) <= truth * 1.03 + 1e-4
    # The composition itself is the same release, and no bound on it is given away.
    whole = ac.PoissonSampled(base, q)
    for epsilon in EPSILONS:
        truth = max(hockey(sampled, out, epsilon), hockey(out, sampled, epsilon))
        assert truth <= whole.delta(epsilon) <= found.delta(epsilon) * (1 + 1e-9)
        assert whole.delta_bounds(epsilon).lower <= truth  # the hull's own profile is above it
    # With a coin each the releases would cost less: they must not be treated so.
    apart = ac.Composition([(ac.PoissonSampled(m, q), n) for m, n in base.parts])
    assert found.delta(1.0) > apart.delta(1.0) or found.delta(1.0) == 0.0


@pytest.mark.long
def test_a_joint_release_costs_what_its_parts_cost():
    for base in (
        ac.Gaussian(2.0) + ac.Laplace(3.0),
        ac.PoissonSampled(ac.Gaussian(1.0), 0.2) + ac.Gaussian(4.0),
        1 * ac.PureDP(0.5),
    ):
        joint = JointRelease(base)
        for delta in (1e-2, 1e-5, 1e-9):
            exact = base.epsilon_bounds(delta)
            assert exact.lower <= joint.epsilon(delta) <= exact.upper * (1 + 5e-3) + 1e-4
        (pair,) = joint.pairs()
        assert pair.rdp(3.0) <= base.rdp(3.0) * (1 + 1e-9)
        table = pair.atoms()
        assert math.fsum(table.p) + table.infinite_p == pytest.approx(1.0, abs=1e-12)
        assert np.allclose(table.p, table.q[::-1])  # its own reverse


def test_a_question_without_an_answer_does_not_spoil_later_ones():
    # Next to the largest loss no grid brackets ε finely; δ further in has its digits all the same.
    run = 3 * ac.DiscreteLaplace(2.0, sensitivity=3)
    for delta in (1e-3, 1e-4, 1e-5):
        assert run.epsilon_bounds(delta).lower > 4.49
    bounds = run.delta_bounds(0.3)
    assert bounds.upper * (1 - 1e-6) <= bounds.lower


COMPOSED = [
    (2 * ac.Laplace(2.0) + ac.DiscreteLaplace(3.0), 0.1, 1),
    (3 * ac.Laplace(3.0), 0.1, 60),
    (ac.PoissonSampled(ac.Gaussian(1.0), 0.2) + ac.Laplace(4.0), 0.3, 10),
    (ac.Gaussian(2.0) + ac.ApproximateDP(0.3, delta=1e-7), 0.05, 3),
    (400 * ac.Laplace(1.0), 0.1, 2),  # losses beyond every table
    (ac.Gaussian(5.0) + ac.ZCDP(0.02), 0.1, 20),  # one part without a loss distribution
]


@pytest.mark.long
@pytest.mark.parametrize(("base", "q", "n"), COMPOSED, ids=repr)
def test_a_composition_on_a_sample_is_never_looser_than_its_curve(base, q, n):
    found = n * ac.PoissonSampled(base, q)
    curves = [Renyi(parts) for parts in directions(found.parts)]
    joint = n * ac.PoissonSampled(JointRelease(base), q)
    for delta in (0.0, 1e-40, 1e-6, 0.01):
        limit = max(curve.epsilon_bounds(delta).upper for curve in curves)
        assert found.epsilon(delta) <= limit
        assert found.epsilon(delta) <= joint.epsilon(delta) * 1.01 or "ZCDP" in repr(base)
    for epsilon in (0.0, 0.5, 3.0, math.inf):
        limit = max(curve.delta_bounds(epsilon).upper for curve in curves)
        assert found.delta(epsilon) <= limit
    # What a budget charges is what it was.
    assert [pair.rdp(4.0) for pair in found.parts[0][0].pairs()] == [
        curve.parts[0][0].rdp(4.0) for curve in curves
    ]


# A loss of ±0.1, of which nobody says more than its masses.
def steps(middle):
    """Return a function of losses that falls from 1 by way of ``middle`` to 0."""
    return lambda t: np.where(t < -0.1, 1.0, np.where(t < 0.1, middle, 0.0))


MORE, LESS = 1 / (1 + math.exp(-0.1)), 1 / (1 + math.exp(0.1))
MUTE = ac.LossDistribution(
    below_p=lambda t: 1.0 - steps(MORE)(t),
    above_p=steps(MORE),
    below_q=lambda t: 1.0 - steps(LESS)(t),
    above_q=steps(LESS),
    losses=(-0.1, 0.1),
    relative_error=1e-12,
)


def test_a_hull_says_nothing_from_below():
    # Three randomised responses on one sample: the loss is at most log(1 + q(e^1.5 - 1)) < 0.3.
    found = ac.PoissonSampled(3 * ac.PureDP(0.5), 0.1)
    assert 0.2986 < found.epsilon(1e-9) < 0.2988
    assert found.delta_bounds(0.3).lower == 0.0
    assert found.epsilon_bounds(1e-11).lower <= math.log1p(0.1 * math.expm1(1.5))
    # Beside a part without a Rényi curve, too, whose own loss is always 0.1.
    assert (found + MUTE).delta_bounds(0.4).lower == 0.0 < (found + MUTE).delta(0.3)


def test_gaussians_on_one_sample_merge_to_the_last_digit():
    rng = random.Random(5)
    for _ in range(200):
        parts = [
            (
                ac.Gaussian(10 ** rng.uniform(-3, 3), sensitivity=rng.choice([1.0, 3.0])),
                rng.randint(1, 10**6),
            )
            for _ in range(rng.randint(1, 3))
        ]
        parts.append((ac.Gaussian(math.inf), 2))
        (pair,) = ac.Composition(parts).pairs()
        exact = sum(
            (Fraction(m.sensitivity) / Fraction(m.noise_multiplier)) ** 2 * n for m, n in parts[:-1]
        )
        assert Fraction(pair.noise_multiplier) ** 2 * exact <= 1
        assert Fraction(pair.gaussian_part.most_noise) ** 2 * exact >= 1
    one = ac.PoissonSampled(4 * ac.Gaussian(3.0), 0.25)
    assert one.pairs() == ac.PoissonSampled(ac.Gaussian(1.5), 0.25).pairs()
    assert ac.PoissonSampled(1 * ac.Laplace(2.0), 0.1).pairs() == (
        ac.PoissonSampled(ac.Laplace(2.0), 0.1).pairs()
    )
    assert ac.PoissonSampled(0 * ac.Gaussian(2.0), 0.1).epsilon(1e-9) == 0.0
    # Less noise than the least double: told with the probability of being sampled.
    assert ac.PoissonSampled(100 * ac.Gaussian(5e-324), 0.1).epsilon(0.05) == math.inf
    assert ac.PoissonSampled(0 * ac.Laplace(2.0), 0.1).epsilon(1e-9) == 0.0


def test_gaussians_merged_are_what_the_joint_pair_approaches():
    for noise, q, n in ((1.0, 0.1, 30), (4.0, 0.3, 50)):
        merged = (n * ac.PoissonSampled(ac.Gaussian(noise / math.sqrt(2)), q)).epsilon_bounds(1e-5)
        joint = (n * ac.PoissonSampled(JointRelease(2 * ac.Gaussian(noise)), q)).epsilon(1e-5)
        assert merged.lower <= joint <= merged.upper * 1.01


def test_no_noise_at_all_is_a_mass_at_infinity():
    for base in (
        1 * ac.ApproximateDP(0.0, delta=1.0),
        ac.ApproximateDP(0.0, delta=1.0) + ac.Laplace(1.0),
    ):
        found = ac.PoissonSampled(JointRelease(base), 0.25)
        assert found.epsilon(0.2) == math.inf
        assert found.delta(3.0) == pytest.approx(0.25)
    assert JointRelease(0 * ac.Gaussian(1.0)).epsilon(1e-9) == 0.0


# With replacement, two releases on one batch, the second chosen after the first.


def test_a_batch_with_replacement_seen_twice():
    # n = 2, m = 2; the record is +1 and the other -1, so a batch sums to 2·hits - 2 against -2.
    # The second contribution turns its sign with the first output: adaptive.
    first, second = 1.0, 1.5
    x = np.linspace(-12.0, 12.0, 481)
    a, b = np.meshgrid(x, x, indexing="ij")
    sign = np.where(a > -1.0, 1.0, -1.0)
    width = (x[1] - x[0]) ** 2
    weights = [0.25, 0.5, 0.25]

    def density(hits):
        one = np.exp(-0.5 * ((a - (2 * hits - 2)) / first) ** 2) / first
        two = np.exp(-0.5 * ((b - sign * (2 * hits - 2)) / second) ** 2) / second
        return one * two / (2 * math.pi)

    out = density(0)
    law = sum(w * density(k) for k, w in enumerate(weights))
    noise = (first**-2 + second**-2) ** -0.5
    bound = ac.sampling.WithReplacementSampled(noise, batch_size=2, dataset_size=2)
    for p, q in ((law, out), (out, law)):
        for epsilon in (0.0, 0.3, 1.0, 2.5):
            truth = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * width)
            assert truth <= bound.delta(epsilon) + 1e-4
