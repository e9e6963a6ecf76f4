"""Individual accounting: nobody overspends, everybody is charged for themselves alone."""

import copy
import math
import os
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accountant as ac
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.ledger import Budget, IndividualFilter
from accountant.ledger.individual import _gaussian

BUDGET = Budget(1.0, 1e-5, orders=20.0)


def fresh(n=5, budget=BUDGET):
    return IndividualFilter(budget, n)


# The capacity is 0.6: some are refused.
@given(st.lists(st.lists(st.floats(0.0, 0.3), min_size=4, max_size=4), max_size=30))
def test_nobody_overspends_and_the_refused_pay_nothing(rounds):
    watch = fresh(4)
    exact = [Fraction(0)] * 4
    for costs in rounds:
        for i, taking in enumerate(watch.charge(costs)):
            if taking:
                exact[i] += Fraction(costs[i])
            else:
                assert Fraction(costs[i]) + exact[i] > Fraction(watch.capacities[0]) * (
                    1 - Fraction(1, 10**12)
                )
    for total, spent in zip(exact, watch.spent[0], strict=True):
        assert total <= Fraction(spent) <= Fraction(watch.capacities[0])
        assert Fraction(spent) <= total * (1 + Fraction(1, 10**12)) + Fraction(1, 10**300)


def test_records_drop_out_one_by_one():
    watch = fresh(3)
    norms = np.array([0.1, 0.5, 1.0])
    took_part = np.zeros(3, dtype=int)
    for _ in range(100_000):
        taking = watch.charge_gaussian(norms, noise_multiplier=20.0)
        took_part += taking
        if not taking.any():
            break
    per_step = watch.orders[0] * norms**2 / (2 * 20.0**2)
    assert (took_part == np.floor(watch.capacities[0] / per_step * (1 + 1e-9))).all()
    assert took_part[0] > 3 * took_part[1] > 9 * took_part[2]


@pytest.mark.parametrize("bad", [[[0.1] * 5], [0.1] * 4, [-1.0] * 5, [math.inf] * 5])
def test_bad_norms(bad):
    watch = fresh(5)
    with pytest.raises(DomainError):
        watch.charge_gaussian(bad, noise_multiplier=1.0)
    assert not watch.spent.any()


def test_the_drop_out_is_private_for_each_record_exactly():
    # Full participation up to the capacity is a Gaussian release of total norm c*sqrt(k).
    watch = fresh(1)
    steps = 0
    while watch.charge_gaussian([0.7], noise_multiplier=9.0)[0]:
        steps += 1
    assert ac.get_epsilon(1.0, 9.0 / 0.7, steps, 1e-5) <= 1.0


@pytest.mark.long
@given(
    st.lists(st.floats(0.0, 1e3), min_size=1, max_size=6),
    st.floats(0.01, 1e3),
    st.sampled_from([1.0, 0.3, 1e-3]),
)
def test_charges_cover_the_divergence(norms, sigma, q):
    watch = fresh(len(norms), Budget(1e6, 0.1))
    charged = _gaussian(watch.orders[0], np.array(norms), sigma, q)
    for c, value in zip(norms, charged, strict=True):
        if c == 0.0:
            assert value == 0.0
            continue
        with mpmath.workdps(40):
            plain = watch.orders[0] * mpmath.mpf(c) ** 2 / (2 * mpmath.mpf(sigma) ** 2)
            if q == 1.0:
                assert plain <= value <= plain * (1 + 1e-12) + 1e-300
            else:
                assert value <= plain * (1 + 1e-12) + 1e-300
        if q < 1.0:
            curve = ac.get_rdp(q, sigma / c, 1, watch.orders[0])
            assert value >= min(curve, plain) * (1 - 1e-9)


def test_a_million_records_at_once():
    watch = fresh(10**6)
    norms = np.random.default_rng(3).uniform(0.0, 1.0, 10**6)
    assert watch.charge_gaussian(norms, noise_multiplier=50.0).all()
    assert watch.charge_gaussian(norms, noise_multiplier=5.0, sampling_probability=0.01).all()


def test_no_sampling_and_no_noise_limits():
    watch = fresh(2)
    assert watch.charge_gaussian([1.0, 0.0], noise_multiplier=1e-9).tolist() == [False, True]
    assert watch.charge_gaussian([1.0, 1.0], noise_multiplier=1e-9, sampling_probability=0.0).all()
    assert watch.charge_gaussian([1.0, 1.0], noise_multiplier=math.inf).all()
    assert not watch.spent.any()


