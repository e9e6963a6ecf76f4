"""What is watched of a run in PyTorch: random numbers, what the model keeps, and other workers."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from accountant.adapters.torch_batches import refuse_forgetting
from accountant.errors import AccountantError, DomainError, UnsupportedError
from accountant.ledger import Accountant

# What every module has beside what its class gives it: hooks, parameters and buffers.
_EVERY_MODULE = frozenset(vars(torch.nn.Module()))

# Where a state of torch's generator for the CPU, a Mersenne Twister, has its 624 words: each of 32
# bits, in a place of 64.
_WORDS, _FIRST_WORD = 624, 24

_SAME_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Randomness:
    """Random numbers that are each unit's own; a context that leaves generators as it found them.

    A unit's numbers come from bits that the system gives for that unit alone. Given everybody's
    bits, known or not, a unit's gradient is then a function of its records and of the model; a unit
    that enters or leaves changes no other bit of the sum, which is what Theorem E14 asks for. So
    the bits need not be secret, and the 32 that some generators use of them suffice.

    Parameters
    ----------
    model : torch.nn.Module, optional
        Its own generators of torch are set, too; those of other kinds are refused by name.
    """

    def __init__(self, model: Any = None) -> None:
        self._own = []
        for name, value in () if model is None else _attributes(model):
            if isinstance(value, torch.Generator):
                self._own.append(value)
            elif isinstance(value, (np.random.Generator, np.random.RandomState, random.Random)):
                raise UnsupportedError(
                    f"the model must draw from generators that can be set for every unit; {name} is"
                    f" a {type(value).__name__} of its own. Draw from the generators that all"
                    " share, or from a torch.Generator of the module"
                )

    def __enter__(self) -> Randomness:
        kept = [(each, each.get_state()) for each in (*_global(), *self._own)]
        self._kept = kept, np.random.get_state(), random.getstate()  # noqa: NPY002
        return self

    def fresh(self) -> None:
        """Set every generator anew, for one unit."""
        bits = secrets.randbits(63)
        for each in (*_global(), *self._own):
            each.manual_seed(bits)
        np.random.seed(bits % 2**32)  # noqa: NPY002
        random.seed(bits)

    def __exit__(self, *_: object) -> None:
        states, numpy, python = self._kept
        for each in set(_global()) - {each for each, _ in states}:
            each.seed()  # of a device that was first used by a unit
        for each, state in states:
            each.set_state(state)
        np.random.set_state(numpy)  # noqa: NPY002
        random.setstate(python)


def reseed() -> dict[Any, int]:
    """Set the global generators from the system's entropy; return torch's with their seeds."""
    found = {}
    for each in _global():
        found[each] = secrets.randbits(63)
        each.manual_seed(found[each])
    # A seed fills a Mersenne Twister from 32 bits of it, which can be tried one by one.
    state = torch.default_generator.get_state()
    words = np.frombuffer(secrets.token_bytes(4 * _WORDS), np.uint32).astype(np.uint64)
    state[_FIRST_WORD : _FIRST_WORD + 8 * _WORDS] = torch.from_numpy(words.view(np.uint8))
    torch.default_generator.set_state(state)
    np.random.seed(np.frombuffer(secrets.token_bytes(4 * _WORDS), np.uint32))  # noqa: NPY002
    random.seed(secrets.randbits(32 * _WORDS))
    return found


def seed_known(generator: Any, known: dict[Any, int]) -> bool:
    """Return whether a generator, or without one any global one, has a seed that is not ours."""
    looked_at = _global() if generator is None else [generator]
    return any(each.initial_seed() != known.get(each) for each in looked_at)


class Contents:
    """The bits of every tensor and array of a model, for comparison with what they are later.

    Parameters
    ----------
    model : torch.nn.Module
        Of which parameters, buffers, and other tensors and arrays of its modules are compared.
    but : set of str
        Names of parameters, and of what modules hold beside them, that are not compared.
    """

    def __init__(self, model: Any, but: Collection[str] = ()) -> None:
        self._model, self._but = model, but
        self._before = {name: _copied(each) for name, each in self._found()}

    def moved(self) -> str | None:
        """Return the name of what is not as it was."""
        now = dict(self._found())
        for name in self._before.keys() ^ now.keys():
            return name
        return next(
            (name for name, each in now.items() if not _same(self._before[name], each)), None
        )

    def _found(self) -> Iterator[tuple[str, Any]]:
        model = self._model
        tensors = (*model.named_parameters(), *model.named_buffers())
        yield from (each for each in tensors if each[0] not in self._but)
        for name, value in _attributes(model, self._but):
            if isinstance(value, (torch.Tensor, np.ndarray)):
                yield name, value


def refuse_moved(contents: Contents) -> None:
    """Refuse a model that keeps what no noise covers."""
    name = contents.moved()
    if name is not None:
        raise UnsupportedError(kept(name))


def kept(name: str) -> str:
    """Say what is wrong with a tensor that changed."""
    return (
        "the model must not keep statistics of records in its buffers, frozen parameters or other"
        f" tensors, which no noise covers; {name} changed while a batch went through it. Replace"
        " BatchNorm by GroupNorm or LayerNorm, or put it into eval(). Let what is made in the first"
        " forward pass be made before, by a pass over public numbers"
    )


class Workers:
    """The workers of one run: the first one's ledger decides, and all hold the same releases.

    Of one that is alone every question is answered by itself.
    """

    def __init__(self, device: Any, together: bool = True) -> None:
        together = together and distributed.is_available() and distributed.is_initialized()
        self.rank: int = distributed.get_rank() if together else 0
        self.number: int = distributed.get_world_size() if together else 1
        # NCCL moves tensors of its own devices only.
        self._device = device if device.type == "cuda" else torch.device("cpu")
        self._met = False

    def share(self, parameters: list[torch.nn.Parameter]) -> None:
        """Give all workers the first one's parameters, which must be whole on each."""
        for p in parameters if self.number > 1 else ():
            if hasattr(p, "full_tensor"):
                raise UnsupportedError(
                    "the gradient of a unit must be on one worker; these parameters are sharded"
                    " over them. Use DistributedDataParallel, or opacus with"
                    ' grad_sample_mode="ghost_fsdp" and the exact accountant'
                )
            distributed.broadcast(p.data, src=0)

    def add_up(self, tensor: Any) -> Any:
        """Add up the tensors of all workers, in place."""
        if self.number > 1:
            distributed.all_reduce(tensor)
        return tensor

    def told(self, value: Any) -> Any:
        """Return what the first worker says."""
        if self.number > 1:
            sent = [value]
            distributed.broadcast_object_list(sent, src=0, device=self._device)
            value = sent[0]
        return value

    def most(self, bound: float) -> float:
        """Return the average over the workers of what bounds each one's sum."""
        total = torch.tensor([bound], dtype=torch.float64, device=self._device)
        return float(self.add_up(total).item()) / self.number

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
        if self.number == 1:
            record()
            return
        rows = gathered((noise, rate, len(holder.ledger)))
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
        refusal: AccountantError | None = None
        if self.rank == 0:
            try:
                action()
            except AccountantError as error:
                refusal = error
        refusal = self.told(refusal)
        if refusal is not None:
            raise refusal

    def _adopt(self, holder: Any) -> None:
        """Take the first worker's releases for those of this one, which may not hold others."""
        sent = self.told(holder.ledger.to_json() if self.rank == 0 else "")
        problem = None
        if self.rank != 0:
            first = Accountant.from_json(sent)
            try:
                refuse_forgetting(holder.ledger.history, first.history)
                # One that has all the releases stays: it may be the caller's, with a file.
                if len(first) != len(holder.ledger):
                    holder.ledger = first
            except DomainError:
                problem = self.rank
        others = [each for each in gathered(problem) if each is not None]
        if others:
            raise UnsupportedError(
                f"the ledgers of workers {others} hold releases that the first worker's does not,"
                " so their ε would differ. Load one checkpoint on all workers, or give a ledger"
                " with a past to the first worker alone: the others copy it"
            )


