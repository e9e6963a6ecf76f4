"""A PyTorch ``batch_sampler`` that draws exactly what its account assumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accountant.errors import ArgumentTypeError
from accountant.sampling import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from accountant.sampling.drawing import Seed

__all__ = ["BatchSampler"]


class BatchSampler:
    """The batches of one run, for ``DataLoader(data, batch_sampler=...)``.

    Parameters
    ----------
    sampler : Sampler
        Which batches to draw; its :meth:`~accountant.sampling.Sampler.mechanism` accounts for them.
    seed : int or numpy Generator, optional
        For tests only; by default the operating system's entropy.

    Notes
    -----
    One iteration is the *whole* run that the mechanism accounts for, all epochs of it; iterating
    again is another run, to be accounted again. Batches may be empty: give the loader a
    ``collate_fn`` that takes an empty list, and release the noise of that step all the same.

    Examples
    --------
    >>> from accountant.sampling import PoissonSampler
    >>> sampler = PoissonSampler(dataset_size=1000, sampling_probability=0.01, steps=3)
    >>> batches = BatchSampler(sampler)
    >>> len(batches), all(isinstance(batch, list) for batch in batches)
    (3, True)
    """

    def __init__(self, sampler: Sampler, seed: Seed = None) -> None:
        if not isinstance(sampler, Sampler):
            raise ArgumentTypeError(
                f"sampler must be one of accountant.sampling's; got {sampler!r}."
                " A loader of your own has no account of its own"
            )
        self.sampler = sampler
        self._seed = seed

    def __len__(self) -> int:
        return self.sampler.steps

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.sampler.batches(self._seed):
            yield batch.tolist()
