"""One training run: the state that a checkpoint saves, and one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accountant._basics.arrays import Array, FloatArray
from accountant.errors import BudgetExceeded, UnsupportedError
from accountant.learn import checkpoint as checkpoints
from accountant.learn.account import UNKNOWN, count_charged, epsilon_held
from accountant.learn.checkpoint import Saved
from accountant.learn.clipping import AdaptiveQuantile, Clipping, Rule
from accountant.learn.models.base import (
    BLOCK_ROWS,
    PADDING,
    Model,
    Totals,
    public_rows,
    rearranged,
    same_bits,
)
from accountant.learn.optimizers import Optimizer
from accountant.learn.plan import Plan
from accountant.learn.release import (
    ClassBatches,
    CorrelatedPrivatiser,
    Privatiser,
    Release,
    release_fraction,
)
from accountant.learn.result import Averaging, History, Progress, TrainingResult
from accountant.learn.validation import fingerprint
from accountant.ledger import Accountant
from accountant.noise import SecureGenerator

HISTORY_POINTS = 100  # The public history has about this many rows.
# A function is recognised by its values on features of these sizes: a threshold may lie far out.
SIZES = (1.0, 2.0**5, 2.0**10, 2.0**20)


def draw_batch(
    sampler: str, records: int, probability: float, generator: SecureGenerator
) -> NDArray[np.intp] | None:
    """Return the rows of the next batch, None for all of them."""
    if sampler == "full":
        return None
    return generator.subset(records, probability)


@dataclass(eq=False, repr=False)
class Run:
    """The state of one run, between its steps."""

    model: Model
    X: Array
    y: Array
    plan: Plan
    clipping: Clipping
    optimizer: Optimizer
    averaging: Averaging
    radius: float | None
    ledger: Accountant
    generator: SecureGenerator
    diagnostics: bool

    def __post_init__(self) -> None:
        model, plan, clipping = self.model, self.plan, self.clipping
        self.history = History()
        self.step = self.charged = 0
        self.noted = False
        self.start: dict[str, Any] = {}
        self.every = max(1, plan.steps // HISTORY_POINTS)
        sigma = plan.noise_multiplier
        multiplier = clipping.gradient_noise(sigma) if sigma > 0.0 else 0.0
        self.privatiser: Release
        if plan.strategy is None:
            self.privatiser = Privatiser(
                model, plan.noise, multiplier, plan.expected_batch_size, cap=plan.batch_cap
            )
        else:
            self.privatiser = CorrelatedPrivatiser(
                model, plan.strategy, multiplier, plan.classes,
                sampled=plan.sampled, cap=plan.batch_cap,
            )  # fmt: skip
        self.batches = ClassBatches(len(self.X), plan.classes, plan.rate)
        if sigma > 0.0:
            self.privatiser.settings(clipping.rule(len(model.groups)))  # refuses what cannot be
            require_row_independence(model, self.X, self.y)
        self.optimizer.reset()
        self.averaging.reset()

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
            unclipped, expected = totals.unclipped, plan.expected_batch_size
            fraction = unclipped / expected
            if deviation > 0.0:
                fraction = release_fraction(
                    self.clipping, unclipped, totals.records, expected, self.generator
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
        rate = self.optimizer.schedule(self.optimizer.count - 1)
        return Progress(self.step, self.plan.steps, self.model.parameters.copy(), rate)

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
        spent = min(self.plan.epsilon_after(self.step), whole)
        return TrainingResult(
            kept, self.model, self.history, self.step, self.plan, tuple(reasons),
            ledger=self.ledger, delta=self.plan.delta, run_epsilon=spent, private=not reasons,
        )  # fmt: skip


def function_digest(model: Model, x_like: Array, y_like: Array) -> str:
    """Return a digest of the model's rows, clipped sums and penalties on random public inputs.

    It recognises the function whose values the noise of a run covers. The same noise on another
    function of the data (another activation, loss or machine's rounding) would be a second
    release, and the difference of the two would have no noise at all.
    """
    seen: list[Array] = []

    def note(x: Array, y: Array, rows: list[Array]) -> None:
        totals = Totals(np.zeros(model.size))
        model.add_rows(x.copy(), y.copy(), None, Rule((1.0,)), totals)
        penalty = np.asarray(model.penalty_gradient(), dtype=np.float64)
        seen.extend(np.where(np.isnan(a), np.nan, a) for a in (*rows, totals.gradient, penalty))

    _try_out(model, x_like, y_like, 1, note, SIZES)
    return fingerprint(*seen)


def require_row_independence(model: Model, x_like: Array, y_like: Array) -> None:
    """Test, on random public inputs, that a row's results do not depend on the other rows.

    Assumption A1 of docs/theorems_training.md. A model that looks across records, or a library
    whose rounding does, would let one record move the gradients of all others.
    """
    generator = np.random.default_rng(2)

    def compare(x: Array, y: Array, rows: list[Array]) -> None:
        for order, other in rearranged(generator, x):
            stay = order >= 0
            # Rows that gave way take targets of rows elsewhere.
            targets = y[np.where(stay, order, generator.integers(len(y), size=len(y)))]
            targets[order == PADDING] = 0
            try:
                there = model.row_results(other, targets)
            except Exception:
                if (other == np.finfo(other.dtype).max).any():
                    continue  # the function has no values for such features
                raise
            if len(rows) != len(there) or not all(
                same_bits(a[order[stay]], b[stay]) for a, b in zip(rows, there, strict=True)
            ):
                raise UnsupportedError(
                    "the results of one record depend on the other records of its block: the model"
                    " looks across records, or this machine's libraries do. Normalise records by"
                    " themselves; or set OPENBLAS_NUM_THREADS=1 (or MKL_CBWR=COMPATIBLE) and try"
                    " again"
                )

    _try_out(model, x_like, y_like, 0, compare)


def _try_out(
    model: Model,
    x_like: Array,
    y_like: Array,
    seed: int,
    use: Callable[[Array, Array, list[Array]], None],
    sizes: tuple[float, ...] = (1.0,),
) -> None:
    """Hand random public blocks, of features of some sizes, and the model's results to ``use``.

    The model has random parameters meanwhile. Targets on which a function of the user's raises are
    left out, unless it raises on all of them.
    """
    generator = np.random.default_rng(seed)
    drawn = public_rows(generator, BLOCK_ROWS, x_like.shape[1:], model.dtype)
    blocks = [(size * block).astype(model.dtype) for size in sizes for block in drawn]
    targets = model.probe_targets(generator, y_like)
    kept = model.parameters.copy()
    failure: Exception | None = None
    tried = False
    try:
        with np.errstate(all="ignore"):
            for k in range(max(len(blocks), len(targets))):
                scale = (0.1, 1.0)[k % 2]
                model.parameters[:] = scale * generator.standard_normal(model.size)
                x, y = blocks[k % len(blocks)], targets[k % len(targets)]
                try:
                    rows = model.row_results(x.copy(), y.copy())
                except Exception as error:
                    failure = error
                    continue
                tried = True
                use(x, y, rows)
    finally:
        model.parameters[:] = kept
    if not tried:
        raise UnsupportedError(
            "the model must compute gradients for random features and targets of the data's type,"
            " on which it is tried before it sees a record; it raised an exception. Give"
            " PerExampleModel public examples of targets"
        ) from failure
