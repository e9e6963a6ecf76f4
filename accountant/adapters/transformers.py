"""Private training by the Trainer of Hugging Face: a callback, and no change to the model."""

from __future__ import annotations

import math
from typing import Any

import torch
from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from accountant.adapters._torch_observer import refuse_any
from accountant.adapters.torch_steps import Training
from accountant.adapters.torch_units import UnitBatch, UnitLoader
from accountant.errors import UnsupportedError
from accountant.sampling import PoissonSampler

__all__ = ["PrivacyCallback"]

# What a Trainer logs that does not depend on records; the loss and the norm are logged as 0.
_PUBLIC = frozenset(
    {
        "epoch",
        "epsilon",
        "grad_norm",
        "learning_rate",
        "loss",
        "step",
        "total_flos",
        "train_loss",
        "train_runtime",
        "train_samples_per_second",
        "train_steps_per_second",
    }
)
# TRL's trainers whose loss for a record depends on that record alone.
_OF_TRL = frozenset({"DPOTrainer", "SFTTrainer", "_BaseTrainer"})


class PrivacyCallback(Training, TrainerCallback, ExportableState):  # type: ignore[misc]
    """Makes the training of a Trainer private, and accounts for it.

    Parameters
    ----------
    units : Units
        Which records of the training set belong together: one sequence each, or all of one user.
    noise_multiplier : float
        Noise standard deviation over ``clipping_norm``.
    clipping_norm : float
        The bound on the gradient of one unit.
    delta : float
        In [0, 1): of the ε that is logged, and of the statement.
    sampler : Sampler, optional
        Over units; by default Poisson samples of on average as many units as the Trainer's
        arguments ask for records in an optimiser step: batch size, times workers, times
        ``gradient_accumulation_steps``. Micro-batches do not matter for it.
    ledger : Accountant, optional
        Charged before each optimiser step; its budget ends the training.
    statement : path, optional
        Where the privacy statement is written at the end: ``.html``, ``.md`` or ``.json``.
    title : str
        Of the statement.

    Notes
    -----
    *Guarantee.* That of :class:`~accountant.adapters.torch_steps.PrivateSteps`, for the released
    model and the optimiser's state. The training loss is private and is reported as 0. Evaluation
    on private data, and choosing by it, are not accounted for.

    Examples
    --------
    >>> privacy = PrivacyCallback(units, 1.0, 0.5, delta=1e-5)  # doctest: +SKIP
    >>> privacy.attach(trainer)  # doctest: +SKIP
    >>> trainer.train()  # doctest: +SKIP
    """

    _trainer: Any = None

    def attach(self, trainer: Any) -> None:
        """Let a Trainer train privately: it takes this callback, its batches and its gradients.

        Raises
        ------
        UnsupportedError
            The Trainer's arguments ask for what no theorem covers; the message says what else to
            use.
        """
        arguments = trainer.args
        _refuse(trainer)
        if self._sampler is None:
            self._sampler = _sampler(arguments, len(self._units))
        steps = self._sampler.steps
        arguments.max_steps = steps if arguments.max_steps <= 0 else min(arguments.max_steps, steps)
        # A batch of the loader is a whole one, of which each unit is a micro-batch.
        arguments.gradient_accumulation_steps = 1
        trainer.accelerator.gradient_accumulation_steps = 1
        arguments.ignore_data_skip = True  # batches are drawn anew after a resume
        trainer.get_train_dataloader = self._loader
        trainer.training_step = self._training_step
        callbacks = trainer.callback_handler.callbacks
        # First, so that what others report has ε in it.
        callbacks[:] = [self, *(each for each in callbacks if each is not self)]
        self._trainer = trainer

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: the ledger."""
        return {"args": {}, "attributes": {"kept": self.ledger.to_json()}}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Take over the ledger of a checkpoint; refuse a budget that not one step fits."""
        if self._trainer is None:
            raise UnsupportedError(
                "the Trainer's batches and gradients are not private yet: call attach(trainer) of"
                " the callback instead of giving it as one of callbacks"
            )
        kept = (state.stateful_callbacks or {}).get(type(self).__name__)
        kept = kept[0] if isinstance(kept, list) else kept
        if kept is not None:
            self._resume(kept["attributes"]["kept"])
        self._begin(self._trainer.model)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Charge the ledger and release the gradient, or stop without an update."""
        if not self._released():
            control.should_training_stop = True

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop when the budget admits no other step."""
        if state.global_step < state.max_steps and not self._steps.affordable:
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Report ε with what is logged, and drop what trainers say about their batches."""
        if logs is None or self._steps is None:
            return
        for told in (logs, *state.log_history[-1:]):
            for name in set(told) - _PUBLIC:
                if not name.startswith("eval_"):
                    del told[name]
            told["epsilon"] = self.ledger.epsilon(self._delta)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the statement, on the first worker."""
        if state.is_world_process_zero:
            self._write()

    def _loader(self) -> UnitLoader:
        trainer = self._trainer
        assert self._sampler is not None
        collate = trainer._get_collator_with_removed_columns(
            trainer.data_collator, description="training"
        )
        workers = trainer.args.dataloader_num_workers
        return UnitLoader(
            trainer.train_dataset, self._units, self._sampler, collate, num_workers=workers
        )

    def _training_step(
        self, model: Any, inputs: UnitBatch, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Go through the units of a batch; their losses are private, so 0 is returned."""
        trainer = self._trainer
        model.train()
        module = trainer.accelerator.unwrap_model(model)
        for unit in self._steps.units(inputs):
            prepared = trainer._prepare_inputs(unit)
            with trainer.compute_loss_context_manager():
                loss = trainer.compute_loss(module, prepared)
            loss.backward()
        return torch.zeros((), device=trainer.args.device)


def _sampler(arguments: Any, units: int) -> PoissonSampler:
    """Return Poisson samples of the average size, and as many, as a Trainer's arguments say."""
    size = arguments.per_device_train_batch_size * arguments.world_size
    rate = min(size * arguments.gradient_accumulation_steps / units, 1.0)
    steps = arguments.max_steps
    steps = steps if steps > 0 else max(math.ceil(arguments.num_train_epochs / rate), 1)
    return PoissonSampler(dataset_size=units, sampling_probability=rate, steps=steps)


def _refuse(trainer: Any) -> None:
    """Refuse what would release something else than the account says."""
    arguments = trainer.args
    kinds = {each.__name__ for each in type(trainer).__mro__ if each.__module__.startswith("trl.")}
    others = sorted(each for each in kinds - _OF_TRL if each.endswith("Trainer"))
    optimizer = str(getattr(arguments.optim, "value", arguments.optim)).lower()
    problems = {
        "fsdp and deepspeed, which shard the gradient of a unit over workers. Use one process a"
        " device (DistributedDataParallel)": trainer.is_fsdp_enabled
        or trainer.is_deepspeed_enabled,
        "several devices in one process. Start one process a device, as with torchrun": (
            arguments.n_gpu > 1
        ),
        "fp16=True, whose scaling skips steps by the size of private gradients. Use bf16": (
            arguments.fp16
        ),
        "auto_find_batch_size=True, which starts again after an error. Set a batch size": (
            arguments.auto_find_batch_size
        ),
        f"optim={optimizer!r}, which updates parameters in the backward pass. Use another one": (
            "lomo" in optimizer or "layerwise" in optimizer
        ),
        "restore_callback_states_from_checkpoint=True. Leave it False: the ledger is restored": (
            arguments.restore_callback_states_from_checkpoint
        ),
        "packing=True: a packed sequence has text of several records, and its neighbours' cuts move"
        " when one leaves. Use packing=False": getattr(arguments, "packing", False),
        "shuffle_dataset=True, after which units name other records. Shuffle before": (
            getattr(arguments, "shuffle_dataset", False)
        ),
        f"{', '.join(others)}, whose losses pair records or generate from them. Of TRL's it covers"
        f" {', '.join(sorted(each for each in _OF_TRL if each[0] != '_'))}": bool(others),
        "a Trainer without a training set. Give it train_dataset": trainer.train_dataset is None,
    }
    refuse_any(problems)