def test_infinite_costs_drop_out():
    assert fresh(2).charge([math.inf, 0.0]).tolist() == [False, True]


def test_restoring_continues():
    watch = fresh(2)
    watch.charge([0.01, 0.02])
    again = fresh(2)
    again.restore(watch.spent, watch.orders)
    assert (again.spent == watch.spent).all()
    with pytest.raises(DomainError, match="fresh"):
        again.restore(watch.spent, watch.orders)


def test_what_was_spent_at_other_orders_is_not_taken_for_these():
    # A larger ε chooses lower orders, a smaller one higher, at which more was spent.
    old = IndividualFilter(Budget(8.0, 1e-5), 2)
    old.charge_gaussian([1.0, 0.5], noise_multiplier=5.0)
    new = IndividualFilter(Budget(1.0, 1e-5), 2)
    assert new.orders != old.orders
    with pytest.raises(DomainError, match=r"orders must be .*, the filter"):
        new.restore(old.spent, old.orders)
    assert not new.spent.any()
    kept = IndividualFilter(Budget(7.0, 1e-5, orders=old.orders), 2)
    kept.restore(old.spent, old.orders)
    assert (kept.spent == old.spent).all()


def test_there_is_one_of_it():
    watch = fresh(2)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UnsupportedError):
            copied(watch)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_spends_nothing():
    watch = fresh(2)
    child = os.fork()
    if child == 0:
        try:
            watch.charge([0.01, 0.01])
        except UnsupportedError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert watch.charge([0.01, 0.01]).all()


def test_spent_is_a_copy():
    watch = fresh(2)
    watch.spent[:] = 1.0
    assert not watch.spent.any()


@pytest.mark.parametrize("bad", [[0.1], [-1.0] * 5, [math.nan] * 5, [[[0.1] * 5]], [0.1] * 6])
def test_bad_charges_change_nothing(bad):
    watch = fresh(5)
    watch.charge(0.001)
    before = watch.spent
    with pytest.raises(DomainError):
        watch.charge(bad)
    assert (watch.spent == before).all()


@pytest.mark.parametrize("bad", ["1", None, [True] * 5])
def test_charges_of_the_wrong_type(bad):
    with pytest.raises(ArgumentTypeError):
        fresh(5).charge(bad)


def test_several_orders_serve_records_of_different_kinds():
    watch = fresh(2, Budget(2.0, 1e-5, orders=[10.0, 30.0]))
    low, high = watch.capacities
    # Record 0 is cheap at the low order alone, record 1 at the high one alone.
    divergences = [[0.4 * low, 3.0 * low], [3.0 * high, 0.4 * high]]
    assert watch.charge(divergences).tolist() == [True, True]
    assert watch.charge(divergences).tolist() == [True, True]
    assert watch.charge(divergences).tolist() == [False, False]
    assert np.allclose(watch.spent, np.array(divergences) * 2, rtol=1e-15)


@pytest.mark.long
def test_the_default_orders_take_dp_sgd_and_plain_noise():
    watch = IndividualFilter(Budget(2.0, 1e-5), 2)
    rounds = 0
    while watch.charge_gaussian([1.0, 0.3], noise_multiplier=1.0, sampling_probability=0.01)[0]:
        rounds += 1
    assert 0.55 * ac.calibrate_steps(2.0, 1e-5, q=0.01, sigma=1.0) < rounds
    assert ac.get_epsilon(0.01, 1.0, rounds, 1e-5) <= 2.0


