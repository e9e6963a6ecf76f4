"""OpenDP's measurements as mechanisms: what a privacy map states, in one account with the rest."""

from __future__ import annotations

from typing import Any

from accountant import checks
from accountant.composition import Composition
from accountant.errors import ArgumentTypeError, UnsupportedError
from accountant.mechanisms import ZCDP, ApproximateDP, PureDP, SparseHistogram
from accountant.mechanisms.base import Mechanism
from accountant.relations import NeighbouringRelation

# Distances between data sets that say by themselves what neighbours are.
_RELATIONS = {
    "SymmetricDistance": NeighbouringRelation.ADD_OR_REMOVE,
    "InsertDeleteDistance": NeighbouringRelation.ADD_OR_REMOVE,
    "ChangeOneDistance": NeighbouringRelation.REPLACE_ONE,
    "HammingDistance": NeighbouringRelation.REPLACE_ONE,
}
# Distances between tables of counts by key: those of thresholded histograms.
_OF_HISTOGRAMS = ("L0PInfDistance", "L0InfDistance", "L01InfDistance", "L02InfDistance")


def from_measurement(
    measurement: Any,
    d_in: Any,
    *,
    relation: NeighbouringRelation | None = None,
    histogram: SparseHistogram | None = None,
) -> Mechanism:
    """Return what a measurement of OpenDP guarantees between inputs ``d_in`` apart.

    Parameters
    ----------
    measurement : opendp.Measurement
        Its privacy map and its output measure are read.
    d_in : number or tuple
        The input distance of neighbours, as its map takes it.
    relation : NeighbouringRelation, optional, keyword only
        What neighbours are. It is needed where the input metric does not say so: a sensitivity may
        be that of any relation.
    histogram : SparseHistogram, optional, keyword only
        Of a thresholded histogram, in the place of its privacy map: its noise, threshold and
        bounds, which the measurement does not tell.

    Returns
    -------
    Mechanism
        ``PureDP`` of a pure ε, ``ApproximateDP`` of an (ε, δ), ``ZCDP`` of a ρ, and ``ZCDP`` and
        ``ApproximateDP(0)`` of a ρ with a δ. Scale and structure are not in a measurement: state
        the noise itself where you know it, which composes to less.

    Raises
    ------
    UnsupportedError
        A thresholded histogram: OpenDP up to 0.16 states too small a δ for it (opendp #2922),
        because it takes the chance that the noise alone passes the rest of the threshold for that
        of a lone user. A measure that is a curve: fix its δ with ``make_fix_delta``.

    Notes
    -----
    *Guarantee.* That of OpenDP's map, which is taken on trust. A threshold that is chained after
    another transformation cannot be seen here: state the histogram of such a measurement, too.
    """
    metric, measure = str(measurement.input_metric), str(measurement.output_measure)
    if histogram is not None:
        return checks.instance("histogram", histogram, SparseHistogram, "a SparseHistogram")
    if metric.startswith(_OF_HISTOGRAMS):
        raise UnsupportedError(
            "a histogram with a threshold is refused: OpenDP up to 0.16 states too small a delta"
            " for it (opendp #2922); say what it is, histogram=SparseHistogram(...)"
        )
    if relation is None:
        relation = _RELATIONS.get(metric.split("(")[0])
    if relation is None:
        raise ArgumentTypeError(
            f"relation must be given for the input metric {metric}, which does not say what"
            " neighbours are"
        )
    spent = measurement.map(d_in)
    if measure == "MaxDivergence":
        return PureDP(spent, relation=relation)
    if measure == "ZeroConcentratedDivergence":
        return ZCDP(spent, relation=relation)
    if measure == "Approximate(MaxDivergence)":
        return ApproximateDP(spent[0], delta=spent[1], relation=relation)
    if measure == "Approximate(ZeroConcentratedDivergence)":
        failing = ApproximateDP(0.0, delta=spent[1], relation=relation)
        return Composition(((ZCDP(spent[0], relation=relation), 1), (failing, 1)))
    raise UnsupportedError(
        f"the output measure {measure} is not read; a privacy profile becomes an (ε, δ) by"
        " opendp.combinators.make_fix_delta"
    )
