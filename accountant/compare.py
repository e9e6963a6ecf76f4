"""One training run under every sampler, with the ε of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from accountant import checks
from accountant._basics.display import text_down, text_up
from accountant._basics.rounding import ratio_up
from accountant.environment import to_nearest
from accountant.errors import DomainError
from accountant.relations import NeighbouringRelation
from accountant.sampling import (
    CyclicBatches,
    FixedSizeSampler,
    FullBatch,
    PoissonSampler,
    RandomAllocation,
    Sampler,
    ShuffledBatches,
    TruncatedPoissonSampler,
    WithReplacementSampler,
)

__all__ = ["SAMPLERS", "SamplerRow", "SamplerTable", "compare_samplers"]

_REPLACE_ONE = NeighbouringRelation.REPLACE_ONE


class SamplerRow(NamedTuple):
    """ε under one sampler.

    Attributes
    ----------
    sampler : str
        The sampler's name.
    relation : NeighbouringRelation
        The relation under which ``lower`` and ``upper`` hold. Compare rows of one relation only.
    lower, upper : float
        A certified bracket of ε, in nats: ``upper`` is guaranteed, ``lower`` is reached.
    theorem : str
        Where the proof is: docs/theorems_sampling.md.
    """

    sampler: str
    relation: NeighbouringRelation
    lower: float
    upper: float
    theorem: str

    def cells(self) -> tuple[str, ...]:
        """Return the row as text whose numbers are on the safe side."""
        ends = text_down(self.lower, 5), text_up(self.upper, 5)
        return (self.sampler, self.relation.words, *ends, self.theorem)


@dataclass(frozen=True)
class SamplerTable:
    """The rows of :func:`compare_samplers`, and the run they belong to."""

    HEADINGS: ClassVar = ("sampler", "relation", "ε ≥", "ε ≤", "theorem")

    dataset_size: int
    batch_size: int
    epochs: int
    noise_multiplier: float
    delta: float
    rows: tuple[SamplerRow, ...]

    def cells(self) -> list[tuple[str, ...]]:
        """Return the headings and then the rows, as text whose numbers are on the safe side."""
        return [self.HEADINGS, *(row.cells() for row in self.rows)]

    def __str__(self) -> str:
        lines = self.cells()
        widths = [max(len(line[i]) for line in lines) for i in range(5)]
        return "\n".join(
            "  ".join(
                text.rjust(width) if i in (2, 3) else text.ljust(width)
                for i, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )

    def plot(self, path: Path | str) -> None:
        """Save a picture of the brackets; needs matplotlib (the ``plot`` extra)."""
        from accountant import plots

        plots.save(plots.samplers(self), Path(path))


def _samplers(n: int, batch: int, epochs: int) -> dict[str, Callable[..., Sampler]]:
    per_epoch = -(-n // batch)
    steps = epochs * per_epoch
    q = ratio_up(batch, n)
    cap = batch + math.ceil(6.0 * math.sqrt(batch))
    poisson: dict[str, Any] = {"dataset_size": n, "sampling_probability": q, "steps": steps}
    batches: dict[str, Any] = {"dataset_size": n, "batch_size": batch}
    allocated = partial(RandomAllocation, dataset_size=n, steps_per_epoch=per_epoch, epochs=epochs)
    found: dict[str, Callable[..., Sampler]] = {
        "poisson": partial(PoissonSampler, **poisson),
        "truncated poisson": partial(TruncatedPoissonSampler, **poisson, cap=cap),
        "random allocation": allocated,
        "with replacement": partial(WithReplacementSampler, **batches, steps=steps),
        "full batch": partial(FullBatch, dataset_size=n, steps=epochs),
        "cyclic": partial(CyclicBatches, **batches, epochs=epochs),
        "shuffled": partial(ShuffledBatches, **batches, epochs=epochs),
        "fixed size": partial(FixedSizeSampler, **batches, steps=steps),
    }
    for name in ("poisson", "with replacement", "cyclic", "shuffled"):
        found[f"{name}, replace-one"] = partial(found[name], relation=_REPLACE_ONE)
    return found


SAMPLERS = tuple(_samplers(1, 1, 1))


@to_nearest
def compare_samplers(
    dataset_size: int,
    batch_size: int,
    epochs: int,
    noise_multiplier: float,
    delta: float,
    *,
    samplers: Sequence[str] | None = None,
    on_row: Callable[[SamplerRow], object] | None = None,
) -> SamplerTable:
    """Return ε of one training run under every sampler.

    Parameters
    ----------
    dataset_size : int
        Number of records.
    batch_size : int
        Batch size, expected or exact, at most ``dataset_size``. Poisson sampling uses the
        probability ``batch_size / dataset_size``, truncated Poisson a cap six standard deviations
        above.
    epochs : int
        Passes over the data; an epoch has ⌈dataset_size / batch_size⌉ steps (full batches: one).
    noise_multiplier : float
        Noise multiplier, > 0.
    delta : float
        In (0, 1).
    samplers : sequence of str, optional
        Only these: ``"poisson"``, ``"truncated poisson"``, ``"random allocation"``, ``"with
        replacement"``, ``"full batch"``, ``"cyclic"``, ``"shuffled"``, ``"fixed size"``, and
        ``"poisson"``, ``"with replacement"``, ``"cyclic"`` and ``"shuffled"`` also with
        ``", replace-one"``. ``accountant.compare.SAMPLERS`` lists them.
    on_row : callable, optional
        Called with each row as soon as it is known.

    Returns
    -------
    SamplerTable
        ``.rows``, each with ``.sampler``, ``.relation``, ``.lower``, ``.upper``, ``.theorem``.

    Raises
    ------
    DomainError, ArgumentTypeError
        An argument is outside its domain or of the wrong type.

    Notes
    -----
    *Guarantee.* Each upper end holds under its row's relation, each lower end is reached by some
    data (docs/theorems_sampling.md). Rows of different relations answer different questions.

    *Algorithm.* The sampler's own mechanism, by the analysis that fits it.

    Examples
    --------
    >>> import accountant as ac
    >>> table = ac.compare_samplers(1000, 100, 2, 1.0, 1e-5, samplers=["poisson", "shuffled"])
    >>> poisson, shuffled = table.rows
    >>> poisson.upper < shuffled.lower  # a Poisson account of a shuffled run is wrong
    True
    """
    size = checks.whole(checks.DATASET_SIZE, dataset_size)
    batch = checks.batch_size(batch_size, size)
    passes = checks.integer("epochs", epochs, 1, advice="It counts passes over the data")
    noise = checks.number(checks.NOISE_MULTIPLIER, noise_multiplier)
    target = checks.number(checks.TARGET_DELTA, delta)
    known = _samplers(size, batch, passes)
    chosen = list(known) if samplers is None else list(samplers)
    for name in chosen:
        if name not in known:
            raise DomainError(
                f"samplers must be among {', '.join(map(repr, known))}; got {name!r}."
                " Leave it out for all of them"
            )
    rows = []
    for name in chosen:
        sampler = known[name]()
        lower, upper = map(float, sampler.epsilon_bounds(noise, target))
        rows.append(SamplerRow(sampler.name, sampler.relation, lower, upper, sampler.theorem))
        if on_row is not None:
            on_row(rows[-1])
    return SamplerTable(size, batch, passes, noise, target, tuple(rows))
