"""Clipping under opacus, in which no record decides what becomes of the others or of the step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from opacus.optimizers import DPPerLayerOptimizer
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed
from torch.linalg import vector_norm


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
