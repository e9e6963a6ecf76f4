"""Our numbers beside dp-accounting's own; skipped where dp-accounting is not installed.

Their PLD accountant is pessimistic: ours must not exceed it. Where they are known to use another
convention than their own events state, the test says so.
"""

import math
import random
from fractions import Fraction

import pytest

from support import dp_event_names as names
from support.dp_event_names import DL, RR, AddRemove, Composed, G, L, Poisson, Special, Times, exact

pld = pytest.importorskip("dp_accounting.pld")
rdp = pytest.importorskip("dp_accounting.rdp")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


# Theirs is on a grid of 1e-4.
THEIRS = [
    (G(2.0), names.ALL),
    (Times(G(20.0), 50), names.ALL),
    (Times(L(3.0), 4), (AddRemove, Special)),
    (Composed([DL(0.5, 2), Times(L(3.0), 4)]), (AddRemove, Special)),
    (RR(0.5, 4), (names.Replace, Special)),
    (RR(0.9, 2), (names.Replace, Special)),
    (Times(Poisson(0.01, G(1.0)), 500), names.ALL),
    (Times(Poisson(0.2, L(3.0)), 20), (AddRemove, Special)),
    (Composed([Times(Poisson(0.05, G(2.0)), 100), L(5.0), G(8.0)]), (AddRemove, Special)),
    (Times(names.Truncated(500, 0.02, 40, 2.0), 5), (AddRemove, names.Replace)),
]
if hasattr(names.dp.dp_event, "PermuteAndFlipDpEvent"):  # newer than 0.6
    THEIRS += [
        (Times(names.Flip(0.5), 7), (AddRemove, Special)),
        (Composed([names.Stated(0.5, 1e-7), G(3.0)]), (AddRemove, Special)),
    ]


@pytest.mark.parametrize(
    ("event", "relation"),
    [(event, relation) for event, relations in THEIRS for relation in relations],
    ids=str,
)
def test_not_above_their_loss_distributions_and_close(event, relation):
    # Full batches are rarer in their mixture, by a record and by its own chance to stay.
    capped = isinstance(getattr(event, "event", None), names.Truncated)
    slack = 5e-5 if capped else 1e-6
    theirs = pld.PLDAccountant(relation).compose(event)
    ours = exact(event, relation)
    for delta in (1e-3, 1e-6):
        epsilon = ours.get_epsilon(delta)
        assert epsilon <= theirs.get_epsilon(delta) * (1 + slack) + 1e-9
        assert epsilon == pytest.approx(theirs.get_epsilon(delta), rel=5e-3, abs=1e-3)
    assert capped or ours.get_delta(0.3) <= theirs.get_delta(0.3) * (1 + 1e-4) + 1e-12


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (G(2.0), AddRemove),
        (Times(L(3.0), 4), Special),
        (Poisson(0.1, Composed([G(3.0), Times(G(4.0), 3)])), AddRemove),
        (Composed([names.ZCDP(0.05, 0.01), Times(G(9.0), 4)]), AddRemove),
        (Times(names.ZCDP(0.02), 3), names.Replace),
        (names.Tree(4.0, [3, 12]), Special),
        (names.Best(G(3.0), 10.0, 1.0), AddRemove),
        (names.Best(G(3.0), 10.0, 0.0), Special),
        (names.Best(Times(Poisson(0.05, G(2.0)), 30), 20.0, 2.0), AddRemove),
        (names.Best(G(3.0), 10.0, math.inf), AddRemove),
        (Times(RR(0.5, 5), 4), names.Replace),
        (Times(RR(0.5, 5), 4), Special),
        *(
            [
                (Times(names.DiscreteG(4.0, 1.0, 1), 20), AddRemove),
                (Times(names.DiscreteG(4.0, 1.5), 20), Special),
                (names.Exponential(0.5), AddRemove),
                (Times(names.Flip(0.5), 20), Special),
                (Composed([names.Stated(0.5, 1e-9), G(3.0)]), Special),
            ]
            if hasattr(names.dp.dp_event, "PermuteAndFlipDpEvent")
            else []
        ),
    ],
    ids=str,
)
def test_not_above_their_renyi_accountant(event, relation):
    theirs = rdp.RdpAccountant(neighboring_relation=relation).compose(event)
    ours = exact(event, relation)
    for delta in (1e-3, 1e-8):
        assert ours.get_epsilon(delta) <= theirs.get_epsilon(delta) * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_their_sampling_without_replacement_halves_the_distance():
    # Their events bound the norm of a value, so replacing one moves a sum by twice that; their
    # Rényi accountant moves it once. The numbers meet when the noise is halved.
    for batch, steps in ((10, 100), (50, 20)):
        theirs = rdp.RdpAccountant(neighboring_relation=names.Replace)
        theirs.compose(Times(names.Without(1000, batch, G(2.0)), steps))
        ours = exact(Times(names.Without(1000, batch, G(4.0)), steps), names.Replace)
        assert ours.get_epsilon(names.DELTA) <= theirs.get_epsilon(names.DELTA)


