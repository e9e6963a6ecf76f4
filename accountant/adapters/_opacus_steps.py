"""Follows the batch, clipping, sum and noise of every step of an Opacus optimiser."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from opacus import optimizers

from accountant.adapters import _opacus_ghost as ghost
from accountant.adapters._opacus_clipping import clip_and_sum, hold
from accountant.adapters._opacus_draws import Draw, Draws, States, state
from accountant.adapters._torch_observer import Contents, Workers, refuse_moved, seed_known
from accountant.adapters.torch_batches import MASKS_MARK, NOISE_MARK, UNCHANGED, Run, mark
from accountant.errors import UnsupportedError

# Whose clipping, summing and noise are known; one of another type may do them in another way.
_KNOWN = (
    optimizers.DPOptimizer,
    optimizers.DPPerLayerOptimizer,
    optimizers.DPOptimizerFastGradientClipping,
    optimizers.DistributedDPOptimizer,
    optimizers.DistributedDPOptimizerFastGradientClipping,
    optimizers.FSDPOptimizerFastGradientClipping,
    optimizers.SimpleDistributedPerLayerOptimizer,
)

# What opacus keeps in modules for the backward pass.
_OF_OPACUS = {"activations", "norm_sample", "_per_sample_gradient_norms", "trainable_parameters"}

_WAY_OUT = (
    " Nothing of it was released. Leave a loop only after a whole batch, or drop the rest with"
    " accountant.adapters.opacus.discard_unfinished(optimizer) and iterate over the loader anew"
)


class Watch:
    """The state of one optimiser's step.

    Attributes
    ----------
    row : tuple, optional
        (noise multiplier, law of the batch, label) of the step that has its noise and is not yet
        recorded; the law is the sampling rate of a Poisson sample, or a Run.
    workers : Workers
        Whose sums are added up.
    clipped : tuple, optional
        What the last backward pass of ghost clipping left: see :mod:`_opacus_clipping`.
    """

    def __init__(
        self, optimizer: Any, module: Any, draws: Draws, noises: States, seeds: dict[Any, int]
    ) -> None:
        self.module, self.draws, self._noises, self._seeds = module, draws, noises, seeds
        self.network = ghost.network(module)
        trained = set(map(id, optimizer.params))
        # By name: sharded parameters take other objects' places during a pass.
        self._but = _OF_OPACUS | {
            name for name, p in self.network.named_parameters() if id(p) in trained
        }
        self.workers = Workers(optimizer.params[0].device, works_together(optimizer))
        self._averages = isinstance(optimizer, optimizers.FSDPOptimizerFastGradientClipping)
        self.clipped: ghost.Clipped | None = None
        self.passes = 0
        self._scale = _scale(optimizer)
        self._recorded = self._updating = False
        self._trained, self._unchanged = optimizer.params, 0
        self._before: list[Any] = []
        self.reset()

    def reset(self) -> None:
        """Forget the batch that was being summed."""
        self.row: tuple[float, float | Run, str] | None = None
        self.clipped = None
        self._contents: Contents | None = None
        self._draw: Draw | None = None
        self._summed: list[tuple[Any, int]] = []
        self._bound = self._most = 0.0
        self._interrupted = False

    def entering(self, module: Any, *_: Any) -> None:
        """Keep what the model holds before the first pass of a step."""
        if module.training and self._contents is None:
            self._contents = Contents(self.network, self._but)

    @contextmanager
    def accumulating(self, optimizer: Any) -> Iterator[None]:
        """Check one part of a batch, around its being clipped and summed."""
        self._refuse_interrupted()
        self._refuse_others_in_sum(optimizer)
        rows, bound = self._part(optimizer)
        draw = self.draws.take(rows)
        if self._draw not in (None, draw):
            raise UnsupportedError(
                "a step must use one Poisson batch; gradients of an earlier batch are in this"
                " step's sum, and a record may be in both." + _WAY_OUT
            )
        if self._draw is not None and bound != self._bound:
            raise UnsupportedError(
                "max_grad_norm must be the same for all physical batches of a step: which record"
                " is in which depends on the others, and so would the norm it is clipped to. Step"
                " the schedule of the norm after a whole batch." + _WAY_OUT
            )
        self._interrupted = True
        yield
        draw.summed += rows
        self._draw, self._bound = draw, bound
        self._most += rows * bound
        most = self._most
        if self._averages:
            most = self.workers.most(most)  # a shard holds an average over all workers
        _refuse_unclipped(optimizer, most)
        self._summed, self._interrupted = ghost.versions(_sums(optimizer)), False

    def noising(self, optimizer: Any) -> None:
        """Check the whole sum before its noise, and note what the step will be recorded as."""
        self._refuse_interrupted()
        self._refuse_others_in_sum(optimizer)
        draw = self._draw
        if draw is None or not (draw.summed == draw.handed == draw.size):
            raise UnsupportedError(
                "a step must use the whole Poisson batch; parts of it are missing, and where a"
                " batch is cut depends on the other records in it." + _WAY_OUT
            )
        if _scale(optimizer) != self._scale:
            raise UnsupportedError(
                "expected_batch_size and loss_reduction must stay what make_private set"
                f" ({self._scale}); got {_scale(optimizer)}. The size of an actual batch is not"
                " private: call make_private again for another expected size"
            )
        if getattr(optimizer, "_adjusted_noise_multiplier", None) is not None:
            raise UnsupportedError(
                "the exact accountant does not cover opacus' adaptive clipping, whose noise is not"
                ' noise_multiplier times the norm. Use clipping="flat" or "per_layer"'
            )
        if self._contents is not None:
            refuse_moved(self._contents)
        words = mark(draw.why_not_private, self._why_not_private(optimizer))
        if adds_noise(optimizer):
            self._noises.use(state(optimizer.generator, optimizer.params[0].device))
        self._interrupted = True
        self.row = (_multiplier(optimizer, self._bound), draw.law, words)

    def recorded(self) -> None:
        """Note that the ledger holds the step."""
        self.reset()
        self._recorded = True

    def allow(self) -> None:
        """Let the inner optimiser update the parameters, if the ledger holds the step."""
        _refuse_unrecorded(self._recorded)
        self._recorded, self._updating = False, True
        self._before = [_some(p) for p in self._trained]

    def end(self) -> None:
        """Let the inner optimiser update nothing more; warn where two updates changed nothing."""
        if self._updating:
            same = map(torch.equal, self._before, map(_some, self._trained))
            self._unchanged = self._unchanged + 1 if all(same) else 0
            if self._unchanged == 2:
                warnings.warn(UNCHANGED, stacklevel=3)
        self._updating = False

    def updating(self, *_: Any) -> None:
        """Look at an update, which may call itself again through a parent's ``step``."""
        _refuse_unrecorded(self._updating)

    def _why_not_private(self, optimizer: Any) -> str:
        if not optimizer.secure_mode and seed_known(optimizer.generator, self._seeds):
            return NOISE_MARK
        return MASKS_MARK if seed_known(None, self._seeds) else ""

    def _refuse_interrupted(self) -> None:
        if self._interrupted:
            raise UnsupportedError(
                "an exception left a step unfinished, and its gradients in the sum." + _WAY_OUT
            )

    def _refuse_others_in_sum(self, optimizer: Any) -> None:
        """Refuse a sum that was touched since it was last looked at."""
        if not ghost.same(self._summed, ghost.versions(_sums(optimizer))):
            raise UnsupportedError(
                "p.summed_grad was changed from outside, or zero_grad was not called after a step"
                " (or cleared half a batch). Call optimizer.zero_grad() once before every backward"
                " pass and leave the sum to opacus." + _WAY_OUT
            )

    def _part(self, optimizer: Any) -> tuple[int, float]:
        """Return the rows to be summed next, and the norm that each is clipped to."""
        if isinstance(optimizer, optimizers.DPOptimizerFastGradientClipping):
            clipped, self.clipped = self.clipped, None
            return ghost.part(clipped, optimizer)
        batches = optimizer.accumulated_iterations
        if batches != 1:
            raise UnsupportedError(
                f"a step must use one Poisson batch; this one accumulated {batches}, and a"
                " record may be in each of them. Use a larger batch, cut into physical ones by"
                " opacus' BatchMemoryManager"
            )
        if isinstance(optimizer, optimizers.DPPerLayerOptimizer):
            bound = math.nextafter(math.hypot(*map(float, optimizer.max_grad_norms)), math.inf)
            known = float(optimizer.max_grad_norm)
            # Opacus rounds the norm of the norms to float32.
            bound = known if known <= bound <= known * (1 + 1e-15) else bound
        else:
            bound = float(optimizer.max_grad_norm)
        if not (0 < bound < math.inf):
            raise UnsupportedError(f"max_grad_norm must be positive and finite; got {bound}")
        return len(optimizer.params[0].grad_sample), bound


