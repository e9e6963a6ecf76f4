"""One odd record among ordinary ones, for every way to run something that reads records."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from support.twins.pairs import Pair

# Entries that are no number at all, and such as are, if unusual ones.
UNREADABLE = {
    "text": "n/a",
    "None": None,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "a huge integer": 10**400,
    "complex": 1j,
    "nested": [[1.0, 2.0]],
    "a mapping": {"a": 1.0},
}
READABLE = {
    "huge": 1e308,
    "denormal": 5e-324,
    "digits": "0.5",
    "a decimal": Decimal("0.25"),
    "a boolean": True,
    "single precision": np.float32(0.1),
    "no class": 71,
}
ALONE = ("text", "None", "a mapping", "digits")  # also where a row of several should stand
# What a record of an unreadable kind may move: nothing where a sum is added up record by record,
# and what a solver's tolerance hides where the release is a minimum.
EXACT = ("accountant.learn.train_", "accountant.learn.models.", "accountant.learn.Per")
NEARLY = ("accountant.learn.convex.", "accountant.adapters.sklearn.")
SOLVED = Fraction(1, 100)


def reading(every):
    """Return one case that reads records for each set of public names."""
    found = {}
    for case in every:
        first = next(iter(case.pairs()), None)
        if not case.refused and first is not None and first.left_ids and first.left:
            found.setdefault(case.covers, case)
    return {case.name: case for case in found.values()}


def odd_pairs(case):
    """Yield a data set with an odd record at its end, and its neighbour; whether it adds nothing.

    The neighbour is without the record, or has an ordinary one in its place.
    """
    plain = next(pair for pair in case.pairs() if len(pair.left[0]) > 1 and len(pair.right[0]) > 1)
    parts = max(plain.left, plain.right, key=lambda data: len(data[0]))
    kinds = [(name, entry, True) for name, entry in UNREADABLE.items()]
    kinds += [(name, entry, False) for name, entry in READABLE.items()]
    for place, part in enumerate(parts):
        for name, entry, lost in kinds:
            wide = getattr(part, "ndim", 1) == 2
            yield (
                _pair(case, plain, parts, place, [entry] * part.shape[1] if wide else entry, name),
                lost,
            )
            if wide and name in ALONE and not in_a_table(case):
                yield _pair(case, plain, parts, place, entry, f"{name}, alone"), lost
        if getattr(part, "ndim", 1) == 2 and not in_a_table(case):
            yield _pair(case, plain, parts, place, [0.5] * (part.shape[1] + 1), "too long"), True
            yield _pair(case, plain, parts, place, [], "empty"), True


def in_a_table(case):
    return any(name.startswith("accountant.learn.generation") for name in case.covers)


def _pair(case, plain, parts, place, record, name):
    n = len(parts[0])
    ordinary = [np.asarray(part).tolist() for part in parts]
    odd = [[*rows, record if i == place else rows[-1]] for i, rows in enumerate(ordinary)]
    even = [[*rows, rows[-1]] for rows in ordinary]
    stays = plain.relation != "add or remove"
    ids = tuple(range(n + 1))
    held = [
        _table(data) if in_a_table(case) else data for data in (odd, even if stays else ordinary)
    ]
    return Pair(
        f"{name} in part {place}", tuple(held[0]), tuple(held[1]), ids, ids if stays else ids[:-1],
        n, plain.relation,
    )  # fmt: skip


def _table(data):
    """Return rows as an array of objects."""
    table = np.empty((len(data[0]), len(data[0][0])), object)
    for i, row in enumerate(data[0]):
        for j, entry in enumerate(row):
            table[i, j] = entry
    return (table,)


def adding_nothing(case, pair):
    """Return the case with what a record may cost that adds nothing."""
    share = Fraction(0) if any(name.startswith(EXACT) for name in case.covers) else SOLVED
    known = any(name.startswith((*EXACT, *NEARLY)) for name in case.covers)
    # Of adaptive clipping's count such a record is one that was clipped.
    counted = "accountant.learn.AdaptiveQuantile" in case.covers
    if not known or counted or pair.relation != "add or remove":
        return case

    def charges(result, pair):
        return [
            replace(
                charge,
                squared=None if charge.squared is None else charge.squared * share**2,
                pure=None if charge.pure is None else charge.pure * share,
                length=None if charge.length is None else charge.length * share,
            )
            for charge in case.charges(result, pair)
        ]

    return replace(case, charges=charges)
