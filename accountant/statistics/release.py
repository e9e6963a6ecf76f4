"""The release of a sparse histogram: charge, draw, drop, sort."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from accountant import checks
from accountant.composition import Composition
from accountant.errors import ArgumentTypeError, BudgetExceeded, DomainError, UnsupportedError
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from accountant.mechanisms.sparse_histogram import SparseHistogram
from accountant.noise import SecureGenerator
from accountant.noise.integer_law import discrete_gaussian, discrete_laplace
from accountant.relations import NeighbouringRelation

ZERO_OUT = NeighbouringRelation.ZERO_OUT


def bound_owners(
    owners: Sequence[Iterable[Hashable]],
    max_records: int,
    *,
    relation: NeighbouringRelation = ZERO_OUT,
) -> list[int]:
    """Choose records so that each owner has at most ``max_records`` of them.

    Parameters
    ----------
    owners : sequence of iterables
        The owners of each record, one iterable a record. An owner who is listed twice in a record
        takes two places. Who owns which record is public, and is not protected.
    max_records : int
        The largest number of places of one owner, in [1, 2**53].
    relation : NeighbouringRelation, keyword only
        Zero-out, or replace-one: the neighbours differ in the contents of all records of one
        person, and not in which records there are.

    Returns
    -------
    list of int
        Indices of the records to keep, by the number of their owners, then by the index.

    Raises
    ------
    UnsupportedError
        Under add-or-remove. Without a person the choice may change for all other records: where
        record i belongs to persons i and i + 1, removing the first changes every choice.

    Notes
    -----
    *Guarantee.* The choice depends on the ownership alone, so at most ``max_records`` kept records
    change: ``mechanism.group(max_records)`` is the guarantee of a person (Ganesh, McKenna,
    McMahan, Smith, Wu 2025; docs/theorems_statistics.md, Theorem N14). An owner is no protection
    for another: in a histogram count records, and not owners.

    *Algorithm.* Greedy, in time linear in the places.
    """
    if checks.relation(relation) is NeighbouringRelation.ADD_OR_REMOVE:
        raise UnsupportedError(
            "bound_owners holds under zero-out or replace-one, where the contents of a person's"
            " records change; under add-or-remove one person decides which records of all others"
            " are kept. State the mechanism under NeighbouringRelation.ZERO_OUT"
        )
    most = checks.integer("max_records", max_records, 1)
    rows = [_places(row) for row in owners]
    taken: Counter[Hashable] = Counter()
    kept = []
    for index in sorted(range(len(rows)), key=lambda i: (rows[i].total(), i)):
        places = rows[index]
        if all(taken[owner] + n <= most for owner, n in places.items()):
            taken.update(places)
            kept.append(index)
    return kept


def _places(row: Iterable[Hashable]) -> Counter[Hashable]:
    if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
        raise ArgumentTypeError(
            "owners must have one list of owners for each record; a single owner is a list of one"
        )
    return Counter(row)


# Counts and sums beyond it are taken to be at it: no sum with noise leaves the 64-bit integers.
LARGEST = 2**53


class Ledger(Protocol):
    """What charges a release: an Accountant, or an account of a store."""

    def compose(self, mechanism: Mechanism) -> object:
        """Record a release, or raise BudgetExceeded and record nothing."""


@dataclass(frozen=True)
class HistogramRelease:
    """The keys that were kept, and what was released of each.

    Attributes
    ----------
    keys : tuple
        The kept keys, sorted.
    counts : ndarray of int64, shape (len(keys),)
        Their noisy counts, each at least the threshold.
    sums : ndarray of int64 or None, shape (len(keys),)
        Their noisy sums, where the mechanism releases them beside the counts.
    mechanism : SparseHistogram
        What was charged.
    private : bool
        False when the noise came from a known seed; then there is no guarantee at all.
    """

    keys: tuple[Hashable, ...]
    counts: NDArray[np.int64]
    sums: NDArray[np.int64] | None
    mechanism: SparseHistogram
    private: bool

    def as_dict(self) -> dict[Hashable, int]:
        """Return the noisy count of each kept key."""
        return dict(zip(self.keys, self.counts.tolist(), strict=True))


class FixedPlan:
    """A plan that is charged as one release, and then released part by part.

    A ledger cannot know that several entries were fixed in advance, and charges each histogram at
    its worst. A plan that was is one entry, and costs less (Theorem N10).

    Parameters
    ----------
    plan : Mechanism
        All releases, added up: ``zips + categories + 2 * mean``.
    ledger : Accountant
        Charged with the plan at once, before anything of it is released.
    label : str, optional, keyword only
        Words for the history.

    Notes
    -----
    *Guarantee.* :meth:`compose` admits each part as often as the plan has it, and charges nothing.
    That no part was chosen by the outputs of others is what the plan says.
    """

    def __init__(self, plan: Mechanism, ledger: Any, *, label: str | None = None) -> None:
        self._left = dict(Composition(((plan, 1),)).parts)
        ledger.compose(plan, label=label)

    def compose(self, mechanism: Mechanism) -> None:
        """Take a part out of the plan, or raise BudgetExceeded where there is none left."""
        if not self._left.get(mechanism, 0):
            raise BudgetExceeded(
                f"{mechanism!r:.200} is not left in the plan; nothing was released"
            )
        self._left[mechanism] -= 1


def release_histogram(
    keys: object,
    counts: object,
    mechanism: SparseHistogram,
    *,
    ledger: Ledger,
    sums: object = None,
    users: object = None,
    rng: SecureGenerator | int | None = None,
) -> HistogramRelease:
    """Charge a sparse histogram, add noise to the counts and keep those at the threshold.

    Parameters
    ----------
    keys : sequence, column or mapping
        The distinct keys of a group-by: a list, an array, a column of pandas, Polars or Arrow; keys
        of several columns are tuples. A mapping has the counts, too, and ``counts`` is None.
    counts : sequence or column of int
        The bounded count of each key. A key with a count below 1 is taken to be absent.
    mechanism : SparseHistogram
        With DiscreteGaussian or DiscreteLaplace noise; its bounds must hold for every user, which
        cannot be seen from counts (:func:`bounded_counts` makes them so).
    ledger : Accountant or FixedPlan, keyword only
        What is charged before anything is drawn.
    sums : sequence or column of int, keyword only
        With ``mechanism.beside``, which is integer noise: the sum of the bounded values of each
        key, in the unit of its sensitivity.
    users : sequence or column of int, keyword only
        With ``mechanism.minimum``: the number of users of each key, where counts are not of users.
    rng : SecureGenerator, int or None, keyword only
        A seed is for tests only.

    Returns
    -------
    HistogramRelease

    Raises
    ------
    BudgetExceeded
        The ledger does not admit the release; nothing was drawn.
    UnsupportedError
        Noise that is no integer, or values beside the counts that have no noise of integers.
    DomainError, ArgumentTypeError
        Columns that do not have one length, counts that are no integers, keys that are not
        distinct. No message has a key or a count.

    Notes
    -----
    *Guarantee.* That of ``mechanism``, if its bounds hold: the noise has exactly its law
    (docs/theorems_statistics.md, Theorem N16). The kept keys are sorted, each by itself, because
    the order in which an engine returns its rows depends on the keys that are dropped. How long it
    takes depends on the number of present keys, which is not covered.
    """
    mechanism = checks.instance(
        "mechanism", mechanism, SparseHistogram, "a SparseHistogram with integer noise"
    )
    _check_noise(mechanism)
    names, column, extra, present = _columns(keys, counts, mechanism, sums, users)
    generator = rng if isinstance(rng, SecureGenerator) else SecureGenerator(rng)
    ledger.compose(mechanism)
    if generator.seeded:
        warnings.warn(
            f"{generator.why_not_private} makes this release not private", UserWarning, stacklevel=2
        )
    noisy = np.minimum(column, LARGEST) + _noise(generator, column.size, mechanism.noise)
    kept = np.flatnonzero(present & (noisy >= math.ceil(mechanism.threshold)))
    shown = sorted(((_own(names[i]), i) for i in kept.tolist()), key=lambda pair: _place(pair[0]))
    order = np.array([i for _, i in shown], dtype=np.intp)
    values = None
    if extra is not None and mechanism.beside is not None:
        values = extra[order] + _noise(generator, order.size, mechanism.beside)
    return HistogramRelease(
        tuple(key for key, _ in shown), noisy[order], values, mechanism, not generator.seeded
    )


def _check_noise(mechanism: SparseHistogram) -> None:
    """Refuse what cannot be drawn exactly."""
    for name, noise in (("noise", mechanism.noise), ("beside", mechanism.beside)):
        if noise is not None and not isinstance(noise, (DiscreteGaussian, DiscreteLaplace)):
            raise UnsupportedError(
                f"{name} must be DiscreteGaussian or DiscreteLaplace to be drawn, since floating"
                f" point shows the data through the digits of other noise; got {noise!r:.80}"
            )
    if mechanism.weighted:
        raise UnsupportedError("weighted counts are no integers, and are not drawn")


def _columns(
    keys: object, counts: object, mechanism: SparseHistogram, sums: object, users: object
) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.bool_]]:
    """Return the keys, the counts, the sums, and which keys are present, checked."""
    if isinstance(keys, Mapping):
        if counts is not None:
            raise ArgumentTypeError("counts must be None where keys is a mapping, which has them")
        names, counts = list(keys), list(keys.values())
    else:
        names = _list(keys)
    column = _integers("counts", counts, len(names))
    if len({_own(name) for name in names}) < len(names):
        raise DomainError("keys must be distinct, as a group-by returns them")
    if (sums is None) is not (mechanism.beside is None):
        raise ArgumentTypeError("sums must be given where the mechanism has noise beside, and only")
    extra = None if sums is None else _integers("sums", sums, len(names))
    present = column >= 1
    if mechanism.minimum is not None:
        if users is None and mechanism.noise.sensitivity != 1:  # type: ignore[attr-defined]
            raise ArgumentTypeError("users must be given with a minimum where records are counted")
        of_users = column if users is None else _integers("users", users, len(names))
        present &= of_users >= mechanism.minimum
    return names, column, extra, present


def _list(column: object) -> list[Any]:
    """Return a column as a list of Python's own values."""
    for name in ("to_pylist", "to_list", "tolist"):
        if (convert := getattr(column, name, None)) is not None:
            return list(convert())
    if isinstance(column, (list, tuple)):
        return list(column)
    raise ArgumentTypeError(
        f"keys and counts must be columns, lists or arrays; got a {type(column).__name__}"
    )


