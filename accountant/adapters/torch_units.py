"""Units of privacy in PyTorch: which records are one user's, and loaders of sampled units."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from torch import distributed
from torch.utils.data import DataLoader, Dataset

from accountant import checks
from accountant.adapters._torch_observer import Randomness
from accountant.adapters.torch_batches import BatchSampler, Run
from accountant.errors import DomainError, UnsupportedError
from accountant.sampling import Sampler
from accountant.sampling.sampler import distinct, generator

__all__ = ["UnitBatch", "UnitLoader", "Units"]


class Units:
    """A partition of the records of a data set into units of privacy.

    Attributes
    ----------
    records : tuple of tuple of int
        The records of each unit, which one neighbouring data set lacks all together.
    words : str
        What one unit is, for the privacy statement.
    at_most : int, optional
        How many records of one unit are used in a step.

    Notes
    -----
    Make one by :meth:`single` or :meth:`grouped`.

    Examples
    --------
    >>> units = Units.grouped(["ann", "bob", "ann"], "user")
    >>> units.records, units.words
    (((0, 2), (1,)), 'one user, with all their records')
    """

    def __init__(
        self, records: Iterable[Iterable[int]], words: str, at_most: int | None = None
    ) -> None:
        self.records = tuple(tuple(map(int, one)) for one in records)
        self.words, self.at_most = words, at_most
        checks.instance("words", words, str, "a str")
        if at_most is not None:
            self.at_most = checks.integer("at_most", at_most, 1)
        if not self.records or not all(self.records):
            raise DomainError("units must each have at least one record; got one without records")
        flat = [place for one in self.records for place in one]
        if len(set(flat)) != len(flat) or min(flat) < 0:
            raise DomainError(
                "units must be disjoint sets of record numbers >= 0; a record stands in two of them"
                " or twice in one. Its gradient would count for both"
            )

    @classmethod
    def single(cls, records: int, name: str) -> Units:
        """Return the units of which each is one record.

        Parameters
        ----------
        records : int
            The number of records.
        name : str
            What one record is: "sequence", "document".
        """
        count = checks.integer("records", records, 1)
        return cls(((k,) for k in range(count)), f"one {name}")

    @classmethod
    def grouped(cls, owners: Iterable[Hashable], name: str, at_most: int | None = None) -> Units:
        """Return the units of which each is all records of one owner.

        Parameters
        ----------
        owners : iterable of hashable
            Whose record each one is, in the order of the records.
        name : str
            What an owner is: "user", "document".
        at_most : int, optional
            How many records of an owner are used in a step, drawn anew each time; all by default.

        Raises
        ------
        UnsupportedError
            A record has several owners.
        """
        found: dict[Hashable, list[int]] = {}
        for place, owner in enumerate(owners):
            if isinstance(owner, (list, tuple, set, frozenset)):
                raise UnsupportedError(
                    f"every record must have one owner; record {place} has a {type(owner).__name__}"
                    " of them. When one of them leaves, a gradient that counts for another one"
                    f" changes. Cut the data so that no record holds data of two {name}s"
                )
            found.setdefault(owner, []).append(place)
        return cls(found.values(), f"one {name}, with all their records", at_most)

    def __len__(self) -> int:
        """Return the number of units."""
        return len(self.records)


class UnitBatch:
    """The sampled units of one step, each as the ``collate_fn`` of its records made it.

    Attributes
    ----------
    run, number : Run, int
        Which pass over the loader drew it, and as which batch.
    """

    def __init__(self, units: list[Any], run: Run, number: int) -> None:
        self._units, self.run, self.number = units, run, number

    def __len__(self) -> int:
        """Return how many units were sampled, which is private."""
        return len(self._units)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._units)

    def to(self, device: Any, **options: Any) -> UnitBatch:
        """Return the same batch with its tensors on a device."""
        moved = [_moved(unit, device, options) for unit in self._units]
        return UnitBatch(moved, self.run, self.number)


def _moved(value: Any, device: Any, options: dict[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _moved(each, device, options) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(each, device, options) for each in value)
    return value.to(device, **options) if hasattr(value, "to") else value


class UnitLoader(DataLoader):  # type: ignore[misc, type-arg, unused-ignore]
    """A ``DataLoader`` of :class:`UnitBatch`: one batch a step, empty ones too.

    Parameters
    ----------
    data : Dataset
        Of records, by number.
    units : Units
        Of its records.
    sampler : Sampler
        Of :mod:`accountant.sampling`, over units: its ``dataset_size`` is their number.
    collate_fn : callable
        Makes the model's input of a list of records: those of one unit.
    **options
        Of ``DataLoader``, such as ``num_workers``.

    Notes
    -----
    One pass is one whole run of the sampler. With several workers of :mod:`torch.distributed` each
    gets the batch's units whose number it is congruent to, of one draw.
    """

    def __init__(
        self,
        data: Any,
        units: Units,
        sampler: Sampler,
        collate_fn: Callable[[list[Any]], Any],
        **options: Any,
    ) -> None:
        checks.instance("units", units, Units, "a Units, of Units.single or Units.grouped")
        size = getattr(sampler, "dataset_size", None)
        if size != len(units):
            raise DomainError(
                f"dataset_size of the sampler must be the number of units, {len(units)}; got"
                f" {size}. Units are sampled, and not records"
            )
        if max(map(max, units.records)) >= len(data):
            raise DomainError(
                f"units must name records of the data set, which has {len(data)}; got a larger one"
            )
        self.units = units
        super().__init__(
            _UnitData(data, units, collate_fn),
            batch_sampler=_Shared(sampler),
            collate_fn=list,
            **options,
        )

    def __iter__(self) -> Iterator[UnitBatch]:
        """Draw one run, whose batches are numbered."""
        run = self.batch_sampler.begin()
        for number, units in enumerate(super().__iter__()):
            yield UnitBatch(units, run, number)


class _UnitData(Dataset):  # type: ignore[misc, type-arg, unused-ignore]
    """A data set of units instead of records."""

    def __init__(self, data: Any, units: Units, collate: Callable[[list[Any]], Any]) -> None:
        self._data, self._units, self._collate = data, units, collate

    def __len__(self) -> int:
        return len(self._units)

    def __getitems__(self, numbers: list[int]) -> list[Any]:
        """Return units, each augmented or masked by random numbers of its own."""
        found = []
        with Randomness() as numbers_of_its_own:
            for number in numbers:
                numbers_of_its_own.fresh()
                found.append(self[number])
        return found

    def __getitem__(self, number: int) -> Any:
        places, most = self._units.records[number], self._units.at_most
        if most is not None and most < len(places):
            chosen = distinct(generator(None), len(places), most)
            places = tuple(np.asarray(places)[chosen].tolist())
        return self._collate([self._data[place] for place in places])


class _Shared(BatchSampler):
    """The batches of a sampler, drawn once for all workers, of which each gets its own units."""

    def __iter__(self) -> Iterator[list[int]]:
        if not (distributed.is_available() and distributed.is_initialized()):
            yield from super().__iter__()
            return
        # 256 bits of the first worker's entropy, as a sampler takes them when it is given no seed.
        seed: list[Any] = [secrets.randbits(256), repr(self.sampler)]
        distributed.broadcast_object_list(seed, src=0)
        if seed[1] != repr(self.sampler):
            raise UnsupportedError(
                f"the sampler must be that of the first worker, {seed[1]:.80}; got"
                f" {self.sampler!r:.80}. Give every worker the same"
            )
        rank, number = distributed.get_rank(), distributed.get_world_size()
        for batch in self.sampler.batches(seed[0]):
            # By the unit's own number: whose worker it is depends on no other unit.
            yield [unit for unit in batch.tolist() if unit % number == rank]
