"""Upper ends on a grid, next to a largest loss that is heavy."""

import random

import pytest
from flint import arb, ctx

import accountant as ac
from accountant.analyses.pld.upper import UpperEnds
from support.oracle import compositions as laws

SCALES = {
    (5, 2): (1.6213792074223445, [5.957388791102849]),
    (5, 3): (1.9321027262295711, [7.700900755127979]),
    (4, 3): (3.3268289126485127, [3.49512598755255]),
    (6, 2): (0.5495878708417127, [21.82532522462223, 21.8]),
    (1000, 1): (2.0, [499.9]),
}


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(200):
        yield


def check(count, distance, scale, epsilon):
    truth = laws.profile(laws.on_lattice(laws.discrete_laplace(scale, distance), count), epsilon)
    noise = ac.DiscreteLaplace(scale, sensitivity=distance)
    upper, bounds = (count * noise).delta(epsilon), (count * noise).delta_bounds(epsilon)
    for end in (upper, bounds.upper):
        assert arb(end) >= truth
    assert arb(bounds.lower) <= truth
    # As near as a millionth of ε means for δ, which falls by a unit of ε in this slope.
    top = count * distance / scale
    near = 1e-6 * max(1.0, epsilon / (top - epsilon))
    assert upper <= float(truth.mid()) * (1.0 + near)


@pytest.mark.parametrize(("count", "distance"), SCALES)
def test_next_to_a_heavy_largest_loss_the_profile_is_near_its_truth(count, distance):
    scale, places = SCALES[count, distance]
    for epsilon in places:
        check(count, distance, scale, epsilon)


@pytest.mark.long(keep=20)
@pytest.mark.parametrize("seed", range(400))
def test_random_places_below_a_heavy_largest_loss(seed):
    rng = random.Random(f"heavy largest losses {seed}")
    count, distance = rng.randint(2, 12), rng.choice((1, 2, 3))
    scale = 10.0 ** rng.uniform(-0.5, 0.8)
    share = 1.0 - 10.0 ** rng.uniform(-6.0, -0.3)
    check(count, distance, scale, share * count * distance / scale)


def test_an_upper_end_does_not_depend_on_questions_about_small_losses_before_it():
    """A law that was planned for ε = 0 answers for a δ whose ε is far above."""
    parts = ((ac.PureDP(0.1).pairs()[0], 3),)
    ends = UpperEnds(parts)
    known = UpperEnds(parts).epsilon_upper(1e-5)
    ends.epsilon_upper(1e-5)
    for epsilon in (0.0, 0.1, 0.2):
        ends.delta_upper(epsilon)
    assert ends.epsilon_upper(1e-5 * (1.0 - 1e-9)) <= known * (1.0 + 1e-6)