def _integers(name: str, column: object, size: int) -> NDArray[np.int64]:
    values = np.asarray(column if hasattr(column, "__array__") else _list(column))
    if values.size == 0 == size:
        return np.empty(0, np.int64)
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise ArgumentTypeError(f"{name} must be one column of 64-bit integers")
    if values.size != size:
        raise DomainError(f"{name} must be as many as the keys")
    least = -LARGEST if values.dtype.kind == "i" else 0
    return np.asarray(np.clip(values, least, LARGEST), dtype=np.int64)


def _own(key: Any) -> Any:
    """Return a key in the one form that it has in any column.

    A missing value elsewhere in a column turns its integers into floats, for example.
    """
    if isinstance(key, tuple):
        return tuple(_own(part) for part in key)
    if isinstance(key, list):  # a list of Arrow, a struct is a dict
        return tuple(_own(part) for part in key)
    if isinstance(key, dict):
        return tuple((name, _own(part)) for name, part in key.items())
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, float):
        return None if math.isnan(key) else int(key) if key.is_integer() else key
    return key


def _place(key: Any) -> tuple[Any, ...]:
    """Return what a key is sorted by, together with keys of any other type."""
    if isinstance(key, tuple):
        return ("tuple", tuple(_place(part) for part in key))
    if isinstance(key, (int, float)):
        return ("number", key)
    return (type(key).__name__, key if isinstance(key, (str, bytes)) else str(key))


def _noise(generator: SecureGenerator, n: int, noise: Mechanism) -> NDArray[np.int64]:
    if isinstance(noise, DiscreteLaplace):
        return discrete_laplace(generator, n, noise.scale)
    assert isinstance(noise, DiscreteGaussian)
    return discrete_gaussian(generator, n, noise.noise_multiplier)
