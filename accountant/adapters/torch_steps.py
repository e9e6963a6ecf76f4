"""Private steps in any PyTorch loop: one backward pass a unit of privacy, clipped and noised."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from accountant import checks
from accountant.adapters import _torch_observer as observer
from accountant.adapters import torch_batches as batches
from accountant.adapters.torch_batches import Run
from accountant.adapters.torch_units import UnitBatch, Units
from accountant.errors import AccountantError, BudgetExceeded, DomainError, UnsupportedError
from accountant.learn.account import affordable_steps
from accountant.ledger import Accountant
from accountant.noise import Grid, SecureGenerator
from accountant.noise.generator import LARGEST_SCALE
from accountant.report import Deployment, statement
from accountant.sampling import Sampler

__all__ = ["PrivateSteps"]

# Grid steps in a clipping norm, over the root of the number of parameters.
_FINENESS = 2.0**14
_CLIPPING_NORM = checks.Argument(
    "clipping_norm",
    "a number in [2**-100, 2**100]",
    lambda x: (x >= 2.0**-100) & (x <= 2.0**100),
    "It bounds the gradient of one unit; 1 is a common start",
)


class PrivateSteps:
    """Clips the gradient of every unit, adds them up, charges a ledger, and adds the noise.

    Parameters
    ----------
    model : torch.nn.Module
        All of whose parameters with ``requires_grad`` are trained; it is left as it is.
    sampler : Sampler
        That of the :class:`~accountant.adapters.torch_units.UnitLoader`; any of
        :mod:`accountant.sampling` without a strategy. The budget is planned with it; charged is
        the sampler that drew the batch.
    noise_multiplier : float
        Noise standard deviation over ``clipping_norm``.
    clipping_norm : float
        In [2**-100, 2**100]: the bound on the gradient of one unit.
    ledger : Accountant, optional
        Charged before each step; with several workers, the first one's.
    seed : int, optional
        For tests only: noise that can be recomputed is none, and the ledger's label says so.

    Attributes
    ----------
    ledger : Accountant
        What was released.

    Raises
    ------
    BudgetExceeded
        Not one step fits the ledger's budget.

    Notes
    -----
    *Guarantee.* Theorem E14 (docs/theorems_adapters.md): the mechanism of the sampler, for units,
    under its relation; the rounding of sums and noise is included. Steps that are independent are
    charged one by one; a run of an allocation, or of shuffled batches, at its first step. The
    gradient of a unit may depend on its own records, on the model and on random numbers of its own:
    torch's, NumPy's and Python's generators are set anew for every unit, from the system, and are
    afterwards as they were. Whatever the model keeps must stay as it is while a batch goes through.

    Examples
    --------
    >>> for batch in loader:  # doctest: +SKIP
    ...     for unit in steps.units(batch):
    ...         loss(model, unit).backward()
    ...     steps.release()  # raises BudgetExceeded before anything is released
    ...     optimizer.step()
    """

    def __init__(
        self,
        model: torch.nn.Module,
        sampler: Sampler,
        *,
        noise_multiplier: float,
        clipping_norm: float,
        ledger: Accountant | None = None,
        seed: int | None = None,
    ) -> None:
        batches.refuse_strategy(sampler)
        self.ledger = Accountant() if ledger is None else ledger
        checks.instance("ledger", self.ledger, Accountant, "an Accountant")
        self._noise_multiplier = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        self._clipping_norm = checks.number(_CLIPPING_NORM, clipping_norm)
        self._model, self._sampler = model, sampler
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        if isinstance(model, DistributedDataParallel) or not self._parameters:
            raise UnsupportedError(
                "model must be the module itself, with a parameter that is trained; got a"
                f" {type(model).__name__}. {observer.UNWRAP}"
            )
        size = sum(p.numel() for p in self._parameters)
        # The norm is a float64 sum of squares: it may be too small by this.
        self._excess = 1.0 + (size + 64) * 2.0**-51
        self._grid = Grid.at_most(self.clipping_norm / (_FINENESS * math.sqrt(max(size, 1))))
        self._deviation = self.noise_multiplier * self.clipping_norm / self._grid.step
        self._deviation *= 1.0 + 2.0**-50
        if not (self._deviation < LARGEST_SCALE):
            raise UnsupportedError(
                f"noise_multiplier is too large for a model of this size; got {noise_multiplier}."
                " Use less noise or larger batches"
            )
        self._generator = SecureGenerator(seed)
        self._randomness = observer.Randomness(model)
        self._workers = observer.Workers(self._parameters[0].device)
        self._workers.share(self._parameters)
        self._run: Run | None = None
        self._sums: list[torch.Tensor] | None = None
        self._modules: list[torch.nn.Module] = []
        self._before: observer.Contents | None = None
        self._unchanged = 0
        self._workers.first(self._require_a_step)

    @property
    def noise_multiplier(self) -> float:
        """That of every step: make another object for another one."""
        return self._noise_multiplier

    @property
    def clipping_norm(self) -> float:
        """That of every step: make another object for another one."""
        return self._clipping_norm

    def units(self, batch: UnitBatch) -> Iterator[Any]:
        """Yield the units of a batch; clip and sum the gradient that follows each.

        Raises
        ------
        UnsupportedError
            The batch is not the next one of its loader, or the model did not stay as it was.
        """
        if not isinstance(batch, UnitBatch):
            raise UnsupportedError(
                f"batch must be one of a UnitLoader; got a {type(batch).__name__}. Other loaders do"
                " not say which units they drew"
            )
        batches.refuse_strategy(batch.run.sampler)
        self._look_for_change()
        batch.run.spend(batch.number if self._sums is None else None)
        self._run = batch.run
        sums = [torch.zeros(p.shape, dtype=torch.int64, device=p.device) for p in self._parameters]
        # To walk through a large model takes as long as a small unit's gradient: once a batch.
        self._modules = list(self._model.modules())
        contents, versions = observer.Contents(self._model), self._versions()
        handle = self._model.register_forward_pre_hook(observer.refuse_wrapped)
        try:
            with self._randomness:
                for unit in batch:
                    self._clear()
                    self._randomness.fresh()
                    yield unit
                    self._refuse_others(versions)
                    self._add(sums)
        finally:
            handle.remove()
            self._clear()  # of a unit whose loop was left, too
        observer.refuse_moved(contents)
        self._before, self._sums = contents, sums

    def release(self) -> None:
        """Charge the ledger, add the noise, and leave the released gradient in ``p.grad``.

        Raises
        ------
        BudgetExceeded
            The budget does not allow the step; nothing was charged or released, and there is no
            gradient.
        UnsupportedError
            No whole batch was summed before.
        """
        if self._sums is None or self._run is None:
            raise UnsupportedError(
                "release() needs a whole batch: iterate to the end of units(batch) before it"
            )
        sums, self._sums = self._sums, None
        for each in sums:
            self._workers.add_up(each)
        charge = functools.partial(self._charge, self._run)
        self._workers.charge(self.noise_multiplier, self.clipping_norm, self, charge)
        divisor = batches.average(self._run.sampler)
        for p, total in zip(self._parameters, sums, strict=True):
            total += self._noise(total)
            value = total.to(torch.float64) * (self._grid.step / divisor)
            p.grad = value.to(p.dtype)

    @property
    def affordable(self) -> bool:
        """Whether the first worker's ledger would admit another step; the same on all workers."""
        return bool(self._workers.told(self._workers.rank > 0 or self._affordable()))

    def _affordable(self) -> bool:
        if self._run is not None and self._run.goes_on:
            return True
        sampler, noise = self._sampler, self.noise_multiplier
        if self._run is not None:
            sampler = self._run.sampler
        try:
            self.ledger.require(batches.step_of(sampler, noise) or sampler.mechanism(noise))
        except AccountantError:
            return False
        return True

    def _charge(self, run: Run) -> None:
        step = batches.step_of(run.sampler, self.noise_multiplier)
        words = batches.mark(self._generator.why_not_private, run.why_not_private)
        if step is None:
            run.charge(self.ledger, self.noise_multiplier, words)
        else:
            self.ledger.compose(step, label=words or None)

    def _require_a_step(self) -> None:
        """Plan what fits the budget, and refuse one that no step fits."""
        step = batches.step_of(self._sampler, self.noise_multiplier)
        if step is None or self.ledger.budget is None:
            return
        if not affordable_steps(self.ledger, step, None):
            raise BudgetExceeded(
                f"not one step of this run fits {self.ledger.budget!r}: {step!r:.120}. Use more"
                " noise, a smaller sampling probability or a larger budget. Nothing was charged"
            )

    def _look_for_change(self) -> None:
        """Warn where two steps in a row changed nothing; a warm-up begins with a rate of 0."""
        before, self._before = self._before, None
        if before is not None:
            self._unchanged = 0 if before.moved() else self._unchanged + 1
            if self._unchanged == 2:
                warnings.warn(batches.UNCHANGED, stacklevel=3)

    def _clear(self) -> None:
        for module in self._modules:
            for p in module._parameters.values():
                if p is not None:
                    p.grad = None

    def _versions(self) -> list[tuple[int, int]]:
        """Return what tells whether the model's tensors are the same ones, unchanged."""
        buffers = (each for module in self._modules for each in module._buffers.values())
        tensors = (*self._parameters, *(each for each in buffers if each is not None))
        return [(id(each), each._version) for each in tensors]

    def _refuse_others(self, versions: list[tuple[int, int]]) -> None:
        """Refuse gradients that are not clipped, and what a unit left for those after it."""
        known = set(map(id, self._parameters))
        if any(p.grad is not None and id(p) not in known for p in self._model.parameters()):
            raise UnsupportedError(
                "a parameter has a gradient that is not clipped: it was frozen when PrivateSteps"
                " was made. Freeze, unfreeze and add parameters before"
            )
        now = self._versions()
        if now[: len(self._parameters)] != versions[: len(self._parameters)]:
            raise UnsupportedError(
                "the parameters must stay as they are until release(); they changed between two"
                " units, by a gradient without noise. Call optimizer.step() after release(), once a"
                " batch. Discard this model"
            )
        if now != versions:
            raise UnsupportedError(observer.kept("a buffer"))

    def _add(self, sums: list[torch.Tensor]) -> None:
        """Add one unit's clipped gradient, rounded towards zero to the grid, exactly."""
        found = [
            (total, p.grad.detach().to(torch.float64))
            for total, p in zip(sums, self._parameters, strict=True)
            if p.grad is not None
        ]
        norm = math.hypot(*(float(torch.linalg.vector_norm(g)) for _, g in found))
        norm = norm * self._excess + 2.0**-400
        if not math.isfinite(norm):
            return  # a unit without a gradient contributes nothing
        factor = min(1.0, self.clipping_norm / norm * (1.0 - 2.0**-50)) / self._grid.step
        for total, gradient in found:
            total += torch.trunc(gradient.mul_(factor)).to(torch.int64)

    def _noise(self, like: torch.Tensor) -> torch.Tensor:
        """Return the first worker's noise, on the grid; that of the others is none."""
        noise = torch.zeros_like(like)
        if self._workers.rank == 0:
            drawn = self._generator.rounded_normal(like.numel(), self._deviation)
            noise = torch.from_numpy(drawn).to(torch.int64).reshape(like.shape).to(like.device)
        return self._workers.add_up(noise)


