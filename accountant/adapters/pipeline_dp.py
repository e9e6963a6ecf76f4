"""PipelineDP with this account: a budget accountant to give to its engine."""

from __future__ import annotations

import math
from typing import Any

import pipeline_dp
from pipeline_dp import budget_accounting

from accountant._basics.rounding import ratio_down
from accountant.calibration.any_mechanism import calibrate
from accountant.composition import Composition
from accountant.errors import ArgumentTypeError, DomainError, UnsupportedError
from accountant.mechanisms import ApproximateDP, Gaussian, Laplace
from accountant.mechanisms.base import Mechanism

_Types = pipeline_dp.aggregate_params.MechanismType
_GAUSSIAN = (_Types.GAUSSIAN, _Types.GAUSSIAN_THRESHOLDING)
_LAPLACE = (_Types.LAPLACE, _Types.LAPLACE_THRESHOLDING)
# The part of δ for thresholds, where there are any: that of PipelineDP's own accountant.
THRESHOLDS = 0.25


class ExactBudgetAccountant(pipeline_dp.BudgetAccountant):  # type: ignore[misc]
    """The noise of a pipeline by exact composition, in the place of PipelineDP's accountants.

    Parameters
    ----------
    total_epsilon, total_delta : float
        The guarantee of the whole pipeline, add-or-remove of one privacy id; δ > 0.
    ledger : Accountant, optional, keyword only
        Charged by ``compute_budgets``, before PipelineDP learns of any noise.

    Attributes
    ----------
    mechanism : Composition or None
        What the pipeline releases, after ``compute_budgets``.

    Notes
    -----
    *Guarantee.* All aggregations are requested before ``compute_budgets``, so the plan is fixed in
    advance. Noise is charged as such, and thresholds as (0, δ) beside it (Theorem N2 of
    docs/theorems_statistics.md). Refused is what PipelineDP grants an (ε, δ) of its own: truncated
    geometric selection, its default, which its accountant by loss distributions accounts as another
    mechanism; variance, percentiles and custom combiners. Ask for Gaussian or Laplace thresholding.
    That the noise is applied as PipelineDP says is taken on trust.

    Examples
    --------
    >>> import pipeline_dp  # doctest: +SKIP
    >>> budget = ExactBudgetAccountant(1.0, 1e-9, ledger=ledger)  # doctest: +SKIP
    >>> engine = pipeline_dp.DPEngine(budget, backend)  # doctest: +SKIP
    """

    def __init__(self, total_epsilon: float, total_delta: float, *, ledger: Any = None) -> None:
        super().__init__(total_epsilon, total_delta, None, None)
        if not total_delta > 0.0:
            raise DomainError(f"total_delta must be in (0, 1); got {total_delta!r}")
        self._ledger = ledger
        self.mechanism: Composition | None = None

    def request_budget(
        self,
        mechanism_type: Any,
        sensitivity: float = 1,
        weight: float = 1,
        count: int = 1,
        noise_standard_deviation: float | None = None,
        name: str = "",
    ) -> Any:
        """Register a mechanism of the pipeline, to which ``compute_budgets`` gives its noise."""
        if self.finalized:
            raise UnsupportedError("the budget is computed: request everything before it is")
        if mechanism_type not in (*_GAUSSIAN, *_LAPLACE):
            raise UnsupportedError(
                f"{mechanism_type} is granted an (ε, δ) of its own, which is not accounted here;"
                " ask for GAUSSIAN_THRESHOLDING or LAPLACE_THRESHOLDING as the selection of"
                " partitions, and for counts, sums and means"
            )
        if noise_standard_deviation is not None:
            raise UnsupportedError("noise_standard_deviation must be left out: it is what is found")
        if sensitivity != 1:
            raise UnsupportedError(
                "sensitivity must be 1, since the engine multiplies by its own;"
                f" got {sensitivity!r}"
            )
        if not weight > 0.0:
            raise DomainError(f"weight must be > 0; got {weight!r}")
        spec = budget_accounting.MechanismSpec(
            mechanism_type=mechanism_type, name=name, _count=count
        )
        self._register_mechanism(
            budget_accounting.MechanismSpecInternal(
                mechanism_spec=spec, sensitivity=sensitivity, weight=weight
            )
        )
        return spec

    def compute_budgets(self) -> None:
        """Find the least noise of the plan, charge it, and hand it to PipelineDP."""
        if not self._mechanisms:
            raise ArgumentTypeError("nothing was requested: build the pipeline first")
        self._finalize()
        thresholds = sum(_selects(each) for each in self._mechanisms)
        share = THRESHOLDS * self.total_delta if thresholds else 0.0

        def plan(noise: float) -> Composition:
            failing = ((ApproximateDP(0.0, delta=share), 1),) if thresholds else ()
            return Composition(
                (*((_noise(e, noise), e.mechanism_spec.count) for e in self._mechanisms), *failing)
            )

        noise = float(calibrate(plan, epsilon=self.total_epsilon, delta=self.total_delta))
        self.mechanism = plan(noise)
        if self._ledger is not None:
            self._ledger.compose(self.mechanism, label="PipelineDP")
        for each in self._mechanisms:
            spec = each.mechanism_spec
            spec.set_noise_standard_deviation(noise / each.weight)
            if _selects(each):
                spec.set_thresholding_delta(share / thresholds)


def _selects(each: Any) -> bool:
    return bool(each.mechanism_spec.mechanism_type.is_thresholding_mechanism)


def _noise(each: Any, noise: float) -> Mechanism:
    """Return the noise of a mechanism, whose deviation is ``noise`` over its weight."""
    multiplier = ratio_down(noise, each.weight)
    if each.mechanism_spec.mechanism_type in _GAUSSIAN:
        return Gaussian(multiplier)
    # PipelineDP divides the deviation by the root of two to get the scale.
    return Laplace(ratio_down(multiplier, math.sqrt(2.0) * (1.0 + 2.0**-51)))
