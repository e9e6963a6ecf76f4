"""An accountant for Opacus: ``PrivacyEngine(accountant="exact")`` after one import.

Importing this module registers :class:`ExactAccountant` with opacus, and wraps two functions of
opacus that pick an accountant by name, so that an engine with this one calibrates with
:func:`accountant.calibrate_sigma` and refuses what its account would not cover. Engines with
opacus' own accountants behave as before.
"""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from opacus.accountants import IAccountant, register_accountant
from opacus.grad_sample import GradSampleHooksFastGradientClipping
from opacus.grad_sample.grad_sample_module_fast_gradient_clipping_fsdp import (
    GradSampleHooksFastGradientClippingFSDP,
)
from opacus.utils.batch_memory_manager import BatchSplittingSampler
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

from accountant.adapters import _opacus_ghost, _opacus_steps
from accountant.adapters import _opacus_loaders as loaders
from accountant.adapters._opacus_draws import States, coin_probability, in_parts
from accountant.adapters._torch_observer import reseed
from accountant.adapters.torch_batches import Run, refuse_forgetting
from accountant.calibration import calibrate_sigma
from accountant.errors import DomainError, UnsupportedError
from accountant.learn.account import require_a_step
from accountant.ledger import Accountant
from accountant.mechanisms import ApproximateDP, Gaussian, Mechanism
from accountant.sampling.poisson import PoissonSampled

__all__ = ["NAME", "ExactAccountant", "discard_unfinished", "get_noise_multiplier"]

NAME = "exact"

# What opacus' accountants take beside delta: the accuracy of their numerics, which is none here.
_NUMERICS = frozenset({"alphas", "eps_error", "delta_error"})


class ExactAccountant(IAccountant):  # type: ignore[misc]
    """Opacus' accountant interface on a certified ledger.

    Attributes
    ----------
    ledger : accountant.Accountant
        What was recorded; ask it for brackets, ε over steps, or its JSON. Give it a budget by
        assigning ``Accountant(Budget(epsilon, delta))`` before the first step.
    plans_equal_steps : bool
        Whether the first step plans, within a budget, as many steps like it as the exact
        composition allows, where the budget's filter allows fewer (Theorem L12); True by default.
        With a schedule of the noise or the rate, plan its steps by ``ledger.plan``, or assign
        False to have each step charged by the filter.

    Notes
    -----
    *Guarantee.* ε is never too small under add-or-remove, when every batch is a Poisson sample at
    the recorded rate, every record's gradient is clipped and one draw of Gaussian noise is added to
    a step's sum (Theorem E9; samplers: Theorem S1). Steps of ``make_private``'s optimiser are
    watched, and recorded at the probability that torch's coins of 24 bits have. In data-parallel
    training a record lives on one worker and is drawn at the same rate; each worker's accountant
    records the same steps, and any one of them states the guarantee of all.

    Examples
    --------
    >>> from accountant.adapters.opacus import ExactAccountant  # doctest: +SKIP
    >>> engine = opacus.PrivacyEngine(accountant="exact")  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self.ledger = Accountant()
        self.plans_equal_steps = True
        self._noises = States("the noise of a step")

    @classmethod
    def mechanism(cls) -> str:
        """Return the name in opacus' registry."""
        return NAME

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one optimisation step.

        Parameters
        ----------
        noise_multiplier : float
            Noise standard deviation over clipping norm; 0 releases the sample as it is.
        sample_rate : float
            Probability in [0, 1] with which every record is in the batch.
        """
        self._record(noise_multiplier, sample_rate, 1)

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """Return the ε spent at ``delta``, certified never too small.

        Parameters
        ----------
        delta : float
            In [0, 1).
        *args, **kwargs
            Options of the numerics of opacus' accountants (``alphas``, ``eps_error``,
            ``delta_error``), without meaning here; any other is refused.
        """
        unknown = sorted(set(kwargs) - _NUMERICS)
        if unknown or len(args) > 1:
            what = f"the option {unknown[0]!r}" if unknown else f"{len(args)} options by position"
            raise UnsupportedError(f"get_epsilon takes delta; got {what} as well")
        return self.ledger.epsilon(delta)

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.ledger)

    @property
    def history(self) -> list[tuple[float, float, int]]:
        """The steps as opacus writes them: (noise multiplier, sampling rate, steps), merged.

        Assigning replaces the whole record, as opacus' own code does in its searches. Raises
        UnsupportedError when :attr:`ledger` was given other releases, which have no such row.
        """
        return [(*_parameters(item.mechanism), item.count) for item in self.ledger.history]

    @history.setter
    def history(self, rows: Iterable[tuple[float, float, int]]) -> None:
        kept, self.ledger = self.ledger, Accountant()
        try:
            for noise_multiplier, sample_rate, steps in rows:
                self._record(noise_multiplier, sample_rate, steps)
        except Exception:
            self.ledger = kept
            raise

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return the function that opacus' optimiser calls after every logical step.

        Parameters
        ----------
        sample_rate : float
            What opacus believes; recorded is the rate that the step's batch was drawn at.

        Notes
        -----
        The optimiser must be one that ``make_private`` of an engine with this accountant returned,
        whose steps are watched. Physical batches of one logical batch (``BatchMemoryManager``) end
        in one call. Several Poisson batches accumulated into one step are refused: a record may be
        in each of them.
        """

        def record(optimizer: Any) -> None:
            watched = getattr(optimizer, "accountant_watch", None)
            if watched is None or watched.row is None:
                raise UnsupportedError(
                    "the exact accountant records steps that it has watched; got an optimiser that"
                    " make_private did not return. Let PrivacyEngine.make_private attach the hook"
                )
            noise_multiplier, law, words = watched.row
            step = functools.partial(self._record, noise_multiplier, law, 1, words)
            if isinstance(law, Run):
                law.charge(self.ledger, noise_multiplier, words)
            else:
                watched.workers.charge(noise_multiplier, law, self, step)
            watched.recorded()

        return record

    def state_dict(self, destination: Any = None) -> Any:
        """Return the state: opacus' keys, and the ledger as JSON text.

        ``history`` is None when the ledger holds releases that opacus cannot write.
        """
        state = OrderedDict() if destination is None else destination
        state["history"] = self.history if self._is_opacus_own else None
        state["mechanism"] = self.mechanism()
        state["ledger"] = self.ledger.to_json()
        return state

    def load_state_dict(self, state_dict: Any) -> None:
        """Continue from a state.

        Raises
        ------
        DomainError
            The state is not one of this accountant's, has not the budget given here, or has
            forgotten steps recorded here: going back to a checkpoint does not take releases back.
        """
        if not state_dict or not {"history", "mechanism", "ledger"} <= set(state_dict):
            raise DomainError("state_dict must hold what state_dict() returned; got no such keys")
        if state_dict["mechanism"] != NAME:
            raise DomainError(
                f"state_dict must be that of an {NAME!r} accountant; got one of"
                f" {state_dict['mechanism']!r}. If all its batches were Poisson samples, assign"
                " state_dict['history'] to history"
            )
        fresh = ExactAccountant()
        fresh.ledger = Accountant.from_json(state_dict["ledger"])
        rows = state_dict["history"]
        told = None if rows is None else [tuple(row) for row in rows]
        if told != (fresh.history if fresh._is_opacus_own else None):
            raise DomainError("state_dict must have a history equal to its ledger's")
        kept, found = self.ledger.budget, fresh.ledger.budget
        if kept not in (None, found):
            raise DomainError(f"state_dict must have the budget {kept!r}; its ledger has {found!r}")
        refuse_forgetting(self.ledger.history, fresh.ledger.history)
        self.ledger = fresh.ledger

    @property
    def _is_opacus_own(self) -> bool:
        """Whether every record is a step that opacus can write."""
        return all(_row(mechanism) is not None for mechanism, _ in self.ledger.counts)

    def _record(
        self, noise_multiplier: float, sample_rate: float, steps: int, label: str = ""
    ) -> None:
        noise = float(noise_multiplier)
        release = ApproximateDP(0.0, delta=1.0) if noise == 0.0 else Gaussian(noise)
        step = PoissonSampled(release, float(sample_rate))
        require_a_step(self.ledger, step, noise, float(sample_rate), plan=self.plans_equal_steps)
        self.ledger.compose(step, steps, label or None)