def test_budgets_of_other_kinds():
    for budget in (
        Budget(1.0, 1e-5, filter="renyi", share=0.1),
        Budget(1.0, 1e-5, filter="approximate"),
    ):
        with pytest.raises(DomainError, match="no share"):
            IndividualFilter(budget, 3)
    for records in (0, -1):
        with pytest.raises(DomainError):
            IndividualFilter(BUDGET, records)
    for records in (3.0, True, "3"):
        with pytest.raises(ArgumentTypeError):
            IndividualFilter(BUDGET, records)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("q", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_what_a_record_is_charged_depends_on_no_other(q, seed):
    # Theorem L9: otherwise leaving one record out would change who else takes part.
    rng = np.random.default_rng(seed)
    norms = np.concatenate([rng.uniform(0.0, 1.0, 40), 1.0 + rng.uniform(0.0, 1e-3, 20)])
    budget = Budget(1.0, 1e-5, orders=[5.0, 20.0])
    together = IndividualFilter(budget, norms.size)
    alone = [IndividualFilter(budget, 1) for _ in norms]
    for noise in (3.0, 0.7, 11.0):
        mask = together.charge_gaussian(norms, noise_multiplier=noise, sampling_probability=q)
        each = [
            watch.charge_gaussian([norm], noise_multiplier=noise, sampling_probability=q)[0]
            for watch, norm in zip(alone, norms, strict=True)
        ]
        assert mask.tolist() == each
    assert together.spent.T.tolist() == [watch.spent[:, 0].tolist() for watch in alone]


@pytest.mark.parametrize(("sigma", "q"), [([1.0, 2.0], 0.5), (1.0, [0.5, 0.1])])
def test_one_noise_and_one_probability_for_all(sigma, q):
    with pytest.raises(ArgumentTypeError, match="must be one number"):
        fresh(2).charge_gaussian(np.ones(2), noise_multiplier=sigma, sampling_probability=q)


@pytest.mark.long
def test_a_gaussian_filter_lets_each_record_spend_the_exact_budget():
    epsilon, delta, sigma = 1.0, 1e-5, 40.0
    watch = IndividualFilter(Budget(epsilon, delta, filter="gaussian"), dataset_size=4)
    norms = np.array([1.0, 0.5, 0.1, 0.0])
    taken = np.zeros(4)
    for _ in range(4000):
        taken += watch.charge_gaussian(norms, noise_multiplier=sigma)
    whole = ac.calibrate_sigma(epsilon, delta)
    for norm, steps in zip(norms[:2], taken, strict=False):
        exact = (sigma / (norm * whole)) ** 2
        assert exact * (1 - 1e-9) - 1 <= steps <= exact
    assert taken[2] == taken[3] == 4000
    assert watch.orders == ()
    assert (watch.spent <= watch.capacities[0]).all()
    # By Rényi divergences it is fewer steps.
    other = IndividualFilter(Budget.suited_to(ac.Gaussian(sigma), epsilon, delta), dataset_size=1)
    fewer = sum(
        other.charge_gaussian([1.0], noise_multiplier=sigma)[0] for _ in range(int(taken[0]))
    )
    assert fewer < 0.9 * taken[0]


def test_no_contribution_is_free_of_charge_by_underflow():
    watch = IndividualFilter(Budget(1.0, 1e-5, filter="gaussian"), dataset_size=3)
    watch.charge_gaussian([0.0, 1e-170, 1e-300], noise_multiplier=1e5)
    assert (watch.spent[0] > 0.0).tolist() == [False, True, True]


def test_a_gaussian_filter_is_restored_and_takes_no_sample():
    budget = Budget(1.0, 1e-5, filter="gaussian")
    watch = IndividualFilter(budget, dataset_size=2)
    watch.charge([0.01, 0.02])
    again = IndividualFilter(budget, dataset_size=2)
    again.restore(watch.spent, watch.orders)
    assert (again.spent == watch.spent).all()
    with pytest.raises(UnsupportedError, match="without sampling"):
        watch.charge_gaussian([1.0, 1.0], noise_multiplier=2.0, sampling_probability=0.5)
    assert not watch.charge([1e9, np.inf]).any()
    assert Fraction(watch.capacities[0]) <= 1 / Fraction(ac.calibrate_sigma(1.0, 1e-5)) ** 2


@pytest.mark.long
def test_what_the_page_on_budgets_says_of_single_records():
    step = ac.PoissonSampled(ac.Gaussian(1.0), 0.01)

    def steps(budget):
        watch, made = IndividualFilter(budget, 1), 0
        while watch.charge_gaussian(1.0, noise_multiplier=1.0, sampling_probability=0.01)[0]:
            made += 1
        return made

    kinds = Budget(1.0, 1e-5, filter="kinds", kinds=[step])
    assert steps(kinds) == ac.Accountant(kinds).affordable(step) == 250
    rest = Budget(1.0, 1e-5), Budget(1.0, 1e-5, filter="renyi"), Budget.suited_to(step, 1.0, 1e-5)
    assert [steps(budget) for budget in rest] == [0, 0, 0]
