"""Known faults of other libraries: the right answers here, and theirs where they are installed."""

import math

import pytest

import accountant as ac
from accountant import NeighbouringRelation as Relation
from accountant.learn.selection import report_noisy_max


@pytest.mark.parametrize(
    ("noise", "threshold", "keys", "reported", "right"),
    [
        (ac.DiscreteLaplace(1.0), 5.0, 1, 4.925834e-3, 1.3389805e-2),
        (ac.DiscreteLaplace(2.0), 20.0, 4, 1.1303365e-4, 1.8635586e-4),
        (ac.DiscreteGaussian(6.0), 40.0, 1, 4.016021e-11, 6.6351675e-11),
        (ac.DiscreteGaussian(6.0), 40.0, 4, 1.606408e-10, 2.6540670e-10),
    ],
)
def test_a_lone_key_passes_a_threshold_as_often_as_it_does(noise, threshold, keys, reported, right):
    """OpenDP #2922: Pr[Z > τ - 1] for Pr[Z >= τ - 1]."""
    release = ac.SparseHistogram(noise, threshold=threshold, max_partitions=keys)
    mass = release.pairs()[0].infinite_mass
    assert mass == pytest.approx(right, rel=1e-6)
    assert mass > 1.3 * reported


def test_permute_and_flip_is_only_pure():
    """OpenDP #2911: it was stated as ρ = 0.125, as the exponential mechanism has."""
    assert ac.ReportNoisyMax(1.0, "exponential").rho() >= 0.5


def test_no_noise_chooses_the_largest_score():
    """OpenDP #2912: index 0 at the scale 0."""
    with pytest.raises(ac.DomainError, match="scale"):
        report_noisy_max([0.0, 1.0, 2.0, 100.0], 0.0, rng=1)
    assert report_noisy_max([0.0, 1.0, 2.0, 100.0], 1e-6, rng=1).index == 3


def test_replacing_all_rows_of_a_group_moves_it_twice_as_far():
    """OpenDP #2945: the length of a group for what a replacement moves."""
    pure, noise = ac.Laplace(1.0, sensitivity=3.0), ac.Gaussian(1.0, sensitivity=3.0)
    assert pure.under(Relation.REPLACE_ONE).epsilon(0.0) == 2.0 * pure.epsilon(0.0)
    assert noise.under(Relation.REPLACE_ONE).rho() == pytest.approx(4.0 * noise.rho())


def test_a_bound_on_groups_is_the_users_of_now():
    """OpenDP #2949: a column was redefined after the truncation to 100 groups by its old value."""
    hundred = ac.SparseHistogram(ac.Gaussian(20.0), threshold=2.0**40, max_partitions=100)
    noise = ac.Gaussian(20.0, sensitivity=10.0)
    assert hundred.delta(0.7) == pytest.approx(noise.delta(0.7), rel=1e-9)


def test_equal_steps_of_an_odometer():
    """SmartNoise's Odometer states (0.16891, 0.19584) for ten steps of (0.05, 0.2)."""
    whole = 10 * ac.ApproximateDP(0.05, delta=0.2)
    assert float(whole.delta_bounds(0.16891).lower) >= 0.8926
    assert whole.epsilon(0.90336) <= 0.28254


def test_a_default_selection_beside_gaussian_counts():
    """PipelineDP accounts a truncated geometric selection as the release before it."""
    pipeline_dp = pytest.importorskip("pipeline_dp", reason="PipelineDP is not installed")
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    types = pipeline_dp.aggregate_params.MechanismType
    theirs = pipeline_dp.PLDBudgetAccountant(1.0, 1e-6)
    counts = [theirs.request_budget(types.GAUSSIAN) for _ in range(10)]
    selections = [theirs.request_budget(types.TRUNCATED_GEOMETRIC) for _ in range(10)]
    theirs.compute_budgets()
    one = selections[0]
    truth = 10 * ac.Gaussian(counts[0].noise_standard_deviation) + 10 * ac.ApproximateDP(
        one.eps, delta=one.delta
    )
    assert truth.epsilon(1e-6) == pytest.approx(1.2273, abs=2e-3)
    assert truth.delta(1.0) == pytest.approx(1.7534e-5, rel=0.02)


def test_a_generic_mechanism_with_a_weight():
    """It is granted four times the total."""
    pipeline_dp = pytest.importorskip("pipeline_dp", reason="PipelineDP is not installed")
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    theirs = pipeline_dp.PLDBudgetAccountant(1.0, 1e-6)
    spec = theirs.request_budget(pipeline_dp.aggregate_params.MechanismType.GENERIC, weight=4)
    theirs.compute_budgets()
    assert spec.eps == pytest.approx(3.99991, abs=1e-4)
    granted = ac.ApproximateDP(spec.eps, delta=spec.delta)
    ledger = ac.Accountant(budget=ac.Budget(1.0, 1e-6, filter="non-adaptive"))
    with pytest.raises(ac.BudgetExceeded):
        ledger.compose(granted)


def test_the_largest_mass_of_a_loss_is_charged_in_full():
    release = ac.SparseHistogram(ac.Laplace(1.0), threshold=37.3)
    assert release.pairs()[0].infinite_mass == pytest.approx(0.5 * math.exp(-36.3))