@functools.cache
def _watched(kind: Any) -> Any:
    """Return the class of watched optimisers of a kind."""

    # A mixin would have another layout, and an object's class can change to one of its own only.
    class Watched(kind):  # type: ignore[misc]
        accountant_watch: Watch

        def clip_and_accumulate(self) -> None:
            with self.accountant_watch.accumulating(self):
                clip_and_sum(self)

        def accumulate(self) -> None:
            with self.accountant_watch.accumulating(self):
                super().accumulate()
                hold(self, torch.float64)

        def add_noise(self) -> None:
            self.accountant_watch.noising(self)
            hold(self)
            super().add_noise()

        def pre_step(self, closure: Any = None) -> Any:
            ready = super().pre_step(closure)
            if ready:
                self.accountant_watch.allow()
            return ready

        def step(self, closure: Any = None) -> Any:
            try:
                return super().step(closure)
            finally:
                self.accountant_watch.end()

    Watched.__name__, Watched.__qualname__ = kind.__name__, kind.__qualname__
    return Watched


def watch(
    optimizer: Any,
    module: Any,
    draws: Draws,
    noises: States,
    record: Callable[[Any], None],
    seeds: dict[Any, int],
) -> None:
    """Watch every step of an optimiser of opacus from here on.

    Parameters
    ----------
    optimizer : DPOptimizer
        As make_private made it.
    module : GradSampleModule or GradSampleHooks
        Whose gradients it takes.
    draws : Draws
        Of the sampler of its loader.
    noises : States
        Of the generators that gave the noise of all steps on one ledger.
    record : callable
        The step hook, which records ``row``.
    seeds : dict
        Of torch's global generators, as make_private set them from the system.
    """
    refuse_unknown(optimizer)
    unwatch(optimizer)
    optimizer.accountant_watch = Watch(optimizer, module, draws, noises, seeds)
    kind: Any = type(optimizer)
    optimizer.__class__ = _watched(kind)
    optimizer.attach_step_hook(record)
    inner = optimizer.original_optimizer
    inner.accountant_handles = [
        inner.register_step_pre_hook(optimizer.accountant_watch.updating),
        optimizer.accountant_watch.network.register_forward_pre_hook(
            optimizer.accountant_watch.entering
        ),
    ]
    if isinstance(optimizer, optimizers.DPOptimizerFastGradientClipping):
        inner.accountant_handles += ghost.mark_layers(optimizer.accountant_watch.network)