def get_noise_multiplier(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    epochs: int | None = None,
    steps: int | None = None,
    **kwargs: Any,
) -> float:
    """Return the least noise multiplier that stays within a target, as opacus' namesake.

    Parameters
    ----------
    target_epsilon, target_delta
        As in :func:`accountant.calibrate_sigma`.
    sample_rate : float
        Of opacus' sampler, whose coins of 24 bits have a probability close to it.
    epochs, steps : int
        Exactly one. An epoch is as long as opacus' Poisson loader makes it.
    **kwargs
        Ignored: what opacus passes on to its own accountants.

    Notes
    -----
    *Guarantee.* That of :func:`accountant.calibrate_sigma` at the coins' probability; there is no
    tolerance.
    """
    if (steps is None) == (epochs is None):
        raise DomainError("get_noise_multiplier needs either steps or epochs; give one of them")
    if steps is None:
        assert epochs is not None
        # The loader's own count differs from epochs / rate where 1 / rate is no integer.
        steps = max(int(epochs / sample_rate), math.ceil(epochs * int(1 / sample_rate)))
    return calibrate_sigma(target_epsilon, target_delta, coin_probability(sample_rate), steps)


def discard_unfinished(optimizer: Any) -> None:
    """Drop what an optimiser has summed and not released, to iterate over its loader anew.

    For what an exception or a ``break`` left inside a step. What is recorded stays recorded.

    Parameters
    ----------
    optimizer : DPOptimizer
        What ``make_private`` of an engine with this accountant returned.

    Notes
    -----
    That a loop is left must not depend on the data. A count of physical batches does: it depends on
    the sizes of the logical ones. Count optimiser steps.
    """
    if getattr(optimizer, "accountant_watch", None) is None:
        raise UnsupportedError(
            "optimizer must be one that make_private returned, of an engine with the exact"
            f" accountant; got a {type(optimizer).__name__} that is not"
        )
    _opacus_steps.discard(optimizer)


