"""Clipping under opacus, flat, by layer and by ghosts: no record decides what becomes of others."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from opacus.optimizers import DPPerLayerOptimizer
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed
from torch.linalg import vector_norm

from accountant.errors import UnsupportedError


def clip_and_sum(optimizer: Any) -> None:
    """Add up clipped gradients; one whose norm is no number, or infinite, counts as nothing.

    So that no record decides whether a step is made.
    """
    samples = optimizer.grad_samples
    # Under autocast gradients may be of half precision, and their norms must not.
    kinds = [torch.promote_types(each.dtype, torch.float32) for each in samples]
    rows = [each.flatten(1) for each in samples]
    norms = [vector_norm(x, dim=1, dtype=kind) for x, kind in zip(rows, kinds, strict=True)]
    norms = torch.stack([each.to(max(kinds, key=lambda k: k.itemsize)) for each in norms], dim=1)
    if isinstance(optimizer, DPPerLayerOptimizer):
        bounds = norms.new_tensor([float(each) for each in optimizer.max_grad_norms])
    else:
        norms, bounds = norms.norm(2, dim=1, keepdim=True), optimizer.max_grad_norm
    lost = ~norms.isfinite().all(1)
    factors = (bounds / (norms + 1e-6)).clamp(max=1.0).expand(-1, len(samples))
    factors = torch.where(lost[:, None], 0.0, factors)
    places = lost.nonzero()[:, 0]
    for p, rows, factor in zip(optimizer.params, samples, factors.unbind(1), strict=True):
        _check_processed_flag(p.grad_sample)
        rows.index_fill_(0, places.to(rows.device), 0.0)  # 0 times infinity is no number
        total = torch.einsum("i,i...", factor.to(rows.device, p.dtype), rows.to(p.dtype))
        p.summed_grad = total if p.summed_grad is None else p.summed_grad.add_(total)
        _mark_as_processed(p.grad_sample)


def keep_apart(module: Any) -> list[Any]:
    """Let what is no number in one record stay in its rows; return the hooks' handles.

    Nothing times infinity is no number, and in a sum over the records it would be everybody's. So
    layers see zeros in its place, in both passes of ghost clipping and going both ways; the norms
    are of the derivatives before that, and where they are no number, the clipping factor is 0.
    """

    def enter(layer: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(_Finite.apply(each) if _one_of_a_batch(each) else each for each in inputs)

    def leave(layer: Any, inputs: Any, output: Any) -> None:
        for each in output if isinstance(output, tuple) else (output,):
            if _one_of_a_batch(each) and each.requires_grad:
                each.register_hook(_finite)

    layers = [
        each
        for each in module.modules()
        if any(p.requires_grad for p in each.parameters(recurse=False))
    ]
    hooks = [each.register_forward_pre_hook(enter) for each in layers]
    return hooks + [each.register_forward_hook(leave) for each in layers]


def _one_of_a_batch(value: Any) -> bool:
    """Return whether a value is floats of a batch, and not of a record that torch.func maps."""
    if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(value)


def _finite(value: Any) -> Any:
    """Return a tensor with zeros in place of what is no number, or infinite."""
    return torch.nan_to_num(value, 0.0, 0.0, 0.0)


class _Finite(torch.autograd.Function):  # type: ignore[misc]
    """That, in both directions; torch's own derivative of it takes longer than a matrix product."""

    @staticmethod
    def forward(ctx: Any, value: Any) -> Any:
        return _finite(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return _finite(gradients[0])


@contextmanager
def without_lost_records(module: Any) -> Iterator[None]:
    """Clip a record whose norm is no number to nothing, for one backward pass."""
    own = module.get_clipping_coef
    module.get_clipping_coef = lambda: own().nan_to_num(0.0)
    try:
        yield
    finally:
        del module.get_clipping_coef


# Relative: how far a record's norm that opacus found may be below that of its gradient.
_SLACK = 1e-3


class Clipped(NamedTuple):
    """What a backward pass left: rows, the norm each was clipped to, the gradients as they were."""

    rows: int
    bound: float
    gradients: list[tuple[Any, int]]


def backward(own: Any, loss: Any) -> None:
    """Run the two backward passes of a loss of ghost clipping; watch them.

    Parameters
    ----------
    own : callable
        Opacus' own.
    loss : DPTensorFastGradientClipping
        What the criterion that make_private returned makes.
    """
    watch = getattr(loss.optimizer, "accountant_watch", None)
    if watch is None:
        own(loss)
        return
    watch.clipped = None
    rows = _rows(loss)
    _refuse_unhooked(loss, watch)
    found = _norm_of_one(loss) if rows and watch.passes & (watch.passes - 1) == 0 else None
    watch.passes += bool(rows)
    for p in loss.module.trainable_parameters:
        p._norm_sample = None  # one of an earlier batch must not be taken for this one's
    bound = float(loss.module.max_grad_norm)
    with without_lost_records(loss.module):
        own(loss)
    norms = loss.module.per_sample_gradient_norms
    if tuple(norms.shape) != (rows,) or loss.module.max_grad_norm != bound:
        raise UnsupportedError(
            "ghost clipping needs one norm for every loss, and a max_grad_norm that does not change"
            f" in a backward pass; got {len(norms)} norms for {rows} losses"
        )
    _refuse_half_precision(loss, network(loss.module))
    if found is not None:
        _refuse_other_gradients(found, norms)
    watch.clipped = Clipped(rows, bound, versions(_gradients(loss.optimizer)))


def part(clipped: Clipped | None, optimizer: Any) -> tuple[int, float]:
    """Return the rows and the norm of the gradient that is about to be summed."""
    if clipped is None or not same(clipped.gradients, versions(_gradients(optimizer))):
        raise UnsupportedError(
            "ghost clipping clips in the backward pass of the criterion that make_private returned;"
            " p.grad is not what that pass left. Call criterion(model(x), y).backward() and then"
            " optimizer.step(), with no other backward pass and no change of p.grad between"
        )
    if not (0 < clipped.bound < math.inf):
        raise UnsupportedError(f"max_grad_norm must be positive and finite; got {clipped.bound}")
    return clipped.rows, clipped.bound


def _rows(loss: Any) -> int:
    """Return the number of losses; they must be one number a record."""
    shape = tuple(loss.loss_per_sample.shape)
    if len(shape) != 1:
        raise UnsupportedError(
            "ghost clipping needs a loss of shape (batch,), one number a record; got one with"
            f" {len(shape)} dimensions, whose product with the clipping factors mixes the records."
            " Flatten the model's output and the target, as in criterion(model(x).flatten(), y)"
        )
    return int(shape[0])


def network(module: Any) -> Any:
    """Return the model that runs: what came back of make_private, or what its hooks stand on."""
    return module if isinstance(module, torch.nn.Module) else module._module


def _refuse_half_precision(loss: Any, model: Any) -> None:
    """Refuse norms that were computed in a few bits, as under autocast, layer by layer."""
    found = [getattr(p, "_norm_sample", None) for p in loss.module.trainable_parameters]
    found += [norm for layer in model.modules() for norm in getattr(layer, "norm_sample", ())]
    coarse = {each.dtype for each in found if each is not None} - {torch.float32, torch.float64}
    if coarse:
        raise UnsupportedError(
            "ghost clipping needs norms of float32 or float64; got norms of"
            f" {str(coarse.pop()).removeprefix('torch.')}, whose rounding no noise covers. Under"
            " autocast use grad_sample_mode='hooks', whose gradients are clipped in float32; under"
            " FSDP leave mp_policy out"
        )


def _refuse_unhooked(loss: Any, watch: Any) -> None:
    """Refuse parameters whose norms would not be found."""
    if loss.module is not watch.module or not loss.module.hooks_enabled:
        raise UnsupportedError(
            "ghost clipping needs the hooks of the model that make_private returned; they are"
            " disabled or those of another model. Call enable_hooks(), or make_private anew"
        )
    found = {id(p) for p in loss.module.trainable_parameters}
    if found != {id(p) for p in loss.optimizer.params}:
        raise UnsupportedError(
            "ghost clipping needs the parameters that make_private saw: those it takes norms of"
            " must be those that are updated. Freeze, unfreeze and add parameters before"
            " make_private, and give the optimiser all that are trained"
        )


def _norm_of_one(loss: Any) -> tuple[int, float]:
    """Return one record, drawn at random, and the norm of its loss's gradient."""
    place = secrets.randbelow(len(loss.loss_per_sample))
    loss.module.disable_hooks()
    try:
        found = torch.autograd.grad(
            loss.loss_per_sample[place],
            loss.optimizer.params,
            retain_graph=True,
            allow_unused=True,
        )
    finally:
        loss.module.enable_hooks()
    norms = [vector_norm(each, dtype=torch.float64) for each in found if each is not None]
    # nan where one is nan, whatever the others are.
    return place, math.sqrt(sum(float(norm) ** 2 for norm in norms))


def _refuse_other_gradients(found: tuple[int, float], norms: Any) -> None:
    """Refuse a loss whose gradient is longer than opacus' norm of it."""
    place, norm = found
    # One that is no number makes a sum that is none, which is refused by itself.
    if norm > float(norms[place]) * (1 + _SLACK) + 1e-9:
        raise UnsupportedError(
            "a record's gradient is longer than the norm that ghost clipping finds: part of the"
            " loss does not go through the model's layers (a penalty on the parameters, say), or"
            " mixes records. Put such penalties into the optimiser, as weight_decay"
        )


def versions(tensors: list[Any]) -> list[tuple[Any, int]]:
    """Return tensors with what tells whether they change."""
    return [(each, each._version) for each in tensors]


def same(before: list[tuple[Any, int]], now: list[tuple[Any, int]]) -> bool:
    """Return whether tensors are the same ones, unchanged."""
    return len(before) == len(now) and all(
        old is new and was == version
        for (old, was), (new, version) in zip(before, now, strict=True)
    )


def _gradients(optimizer: Any) -> list[Any]:
    return [p.grad for p in optimizer.params if p.grad is not None]