_KINDS = {".html": "html", ".md": "markdown", ".json": "json"}


class Training:
    """What the callbacks of training frameworks share: steps, ledger, checkpoints, statement."""

    _steps: Any = None

    def __init__(
        self,
        units: Units,
        noise_multiplier: float,
        clipping_norm: float,
        *,
        delta: float,
        sampler: Sampler | None = None,
        ledger: Accountant | None = None,
        statement: str | Path | None = None,
        title: str = "Privacy statement",
    ) -> None:
        self._units, self._sampler = checks.instance("units", units, Units, "a Units"), sampler
        self._made = functools.partial(
            PrivateSteps, noise_multiplier=noise_multiplier, clipping_norm=clipping_norm
        )
        self._delta = checks.number(checks.DELTA.renamed("delta"), delta)
        self._ledger = Accountant() if ledger is None else ledger
        checks.instance("ledger", self._ledger, Accountant, "an Accountant")
        self._path = None if statement is None else Path(statement)
        if self._path is not None and self._path.suffix not in _KINDS:
            raise DomainError(
                f"statement must be a path that ends in {', '.join(_KINDS)}; got {str(statement)!r}"
            )
        self._title = title

    @property
    def ledger(self) -> Accountant:
        """What was released, the same on all workers."""
        held: Accountant = self._ledger if self._steps is None else self._steps.ledger
        return held

    def _begin(self, model: Any) -> PrivateSteps:
        """Make the steps of a model whose frozen parameters are frozen."""
        assert self._sampler is not None
        self._steps = made = self._made(model, self._sampler, ledger=self._ledger)
        return made

    def _released(self) -> bool:
        """Charge the ledger and release the gradient; return whether its budget allowed it."""
        try:
            self._steps.release()
        except BudgetExceeded:
            return False
        return True

    def _resume(self, saved: str) -> None:
        """Take over the releases of a checkpoint that the ledger does not hold."""
        loaded = Accountant.from_json(saved)
        held, budget = self._ledger.history, self._ledger.budget
        if budget not in (None, loaded.budget):
            raise DomainError(
                f"ledger must have the budget of the checkpoint, {loaded.budget!r}; got {budget!r}"
            )
        if not held:
            # With its plan; a ledger without releases stays the caller's.
            self._ledger = loaded if loaded.history else self._ledger
            return
        try:
            # What was released after the checkpoint stays released.
            batches.refuse_forgetting(loaded.history, held)
        except DomainError:
            raise DomainError(
                "ledger must be new, or hold the releases of the checkpoint; it holds others. Give"
                " a run that is resumed the ledger that it had, or none"
            ) from None

    def _write(self) -> None:
        """Write the statement, about the units that were really sampled."""
        if self._path is not None:
            about = Deployment(title=self._title, unit=self._units.words)
            made = statement(self.ledger, self._delta, deployment=about)
            self._path.write_text(getattr(made, _KINDS[self._path.suffix])(), encoding="utf-8")
