"""The choice of the analysis for one direction: the tightest that is valid for its parts.

==========================================  ==================================================
all parts Gaussian, plain                   closed form: they merge into one (``gaussian``)
Gaussian noise in one direction: sampled,   the native contour (``contour``, and with random
with a random shift, or some of them plain  shifts ``mixture contour``)
equal steps of E7's pair (replace-one)      the native contour (``exchange contour``)
equal Poisson samples with a rare overflow  the native contour (``overflow contour``)
equal steps on batches of a fixed size      the game of Theorem S19 (``replacement game``)
the same beside other parts                 the game's profile as a pair among the others
one release with a profile of its own       that profile (``profile``)
parts with transforms and no common lattice a smoothed line (``smoothed line``)
all parts with a loss distribution          the privacy loss distribution on a grid (``grid``)
several releases on one sample              the same, on the pair of their joint profile, and the
                                            curve where it is lower
all parts known by their Rényi curve alone  Rényi divergences at the best order (``renyi``)
a curve alone beside other parts            the same where all have a curve, the curve's profile
                                            on the grid with the others, and both groups apart
parts that only add a bounded δ             the analysis of the others, and that δ
sparse histograms beside other parts        the worst number of new keys (``hidden keys``)
==========================================  ==================================================
"""

from __future__ import annotations

from functools import lru_cache

from accountant.analyses.by_groups import Apart, ByGroups, UpperPairs, failing_parts, groups_of
from accountant.analyses.gaussian_mixtures import Contour, ExchangeContour, fits
from accountant.analyses.hidden_keys import HiddenKeys, has_hidden_keys
from accountant.analyses.overflow_counts import OverflowContour, has_few_overflows
from accountant.analyses.replacement_beside import BesideGame, plays_beside
from accountant.analyses.replacement_steps import ReplacementGame, plays
from accountant.analyses.smoothed_line import SmoothedLine, covers_line
from accountant.analyses.solver import Solver
from accountant.analyses.solvers import (
    Grid,
    MergedGaussian,
    Nothing,
    OneRelease,
    Renyi,
    answers_itself,
)
from accountant.errors import AccountantError
from accountant.pairs.base import DominatingPair, Parts, has_pld, has_rdp
from accountant.sampling.exchange_pair import ExchangePair


def cached_solver(parts: Parts) -> Solver:
    """Return the solver of the parts, from a small cache."""
    try:
        return _remembered(parts)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return solver(parts)


# The bytes of all their grids together are limited in :mod:`accountant.analyses.pld.upper`.
@lru_cache(maxsize=64)
def _remembered(parts: Parts) -> Solver:
    return solver(parts)


def solver(parts: Parts) -> Solver:
    """Choose the analysis for the parts of one direction."""
    if has_hidden_keys(parts):
        return HiddenKeys(parts, cached_solver)
    if failing_parts(parts):
        return Apart(parts, _whole)
    return _whole(parts)


def _whole(parts: Parts) -> Solver:
    """Choose the analysis of parts that are analysed together."""
    if not parts:
        return Nothing(parts)
    if all(_is_plain(pair) for pair, _ in parts):
        return MergedGaussian(parts)
    if fits(parts):
        return Contour(parts)
    if len(parts) == 1:
        if isinstance(parts[0][0], ExchangePair) and parts[0][1] > 1:
            return ExchangeContour(parts)
        if has_few_overflows(parts):
            return OverflowContour(parts)
        if plays(parts):
            return ReplacementGame(parts)
    if plays_beside(parts):
        return BesideGame(parts, _unplayed)
    return _several(parts)


def _is_plain(pair: DominatingPair) -> bool:
    """Tell whether a pair is that of Gaussian noise without a sample."""
    return pair.gaussian_part is not None and pair.gaussian_part.sampling_probability == 1.0


def _unplayed(parts: Parts) -> Solver:
    """Choose the analysis of parts beside which no game is played."""
    return (_several if plays_beside(parts) else _whole)(parts)


def _several(parts: Parts) -> Solver:
    """Choose the analysis of several parts, or of one that has no analysis of its own."""
    if covers_line(parts):
        return SmoothedLine(parts, _grouped)
    return _grouped(parts)


def _grouped(parts: Parts) -> Solver:
    """Choose the analysis of parts that share no line."""
    if len(parts) > 1 and len(groups := groups_of(parts)) > 1:
        apart = tuple(_whole(p) for p in groups)
        return ByGroups(parts, _together(parts), apart)
    return _together(parts)


def _together(parts: Parts) -> Solver:
    """Return the analysis of all parts at once, by what all of them have."""
    if answers_itself(parts):
        return OneRelease(parts)
    if all(has_pld(pair) for pair, _ in parts):
        return Grid(parts)
    if all(_has_curve_alone(pair) for pair, _ in parts):
        return Renyi(parts)
    return UpperPairs(parts)


def _has_curve_alone(pair: DominatingPair) -> bool:
    if has_pld(pair) or not has_rdp(pair):
        return False
    try:
        return pair.pld_upper_pair() is None
    except AccountantError:
        return True
