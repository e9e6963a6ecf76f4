"""What two runs on neighbours may differ by: the sensitivity that was charged, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from accountant.audit.recorded import Diverged
from support.twins.tape import Tape
from support.twins.trace import public_view, watch


@dataclass(frozen=True)
class Charge:
    """What some releases in a row have cost together.

    ``squared`` bounds the sum of squared distances over squared deviations (μ²), ``pure`` the sum
    of absolute distances over scales, or the range of a choice's exponents, ``length`` the distance
    itself, where what is released is no sum with noise but a minimum that noise has moved.
    """

    releases: int
    squared: Fraction | None = None
    pure: Fraction | None = None
    length: Fraction | None = None


def twins(case, pair, seconds=30.0):
    """Run a case on both data sets; return what is wrong, and both traces."""
    first = Tape(pair.left_ids, pair.differs, quiet=case.quiet)
    with first.running():
        one = watch(case.run, pair.left, seconds)
    script = first if case.replays else None
    second = Tape(pair.right_ids, pair.differs, script=script, quiet=case.quiet)
    try:
        with second.running():
            other = watch(case.run, pair.right, seconds)
    except Diverged as error:
        return [f"control flow: {error}"], one, one
    wrong = _outside(one, other)
    if one.raised is None and other.raised is None:
        # Seen before the price is asked, which leaves answers in one of the results.
        views = [public_view(t.result, case.without) for t in (one, other) if case.replays]
        wrong += distances(first.entries, second.entries, case.charges(one.result, pair))
        if views:
            wrong += [f"public attributes: {d}" for d in _differences(*views)]
    return wrong, one, other


def _outside(one, other):
    if one.too_long or other.too_long:
        return ["one of the runs did not end in its time"]
    names = ("exception", "warnings", "output")
    both = zip(names, one.outside, other.outside, strict=True)
    return [f"{name}: {a!r} and {b!r}" for name, a, b in both if a != b]


def distances(left, right, charges):
    """Compare releases with what was charged for them, exactly."""
    shapes = [[(entry.name, entry.public) for entry in side] for side in (left, right)]
    if shapes[0] != shapes[1]:  # numbers, sizes and noise
        return [f"releases: {len(left)} and {len(right)}, or of other shapes"]
    wrong, position = [], 0
    for number, charge in enumerate(charges):
        rows = list(zip(left, right, strict=True))[position : position + charge.releases]
        if len(rows) < charge.releases:
            return [*wrong, f"only {len(left)} releases, where more were charged"]
        position += charge.releases
        moved, allowed = _moved(rows, charge)
        if moved is None:
            wrong.append(f"charge {number}: a value is not finite")
        elif not (moved <= allowed):
            wrong.append(f"charge {number}: moved by {_short(moved)}, charged {_short(allowed)}")
    if position != len(left):
        wrong.append(f"{len(left)} releases, {position} of them charged")
    return wrong


def _moved(rows, charge):
    total = Fraction(0)
    for one, other in rows:
        kind, scale, values = one.name, one.public["scale"], (one.private, other.private)
        if None in values[0] or None in values[1]:
            return None, Fraction(0)
        gaps = []
        if kind != "cells":
            gaps = [Fraction(a) - Fraction(b) for a, b in zip(*values, strict=True)]
        if kind in ("softmax", "flip", "weights"):
            rate = Fraction(1) if scale is None else Fraction(scale)
            total += (max(gaps) - min(gaps)) * rate
        elif charge.length is not None:
            total += sum(g * g for g in gaps) * Fraction(one.public["step"]) ** 2
        elif kind == "cells":
            total += _range_on_cells(one, other)
        elif charge.squared is not None:
            total += sum(g * g for g in gaps) / Fraction(scale) ** 2
        else:
            total += sum(map(abs, gaps)) / Fraction(scale)
    limits = (charge.squared, charge.pure, None if charge.length is None else charge.length**2)
    return total, next(limit for limit in limits if limit is not None)


def _range_on_cells(one, other):
    """Return the range of the difference of two exponents that are constant on runs of cells."""
    edges = [np.concatenate([[0], np.cumsum(r.outcome)]) for r in (one, other)]
    cells = np.unique(np.concatenate(edges))[:-1]
    scores = [
        [r.private[i] for i in np.searchsorted(e[1:], cells, side="right").tolist()]
        for r, e in zip((one, other), edges, strict=True)
    ]
    gaps = [a - b for a, b in zip(*scores, strict=True)]
    return (max(gaps) - min(gaps)) * Fraction(one.public["scale"])


def _short(value):
    return f"{float(min(value, Fraction(10) ** 300)):.9g}"


def _differences(one, other, where=""):
    """Return the places where two views differ."""
    if one == other:
        return []
    if not (isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)):
        return [f"{where}: {one!r:.90} and {other!r:.90}"]
    found = []
    for a, b in zip(one, other, strict=True):
        named = isinstance(a, tuple) and len(a) == 2 and isinstance(a[0], tuple)
        found += _differences(a, b, f"{where}.{a[0][1]}" if named else where)
    return found
