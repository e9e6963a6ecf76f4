"""Ghost clipping under opacus: one backward pass, whose rows are measured and summed in float64.

Opacus takes norms in one pass and leaves the sum to a second one, in float32: where the terms of a
record's gradient cancel, what is summed is longer than what was measured. Here both are of the same
rows, and nothing else reaches the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from opacus.grad_sample.functorch import ft_compute_per_sample_gradient
from torch import distributed

from accountant.adapters import _opacus_clipping as clipping
from accountant.errors import UnsupportedError


class Clipped(NamedTuple):
    """What a backward pass left: rows, the norm each was clipped to, the gradients as they were."""

    rows: int
    bound: float
    gradients: list[tuple[Any, int]]


class _Rows:
    """The rows of one backward pass, layer by layer."""

    def __init__(self, records: int) -> None:
        self._records = records
        self.refused: UnsupportedError | None = None
        self._factored: list[clipping.Linear] = []
        self._whole: dict[tuple[Any, str], Any] = {}

    def add(self, hooks: Any, layer: Any, inputs: list[Any], outputs: Any) -> None:
        """Keep what one call of a layer got and passed back; a small layer's whole gradients."""
        _refuse_half_precision(outputs)
        if layer.max_batch_len != self._records:
            raise UnsupportedError(
                "ghost clipping needs one norm for every loss; got rows of"
                f" {layer.max_batch_len} in a layer for {self._records} losses"
            )
        if not self._records:
            return
        kind = hooks._get_module_type(layer)
        if hooks.use_ghost_clipping and kind in clipping.FACTORED:
            self._factored.append(clipping.FACTORED[kind](layer, inputs[0], outputs))
            return
        sampler = ft_compute_per_sample_gradient
        if not hooks.force_functorch:
            sampler = hooks.GRAD_SAMPLERS.get(kind, sampler)
        names = {id(p): name for name, p in layer.named_parameters() if p.requires_grad}
        for p, found in sampler(layer, inputs, outputs).items():
            if id(p) in names:
                self._keep((layer, names[id(p)]), found)

    def _keep(self, place: tuple[Any, str], found: Any) -> None:
        """Add the gradients of a further call, as of a recurrent layer; packed ones are fewer."""
        before = self._whole.get(place)
        if before is not None or len(found) < self._records:
            missing = found.new_zeros((self._records - len(found), *found.shape[1:]))
            found = torch.cat([found, missing])
        self._whole[place] = found if before is None else before + found

    def sums(self, optimizer: Any, bound: float) -> tuple[Any, dict[int, Any]]:
        """Return the norms, and the sums of clipped gradients by the parameters' ids."""
        whole: dict[int, Any] = {}
        # Sharded parameters take other objects' places during a pass: these are those after it.
        for (layer, name), rows in self._whole.items():
            p = id(layer.get_parameter(name))
            whole[p] = rows if p not in whole else whole[p] + rows
        place = optimizer.params[0].device
        total = torch.zeros(self._records, dtype=torch.float64, device=place)
        for each in (
            *map(clipping.squares, whole.values()),
            *(one.squares() for one in self._factored),
        ):
            total += each.to(place)
        norms = total.sqrt()[:, None]
        factor = clipping.factors(norms, norms.new_tensor([clipping.limit(optimizer, bound)]))[:, 0]
        found = {p: clipping.weighted_sum(rows, factor) for p, rows in whole.items()}
        for one in self._factored:
            for name, part in one.sums(factor).items():
                p = id(one.layer.get_parameter(name))
                if p in found:
                    raise UnsupportedError(
                        f"ghost clipping needs parameters of one layer; got a {name} that several"
                        " layers share"
                    )
                found[p] = part
        return norms[:, 0], found


def capture(own: Callable[..., None], hooks: Any, layer: Any, *given: Any, **options: Any) -> None:
    """Stand for opacus' hook on a layer's backward pass, while :func:`backward` keeps its rows."""
    rows = vars(hooks).get("accountant_rows")
    if rows is None or not hooks.hooks_enabled:
        own(hooks, layer, *given, **options)
        return
    # Not "mean", which would divide and multiply by the number of records.
    inputs, outputs = hooks.rearrange_grad_samples(
        module=layer,
        backprops=given[-1][0].detach(),
        loss_reduction="sum",
        batch_first=options["batch_first"],
    )
    try:
        rows.add(hooks, layer, inputs, outputs)
    except UnsupportedError as error:
        rows.refused = error  # after the pass: within, sharded parameters are put together
    for each in (layer, *layer.parameters()):
        if getattr(each, "_forward_counter", 0):
            each._forward_counter -= 1
    if not layer.activations:
        del layer.max_batch_len


