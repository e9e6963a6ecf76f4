"""Discrete Gaussian noise on vectors: the sampled Rényi curve against sums, and a ledger of it."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.learn import LogisticRegression, train_dp_sgd
from accountant.learn.account import step_mechanism
from accountant.ledger import Accountant, Budget
from support.dp_sgd_runs import arranged

RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 4))
Y = (X[:, 0] > 0).astype(int)


def divergences(sigma, shift, q, order):
    """Both directions of the sampled pair, summed over a box of integer vectors to 30 digits."""
    with mp.workdps(30):
        reach = math.ceil(12 * sigma) + 2
        axes = [range(-reach, reach + s + 1) for s in shift]
        weight = [
            [mp.exp(-(mpf(x - s) ** 2) / (2 * mpf(sigma) ** 2)) for x in a]
            for s, a in zip(shift, axes, strict=True)
        ]
        still = [[mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2)) for x in a] for a in axes]
        remove = add = mpf(0)
        total = mp.fprod(sum(column) for column in still)
        for cell in itertools.product(*(range(len(a)) for a in axes)):
            p = mp.fprod(column[i] for column, i in zip(weight, cell, strict=True)) / total
            r = mp.fprod(column[i] for column, i in zip(still, cell, strict=True)) / total
            mixed = (1 - mpf(q)) * r + mpf(q) * p
            if r and mixed:
                remove += r * (mixed / r) ** order
                # By the reflection: P against (1-q)P + qQ has the divergence of Q against this.
                add += mixed * (r / mixed) ** order
        return mp.log(remove) / (order - 1), mp.log(add) / (order - 1)


@pytest.mark.long(keep=36)
@pytest.mark.parametrize("order", [2, 3, 7, 20])
@pytest.mark.parametrize("q", [0.01, 0.3, 0.9])
@pytest.mark.parametrize(
    ("sigma", "shift"), [(0.35, (1,)), (0.8, (2,)), (3.0, (1,)), (0.6, (1, 1))]
)
def test_both_directions_are_below_the_curve(sigma, shift, q, order):
    length = math.hypot(*shift)
    remove, add = ac.PoissonSampled(ac.DiscreteGaussianVector(sigma, sensitivity=length), q).pairs()
    exact_remove, exact_add = divergences(sigma, shift, q, order)
    assert exact_remove <= remove.rdp(order)
    assert exact_add <= add.rdp(order)
    # The reflection's theorem, on numbers.
    assert exact_add <= exact_remove * (1 + mpf(10) ** -20)
    if sigma > 2:
        assert remove.rdp(order) <= exact_remove * (1 + mpf(10) ** -6)
    # A mutant that forgets the binomial's last term is caught where the noise is small.
    if sigma < 0.5 and q > 0.1:
        assert exact_remove > 0.5 * remove.rdp(order)


def test_it_is_the_sampled_gaussians_bound_and_no_more():
    for q, sigma in ((0.01, 1.0), (0.2, 4.0)):
        ours = ac.PoissonSampled(ac.DiscreteGaussianVector(sigma), q).pairs()
        gauss = ac.PoissonSampled(ac.Gaussian(sigma), q).pairs()[0]
        for order in (2.0, 5.0, 30.0):
            assert ours[0].rdp(order) == ours[1].rdp(order)
            assert ours[0].rdp(order) == pytest.approx(gauss.rdp(order), rel=1e-6)
            assert ours[0].rdp(order) >= gauss.rdp(order) * (1 - 1e-12)
    step = ac.PoissonSampled(ac.DiscreteGaussianVector(1.0), 0.01)
    blind = ac.PoissonSampled(ac.ZCDP(0.5), 0.01)
    assert (1000 * step).epsilon(1e-5) < 0.9 * (1000 * blind).epsilon(1e-5)


def test_values_groups_and_relations():
    m = ac.DiscreteGaussianVector(4.0)
    assert repr(m) == "DiscreteGaussianVector(4.0)"
    assert m.rho() == pytest.approx(1 / 32)
    assert m.rho() >= 1 / 32
    assert m.group(3) == ac.DiscreteGaussianVector(4.0, sensitivity=3.0)
    assert m.under(Relation.REPLACE_ONE).rho() == pytest.approx(4 / 32)
    assert ac.DiscreteGaussianVector(math.inf).epsilon(1e-6) == 0.0
    for bad in (-1.0, math.nan, 0.0):
        with pytest.raises(ac.DomainError):
            ac.DiscreteGaussianVector(bad)
    assert m.epsilon(1e-5) >= ac.Gaussian(4.0).epsilon(1e-5)


def train(**options):
    model = LogisticRegression(4)
    settings = {"clipping_norm": 1.0, "delta": 1e-5, "expected_batch_size": 30, "rng": 1}
    settings |= {"law": "discrete_gaussian"} | options
    return train_dp_sgd(model, X, Y, **arranged(settings))


@pytest.mark.long
def test_a_ledger_is_charged_for_it():
    ledger = Accountant(Budget(3.0, 1e-5))
    result = train(noise_multiplier=1.5, steps=12, ledger=ledger)
    (entry,) = ledger.history
    assert entry.mechanism == ac.PoissonSampled(ac.DiscreteGaussianVector(1.5), 0.1)
    assert entry.count == 12
    assert ledger.epsilon(1e-5) == result.epsilon
    again = Accountant.from_json(ledger.to_json())
    assert again.history == ledger.history
    with pytest.raises(ac.BudgetExceeded):
        train(noise_multiplier=1.5, steps=500, ledger=ledger)
    assert len(ledger.history) == 1


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("sampler", ["poisson", "full"])
@pytest.mark.parametrize("target", [0.5, 4.0])
def test_the_noise_is_calibrated_to_a_target(sampler, target):
    options = {"expected_batch_size": 300} if sampler == "full" else {}
    result = train(target_epsilon=target, steps=20, sampler=sampler, **options)
    q = 1.0 if sampler == "full" else 0.1
    assert 0.9999 * target < result.epsilon <= target
    less = step_mechanism("discrete_gaussian", result.plan.noise_multiplier * 0.999, q)
    assert (20 * less).epsilon(1e-5) > target


def test_a_budget_says_how_many_steps():
    step = ac.PoissonSampled(ac.DiscreteGaussianVector(2.0), 0.1)
    ledger = Accountant(Budget(2.0, 1e-5, filter="non-adaptive"))
    steps = train(noise_multiplier=2.0, ledger=ledger).steps
    assert (steps * step).epsilon(1e-5) <= 2.0 < ((steps + 1) * step).epsilon(1e-5)
    assert len(ledger) == steps
    tiny = step_mechanism("discrete_gaussian", 1e-3, 1.0)
    assert Accountant(Budget(2.0, 1e-5, filter="non-adaptive")).affordable(tiny) == 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("sigma", [5.2e4, 1e5, 1e300])
def test_an_integer_whose_table_is_too_large_has_the_curve_of_a_vector(sigma):
    """It was refused, even where a Rényi curve is all that is asked."""
    one, vector = (
        ac.DiscreteGaussian(sigma, sensitivity=100),
        ac.DiscreteGaussianVector(sigma, sensitivity=100.0),
    )
    assert one.rdp(8.0) == vector.rdp(8.0)
    assert one.epsilon(1e-6) == vector.epsilon(1e-6)
    sampled = 1000 * ac.PoissonSampled(one, 0.01)
    assert sampled.epsilon(1e-6) == (1000 * ac.PoissonSampled(vector, 0.01)).epsilon(1e-6)
    assert (one + ac.Laplace(2.0)).epsilon(1e-6) < 0.6


@pytest.mark.long
def test_the_largest_table_is_still_a_table():
    below = ac.DiscreteGaussian(5.1e4, sensitivity=10_000).pairs()[0].profile(0.1)
    assert 0.0 < below.lower <= below.upper
    assert ac.DiscreteGaussian(1.0, sensitivity=5_000_000).rho() == pytest.approx(1.25e13)
