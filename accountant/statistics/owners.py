"""Records that belong to several people: which of them to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from accountant import checks
from accountant.errors import ArgumentTypeError, UnsupportedError
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
