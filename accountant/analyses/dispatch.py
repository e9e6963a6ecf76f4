"""The choice of the analysis for one direction: the tightest that is valid for its parts.

==========================================  ==================================================
all parts Gaussian, plain                   closed form: they merge into one (``gaussian``)
all parts Gaussian, subsampled or not       the native contour (``contour``)
equal parts, Gaussian with a random shift   the native contour (``mixture contour``)
any of these together, in one direction     the native contour (``mixture contour``)
all parts with a loss distribution          the privacy loss distribution on a grid (``grid``)
several releases on one sample              the same, on the pair of their joint profile, and the
                                            curve where it is lower
some part known by its Rényi curve alone    Rényi divergences at the best order (``renyi``)
a curve alone beside a distribution alone   the curve's profile, on the grid with the others
==========================================  ==================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from accountant.analyses import renyi_conversion
from accountant.analyses.closed_forms import MergedGaussian, Nothing
from accountant.analyses.gaussian_mixtures import MixtureContour, covers
from accountant.analyses.mixture_compositions import MixedContour, fits
from accountant.analyses.solvers import Contour, Grid, Renyi, Solver
from accountant.analyses.upper_pairs import UpperPairs
from accountant.errors import AccountantError, UnsupportedError
from accountant.pairs.base import JointPair, Parts, has_pld, has_rdp
from accountant.pairs.profile_pair import ProfilePair
from accountant.pairs.sums import total

__all__ = ["cached_solver", "solver"]


def cached_solver(parts: Parts, joint: JointPair) -> Solver:
    """Return the solver of the parts, from a small cache."""
    try:
        return _remembered(parts, joint)
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return solver(parts, joint)


# A solver keeps its grids in memory, so only the last few problems are cached.
@lru_cache(maxsize=8)
def _remembered(parts: Parts, joint: JointPair) -> Solver:
    return solver(parts, joint)


def solver(parts: Parts, joint: JointPair) -> Solver:
    """Choose the analysis for the parts of one direction.

    ``joint`` computes one pair for several releases on one sample, from their answers.
    """
    if not parts:
        return Nothing(parts)
    gaussian = [pair.gaussian_part for pair, _ in parts]
    if all(part is not None for part in gaussian):
        if all(part.sampling_probability == 1.0 for part in gaussian if part is not None):
            return MergedGaussian(parts)
        if len({part.add for part in gaussian if part and part.sampling_probability < 1.0}) == 1:
            return Contour(parts)
    if len(parts) == 1:
        part = parts[0][0].gaussian_mixture
        if part is not None and covers(part):
            return MixtureContour(parts)
    if len(parts) > 1 and fits(parts):
        return MixedContour(parts)
    if all(has_pld(pair) for pair, _ in parts):
        return Grid(parts)
    curves = all(has_rdp(pair) for pair, _ in parts)
    if (found := _of_upper_pairs(parts, joint, curves)) is not None:
        return found
    return Renyi(parts) if curves else _of_curve_profile(parts)


def _of_upper_pairs(parts: Parts, joint: JointPair, curves: bool) -> Solver | None:
    """Return the analysis of dominating pairs in place of parts without a loss distribution."""
    try:
        uppers = [(pair if has_pld(pair) else pair.pld_upper_pair(joint), n) for pair, n in parts]
    except AccountantError:
        # The profile could not be computed. Rényi divergences remain, as without such a pair.
        return None
    known = tuple((pair, n) for pair, n in uppers if pair is not None)
    if len(known) < len(uppers):
        return None
    return UpperPairs(parts, known, Renyi(parts) if curves else None)


def _of_curve_profile(parts: Parts) -> Solver:
    """Return the analysis of parts of which some have only a curve, and some only a distribution.

    The divergences of the former add up, and convert to a bound on their joint profile (Theorems
    M12 and C10), whose chords are a loss distribution (Theorem P7).
    """
    curves = tuple((pair, n) for pair, n in parts if not has_pld(pair))
    for pair, _ in curves:
        if not has_rdp(pair):
            raise UnsupportedError(
                f"{type(pair).__name__} has no capability that an analysis uses: a loss"
                " distribution (masses), a Rényi curve (rdp) or the parameters of Gaussian noise"
                " (gaussian_part)"
            )
    rest = tuple((pair, n) for pair, n in parts if has_pld(pair))
    return UpperPairs(parts, (*rest, (ProfilePair(CurveBounds(curves)), 1)), None)


@dataclass(frozen=True)
class CurveBounds:
    """Bounds on the profile of a composition by Rényi curves alone."""

    parts: Parts

    def delta(self, epsilon: float) -> float:
        """Bound the profile."""
        return renyi_conversion.delta_upper(self.parts, epsilon)

    def rdp(self, order: float) -> float:
        """Bound the Rényi divergence."""
        return total((pair.rdp(order), n) for pair, n in self.parts)

    @property
    def pure_epsilon(self) -> float:
        """Bound the loss."""
        return total((pair.pure_epsilon, n) for pair, n in self.parts)
