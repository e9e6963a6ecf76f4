"""Clipping under opacus: norms and sums in float64, so that their rounding fits in a margin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from opacus.optimizers import DPPerLayerOptimizer
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed
from torch.linalg import vector_norm

# Numbers that are converted to float64 at a time: half a megabyte stays in a cache. Only speed
# depends on it.
_BLOCK = 2**16
# Squares that are added up in float32, whose root is wrong by 2**-14 at most: Theorem E9 depends on
# it.
_SQUARES = 1024
# Relative: what norms, and sums in float64, may be wrong by. Theorem E9 depends on it.
_MARGIN = 2.0**-12
# Relative: one rounding to float32 moves two neighbours' sums of N records apart by 2**-23 N. But
# for a probability below exp(-1000) N is at most 1024 + 2 E, E the expected number: this is the
# part of the 1024. Theorem E9 depends on it.
_ROUNDING = 2.0**-13
# The part of each expected record. Theorem E9 depends on it.
_ROUNDING_EACH = 2.0**-22
# What cancels to less than 2**-10 of the sum of its terms' norms is clipped harder; squared. Covers
# the rounding of norms and sums of layers below 2**31 numbers: Theorem E9 depends on it.
_CANCELLED = 2.0**-20
# Numbers of rows of layers that are converted to float64 at a time: 8 MB. Only speed depends on it.
_ROWS = 2**20


def limit(optimizer: Any, bound: float) -> float:
    """Return the norm to clip to, so that with all rounding one record moves a sum by ``bound``.

    It depends on public numbers alone: the expected batch and the number of workers.
    """
    workers = getattr(optimizer, "world_size", 1)
    expected = workers * float(getattr(optimizer, "expected_batch_size", None) or 0.0)
    # The sum is rounded twice, and once more for every other worker's that is added to it.
    rounded = (workers + 1) * (_ROUNDING + _ROUNDING_EACH * expected)
    return bound / (1.0 + _MARGIN + rounded)


def clip_and_sum(optimizer: Any) -> None:
    """Add up clipped gradients in float64; one whose norm is infinite or no number adds nothing.

    So that no record decides whether a step is made. The sum is rounded to the parameter's type
    when it gets its noise.
    """
    samples = optimizer.grad_samples
    norms = torch.stack([squares(each).sqrt().to(samples[0].device) for each in samples], dim=1)
    if isinstance(optimizer, DPPerLayerOptimizer):
        bounds = [limit(optimizer, float(each)) for each in optimizer.max_grad_norms]
    else:
        norms = vector_norm(norms, dim=1, keepdim=True)
        bounds = [limit(optimizer, float(optimizer.max_grad_norm))]
    scaled = factors(norms, norms.new_tensor(bounds)).expand(-1, len(samples))
    for p, rows, factor in zip(optimizer.params, samples, scaled.unbind(1), strict=True):
        _check_processed_flag(p.grad_sample)
        total = weighted_sum(rows, factor)
        p.summed_grad = total if p.summed_grad is None else p.summed_grad.add_(total)
        _mark_as_processed(p.grad_sample)


def factors(norms: Any, bounds: Any) -> Any:
    """Return what scales every norm of a record to its bound; 0 where one of them is no number."""
    lost = ~norms.isfinite().all(1, keepdim=True)
    # Opacus' constant: it also covers squares that vanish.
    return (bounds / (norms + 1e-6)).clamp(max=1.0).masked_fill(lost, 0.0)


def squares(rows: Any) -> Any:
    """Return the squared norm of every row, in float64 but for the sums of 1024 squares."""
    kind = torch.promote_types(rows.dtype, torch.float32)
    flat = _flat(rows)
    even = flat.shape[1] // _SQUARES * _SQUARES
    norms = [vector_norm(flat[:, even:], dim=1, keepdim=True, dtype=kind)]
    if even:
        blocks = flat[:, :even].unflatten(1, (even // _SQUARES, _SQUARES))
        norms.append(vector_norm(blocks, dim=2, dtype=kind))
    return torch.cat(norms, dim=1).to(torch.float64).square().sum(1)


def weighted_sum(rows: Any, factor: Any) -> Any:
    """Return the sum of rows times factors, in float64; rows of factor 0 may hold anything."""
    factor = factor.to(rows.device)
    lost = (factor == 0.0).nonzero()[:, 0]
    rows.index_fill_(0, lost, 0.0)  # 0 times infinity is no number
    size = math.prod(rows.shape[1:])
    total = torch.zeros(size, dtype=torch.float64, device=rows.device)
    for columns, block in _blocks(rows):
        total[columns] = factor @ block
    return total.view(rows.shape[1:])


def _blocks(rows: Any) -> Iterator[tuple[slice, Any]]:
    """Yield columns of a matrix of rows and what is in them, in float64."""
    flat = _flat(rows)
    width = max(1, _BLOCK // max(1, len(flat)))
    for at in range(0, flat.shape[1], width):
        columns = slice(at, at + width)
        yield columns, flat[:, columns].to(torch.float64)


def _flat(rows: Any) -> Any:
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))


def hold(optimizer: Any, kind: Any = None) -> None:
    """Hold the sums in a type, or in that of their parameters, in which they get noise."""
    held = getattr(optimizer, "grad_state", None)
    for p in optimizer.params:
        place: Any = vars(p) if held is None else held[p]
        if place["summed_grad"] is not None:
            place["summed_grad"] = place["summed_grad"].to(kind or p.dtype)


class Linear:
    """Gradients in one call of a layer: sums over positions of outer products g aᵀ.

    A bias is a column of ones in a. Rows have the shape (records, positions, width).
    """

    def __init__(self, layer: Any, inputs: Any, outputs: Any) -> None:
        self.layer = layer
        self._trained = {name for name, p in layer.named_parameters() if p.requires_grad}
        self._g = _by_position(outputs)
        self._a = self._entered(inputs)

    def squares(self) -> Any:
        """Return every record's squared norm, never too small."""
        found = [torch.zeros(0, dtype=torch.float64, device=self._g.device)]
        for _, a, g in self._parts():
            most = (vector_norm(g, dim=2) * self._lengths(a)).sum(1)
            found.append(self._squares(a, g).clamp(min=0.0) + _CANCELLED * most.square())
        return torch.cat(found)

    def sums(self, factor: Any) -> dict[str, Any]:
        """Return the sum of gradients times factors, by the names of parameters."""
        width = self._width()
        total = torch.zeros(width, dtype=torch.float64, device=self._g.device)
        factor = factor.to(self._g.device)[:, None, None]
        for part, a, g in self._parts():
            lost = factor[part] == 0.0  # 0 times infinity is no number
            g = g.masked_fill(lost, 0.0) * factor[part]
            self._add(total, a.masked_fill(lost, 0.0).flatten(0, 1), g.flatten(0, 1))
        return self._named(total)

    def _parts(self) -> Iterator[tuple[slice, Any, Any]]:
        step = max(1, _ROWS // max(1, self._g[:1].numel() + self._a[:1].numel()))
        for at in range(0, len(self._g), step):
            part = slice(at, at + step)
            yield part, self._numbers(self._a[part]), self._g[part].to(torch.float64)

    def _entered(self, inputs: Any) -> Any:
        return _by_position(inputs)

    def _numbers(self, a: Any) -> Any:
        columns = [a.to(torch.float64)] if "weight" in self._trained else []
        if "bias" in self._trained:
            columns.append(torch.ones_like(a[:, :, :1], dtype=torch.float64))
        return torch.cat(columns, dim=2)

    def _lengths(self, a: Any) -> Any:
        return vector_norm(a, dim=2)

    def _squares(self, a: Any, g: Any) -> Any:
        positions, width, height = a.shape[1], a.shape[2], g.shape[2]
        if positions * (width + height) < width * height:
            return ((g @ g.mT) * (a @ a.mT)).sum((1, 2))
        return (g.mT @ a).square().sum((1, 2))

    def _width(self) -> tuple[int, int]:
        inputs = self._a.shape[2] if "weight" in self._trained else 0
        return self._g.shape[2], inputs + ("bias" in self._trained)

    def _add(self, total: Any, a: Any, g: Any) -> None:
        total.addmm_(g.mT, a)

    def _named(self, total: Any) -> dict[str, Any]:
        found = {"weight": total[:, : self._a.shape[2]], "bias": total[:, -1]}
        return {name: found[name] for name in self._trained}


class Embedding(Linear):
    """The same, where a has one 1, at a word's number; only the numbers are kept."""

    def _entered(self, inputs: Any) -> Any:
        words = inputs.reshape(*self._g.shape[:2], 1)
        if self.layer.padding_idx is not None:  # has no gradient
            self._g = self._g.masked_fill(words == self.layer.padding_idx, 0.0)
        return words

    def _numbers(self, a: Any) -> Any:
        return a

    def _lengths(self, a: Any) -> Any:
        return torch.ones(a.shape[:2], dtype=torch.float64, device=a.device)

    def _squares(self, a: Any, g: Any) -> Any:
        return ((g @ g.mT) * (a == a.mT)).sum((1, 2))

    def _width(self) -> tuple[int, int]:
        return self.layer.num_embeddings, self._g.shape[2]

    def _add(self, total: Any, a: Any, g: Any) -> None:
        total.index_add_(0, a[:, 0], g)

    def _named(self, total: Any) -> dict[str, Any]:
        return {"weight": total}


FACTORED = {torch.nn.Linear: Linear, torch.nn.Embedding: Embedding}


def _by_position(values: Any) -> Any:
    return values.reshape(len(values), math.prod(values.shape[1:-1]), values.shape[-1])
