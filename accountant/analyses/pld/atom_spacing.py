"""Where to put the knots, so that heavy atoms lie next to one. Nothing here touches validity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accountant._typing import FloatArray
from accountant.pairs.atoms import Atoms

# Atoms looked at; the others lie anywhere in their cells.
LOOKED_AT = 48
CANDIDATES = 3000
# Weights, beside the heaviest one, that are looked at; so many of them; and so many times the
# number of frequencies, some 0.5 s.
RELEVANT = 1e-22
MOST_RELEVANT, MOST_WORK = 1000, 5e8
# Frequencies at which they are looked at where few of them matter, on any grid.
MOST_LOOKED_AT = 2.0**15
# Candidates range over these multiples of the spacing for atoms anywhere.
LEAST, MOST = 0.9, 6.0


def _weights(table: Atoms, tilt: float) -> FloatArray:
    """Return tilted masses, the heaviest of weight 1; equal ones where no finite loss has mass."""
    with np.errstate(divide="ignore"):
        exponent = np.log(table.p) + tilt * table.loss
    heaviest = exponent.max()
    return np.ones_like(exponent) if heaviest == -np.inf else np.exp(exponent - heaviest)


def _heaviest(table: Atoms, tilt: float) -> tuple[FloatArray, FloatArray]:
    """Return the losses of most tilted weight, heaviest first, and their shares of it."""
    weight = _weights(table, tilt)
    order = np.argsort(-weight)[:LOOKED_AT]
    return table.loss[order], weight[order] / weight.sum()


def heaviest_atom(table: Atoms, tilt: float) -> float:
    """Return the loss of most tilted weight."""
    return float(_heaviest(table, tilt)[0][0])


def has_few_atoms(table: Atoms, tilt: float, size: float) -> bool:
    """Tell whether characteristic functions at ``size`` frequencies are worth their evaluation."""
    relevant = int(np.count_nonzero(_weights(table, tilt) > RELEVANT))
    return relevant <= MOST_RELEVANT and relevant * size <= MOST_WORK


def widest_spacing(atoms: Sequence[tuple[Atoms, int]], tilt: float, spacing: float) -> float:
    """Return a spacing at which chords add no more than for atoms anywhere at ``spacing``.

    An atom a share s into its cell adds s·(1 - s)·spacing², on average a sixth of spacing². One
    knot is the heaviest atom.
    """
    tried = spacing * np.geomspace(LEAST, MOST, CANDIDATES)
    added = np.zeros(CANDIDATES)
    for table, count in atoms:
        loss, weight = _heaviest(table, tilt)
        share = np.outer(1.0 / tried, loss - loss[0])
        share -= np.floor(share)
        added += count * ((share * (1.0 - share)) @ weight + (1.0 - weight.sum()) / 6.0)
    everything = sum(count for _, count in atoms) / 6.0
    good = np.flatnonzero(added * (tried / spacing) ** 2 <= everything)
    return float(tried[good[-1]]) if good.size else spacing
