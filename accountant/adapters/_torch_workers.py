"""Data-parallel runs: steps that agree, and a charge by the first worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed

from accountant.adapters._observer import refuse_forgetting
from accountant.errors import AccountantError, DomainError, UnsupportedError
from accountant.ledger import Accountant


class Workers:
    """The workers of one run: the first one's ledger decides, and all hold the same releases."""

    def __init__(self, device: Any) -> None:
        self.rank: int = distributed.get_rank()
        self.number: int = distributed.get_world_size()
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
                f" {[row[:2] for row in rows]}. Give every worker the same data set, batch size,"
                " noise and norm"
            )
        if not self._met or len({row[2] for row in rows}) > 1:
            self._adopt(holder)
        self._met = True
        self.first(record)
        if self.rank != 0:
            record()

    def first(self, action: Callable[[], None]) -> None:
        """Let the first worker act; what it refuses, all refuse."""
        refusal: list[Any] = [None]
        if self.rank == 0:
            try:
                action()
            except AccountantError as error:
                refusal = [error]
        distributed.broadcast_object_list(refusal, src=0, device=self._device)
        if refusal[0] is not None:
            raise refusal[0]

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
