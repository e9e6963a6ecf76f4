"""The choice of the analysis for one direction: the tightest that is valid for its parts.

==========================================  ==================================================
all parts Gaussian, plain                   closed form: they merge into one (``gaussian``)
all parts Gaussian, subsampled or not       the native contour (``contour``)
equal parts, Gaussian with a random shift   the native contour (``mixture contour``)
any of these together, in one direction     the native contour (``mixture contour``)
equal steps of E7's pair (replace-one)      the native contour (``exchange contour``)
equal Poisson samples with a rare overflow  the native contour (``overflow contour``)
equal steps on batches of a fixed size      the game of Theorem S19 (``replacement game``)
the same beside other parts                 the game's profile as a pair among the others
one release that inverts its own profile    that profile (``profile``)
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

from functools import lru_cache, partial

from accountant.analyses import inverted_profile
from accountant.analyses.apart import Apart, without_parts_apart
from accountant.analyses.by_groups import ByGroups, groups_of
from accountant.analyses.closed_forms import MergedGaussian, Nothing
from accountant.analyses.exchange import ExchangeContour
from accountant.analyses.gaussian_mixtures import MixtureContour
from accountant.analyses.hidden_keys import HiddenKeys, has_hidden_keys
from accountant.analyses.lone_losses import LoneLosses
from accountant.analyses.mixture_compositions import MixedContour, fits
from accountant.analyses.overflow_counts import OverflowContour, has_few_overflows
from accountant.analyses.replacement_beside import BesideGame, plays_beside
from accountant.analyses.replacement_steps import ReplacementGame, plays
from accountant.analyses.shift_cuts import covers
from accountant.analyses.single_release import is_one_of_losses
from accountant.analyses.solvers import Contour, Grid, Renyi, Solver
from accountant.analyses.upper_pairs import UpperPairs
from accountant.errors import AccountantError
from accountant.pairs.base import DominatingPair, JointPair, Parts, has_pld, has_rdp
from accountant.sampling.exchange_pair import ExchangePair
from accountant.tolerances import wanted_tolerances


def cached_solver(parts: Parts, joint: JointPair, *, upper_alone: bool = False) -> Solver:
    """Return the solver of the parts, from a small cache."""
    try:
        return _remembered(parts, joint, upper_alone, wanted_tolerances())
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return solver(parts, joint, upper_alone=upper_alone)


# The bytes of all their grids together are limited in :mod:`accountant.analyses.pld.memory`.
@lru_cache(maxsize=64)
def _remembered(parts: Parts, joint: JointPair, upper_alone: bool, _: tuple[float, ...]) -> Solver:
    return solver(parts, joint, upper_alone=upper_alone)


def solver(parts: Parts, joint: JointPair, *, upper_alone: bool = False) -> Solver:
    """Choose the analysis for the parts of one direction.

    ``joint`` computes one pair for several releases on one sample, from their answers.
    ``upper_alone`` tells that lower ends are not asked for: a grid then needs half of its work.
    """
    if has_hidden_keys(parts):
        return HiddenKeys(parts, partial(cached_solver, joint=joint), joint)
    if is_one_of_losses(parts):
        return LoneLosses(parts)
    if without_parts_apart(parts)[0] != parts:
        return Apart(parts, partial(_whole, joint=joint, upper_alone=upper_alone))
    return _whole(parts, joint, upper_alone)


def _whole(parts: Parts, joint: JointPair, upper_alone: bool) -> Solver:
    """Choose the analysis of parts that are analysed together."""
    if not parts:
        return Nothing(parts)
    gaussian = [noise for pair, _ in parts if (noise := pair.gaussian_part) is not None]
    if len(gaussian) == len(parts):
        # A plain part is its own reverse.
        sampled = {part.add for part in gaussian if part.sampling_probability != 1.0}
        if not sampled:
            return MergedGaussian(parts)
        if len(sampled) == 1:
            return Contour(parts, gaussian)
    if len(parts) == 1:
        part = parts[0][0].gaussian_mixture
        if part is not None and covers(part):
            return MixtureContour(parts)
        if isinstance(parts[0][0], ExchangePair) and parts[0][1] > 1:
            return ExchangeContour(parts)
        if has_few_overflows(parts):
            return OverflowContour(parts)
        if plays(parts):
            return ReplacementGame(parts)
    if plays_beside(parts):
        # Its lower end also tells which game to play.
        return BesideGame(parts, partial(_unplayed, joint=joint, upper_alone=False))
    return _several(parts, joint, upper_alone)


def _unplayed(parts: Parts, joint: JointPair, upper_alone: bool) -> Solver:
    """Choose the analysis of parts beside which no game is played."""
    return (_several if plays_beside(parts) else _whole)(parts, joint, upper_alone)


def _several(parts: Parts, joint: JointPair, upper_alone: bool) -> Solver:
    """Choose the analysis of several parts, or of one that has no analysis of its own."""
    if len(parts) > 1 and fits(parts):
        return MixedContour(parts)
    if len(parts) > 1 and len(groups := groups_of(parts)) > 1:
        apart = tuple(_whole(p, joint, upper_alone) for p in groups)
        return ByGroups(parts, _together(parts, joint, upper_alone), apart)
    return _together(parts, joint, upper_alone)


def _together(parts: Parts, joint: JointPair, upper_alone: bool) -> Solver:
    """Return the analysis of all parts at once, by what all of them have."""
    if inverted_profile.covers(parts):
        return inverted_profile.InvertedProfile(parts)
    if all(has_pld(pair) for pair, _ in parts):
        return Grid(parts, upper_alone=upper_alone)
    if all(_has_curve_alone(pair, joint) for pair, _ in parts):
        return Renyi(parts)
    return UpperPairs(parts, joint)


def _has_curve_alone(pair: DominatingPair, joint: JointPair) -> bool:
    if has_pld(pair) or not has_rdp(pair):
        return False
    try:
        return pair.pld_upper_pair(joint) is None
    except AccountantError:
        return True
