"""Data-parallel runs: seeds that differ, steps that agree, and a charge by the first worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler
from torch import distributed

from accountant.adapters._opacus_history import refuse_forgetting
from accountant.errors import AccountantError, DomainError, UnsupportedError
from accountant.ledger import Accountant

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Workers", "refuse_overlapping_shards", "refuse_shared_seeds"]


class Workers:
    """The workers of one run: the first one's ledger decides, and all hold the same releases."""

    def __init__(self, device: Any) -> None:
        self.rank, self.number = distributed.get_rank(), distributed.get_world_size()
        # NCCL moves tensors of its own devices only.
        self._device = device if device.type == "cuda" else torch.device("cpu")
        self._met = False

    def most(self, bound: float) -> float:
        """Return the average over the workers of what bounds each one's sum."""
        total = torch.tensor([bound], dtype=torch.float64, device=self._device)
        distributed.all_reduce(total)
        return float(total.item()) / self.number

    def charge(self, noise: float, rate: float, holder: Any, record: Callable[[], None]) -> None:
        """Charge one step on every worker, the first before all others.

        Parameters
        ----------
        noise, rate : float
            Of the step, which must be those of all workers.
        holder : object
            Whose ``ledger`` is charged; one that lacks releases of the first worker's is replaced
            by a copy of that.
        record : callable
            Charges one step to ``holder.ledger``.

        Raises
        ------
        BudgetExceeded
            On every worker, if the first one's budget does not allow the step.
        UnsupportedError
            The workers disagree about the step, or about what was released before it.
        """
        rows = self._gathered([noise, rate, float(len(holder.ledger))])
        if len({row[:2] for row in rows}) > 1:
            raise UnsupportedError(
                "the workers must make the same step: one noise multiplier, one norm and one"
                " sampling rate; their (noise multiplier, rate) are"
                f" {[row[:2] for row in rows]}. Give make_private the same data set, batch size,"
                " noise_multiplier and max_grad_norm on every worker"
            )
        if not self._met or len({row[2] for row in rows}) > 1:
            self._adopt(holder)
        self._met = True
        refusal: list[Any] = [None]
        if self.rank == 0:
            try:
                record()
            except AccountantError as error:
                refusal = [error]
        distributed.broadcast_object_list(refusal, src=0, device=self._device)
        if refusal[0] is not None:
            raise refusal[0]
        if self.rank != 0:
            record()

    def _gathered(self, row: list[float]) -> list[tuple[float, ...]]:
        mine = torch.tensor(row, dtype=torch.float64, device=self._device)
        rows = [torch.empty_like(mine) for _ in range(self.number)]
        distributed.all_gather(rows, mine)
        return [tuple(each.tolist()) for each in rows]

    def _adopt(self, holder: Any) -> None:
        """Take the first worker's releases for those of this one, which may not hold others."""
        sent = [holder.ledger.to_json() if self.rank == 0 else None]
        distributed.broadcast_object_list(sent, src=0, device=self._device)
        problem = None
        if self.rank != 0:
            first = Accountant.from_json(str(sent[0]))
            try:
                refuse_forgetting(holder.ledger.history, first.history)
                # One that has all the releases stays: it may be the caller's, with a file.
                if len(first) != len(holder.ledger):
                    holder.ledger = first
            except DomainError:
                problem = self.rank
        problems: list[Any] = [None] * self.number
        distributed.all_gather_object(problems, problem)
        others = [each for each in problems if each is not None]
        if others:
            raise UnsupportedError(
                f"the ledgers of workers {others} hold releases that the first worker's does not,"
                " so their ε would differ. Load one checkpoint on all workers, or give a ledger"
                " with a past to the first worker alone: the others copy it"
            )


def refuse_overlapping_shards(sampler: Any) -> None:
    """Refuse samplers of several workers that could draw one record twice for a step."""
    where = None
    if isinstance(sampler, DistributedUniformWithReplacementSampler):
        order = (sampler.shuffle_seed, sampler.epoch) if sampler.shuffle else None
        where = (sampler.total_size, sampler.sample_rate, order)
    found: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, where)
    if None in found:
        raise UnsupportedError(
            "each worker must draw from a shard of its own, or a record is in the batches of"
            f" several workers at once; got a loader whose batch_sampler is a"
            f" {type(sampler).__name__}, which does not split the records. Leave"
            " poisson_sampling=True, or train with other samplers in one process"
        )
    if len(set(found)) > 1:
        raise UnsupportedError(
            "the workers must split one data set alike; their (records, sampling rate, (shuffle"
            f" seed, epoch)) are {found}. Give the sampler the same arguments on every worker"
        )


def refuse_shared_seeds(seeds: list[tuple[str, str, int]], together: bool) -> None:
    """Refuse generators with one seed: their numbers, and so coins or noise, are the same.

    Parameters
    ----------
    seeds : list
        Of this worker's generators: use, device and seed.
    together : bool
        Whether other workers' are compared with them.
    """
    found: list[Any] = [seeds]
    if together:
        found = [None] * distributed.get_world_size()
        distributed.all_gather_object(found, seeds)
    known: dict[tuple[str, int], str] = {}
    for rank, rows in enumerate(found):
        for use, device, seed in rows:
            name = f"{use} of worker {rank}" if together else use
            other = known.setdefault((device, seed), name)
            if other != name:
                raise UnsupportedError(
                    "the workers must draw their batches independently, and independently of all"
                    f" noise; the {other} and the {name} have one seed. Seed each generator with a"
                    " number of its own, as in torch.manual_seed(seed + rank)"
                )
