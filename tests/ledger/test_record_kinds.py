"""Individual filters over kinds: no strategy exceeds the budget, and norms find their kind."""

import functools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import accountant as ac
from accountant.errors import BudgetExceeded, DomainError
from accountant.ledger import Accountant, Budget, IndividualFilter
from accountant.ledger.kinds import RecordKinds
from accountant.relations import NeighbouringRelation

EPSILON, DELTA, Q = 3.0, 1e-5, 0.01
LEVELS = (1.1, 2.2, 4.4)


def step(sigma, q=Q):
    return ac.PoissonSampled(ac.Gaussian(sigma), q)


@pytest.fixture(scope="module")
def budget():
    return Budget(EPSILON, DELTA, filter="kinds", kinds=[step(s) for s in LEVELS])


def worst_delta(watch, sizes, epsilon):
    """Return the δ of the best strategy over what one record may take part in."""

    @functools.cache
    def admitted(counts, kind):
        watch._spent = np.array(counts, float)[:, None]
        return bool(watch.charge([[float(kind == j)] for j in range(len(sizes))])[0])

    @functools.cache
    def value(counts, nets):
        loss = sum(k * mpmath.mpf(e) for k, e in zip(nets, sizes, strict=True))
        best = max(mpmath.mpf(0), -mpmath.expm1(epsilon - loss))
        for j, size in enumerate(sizes):
            if admitted(counts, j):
                more = tuple(c + (i == j) for i, c in enumerate(counts))
                up, down = (tuple(k + d * (i == j) for i, k in enumerate(nets)) for d in (1, -1))
                p = 1 / (1 + mpmath.exp(-mpmath.mpf(size)))
                best = max(best, p * value(more, up) + (1 - p) * value(more, down))
        return best

    return value((0,) * len(sizes), (0,) * len(sizes))


@pytest.mark.parametrize(
    ("sizes", "epsilon", "delta"), [((0.6, 0.35), 2.0, 0.05), ((0.5, 1.1), 2.5, 0.1)]
)
def test_no_strategy_of_a_record_exceeds_the_budget(sizes, epsilon, delta):
    kinds = [ac.PureDP(size) for size in sizes]
    watch = IndividualFilter(Budget(epsilon, delta, filter="kinds", kinds=kinds), 1)
    with mpmath.workdps(30):
        reached = worst_delta(watch, sizes, epsilon)
    assert delta / 3 < reached <= delta


@pytest.mark.long
def test_each_record_is_decided_as_a_ledger_of_its_own(budget):
    coins = np.random.default_rng(3)
    watch = IndividualFilter(budget, 3)
    ledgers = [Accountant(budget) for _ in range(3)]
    for _ in range(60):
        counts = coins.integers(0, 200, (3, 3)).astype(float)
        taking = watch.charge(counts)
        for i, ledger in enumerate(ledgers):
            column = [(step(s), int(n)) for s, n in zip(LEVELS, counts[:, i], strict=True) if n]
            fits = _fits(ledger, column)
            assert taking[i] == fits
    assert (np.array([ledger.epsilon(DELTA) for ledger in ledgers]) <= EPSILON).all()


def _fits(ledger, column):
    whole = Accountant.from_json(ledger.to_json())
    try:
        for kind, count in column:
            whole.compose(kind, count)
    except BudgetExceeded:
        return False
    for kind, count in column:
        ledger.compose(kind, count)
    return True


@pytest.mark.long
def test_small_contributions_last_longer_and_large_ones_are_left_out(budget):
    watch = IndividualFilter(budget, 4)
    taken = np.zeros(4)
    for _ in range(3720):
        taken += watch.charge_gaussian(
            [1.0, 0.5, 0.0, 1.0 + 2**-50], noise_multiplier=1.1, sampling_probability=Q
        )
    exact = ac.calibrate_steps(EPSILON, DELTA, q=Q, sigma=1.1)
    assert 0.94 * exact < taken[0] <= exact
    assert taken[1:].tolist() == [3720, 3720, 0]
    assert watch.spent[:, 0].tolist() == [taken[0], 0, 0]
    assert watch.spent[:, 1].tolist() == [0, 3720, 0]
    again = IndividualFilter(budget, 4)
    again.restore(watch.spent, watch.orders)
    assert (again.spent == watch.spent).all()
    assert not again.charge_gaussian(1.0, noise_multiplier=1.1, sampling_probability=Q)[0]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("sigma", [1e-300, 0.3, 1.1, 2.2, 7.7, 1e300])
def test_a_contribution_is_charged_as_a_kind_with_no_more_noise(budget, sigma):
    records = RecordKinds(budget)
    norms = np.array([0.0, 5e-324, 1e-9, sigma / 4.4, 0.5, 1.0, 3.0, sigma / 1.1, 1e300])
    counts = records.releases(norms, sigma, Q)
    for norm, column in zip(norms, counts.T, strict=True):
        fitting = [norm == 0.0 or Fraction(norm) * Fraction(s) <= Fraction(sigma) for s in LEVELS]
        if norm == 0.0:
            assert not column.any()
        elif any(fitting):
            # The most noise is the cheapest.
            assert column.tolist() == [float(j == fitting.count(True) - 1) for j in range(3)]
        else:
            assert column[0] == math.inf
    assert not records.releases(norms, math.inf, Q).any()
    assert not records.releases(norms, sigma, 0.0).any()
    # At a larger rate than that of the kinds nothing is dominated.
    assert (records.releases(norms[1:], sigma, 2 * Q)[0] == math.inf).all()


def test_kinds_of_other_relations_and_counts_beyond_all(budget):
    other = ac.Gaussian(20.0, relation=NeighbouringRelation.REPLACE_ONE)
    with pytest.raises(DomainError, match="add-or-remove"):
        IndividualFilter(Budget(3.0, 1e-5, filter="kinds", kinds=[other]), 2)
    watch = IndividualFilter(budget, 4)
    row = np.array([np.inf, 1e300, 0.5, 0.0])
    assert watch.charge(row).tolist() == [False, False, True, True]
    assert watch.spent[0].tolist() == [0.0, 0.0, 1.0, 0.0]