def test_parameters_are_rounded_to_the_safe_side():
    mpmath = pytest.importorskip("mpmath")
    rng = random.Random(4)
    for _ in range(200):
        p, k = (
            rng.choice([10 ** rng.uniform(-9, 0), 1 - 10 ** rng.uniform(-9, -1)]),
            rng.randrange(2, 99),
        )
        ((answer, _),) = names.mechanism(RR(p, k), names.Replace).parts
        truth = 1 + k * (1 - Fraction(p)) / Fraction(p)
        with mpmath.workdps(40):
            assert (
                mpmath.exp(mpmath.mpf(answer.epsilon0))
                >= mpmath.mpf(truth.numerator) / truth.denominator
            )
        ((pair, _),) = names.mechanism(RR(p, k), Special).parts
        # As if each were divided by its sum.
        ours = [Fraction(a) / (Fraction(a) + Fraction(b)) for a, b in (pair.p, pair.q)]
        assert ours[0] >= 1 - Fraction(p) + Fraction(p) / k
        assert ours[1] <= Fraction(1, k)
        ((noise, _),) = names.mechanism(DL(p, k)).parts
        assert 1 / Fraction(noise.scale) >= Fraction(p)
        ((merged, _),) = names.mechanism(Poisson(0.5, Composed([G(p), Times(G(1.0), k)]))).parts
        assert Fraction(merged.mechanism.noise_multiplier) ** -2 >= Fraction(p) ** -2 + k


def test_repetitions_of_a_randomized_response_are_all_counted():
    # Their loss distribution accountant composes one, whatever the count.
    once, thrice = exact(RR(0.5, 4), names.Replace), exact(Times(RR(0.5, 4), 3), names.Replace)
    epsilon = math.log1p(4 * 0.5 / 0.5)
    assert once.get_epsilon(0.0) == pytest.approx(epsilon, rel=1e-12)
    assert thrice.get_epsilon(0.0) == pytest.approx(3 * epsilon, rel=1e-12)


def test_repetitions_of_an_exponential_mechanism_are_all_counted():
    # Their Rényi accountant, newer than 0.6, adds one release for any count.
    once, often = exact(names.Exponential(0.5)), exact(Times(names.Exponential(0.5), 40))
    assert once.get_epsilon(0.0) == pytest.approx(0.5, rel=1e-12)
    assert often.get_epsilon(0.0) == pytest.approx(20.0, rel=1e-12)
    assert often.get_epsilon(1e-6) > 5 * once.get_epsilon(1e-6)


def test_more_noise_fewer_steps_and_rarer_samples_never_cost_more():
    rng = random.Random(5)
    for _ in range(20):
        q, sigma, n = rng.uniform(0.001, 0.4), rng.uniform(0.8, 5.0), rng.randrange(1, 60)
        relation = rng.choice([AddRemove, names.Replace])

        def cost(q, sigma, n, relation=relation):
            return exact(Times(Poisson(q, G(sigma)), n), relation).get_epsilon(1e-4)

        base = cost(q, sigma, n) * (1 + 1e-5)
        assert cost(q / 2, sigma, n) <= base
        assert cost(q, sigma * 1.3, n) <= base
        assert cost(q, sigma, max(n // 2, 1)) <= base
