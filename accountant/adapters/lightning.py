"""Private training by Lightning's Trainer: a callback, and no change to the module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning.pytorch import Callback

from accountant.adapters._torch_observer import refuse_any
from accountant.adapters.torch_steps import Training
from accountant.adapters.torch_units import UnitBatch, UnitLoader, Units
from accountant.sampling import Sampler

__all__ = ["PrivacyCallback"]


class PrivacyCallback(Training, Callback):  # type: ignore[misc]
    """Makes the training of a Lightning module private, and accounts for it.

    Parameters
    ----------
    units : Units
        Which records of the training set belong together: one sequence each, or all of one user.
    sampler : Sampler
        Over units; one pass over its loader, one epoch of Lightning's, is its whole run.
    noise_multiplier : float
        Noise standard deviation over ``clipping_norm``.
    clipping_norm : float
        The bound on the gradient of one unit.
    delta : float
        In [0, 1): of the ε that is logged, and of the statement.
    ledger : Accountant, optional
        Charged before each optimiser step; its budget ends the training.
    statement : path, optional
        Where the privacy statement is written at the end: ``.html``, ``.md`` or ``.json``.
    title : str
        Of the statement.

    Notes
    -----
    *Guarantee.* That of :class:`~accountant.adapters.torch_steps.PrivateSteps`, for the released
    module and the optimiser's state. ``training_step`` is called once a unit; what it logs is
    private and is dropped. Evaluation on private data is not accounted for.

    Examples
    --------
    >>> privacy = PrivacyCallback(units, sampler, 1.0, 0.5, delta=1e-5)  # doctest: +SKIP
    >>> trainer = Trainer(max_epochs=1, callbacks=[privacy])  # doctest: +SKIP
    >>> trainer.fit(module, privacy.loader(data, collate))  # doctest: +SKIP
    """

    def __init__(
        self,
        units: Units,
        sampler: Sampler,
        noise_multiplier: float,
        clipping_norm: float,
        **options: Any,
    ) -> None:
        super().__init__(units, noise_multiplier, clipping_norm, sampler=sampler, **options)

    def loader(
        self, data: Any, collate_fn: Callable[[list[Any]], Any], **options: Any
    ) -> UnitLoader:
        """Return the loader to train with; parameters are those of ``UnitLoader``."""
        assert self._sampler is not None
        return UnitLoader(data, self._units, self._sampler, collate_fn, **options)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Refuse what the account would not cover; let the module's step go through units."""
        _refuse(trainer, pl_module)
        steps = self._begin(pl_module)
        one = pl_module.training_step

        def training_step(batch: UnitBatch, *others: Any, **named: Any) -> torch.Tensor:
            for unit in steps.units(batch):
                with _silent(pl_module):
                    found = one(unit, *others, **named)
                loss = found["loss"] if isinstance(found, dict) else found
                loss.backward()
            return torch.zeros((), device=pl_module.device, requires_grad=True)

        pl_module.training_step = training_step

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Charge the ledger and release the gradient, or stop without an update."""
        trainer.should_stop = not self._released() or trainer.should_stop

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """Report ε; stop when the budget admits no other step."""
        if trainer.global_step % trainer.log_every_n_steps == 0:
            pl_module.log("epsilon", self.ledger.epsilon(self._delta), batch_size=1)
        if not self._steps.affordable:
            trainer.should_stop = True

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Write the statement."""
        self._write()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Give the module its own step back."""
        vars(pl_module).pop("training_step", None)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: the ledger."""
        return {"ledger": self.ledger.to_json()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the ledger of a checkpoint."""
        self._resume(state_dict["ledger"])


@contextmanager
def _silent(module: Any) -> Iterator[None]:
    """Drop what a module logs."""
    names = ("log", "log_dict")
    for name in names:
        vars(module)[name] = lambda *_, **__: None
    try:
        yield
    finally:
        for name in names:
            vars(module).pop(name, None)


def _refuse(trainer: Any, module: Any) -> None:
    """Refuse what would release something else than the account says."""
    problems = {
        "several processes under Lightning, which adds up gradients by itself. Use one device, the"
        " callback for transformers, or PrivateSteps in a loop of your own": trainer.world_size > 1,
        "accumulate_grad_batches above 1: a unit may be in each batch. Use a sampler of larger"
        " batches, which are summed unit by unit": trainer.accumulate_grad_batches != 1,
        "precision='16-mixed', whose scaling skips steps by the size of private gradients. Use"
        " 'bf16-mixed' or 32": str(trainer.precision).startswith("16"),
        "manual optimisation. Use PrivateSteps in the training step": (
            not module.automatic_optimization
        ),
    }
    refuse_any(problems)
