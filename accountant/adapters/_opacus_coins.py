"""Opacus' use of torch's random words: true sampling probability, and repeated states."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch

from accountant.errors import UnsupportedError

# Random bits of torch.rand; those of other types are rounded, and then not uniform.
_BITS = {torch.float32: 24, torch.float64: 53}


def coin_probability(rate: float) -> float:
    """Return the probability with which ``torch.rand(()) < rate`` holds.

    Parameters
    ----------
    rate : float
        In [0, 1], as a sampler of opacus has it.

    Notes
    -----
    The words are multiples of 2**-24 (2**-53 when torch's default type is float64) and the rate is
    rounded to their type, so that the probability is a multiple, too. Off the CPU, where words may
    be finer, one more is counted.
    """
    dtype = torch.get_default_dtype()
    if dtype not in _BITS:
        raise UnsupportedError(
            "the probability of a coin is known when torch's default type is float32 or float64;"
            f" got {dtype}. Set it back while batches are drawn"
        )
    return _probability(float(rate), dtype, torch.get_default_device().type != "cpu")


class States:
    """The states of generators that were used; a state used again gives the same random numbers."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen: set[int] = set()

    def use(self, state: int | None) -> None:
        """Note a state, as :func:`state` gives it; refuse one seen before."""
        if state is None:
            return
        if state in self._seen:
            raise UnsupportedError(
                f"{self._what} must be drawn anew; the random generator is in a state it was in"
                " before, so the same numbers would come again. Do not seed within a run: the"
                " difference of two releases with one noise has none"
            )
        self._seen.add(state)


def state(generator: Any, device: Any) -> int | None:
    """Return a digest of a generator's state, by default of that of a device, where it is known.

    For this process only: a digest in a file would give away a state whose seed is short.
    """
    generator = default_generator(device) if generator is None else generator
    return None if generator is None else hash(generator.get_state().numpy().tobytes())


@functools.lru_cache(maxsize=64)
def _probability(rate: float, dtype: Any, finer: bool) -> float:
    if not (0 <= rate <= 1):
        return rate  # the ledger says what is wrong with it
    bits = _BITS[dtype]
    low = max(math.floor(math.ldexp(rate, bits)) - 2, 0)
    # The words around the rate, compared as the samplers compare them.
    words = [math.ldexp(word, -bits) for word in range(low, min(low + 6, 2**bits))]
    below = int((torch.tensor(words, dtype=dtype, device="cpu") < rate).sum())
    return math.ldexp(min(low + below + finer, 2**bits), -bits)


def default_generator(device: Any) -> Any:
    """Return the generator that torch uses for a device when it is given none."""
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "cuda":
        return torch.cuda.default_generators[device.index or 0]
    return None