def unwatch(optimizer: Any) -> None:
    """Take the watch off an inner optimiser that is about to be made private again."""
    inner = getattr(optimizer, "original_optimizer", optimizer)
    for handle in vars(inner).pop("accountant_handles", ()):
        handle.remove()


def refuse_unknown(optimizer: Any) -> None:
    """Refuse an optimiser that is none of opacus' own."""
    if type(optimizer) not in _KNOWN:
        raise UnsupportedError(
            f"the exact accountant knows how opacus' own optimisers clip and add noise; got a"
            f" {type(optimizer).__name__}. Use make_private with clipping='flat' or 'per_layer'"
        )


def works_together(optimizer: Any) -> bool:
    """Return whether an optimiser adds up what several workers have summed."""
    return hasattr(optimizer, "world_size")


def discard(optimizer: Any) -> None:
    """Drop what an optimiser has summed and not released."""
    optimizer._step_skip_queue.clear()
    optimizer._is_last_step_skipped = False
    for p in optimizer.params:
        p.grad_sample = None
    optimizer.zero_grad(set_to_none=True)
    optimizer.accountant_watch.reset()
    optimizer.accountant_watch.draws.forget()


def adds_noise(optimizer: Any) -> bool:
    """Return whether this worker's generator gives the noise: it must not be in a state twice."""
    if not (optimizer.noise_multiplier > 0) or optimizer.secure_mode:
        return False
    sharded = isinstance(optimizer, optimizers.FSDPOptimizerFastGradientClipping)
    return sharded or getattr(optimizer, "rank", 0) == 0


def _some(p: Any) -> Any:
    """Return a copy of some numbers of a parameter, of which noise changes every one."""
    return (p.to_local() if hasattr(p, "to_local") else p).detach().flatten()[:16].clone()


def _scale(optimizer: Any) -> tuple[str, Any]:
    """Return what the noisy sum is divided by."""
    reduction = optimizer.loss_reduction
    return reduction, optimizer.expected_batch_size if reduction == "mean" else None


def _sums(optimizer: Any) -> list[Any]:
    """Return the sums of clipped gradients, of the parameters that have any."""
    held = getattr(optimizer, "grad_state", None)
    found = [p.summed_grad if held is None else held[p]["summed_grad"] for p in optimizer.params]
    return [each for each in found if each is not None]


def _multiplier(optimizer: Any, bound: float) -> float:
    """Return the noise over the norm that the sum was clipped to, never rounded up."""
    noise, norm = float(optimizer.noise_multiplier), float(optimizer.max_grad_norm)
    if norm == bound or not (noise > 0):
        return noise
    return math.nextafter(math.nextafter(noise * norm, 0.0) / bound, 0.0)


def _refuse_unrecorded(recorded: bool) -> None:
    """Refuse an update of the parameters by a step that the ledger does not hold."""
    if not recorded:
        raise UnsupportedError(
            "the ledger does not hold this step, so the parameters are not updated. Call step of"
            " the optimiser that make_private returned, and leave its step hook in place"
        )


def _refuse_unclipped(optimizer: Any, most: float) -> None:
    """Refuse a sum that is longer than clipped gradients can be, or no number."""
    norms = [torch.linalg.vector_norm(each, dtype=torch.float64) for each in _sums(optimizer)]
    norm = math.hypot(*map(float, norms))
    if not (norm <= most):
        raise UnsupportedError(
            "the sum of a batch's gradients must be at most its size times max_grad_norm; it is not"
            " (or is no number). Some gradient is not clipped: let every loss be finite and every"
            " parameter's gradient go through opacus"
        )