def _row(mechanism: Mechanism) -> tuple[float, float] | None:
    """Return the noise multiplier and the rate of a step as :meth:`step` records it."""
    if not isinstance(mechanism, PoissonSampled):
        return None
    release, rate = mechanism.mechanism, mechanism.sampling_probability
    if isinstance(release, Gaussian) and release == Gaussian(release.noise_multiplier):
        return release.noise_multiplier, rate
    return (0.0, rate) if release == ApproximateDP(0.0, delta=1.0) else None


def _parameters(mechanism: Mechanism) -> tuple[float, float]:
    """Return the noise multiplier and the rate of a step."""
    found = _row(mechanism)
    if found is None:
        raise UnsupportedError(
            f"the ledger holds {mechanism!r:.80}, which opacus' history of (noise multiplier,"
            " sampling rate, steps) cannot say. get_epsilon counts it; the records are in"
            " ledger.history, and state_dict keeps them"
        )
    return found


def _calibrate(original: Callable[..., float], **kwargs: Any) -> float:
    """Stand for opacus' get_noise_multiplier: this accountant's name goes to this calibration."""
    if kwargs.get("accountant") == NAME:
        return get_noise_multiplier(**{k: v for k, v in kwargs.items() if k != "accountant"})
    return original(**kwargs)


def _make_private(original: Callable[..., Any], engine: Any, **kwargs: Any) -> Any:
    """Stand for PrivacyEngine.make_private: this accountant sees the loader it accounts for."""
    if not isinstance(engine.accountant, ExactAccountant):
        found = original(engine, **kwargs)
        _opacus_steps.unwatch(found[1])
        return found
    loaders.refuse_data_dependent_clipping(engine)
    loaders.refuse_random_records(kwargs.get("rand_on_empty", False))
    loaders.refuse_unknown_arithmetic(kwargs.get("module"), kwargs.get("grad_sample_mode", "hooks"))
    poisson = kwargs.get("poisson_sampling", True)
    loaders.refuse_replaced(kwargs.get("data_loader"), poisson)
    if not poisson:
        # Before anything is wrapped.
        loaders.follow_batches(kwargs.get("data_loader"))
    seeds = reseed()
    found = original(engine, **kwargs)
    module, optimizer, *_, loader = found
    loaders.refuse_data_dependent_clipping(optimizer)
    _opacus_steps.refuse_unknown(optimizer)
    draws = loaders.follow_batches(loader)
    draws.seeds = None if optimizer.secure_mode else seeds
    loaders.refuse_correlated(draws, loader, optimizer, _opacus_steps.works_together(optimizer))
    loaders.prepare(loader, optimizer)
    noises = engine.accountant._noises
    _opacus_steps.watch(optimizer, module, draws, noises, optimizer.step_hook, seeds)
    return found


def _make_private_with_epsilon(original: Callable[..., Any], engine: Any, **kwargs: Any) -> Any:
    """Stand for its namesake: a BatchSampler is calibrated for by itself."""
    loader = kwargs.get("data_loader")
    if not isinstance(engine.accountant, ExactAccountant) or loaders.sampler_of(loader) is None:
        return original(engine, **kwargs)
    loaders.refuse_replaced(loader, kwargs.get("poisson_sampling", True))
    target = (kwargs.pop("target_epsilon"), kwargs.pop("target_delta"), kwargs.pop("epochs"))
    return engine.make_private(noise_multiplier=loaders.noise_of(loader, *target), **kwargs)


def _replace(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Let calls of a function of opacus go through a wrapper, once."""
    original = getattr(owner, name)
    if hasattr(original, "exact"):
        return

    @functools.wraps(original)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    chosen.exact = True  # type: ignore[attr-defined]
    setattr(owner, name, chosen)


def _install() -> None:
    """Register, and wrap; done once however often this module is loaded."""
    engine: Any = import_module("opacus.privacy_engine")
    utils: Any = import_module("opacus.accountants.utils")
    register_accountant(NAME, ExactAccountant, force=hasattr(engine.get_noise_multiplier, "exact"))
    for owner, name, wrapper in (
        (engine, "get_noise_multiplier", _calibrate),
        (utils, "get_noise_multiplier", _calibrate),
        (engine.PrivacyEngine, "make_private", _make_private),
        (engine.PrivacyEngine, "make_private_with_epsilon", _make_private_with_epsilon),
        (BatchSplittingSampler, "__iter__", in_parts),
        (DPTensorFastGradientClipping, "backward", _opacus_ghost.backward),
        (GradSampleHooksFastGradientClipping, "capture_backprops_hook", _opacus_ghost.capture),
        (GradSampleHooksFastGradientClippingFSDP, "capture_backprops_hook", _opacus_ghost.capture),
    ):
        _replace(owner, name, wrapper)


_install()