def gathered(value: Any) -> list[Any]:
    """Return what every worker says, in the order of their ranks."""
    found: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(found, value)
    return found


def _global() -> list[Any]:
    """Return torch's generators of the processor and of the devices that are in use."""
    found = [torch.default_generator]
    for device in (torch.cuda, torch.xpu):
        if device.is_initialized():
            found.extend(device.default_generators)
    if torch.backends.mps.is_available():
        found.append(torch.mps._get_default_mps_generator())
    return found


def _attributes(model: Any, but: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Yield what the modules of a model hold beside parameters and buffers, and its names."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name not in _EVERY_MODULE and name not in but:
                yield from _leaves(f"{path}.{name}".lstrip("."), value, 3)


def _leaves(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth:
        for key, each in value.items():
            yield from _leaves(f"{name}[{key!r:.40}]", each, depth - 1)
    elif isinstance(value, (list, tuple, set)) and depth:
        for place, each in enumerate(value):
            yield from _leaves(f"{name}[{place}]", each, depth - 1)
    else:
        yield name, value


def _bits(tensor: Any) -> Any:
    """Return a tensor's words as integers, which are equal where they are the same."""
    found = tensor.detach()
    found = found.to_local() if hasattr(found, "to_local") else found
    found = found if found.layout == torch.strided else found.to_dense()
    found = torch.view_as_real(found.resolve_conj()) if found.is_complex() else found
    return found.view(_SAME_BITS[found.element_size()])


def _copied(value: Any) -> Any:
    return _bits(value).clone() if isinstance(value, torch.Tensor) else value.tobytes()


def _same(before: Any, value: Any) -> bool:
    if isinstance(value, torch.Tensor) and isinstance(before, torch.Tensor):
        now = _bits(value)
        return bool(now.dtype == before.dtype and torch.equal(now, before))
    return isinstance(value, np.ndarray) and before == value.tobytes()


UNWRAP = "Call the module that DistributedDataParallel wraps: release() adds up for all workers"


def refuse_wrapped(*_: Any) -> None:
    """Refuse a forward pass through a wrapper that adds up the gradients of all workers."""
    wrapper = getattr(DistributedDataParallel, "_active_ddp_module", None)
    if wrapper is not None and wrapper.require_backward_grad_sync:
        raise UnsupportedError(
            "the gradient of a unit must be its own; DistributedDataParallel averages it with those"
            f" of other workers' units. {UNWRAP}"
        )


def refuse_any(problems: dict[str, Any]) -> None:
    """Refuse the first setting that is there, and would release something else than is charged."""
    for what, found in problems.items():
        if found:
            raise UnsupportedError(f"private training does not cover {what}")
