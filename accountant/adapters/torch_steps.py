"""Private steps in any PyTorch loop: one backward pass a unit of privacy, clipped and noised."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterator
from typing import Any, TypeAlias

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from accountant import checks
from accountant.adapters._observer import INDEPENDENT_NOISE, UNCHANGED, Run, average, mark, step_of
from accountant.adapters._torch_observer import Contents, Randomness, Workers, kept, refuse_moved
from accountant.adapters.torch_units import UnitBatch
from accountant.errors import AccountantError, BudgetExceeded, UnsupportedError
from accountant.learn.account import affordable_steps
from accountant.ledger import Accountant
from accountant.noise import Grid, SecureGenerator
from accountant.noise.generator import LARGEST_SCALE
from accountant.sampling import Sampler

Versions: TypeAlias = list[tuple[int, int]]

__all__ = ["PrivateSteps"]

# Grid steps in a clipping norm, over the root of the number of parameters.
_FINENESS = 2.0**14
_CLIPPING_NORM = checks.Argument(
    "clipping_norm",
    "a number in [2**-100, 2**100]",
    lambda x: (x >= 2.0**-100) & (x <= 2.0**100),
    "It bounds the gradient of one unit; 1 is a common start",
)


_UNWRAP = "Call the module that DistributedDataParallel wraps: release() adds up for all workers"


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
        _refuse_correlated(sampler)
        self.ledger = Accountant() if ledger is None else ledger
        checks.instance("ledger", self.ledger, Accountant, "an Accountant")
        self._noise_multiplier = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
        self._clipping_norm = checks.number(_CLIPPING_NORM, clipping_norm)
        self._model, self._sampler = model, sampler
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        if isinstance(model, DistributedDataParallel) or not self._parameters:
            raise UnsupportedError(
                "model must be the module itself, with a parameter that is trained; got a"
                f" {type(model).__name__}. {_UNWRAP}"
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
        self._randomness = Randomness(model)
        self._workers = _workers(self._parameters)
        self._run: Run | None = None
        self._sums: list[torch.Tensor] | None = None
        self._modules: list[torch.nn.Module] = []
        self._before: Contents | None = None
        self._unchanged = 0
        if self._workers is None:
            self._require_a_step()
        else:
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
        _refuse_correlated(batch.run.sampler)
        self._look_for_change()
        batch.run.spend(batch.number if self._sums is None else None)
        self._run = batch.run
        sums = [torch.zeros(p.shape, dtype=torch.int64, device=p.device) for p in self._parameters]
        # To walk through a large model takes as long as a small unit's gradient: once a batch.
        self._modules = list(self._model.modules())
        contents, versions = Contents(self._model), self._versions()
        handle = self._model.register_forward_pre_hook(_refuse_wrapped)
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
        refuse_moved(contents)
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
        if self._workers is not None:
            for each in sums:
                distributed.all_reduce(each)
        charge = functools.partial(self._charge, self._run)
        if self._workers is None:
            charge()
        else:
            self._workers.charge(self.noise_multiplier, self.clipping_norm, self, charge)
        divisor = average(self._run.sampler)
        for p, total in zip(self._parameters, sums, strict=True):
            total += self._noise(total)
            value = total.to(torch.float64) * (self._grid.step / divisor)
            p.grad = value.to(p.dtype)

    @property
    def affordable(self) -> bool:
        """Whether the first worker's ledger would admit another step; the same on all workers."""
        answer = True
        if self._workers is None or self._workers.rank == 0:
            answer = self._affordable()
        if self._workers is not None:
            told = [answer]
            distributed.broadcast_object_list(told, src=0)
            answer = told[0]
        return answer

    def _affordable(self) -> bool:
        if self._run is not None and self._run.goes_on:
            return True
        sampler = self._sampler if self._run is None else self._run.sampler
        step = step_of(sampler, self.noise_multiplier)
        try:
            self.ledger.require(step or sampler.mechanism(self.noise_multiplier))
        except AccountantError:
            return False
        return True

    def _charge(self, run: Run) -> None:
        step = step_of(run.sampler, self.noise_multiplier)
        words = mark(self._generator.why_not_private, run.why_not_private)
        if step is None:
            run.charge(self.ledger, self.noise_multiplier, words)
        else:
            self.ledger.compose(step, label=words or None)

    def _require_a_step(self) -> None:
        """Plan what fits the budget, and refuse one that no step fits."""
        step = step_of(self._sampler, self.noise_multiplier)
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
                warnings.warn(UNCHANGED, stacklevel=3)

    def _clear(self) -> None:
        for module in self._modules:
            for p in module._parameters.values():
                if p is not None:
                    p.grad = None

    def _versions(self) -> Versions:
        """Return what tells whether the model's tensors are the same ones, unchanged."""
        buffers = (each for module in self._modules for each in module._buffers.values())
        tensors = (*self._parameters, *(each for each in buffers if each is not None))
        return [(id(each), each._version) for each in tensors]

    def _refuse_others(self, versions: Versions) -> None:
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
            raise UnsupportedError(kept("a buffer"))

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
        """Return the first worker's noise, on the grid."""
        noise = torch.zeros_like(like)
        if self._workers is None or self._workers.rank == 0:
            drawn = self._generator.rounded_normal(like.numel(), self._deviation)
            noise = torch.from_numpy(drawn).to(torch.int64).reshape(like.shape).to(like.device)
        if self._workers is not None:
            distributed.broadcast(noise, src=0)
        return noise


def _refuse_correlated(sampler: Any) -> None:
    """Refuse a sampler whose account is that of correlated noise."""
    if type(sampler) not in INDEPENDENT_NOISE:
        raise UnsupportedError(
            f"sampler must be one whose noise is drawn anew in every step; got {sampler!r:.80}."
            " Use accountant.learn, whose trainers draw correlated noise"
        )


def _refuse_wrapped(*_: Any) -> None:
    """Refuse a forward pass through a wrapper that adds up the gradients of all workers."""
    wrapper = getattr(DistributedDataParallel, "_active_ddp_module", None)
    if wrapper is not None and wrapper.require_backward_grad_sync:
        raise UnsupportedError(
            "the gradient of a unit must be its own; DistributedDataParallel averages it with those"
            f" of other workers' units. {_UNWRAP}"
        )


def _workers(parameters: list[torch.nn.Parameter]) -> Workers | None:
    """Return the workers of this run, after they were given the first one's parameters."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    for p in parameters:
        if hasattr(p, "full_tensor"):
            raise UnsupportedError(
                "the gradient of a unit must be on one worker; these parameters are sharded over"
                " them. Use DistributedDataParallel, or opacus with"
                ' grad_sample_mode="ghost_fsdp" and the exact accountant'
            )
        distributed.broadcast(p.data, src=0)
    return Workers(parameters[0].device)
