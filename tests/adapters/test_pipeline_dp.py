"""The real PipelineDP with this account in its engine."""

import pytest

import accountant as ac

pipeline_dp = pytest.importorskip("pipeline_dp", reason="PipelineDP is not installed")
from accountant.adapters.pipeline_dp import ExactBudgetAccountant  # noqa: E402
from support.refusals import refused  # noqa: E402

Types = pipeline_dp.aggregate_params.MechanismType
Selection = pipeline_dp.PartitionSelectionStrategy


def aggregate(budget, metrics, *, noise=None, selection=Selection.GAUSSIAN_THRESHOLDING, keys=3):
    rows = [(f"u{i}", f"k{i % keys}", 1.0) for i in range(3000)]
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    result = engine.aggregate(
        rows,
        pipeline_dp.AggregateParams(
            metrics=metrics,
            noise_kind=noise or pipeline_dp.NoiseKind.GAUSSIAN,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=0.0,
            max_value=1.0,
            partition_selection_strategy=selection,
        ),
        pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        ),
    )
    budget.compute_budgets()
    return dict(result)


def test_counts_with_a_private_selection():
    ledger = ac.Accountant()
    budget = ExactBudgetAccountant(1.0, 1e-9, ledger=ledger)
    metrics = [pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.PRIVACY_ID_COUNT]
    found = aggregate(budget, metrics)
    assert budget.mechanism is not None
    assert 0.999999 < budget.mechanism.epsilon(1e-9) <= 1.0
    assert ledger.epsilon(1e-9) == budget.mechanism.epsilon(1e-9)
    assert set(found) == {"k0", "k1", "k2"}
    assert all(abs(row.count - 1000) < 150 for row in found.values())
    # Two counts and a selection; the accountant of PipelineDP finds 9.600769.
    specs = budget.mechanism_specs
    assert len(specs) == 3
    assert [s.noise_standard_deviation for s in specs] == pytest.approx([9.600687] * 3, abs=2e-6)


def test_its_own_accountant_finds_about_the_same_noise():
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    theirs = pipeline_dp.PLDBudgetAccountant(1.0, 1e-9)
    ours = ExactBudgetAccountant(1.0, 1e-9)
    for budget in (theirs, ours):
        for kind in (Types.GAUSSIAN, Types.GAUSSIAN, Types.GAUSSIAN_THRESHOLDING):
            budget.request_budget(kind)
        budget.compute_budgets()
    one, other = (b.mechanism_specs[0].noise_standard_deviation for b in (ours, theirs))
    assert one <= other
    assert one == pytest.approx(other, rel=1e-4)


def test_laplace_noise_and_weights():
    budget = ExactBudgetAccountant(2.0, 1e-8)
    first = budget.request_budget(Types.LAPLACE, weight=1.0)
    second = budget.request_budget(Types.LAPLACE_THRESHOLDING, weight=2.0, count=2)
    budget.compute_budgets()
    assert first.noise_standard_deviation == pytest.approx(2.0 * second.noise_standard_deviation)
    scales = {part.scale: n for part, n in budget.mechanism.parts if isinstance(part, ac.Laplace)}
    assert sorted(scales.values()) == [1, 2]
    for spec in (first, second):
        assert min(abs(s - spec.noise_standard_deviation / 2**0.5) for s in scales) < 1e-9
    assert all(
        s <= f.noise_standard_deviation / 2**0.5
        for s, f in zip(sorted(scales), (second, first), strict=True)
    )
    assert second.thresholding_delta == pytest.approx(0.25e-8)
    assert budget.mechanism.epsilon(1e-8) <= 2.0


def test_laplace_counts_run():
    budget = ExactBudgetAccountant(4.0, 1e-6)
    found = aggregate(
        budget,
        [pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.MEAN],
        noise=pipeline_dp.NoiseKind.LAPLACE,
        selection=Selection.LAPLACE_THRESHOLDING,
    )
    assert all(abs(row.count - 1000) < 100 for row in found.values())


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (Types.TRUNCATED_GEOMETRIC, {}),
        (Types.GENERIC, {"weight": 4.0}),
        (Types.GAUSSIAN, {"noise_standard_deviation": 3.0}),
        (Types.GAUSSIAN, {"sensitivity": 0.1}),
    ],
)
def test_what_is_granted_otherwise_is_refused(kind, named):
    refused(ac.UnsupportedError, "", ExactBudgetAccountant(1.0, 1e-6).request_budget, kind, **named)


def test_the_default_selection_is_refused_before_anything_runs():
    with pytest.raises(ac.UnsupportedError, match="GAUSSIAN_THRESHOLDING"):
        aggregate(
            ExactBudgetAccountant(1.0, 1e-6),
            [pipeline_dp.Metrics.COUNT],
            selection=Selection.TRUNCATED_GEOMETRIC,
        )


def test_a_budget_that_refuses_leaves_the_pipeline_without_noise():
    ledger = ac.Accountant(budget=ac.Budget(0.5, 1e-6, filter="non-adaptive"))
    budget = ExactBudgetAccountant(1.0, 1e-6, ledger=ledger)
    spec = budget.request_budget(Types.GAUSSIAN)
    refused(ac.BudgetExceeded, "", budget.compute_budgets)
    with pytest.raises(AssertionError):
        _ = spec.noise_standard_deviation
    refused(ac.UnsupportedError, "computed", budget.request_budget, Types.GAUSSIAN)
    refused(ac.DomainError, "total_delta", ExactBudgetAccountant, 1.0, 0.0)
    refused(ac.ArgumentTypeError, "requested", ExactBudgetAccountant(1.0, 1e-6).compute_budgets)
