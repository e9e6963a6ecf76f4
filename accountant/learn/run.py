"""One training run: the state that a checkpoint saves, and one step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import Array, FloatArray
from accountant.errors import BudgetExceeded
from accountant.learn import checkpoint as checkpoints
from accountant.learn.account import UNKNOWN, count_charged, epsilon_held
from accountant.learn.checkpoint import Saved
from accountant.learn.clipping import AdaptiveQuantile, Clipping
from accountant.learn.correlated import ClassBatches, CorrelatedPrivatiser
from accountant.learn.models.base import Model, Totals
from accountant.learn.optimizers import Optimizer
from accountant.learn.plan import Plan
from accountant.learn.release import (
    Privatiser,
    function_digest,
    release_fraction,
    require_row_independence,
)
from accountant.learn.result import Averaging, History, Progress, TrainingResult
from accountant.learn.validation import fingerprint
from accountant.ledger import Accountant
from accountant.noise import SecureGenerator

HISTORY_POINTS = 100  # The public history has about this many rows.


def draw_batch(
    sampler: str, records: int, probability: float, generator: SecureGenerator
) -> NDArray[np.intp] | None:
    """Return the rows of the next batch, None for all of them."""
    if sampler == "full":
        return None
    return generator.subset(records, probability)


class Run:
    """The state of one run, between its steps."""

    def __init__(
        self,
        model: Model,
        X: Array,
        y: Array,
        plan: Plan,
        clipping: Clipping,
        optimizer: Optimizer,
        averaging: Averaging,
        radius: float | None,
        ledger: Accountant,
        generator: SecureGenerator,
        diagnostics: bool,
    ) -> None:
        self.model, self.X, self.y, self.plan = model, X, y, plan
        self.clipping, self.optimizer, self.averaging = clipping, optimizer, averaging
        self.radius, self.ledger, self.generator = radius, ledger, generator
        self.diagnostics = diagnostics
        self.history = History()
        self.step = self.charged = 0
        self.noted = False
        self.start: dict[str, Any] = {}
        self.every = max(1, plan.steps // HISTORY_POINTS)
        sigma = plan.noise_multiplier
        multiplier = clipping.gradient_noise(sigma) if sigma > 0.0 else 0.0
        self.privatiser: Privatiser | CorrelatedPrivatiser
        if plan.strategy is None:
            self.privatiser = Privatiser(
                model, plan.noise, multiplier, plan.expected_batch_size, cap=plan.batch_cap
            )
        else:
            self.privatiser = CorrelatedPrivatiser(
                model, plan.strategy, multiplier, plan.classes,
                sampled=plan.sampled, cap=plan.batch_cap,
            )  # fmt: skip
        self.batches = ClassBatches(len(X), plan.classes, plan.rate)
        if sigma > 0.0:
            self.privatiser.settings(clipping.rule(len(model.groups)))  # refuses what cannot be
            require_row_independence(model, X, y)
        optimizer.reset()
        averaging.reset()

    def take_step(self) -> bool:
        """Make one step; False when the ledger's budget does not allow it."""
        plan = self.plan
        try:
            due = plan.charges(self.step + 1) - plan.charges(self.step)
            if due:
                self._charge(due)
        except BudgetExceeded:
            return False
        batch = self._draw()
        totals = Totals(np.zeros(self.model.size), want_loss=self.diagnostics)
        rule = self.clipping.rule(len(self.model.groups))
        self.model.add_rows(self.X, self.y, batch, rule, totals)
        noisy, deviation = self.privatiser.release(totals.gradient, rule, self.generator)
        if isinstance(self.clipping, AdaptiveQuantile):
            fraction = (
                release_fraction(
                    self.clipping,
                    totals.unclipped,
                    totals.records,
                    plan.expected_batch_size,
                    self.generator,
                )
                if deviation > 0.0
                else totals.unclipped / plan.expected_batch_size
            )
            self.clipping = self.clipping.updated(fraction)
        # What is saved after this step, or found in memory, knows the noise of later steps only;
        # correlated noise needs that of earlier ones too (docs/theorems_matrix.md, Theorem X5).
        self.generator.erase()
        self._descend(noisy, deviation)
        self.step += 1
        if self.diagnostics:
            self._note_private(totals)
        if self.step % self.every == 0 or self.step == plan.steps:
            self._note_public(noisy, rule.sensitivity)
        return True

    def _draw(self) -> NDArray[np.intp] | None:
        """Return the rows of the next batch, None for all of them."""
        plan = self.plan
        if plan.strategy is None or plan.sampler == "full":
            return draw_batch(plan.sampler, len(self.X), plan.sampling_probability, self.generator)
        return self.batches.draw(self.step, self.generator)

    def _charge(self, steps: int) -> None:
        """Charge the ledger for steps, or blocks of steps, of this run."""
        self.ledger.compose(self.plan.mechanism, steps, self.plan.run)
        if self.plan.delta > 0.0 and not self.noted:
            self.ledger.note_delta(self.plan.delta)
            self.noted = True
        self.charged += steps

    def _descend(self, noisy: FloatArray, deviation: float) -> None:
        """Everything here is post-processing."""
        parameters = self.model.parameters
        with np.errstate(all="ignore"):
            mean = (noisy / self.plan.expected_batch_size).astype(self.model.dtype, copy=False)
            penalty = self.model.penalty_gradient()
            if not isinstance(penalty, float):
                mean = mean + penalty
            self.optimizer.expect_noise((deviation / self.plan.expected_batch_size) ** 2)
            self.optimizer.step(parameters, mean)
            if self.radius is not None:
                norm = float(np.linalg.norm(parameters))
                if norm > self.radius:
                    parameters *= self.radius / norm
            self.averaging.see(parameters, self.step + 1, self.plan.steps)

    def _note_public(self, noisy: FloatArray, sensitivity: float) -> None:
        with np.errstate(all="ignore"):
            norm = float(np.linalg.norm(noisy)) / self.plan.expected_batch_size
        self.history.public.append(
            {
                "step": self.step,
                "run_epsilon": self.plan.epsilon_after(self.step),
                "learning_rate": self.optimizer.schedule(self.optimizer.count - 1),
                "clipping_norm": sensitivity,
                "noisy_gradient_norm": norm,
            }
        )

    def _note_private(self, totals: Totals) -> None:
        count = max(1, totals.records)
        self.history.private.append(
            {
                "step": self.step,
                "records": totals.records,
                "mean_loss": totals.loss / count,
                "clipped_fraction": 1.0 - totals.unclipped / count,
                "dropped": totals.dropped,
            }
        )

    def progress(self) -> Progress:
        """Return what callbacks may see."""
        return Progress(
            self.step,
            self.plan.steps,
            self.model.parameters.copy(),
            self.optimizer.schedule(self.optimizer.count - 1),
        )

    def _identity(self) -> dict[str, Any]:
        """Return what must agree for a checkpoint to belong to this run."""
        return {
            # ε follows from the rest, and another version may bound it more narrowly.
            "plan": {k: v for k, v in self.plan.describe().items() if k != "epsilon"},
            "clipping": [type(self.clipping).__name__, repr(self.clipping)],
            "optimizer": self.optimizer.describe(),
            "averaging": self.averaging.describe(),
            "radius": self.radius,
            "model": [type(self.model).__name__, self.model.size, str(self.model.dtype)],
            "function": function_digest(self.model, self.X, self.y),
            "seeded": self.generator.seeded,
        }

    def saved(self) -> Saved:
        """Return everything the run needs to go on."""
        arrays = {"parameters": self.model.parameters}
        arrays |= {f"optimizer.{k}": np.asarray(v) for k, v in self.optimizer.state.items()}
        arrays |= {f"averaging.{k}": np.asarray(v) for k, v in self.averaging.state.items()}
        if isinstance(self.privatiser, CorrelatedPrivatiser):
            held = self.privatiser.stream.state | self.batches.state
            arrays |= {f"noise.{k}": v for k, v in held.items()}
        header = {
            "identity": self.start,
            "data": fingerprint(self.X, self.y),
            "step": self.step,
            "label": self.plan.run,
            "optimizer_count": self.optimizer.count,
            "clipping": self.clipping.describe(),
            "generator": self.generator.state().hex(),
            "ledger": [checkpoints.own_entry(self.plan) | {"steps": self.charged}],
            "history": [self.history.public, self.history.private],
        }
        return Saved(header, arrays)

    def resume(self, saved: Saved | None, path: str | Path) -> None:
        """Continue from what a checkpoint held, if there was one."""
        self.start = self._identity()
        if saved is None:
            return
        checkpoints.require_same(saved, path, self.start, fingerprint(self.X, self.y))
        claim = checkpoints.read(saved, path, self.plan, self.clipping, self.model.parameters)
        # These steps have been made, on this ledger or on another.
        self.charged = count_charged(self.ledger, self.plan.mechanism, self.plan.run)
        if claim.charged > self.charged:
            self._charge(claim.charged - self.charged)
        self.step, self.clipping = claim.step, claim.clipping
        self.model.parameters[:] = claim.parameters
        self.optimizer.restore(claim.step, claim.states["optimizer"])
        self.averaging.state = claim.states["averaging"]
        if isinstance(self.privatiser, CorrelatedPrivatiser):
            checkpoints.restore_noise(
                path, claim, self.privatiser.stream, self.batches, self.plan.sampler
            )
        self.generator = self.generator._continued(claim.key)
        self.history.public, self.history.private = claim.history

    def result(self) -> TrainingResult:
        """Return what was trained."""
        kept = self.averaging.result(self.model.parameters).copy()
        self.model.parameters[:] = kept
        reasons = []
        if self.generator.seeded:
            reasons.append(self.generator.why_not_private or UNKNOWN)
        if self.plan.noise_multiplier == 0.0 and self.step:
            reasons.append("no noise was added")
        # The run is a part of all that the ledger holds.
        whole = epsilon_held(self.ledger, self.plan.delta)
        return TrainingResult(
            parameters=kept,
            model=self.model,
            ledger=self.ledger,
            history=self.history,
            delta=self.plan.delta,
            run_epsilon=min(self.plan.epsilon_after(self.step), whole),
            steps=self.step,
            private=not reasons,
            plan=self.plan,
            reasons=tuple(reasons),
        )
