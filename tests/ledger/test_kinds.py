"""Budgets for kinds fixed in advance: what they admit, and that it never exceeds the budget."""

import math
import random

import numpy as np
import pytest

import accountant as ac
from accountant.errors import BudgetExceeded, DomainError, UnsupportedError
from accountant.ledger import Accountant, Budget
from accountant.relations import NeighbouringRelation
from support.noise_schedules import SCHEDULES, steps_afforded
from support.toy_mechanisms import Skewed

EPSILON, DELTA, Q = 3.0, 1e-5, 0.01
LEVELS = [1.0, 1.25, 1.6, 2.0]


def step(sigma, q=Q):
    return ac.PoissonSampled(ac.Gaussian(sigma), q)


@pytest.fixture(scope="module")
def budget():
    return Budget(EPSILON, DELTA, filter="kinds", kinds=[step(s) for s in LEVELS])


@pytest.mark.long
def test_nearly_as_many_of_each_kind_as_the_exact_composition(budget):
    for sigma in LEVELS:
        exact = ac.calibrate_steps(EPSILON, DELTA, q=Q, sigma=sigma)
        found = Accountant(budget).affordable(step(sigma))
        assert 0.94 * exact < found <= exact
        assert found > 1.2 * Accountant(Budget(EPSILON, DELTA, filter="renyi")).affordable(
            step(sigma)
        )


@pytest.mark.long
def test_what_is_admitted_never_exceeds_the_budget(budget):
    for seed in range(12):
        coins = random.Random(seed)
        ledger = Accountant(budget)
        weights = [coins.random() ** 3 for _ in LEVELS]
        while True:
            kind = step(coins.choices(LEVELS, weights)[0])
            count = min(ledger.affordable(kind), coins.randrange(1, 900))
            if not count:
                break
            ledger.compose(kind, count)
        assert 0.9 * EPSILON < ledger.epsilon(DELTA) <= EPSILON
        left = ledger.remaining()
        assert left.spent <= left.capacity


@pytest.mark.long
def test_the_order_and_the_parts_of_records_change_nothing(budget):
    whole, parts = Accountant(budget), Accountant(budget)
    whole.compose(step(1.0), 100)
    whole.compose(step(2.0), 301)
    for _ in range(301):
        parts.compose(step(2.0))
    for _ in range(100):
        parts.compose(step(1.0))
    assert parts.remaining() == whole.remaining()
    assert Accountant.from_json(whole.to_json()).remaining() == whole.remaining()


@pytest.mark.long
def test_a_file_keeps_the_packets(budget):
    other = Budget(EPSILON, DELTA, filter="kinds", kinds=budget.kinds, packets=[(9, 1)] * 4)
    assert other != budget
    ledger = Accountant(other)
    ledger.compose(step(1.6), 10)
    again = Accountant.from_json(ledger.to_json())
    assert again.budget == other
    assert again.remaining().spent == 2.0
    # Any packets are sound: here each kind costs what the dearest does.
    count = again.affordable(step(1.0))
    again.compose(step(1.0), count)
    assert again.epsilon(DELTA) <= EPSILON


def test_a_step_with_more_noise_or_a_smaller_rate_is_charged_as_a_kind(budget):
    ledger = Accountant(budget)
    assert ledger.affordable(step(1.3)) == ledger.affordable(step(1.25))
    assert ledger.affordable(step(1.3, 0.005)) == ledger.affordable(step(1.25))
    assert ledger.affordable(step(50.0, 1e-9)) == ledger.affordable(step(2.0))
    for other in (
        step(0.99),
        step(1.0, 0.011),
        ac.Gaussian(5.0),
        ac.Laplace(100.0),
        ac.PoissonSampled(ac.Laplace(100.0), 0.001),
        Skewed(0.1, 0.1),
    ):
        with pytest.raises(UnsupportedError, match="one of the 4 kinds"):
            ledger.compose(other)
    assert len(ledger) == 0
    replaced = ac.Gaussian(5.0, relation=NeighbouringRelation.REPLACE_ONE)
    with pytest.raises(UnsupportedError):
        ledger.compose(replaced)


