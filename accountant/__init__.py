"""Exact, certified differential-privacy accounting in microseconds.

The one-call functions are in ``quick``. ``calibration`` finds the unknown of a mix for a target,
``composition`` adds releases up, and ``compare`` sets samplers side by side. CONTRIBUTING.md says
what every package holds.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from accountant._basics.binding import Bound, bind
from accountant.bounds import Bounds
from accountant.calibration.subsampled_gaussian import calibrate_q, calibrate_sigma, calibrate_steps
from accountant.errors import (
    AccountantError,
    ArgumentTypeError,
    BudgetExceeded,
    DomainError,
    LedgerConflict,
    LedgerError,
    PrecisionError,
    UnsupportedError,
)
from accountant.quick import delta_bounds, epsilon_bounds, get_delta, get_epsilon, get_rdp
from accountant.relations import NeighbouringRelation

if TYPE_CHECKING:
    from accountant import attack as attack
    from accountant import audit as audit
    from accountant import calibration as calibration
    from accountant import conversions as conversions
    from accountant import learn as learn
    from accountant import ledger as ledger
    from accountant import mechanisms as mechanisms
    from accountant import plots as plots
    from accountant import report as report
    from accountant import sampling as sampling
    from accountant.analyses.profile import Profile
    from accountant.calibration.any_mechanism import calibrate, smallest_threshold
    from accountant.certificates import Certificate, certificate
    from accountant.compare import compare_samplers
    from accountant.composition import Composition, parallel
    from accountant.derived import BestOfPoissonRuns, BestOfRuns, ShuffleModel
    from accountant.ledger import Accountant, Budget, IndividualFilter, Ledger, Odometer
    from accountant.mechanisms import (
        GDP,
        ZCDP,
        AboveThreshold,
        ApproximateDP,
        DiscreteGaussian,
        DiscreteGaussianSum,
        DiscreteGaussianVector,
        DiscreteLaplace,
        DominatingPMFs,
        ExponentialMechanism,
        Gaussian,
        Laplace,
        LossDistribution,
        Mechanism,
        MixtureOfGaussians,
        PureDP,
        RandomizedResponse,
        RenyiCurve,
        ReportNoisyMax,
        Skellam,
        SparseHistogram,
        TruncatedCDP,
    )
    from accountant.mechanisms.base import Explanation
    from accountant.pairs.base import DominatingPair, Problems
    from accountant.sampling.poisson import PoissonSampled

__version__ = "0.1.0"

# Loaded when first used, so that importing the package stays light; all else of ``__all__`` that is
# not imported above is one of the mechanisms.
_LATER = {
    "accountant.certificates": ("Certificate", "certificate"),
    "accountant.compare": ("compare_samplers",),
    "accountant.composition": ("Composition", "parallel"),
    "accountant.derived": ("BestOfPoissonRuns", "BestOfRuns", "ShuffleModel"),
    "accountant.ledger": ("Accountant", "Budget", "IndividualFilter", "Ledger", "Odometer"),
    "accountant.sampling.poisson": ("PoissonSampled",),
    "accountant.calibration.any_mechanism": ("calibrate", "smallest_threshold"),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    "GDP",
    "ZCDP",
    "AboveThreshold",
    "Accountant",
    "AccountantError",
    "ApproximateDP",
    "ArgumentTypeError",
    "BestOfPoissonRuns",
    "BestOfRuns",
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "Certificate",
    "Composition",
    "DiscreteGaussian",
    "DiscreteGaussianSum",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "DomainError",
    "DominatingPMFs",
    "ExponentialMechanism",
    "Gaussian",
    "IndividualFilter",
    "Laplace",
    "Ledger",
    "LedgerConflict",
    "LedgerError",
    "LossDistribution",
    "Mechanism",
    "MixtureOfGaussians",
    "NeighbouringRelation",
    "Odometer",
    "PoissonSampled",
    "PrecisionError",
    "PureDP",
    "RandomizedResponse",
    "RenyiCurve",
    "ReportNoisyMax",
    "ShuffleModel",
    "Skellam",
    "SparseHistogram",
    "TruncatedCDP",
    "UnsupportedError",
    "calibrate",
    "calibrate_q",
    "calibrate_sigma",
    "calibrate_steps",
    "certificate",
    "compare_samplers",
    "delta_bounds",
    "epsilon_bounds",
    "get_delta",
    "get_epsilon",
    "get_rdp",
    "parallel",
    "sampling",
    "smallest_threshold",
]


if not TYPE_CHECKING:  # where every name is imported above, so that a misspelt one is an error

    def __getattr__(name: str) -> object:
        if name in __all__ and name != "sampling":
            home = import_module(_HOME.get(name, "accountant.mechanisms"))
            found = globals()[name] = getattr(home, name)
            return found
        if find_spec(f"accountant.{name}"):  # a package, without an import of its own
            return import_module(f"accountant.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


@cache  # a statement that imports takes as long as the rest of such a function
def _solving() -> Any:
    from accountant.analyses.profile import Profile
    from accountant.composition.problems import problems_of, problems_or_none, reached_problems

    return Profile, problems_of, problems_or_none, reached_problems


@cache
def _composing() -> type[Composition]:
    from accountant.composition import Composition

    return Composition


def _solve(mechanism: Mechanism) -> Profile:
    profile: type[Profile]
    profile, problems, problems_or_none, reached = _solving()
    found, below = problems_or_none(mechanism), mechanism.from_below()
    if found and (below is None or mechanism.attained_alone):
        return profile(found, mechanism)
    # Where there are too many alternatives, every release is taken at its worst one, which no
    # single pair of data sets reaches: lower ends come from what data sets do reach.
    return profile(found or problems(mechanism), mechanism, reached(below or mechanism))


def _explain(mechanism: Mechanism, delta: object) -> Explanation:
    from accountant.analyses.explanation import explain

    return explain(mechanism, delta)


def _joint(problems: Problems) -> DominatingPair:
    from accountant.analyses.profile import joint_pair

    return joint_pair(problems)


def _compose(parts: tuple[tuple[Mechanism, int], ...]) -> Composition:
    return _composing()(parts)


def _sampled_replacement(mechanism: Mechanism, q: float) -> tuple[DominatingPair, ...]:
    from accountant.derived.joint import sampled_pairs

    return sampled_pairs(mechanism, q)


def _steps_of_user(q: float, sigma: float, steps: int, records: int) -> Mechanism:
    from accountant.mechanisms import Gaussian
    from accountant.sampling import PoissonSampled

    return PoissonSampled(Gaussian(sigma), q).group(records) * steps


# What the methods of mechanisms call; loaded when first called.
bind(Bound(_solve, _explain, _joint, _compose, _sampled_replacement, _steps_of_user))
