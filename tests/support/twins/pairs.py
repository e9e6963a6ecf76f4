"""Neighbouring data sets: ordinary, degenerate and extreme ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accountant.audit.replay import without_record

Array = Any


@dataclass(frozen=True)
class Pair:
    """Two neighbours, and which record of which they differ in.

    ``left`` and ``right`` are what a case's ``run`` gets: (X, y), or an X alone.
    """

    name: str
    left: tuple[Array, ...]
    right: tuple[Array, ...]
    left_ids: tuple[int, ...]
    right_ids: tuple[int, ...]
    differs: int
    relation: str

    def turned(self):
        """Return the pair the other way round."""
        return replace(
            self, name=f"{self.name}, turned", left=self.right, right=self.left,
            left_ids=self.right_ids, right_ids=self.left_ids,
        )  # fmt: skip


def without(name, data, place):
    """Return a data set with and without the record at ``place``."""
    n = len(data[0])
    ids = tuple(range(n))
    place %= n
    fewer = without_record(data, place)
    return Pair(name, data, fewer, ids, ids[:place] + ids[place + 1 :], place, "add or remove")


def replaced(name, data, place, record):
    """Return a data set and the one with another record at ``place``."""
    n = len(data[0])
    place %= n
    other = tuple(part.copy() for part in data)
    for part, value in zip(other, record, strict=True):
        part[place] = value
    return Pair(name, data, other, tuple(range(n)), tuple(range(n)), place, "replace one")


def zeroed(name, data, place):
    """Return a data set and the one whose record at ``place`` is blank."""
    pair = replaced(name, data, place, (0.0, *(part[place] for part in data[1:])))
    return replace(pair, relation="zero out")


def features(n, d, seed=0):
    """Return ordinary records."""
    return np.random.default_rng((n, d, seed)).normal(size=(n, d))


SIZES = (10.0**30, 10.0**150, 10.0**-30, 10.0**-165, 5e-324, 1.5e308)


def tables(d, n=21):
    """Yield tables of records: name, X."""
    X = features(n, d)
    yield "ordinary", X
    yield "duplicates", np.repeat(X[:1], n, axis=0)
    yield "constant columns", np.ones((n, d))
    yield "first column ones, others zero", np.eye(d)[np.zeros(n, int)]
    yield "zeros", np.zeros((n, d))
    yield "one-hot", np.eye(d)[np.arange(n) % d]
    for size in SIZES:
        mixed = X.copy()
        with np.errstate(over="ignore", under="ignore"):
            mixed[::2] = np.clip(mixed[::2] * size, -1.7e308, 1.7e308)
        yield f"half of the rows times {size:g}", mixed
    yield "one row", X[:1]
    yield "two rows", X[:2]
    yield "Fortran order", np.asfortranarray(X)
    yield "every second column of a wider table", features(n, 2 * d)[:, ::2]
    yield "integers", np.arange(n * d).reshape(n, d) % 7


def add_or_remove(d, target, n=21, only=None):
    """Yield add-or-remove pairs with targets ``target(X)``; None for tables alone."""
    for number, (name, X) in enumerate(tables(d, n)):
        if only is not None and name not in only:
            continue
        data = (X,) if target is None else (X, target(X))
        place = (0, len(X) // 2, len(X) - 1)[number % 3]
        pair = without(f"{name}, record {place}", data, place)
        yield pair if number % 2 else pair.turned()


def replacements(d, target, n=21, only=None):
    """Yield replace-one pairs: an ordinary record against an extreme one, same and other target."""
    for number, (name, X) in enumerate(tables(d, n)):
        if (only is not None and name not in only) or X.dtype.kind != "f":
            continue
        y = target(X)
        place = (0, len(X) // 2, len(X) - 1)[number % 3]
        other = (10.0 ** (number % 5 - 2) * np.arange(1, d + 1), y[-1 - place])
        pair = replaced(f"{name}, record {place}", (X, y), place, other)
        yield pair if number % 2 else pair.turned()


def labels(X):
    """Return classes 0 and 1 that depend on the place alone."""
    return np.arange(len(X)) % 2


def signs(X):
    """Return classes -1 and 1."""
    return 2.0 * labels(X) - 1.0


def numbers(size):
    """Return a maker of real targets of a size, of both signs."""
    return lambda X: size * np.cos(np.arange(len(X)) + 1.0)