@pytest.mark.long
def test_kinds_of_several_families_are_composed_together():
    kinds = [step(1.2), ac.Gaussian(40.0), ac.Laplace(60.0), ac.ApproximateDP(0.02, delta=1e-8)]
    ledger = Accountant(Budget(2.0, 1e-5, filter="kinds", kinds=kinds))
    for kind in kinds:
        assert ledger.affordable(kind) > 3
    for kind in kinds * 3:
        ledger.compose(kind, max(1, ledger.affordable(kind) // 4))
    assert ledger.epsilon(1e-5) <= 2.0


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("epsilon", "delta", "kind"),
    [
        (1e-3, 1e-9, ac.PureDP(1e-5)),
        (1.0, 1e-6, ac.PureDP(0.0)),
        (1.0, 1e-6, ac.Gaussian(math.inf)),
        (0.5, 0.5, ac.Gaussian(1.0)),
        (1.0, 1e-30, ac.Gaussian(100.0)),
        (50.0, 1e-5, ac.Gaussian(0.5)),
        (1.0, 1e-6, ac.ApproximateDP(0.0, delta=1e-8)),
        (1.0, 1e-5, ac.PoissonSampled(ac.Gaussian(1.0), 1e-6)),
    ],
    ids=repr,
)
def test_extreme_kinds_stay_within_the_budget(epsilon, delta, kind):
    ledger = Accountant(Budget(epsilon, delta, filter="kinds", kinds=[kind]))
    fits = ledger.affordable(kind)
    exact = Accountant(Budget(epsilon, delta, filter="non-adaptive")).affordable(kind)
    assert fits <= exact
    if fits:
        ledger.compose(kind, fits)
        with pytest.raises(DomainError if fits == 1 << 53 else BudgetExceeded):
            ledger.compose(kind)


def test_kinds_are_checked():
    for bad in (None, [], [step(1.0)] * 0):
        with pytest.raises(DomainError, match="kinds must be 1 to 64"):
            Budget(1.0, 1e-5, filter="kinds", kinds=bad)
    with pytest.raises(DomainError, match="kinds belong to"):
        Budget(1.0, 1e-5, kinds=[step(1.0)])
    other = ac.Gaussian(1.0, relation=NeighbouringRelation.REPLACE_ONE)
    with pytest.raises(UnsupportedError):
        Budget(1.0, 1e-5, filter="kinds", kinds=[step(1.0), other])
    with pytest.raises(DomainError, match="must each fit"):
        Budget(0.1, 1e-6, filter="kinds", kinds=[ac.Gaussian(0.5)])
    for packets in ([], [(1,)], [(1, 1), (1, 1)], [(0, 1)], [(1, -1)]):
        with pytest.raises(DomainError, match="packets"):
            Budget(1.0, 1e-5, filter="kinds", kinds=[step(2.0)], packets=packets)
    with pytest.raises(DomainError, match="packets belong to"):
        Budget(1.0, 1e-5, packets=[(1, 1)])
    for pair in ((2.0, 1.0), (1.0,), (0.0, 1.0)):
        with pytest.raises(DomainError):
            Budget.for_noise(1.0, 1e-5, sampling_probability=0.1, noise_multipliers=pair)
    same = Budget(1.0, 1e-5, filter="kinds", kinds=[step(2.0), step(2.0)])
    assert same.kinds == (step(2.0),)
    names = {"Budget": Budget, "PoissonSampled": ac.PoissonSampled, "Gaussian": ac.Gaussian}
    assert eval(repr(same), names) == same


def ratios(epsilon, delta, q, steps_per_epoch):
    for schedule, known in SCHEDULES.values():
        if isinstance(known, tuple):
            budget = Budget.for_noise(
                epsilon, delta, sampling_probability=q, noise_multipliers=known
            )
        else:
            budget = Budget(epsilon, delta, filter="kinds", kinds=[step(s, q) for s in known])
        ledger = Accountant(budget)
        rate = q

        def of(sigma, rate=rate):
            return step(sigma, rate)

        mine = steps_afforded(ledger, of, schedule, steps_per_epoch)
        assert ledger.epsilon(delta) <= epsilon
        # Against the filter of other libraries, then against the default.
        others = (Budget(epsilon, delta, filter="renyi"), Budget(epsilon, delta))
        found = [steps_afforded(Accountant(b), of, schedule, steps_per_epoch) for b in others]
        yield [mine / max(count, 1) for count in found]


@pytest.mark.long
@pytest.mark.parametrize(
    ("epsilon", "delta", "kind", "least"),
    [
        (0.001, 1e-9, step(2.0, 1e-5), 0.99),  # losses far above ε, on few knots
        (0.01, 1e-8, step(1.0, 1e-5), 0.98),  # they spread too far for the finest lattice
        (1.0, 1e-5, step(1.0), 0.98),  # as few as a unit each would be too many
    ],
    ids=repr,
)
def test_small_budgets_lose_little(epsilon, delta, kind, least):
    budget = Budget(epsilon, delta, filter="kinds", kinds=[kind])
    exact = ac.calibrate_steps(
        epsilon, delta, q=kind.sampling_probability, sigma=kind.mechanism.noise_multiplier
    )
    assert least * exact < Accountant(budget).affordable(kind) <= exact


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "q", "steps_per_epoch", "median"),
    [
        (3.0, 1e-5, 0.01, 100, 1.2),
        (1.0, 1e-6, 0.001, 1000, 2.0),
        (2.0, 1e-5, 0.01, 100, 1.18),
        (8.0, 1e-5, 0.02, 50, 1.18),
    ],
)
def test_schedules_of_the_noise_get_more_steps_than_by_renyi(
    epsilon, delta, q, steps_per_epoch, median
):
    found = np.array(list(ratios(epsilon, delta, q, steps_per_epoch)))
    assert len(found) == 20
    assert found[:, 0].min() > 1.0
    assert np.median(found[:, 0]) > median
    assert np.median(found[:, 1]) > 1.05


def test_kinds_of_rare_losses_are_planned_without_composing_them_many_times():
    def coin(p, q):
        return ac.DominatingPMFs((p[0], 1 - p[0] - p[1], p[1]), (q[0], 1 - q[0] - q[1], q[1]))

    rare = [coin((7.7e-9, 5.0e-7), (3.0e-8, 4.8e-7)), coin((3.7e-6, 1.68e-5), (4.5e-6, 1.6e-5))]
    kinds = [*rare, coin((0.072, 0.0658), (0.0658, 0.072))]
    ledger = Accountant(Budget(0.7236, 0.00155, filter="kinds", kinds=kinds))
    counts = [ledger.affordable(kind) for kind in kinds]
    assert counts[2] >= 40
    for kind, count in zip(kinds, counts, strict=True):
        assert (count * kind).epsilon(0.00155) <= 0.7236