def backward(own: Any, loss: Any) -> None:
    """Leave the sum of clipped gradients of a loss in ``p.grad``.

    Parameters
    ----------
    own : callable
        Opacus' own two passes.
    loss : DPTensorFastGradientClipping
        What the criterion that make_private returned makes.
    """
    watch, hooks = getattr(loss.optimizer, "accountant_watch", None), loss.module
    if watch is None:
        own(loss)
        return
    watch.clipped = None
    records = _records(loss)
    _refuse_unhooked(loss, watch)
    if watch.passes & (watch.passes - 1) == 0:
        _refuse_other_gradients(loss)
    watch.passes += 1
    bound = float(hooks.max_grad_norm)
    rows = hooks.accountant_rows = _Rows(records)
    try:
        loss.loss_per_sample.sum().backward()
    finally:
        del hooks.accountant_rows
    if rows.refused is not None:
        raise rows.refused
    if hooks.max_grad_norm != bound:
        raise UnsupportedError("max_grad_norm must not change in a backward pass of ghost clipping")
    loss.optimizer.zero_grad()
    hooks.per_sample_gradient_norms, found = rows.sums(loss.optimizer, bound)
    for p in loss.optimizer.params:
        p.grad = _gradient(p, found.get(id(p)))
    watch.clipped = Clipped(records, bound, versions(_gradients(loss.optimizer)))


def _gradient(p: Any, total: Any) -> Any:
    """Return a sum as a parameter's gradient: for a sharded one, its part of the average."""
    if total is None:
        total = torch.zeros(p.shape, dtype=torch.float64, device=p.device)
    if not hasattr(p, "to_local"):
        return total.to(p.dtype)
    from torch.distributed.tensor import distribute_tensor

    total = total.contiguous()
    distributed.all_reduce(total)
    total /= distributed.get_world_size()
    return distribute_tensor(total.to(p.dtype), p.device_mesh, p.placements)


class _Border(torch.autograd.Function):  # type: ignore[misc]
    """Marks in the graph of a loss where a layer begins or ends."""

    @staticmethod
    def forward(ctx: Any, value: Any, steps: int) -> Any:
        ctx.steps = steps
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0], None


def mark_layers(module: Any) -> list[Any]:
    """Mark the borders of layers that have parameters; return the hooks' handles."""

    def marked(values: Any, steps: int) -> Any:
        if isinstance(values, tuple):
            return tuple(marked(each, steps) for each in values)
        return _Border.apply(values, steps) if _is_followed(values) else values

    layers = [
        each
        for each in module.modules()
        if any(p.requires_grad for p in each.parameters(recurse=False))
    ]
    hooks = [
        each.register_forward_pre_hook(lambda _, values: marked(values, -1)) for each in layers
    ]
    return hooks + [
        each.register_forward_hook(lambda _, __, values: marked(values, 1)) for each in layers
    ]


def _is_followed(value: Any) -> bool:
    """Return whether a value has a gradient, and is not of a record that torch.func maps."""
    if not (isinstance(value, torch.Tensor) and value.requires_grad):
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(value)


def _refuse_other_gradients(loss: Any) -> None:
    """Refuse a loss that depends on parameters outside their layers, from its graph alone."""
    trained = set(map(id, loss.optimizer.params))
    todo, seen = [(loss.loss_per_sample.grad_fn, 0)], set()
    while todo:
        node, depth = todo.pop()
        if node is None or (node, depth) in seen:
            continue
        seen.add((node, depth))
        if isinstance(node, _Border._backward_cls):
            depth += node.steps
        elif depth <= 0 and id(getattr(node, "variable", None)) in trained:
            raise UnsupportedError(
                "part of the loss does not go through the model's layers (a penalty on the"
                " parameters, say), and ghost clipping does not find its gradient. Put such"
                " penalties into the optimiser, as weight_decay"
            )
        todo += [(each, depth) for each, _ in node.next_functions]


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


def _records(loss: Any) -> int:
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


def _refuse_half_precision(outputs: Any) -> None:
    """Refuse gradients that were computed in a few bits, as under autocast, layer by layer."""
    if outputs.dtype not in (torch.float32, torch.float64):
        raise UnsupportedError(
            "ghost clipping needs norms of float32 or float64; got norms of"
            f" {str(outputs.dtype).removeprefix('torch.')}, whose rounding no noise covers. Under"
            " autocast use grad_sample_mode='hooks', whose gradients are clipped in float64; under"
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
