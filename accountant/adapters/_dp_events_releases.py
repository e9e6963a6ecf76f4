"""dp-accounting's releasing events as mechanisms; an error states what is refused.

A converter takes the event and a neighbouring relation and returns the counted mechanisms that
follow: an empty tuple for what releases nothing. Nothing is guessed: what an event does not state
under a relation is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

from accountant import mechanisms
from accountant._basics.rounding import U, ratio_down, up
from accountant.mechanisms import ApproximateDP, Gaussian, Laplace, Mechanism
from accountant.pairs.product import root_of_squares
from accountant.relations import NeighbouringRelation

Parts: TypeAlias = tuple[tuple[Mechanism, int], ...]

_HIDES = 1e6  # discrete noise of a larger rate hides nothing

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
REPLACE_ONE = NeighbouringRelation.REPLACE_ONE
ZERO_OUT = NeighbouringRelation.ZERO_OUT


class Refused(Exception):  # noqa: N818 (a refusal, not a malfunction)
    """An event without a guarantee here, and why."""

    def __init__(self, event: Any, why: str) -> None:
        super().__init__(why)
        self.event = event
        self.why = why


def gaussian(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert GaussianDpEvent: a sum of vectors of norm at most C, noise sC."""
    noise = number(event, "noise_multiplier")
    if noise == 0.0:
        return no_noise(relation)
    return ((Gaussian(noise, relation=relation), 1),)


def laplace(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert LaplaceDpEvent: a sum of vectors of l1 norm at most C, noise of scale sC."""
    noise = number(event, "noise_multiplier")
    if noise == 0.0:
        return no_noise(relation)
    return ((Laplace(noise, relation=relation), 1),)


def discrete_laplace(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert DiscreteLaplaceDpEvent: integers of l1 norm at most C, noise e^{-a|x|} (E3)."""
    rate = number(event, "noise_parameter", highest=math.inf)
    sensitivity = whole(event, "sensitivity")
    if sensitivity == 0:
        return ()
    if rate == 0.0 or rate > _HIDES:
        # The first is no distribution; dp-accounting treats it as no privacy, too.
        return no_noise(relation)
    found = mechanisms.DiscreteLaplace(
        ratio_down(1.0, rate), sensitivity=sensitivity, relation=relation
    )
    return ((found, 1),)


def discrete_gaussian(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert DiscreteGaussianDpEvent: one integer by its law (M13), a vector by zCDP."""
    sigma, sensitivity = number(event, "sigma"), number(event, "sensitivity")
    if event.dimension is not None:
        whole(event, "dimension", least=1)
    if event.dimension == 1 and sensitivity < math.inf:
        # Integers move by integers.
        sensitivity = math.floor(sensitivity)
    if sensitivity == 0.0:
        return ()
    if sigma == 0.0 or sensitivity == math.inf:
        return no_noise(relation)
    if event.dimension == 1:
        one = mechanisms.DiscreteGaussian(sigma, sensitivity=int(sensitivity), relation=relation)
        return ((one, 1),)
    return (
        (mechanisms.DiscreteGaussianVector(sigma, sensitivity=sensitivity, relation=relation), 1),
    )


def epsilon_delta(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert EpsilonDeltaDpEvent: a guarantee under the accountant's relation (M7)."""
    epsilon, delta = number(event, "epsilon"), number(event, "delta", highest=1.0)
    if epsilon == delta == 0.0:
        return ()
    if epsilon == math.inf:
        return no_noise(relation)
    return ((ApproximateDP(epsilon, delta=delta, relation=relation), 1),)


def exponential_mechanism(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert ExponentialMechanismDpEvent: its losses lie in a range of epsilon (M8)."""
    epsilon = number(event, "epsilon")
    if epsilon == 0.0:
        return ()
    if epsilon == math.inf:
        return no_noise(relation)
    return ((mechanisms.ExponentialMechanism(epsilon, relation=relation), 1),)


def permute_and_flip(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert PermuteAndFlipDpEvent: no worse than Laplace noise of that epsilon (E10)."""
    epsilon = number(event, "epsilon")
    if epsilon == 0.0:
        return ()
    # The event states what two neighbours differ by, under any relation.
    moved = 2.0 if relation is REPLACE_ONE else 1.0
    scale = ratio_down(moved, epsilon) if epsilon < math.inf else 0.0
    if scale == 0.0:
        return no_noise(relation)
    return ((Laplace(scale, relation=relation), 1),)


def randomized_response(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert RandomizedResponseDpEvent: one bucket of k, random with probability p (E4)."""
    p, k = number(event, "noise_parameter", highest=1.0), whole(event, "num_buckets", least=1)
    if relation is ADD_OR_REMOVE:
        raise Refused(
            event,
            "the event does not say what is released without the record;"
            " neighboring_relation must be `REPLACE_ONE` or `REPLACE_SPECIAL`",
        )
    if k == 1 or p == 1.0:
        return ()
    if p == 0.0:
        return no_noise(relation)
    if relation is REPLACE_ONE:
        loss = up(math.log1p(k * (1.0 - p) / p), 16.0)
        return ((mechanisms.RandomizedResponse(loss, k=k, relation=relation), 1),)
    # Masses are rounded so that the two tell more apart: the record's bucket is likelier with it,
    # and less likely without, also after both are divided by their sums.
    less = 1.0 - 16.0 * U
    other, own = (k - 1) / k * p * less, 1.0 / k * less
    return (
        (mechanisms.DominatingPMFs((1.0 - other, other), (own, 1.0 - own), relation=relation), 1),
    )


def mixture_of_gaussians(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert MixtureOfGaussiansDpEvent: N(0, s²) against a mixture of N(c, s²)."""
    noise = number(event, "standard_deviation")
    shifts, chances = tuple(event.sensitivities), tuple(event.sampling_probs)
    if relation is REPLACE_ONE:
        raise Refused(
            event,
            "no theorem bounds a mixture of Gaussians against another; neighboring_relation must be"
            " `ADD_OR_REMOVE_ONE` or `REPLACE_SPECIAL`",
        )
    found = mechanisms.MixtureOfGaussians(
        noise or 1.0, sensitivities=shifts, probabilities=chances, relation=relation
    )
    if max(found.sensitivities) == 0.0:
        return ()
    return ((found, 1),) if noise else no_noise(relation)


@dataclass(frozen=True)
class Line:
    """The Rényi curve xi + rho·α."""

    xi: float
    rho: float

    def __call__(self, order: float) -> float:
        """Return the bound, rounded up."""
        return up(self.xi + up(self.rho * order, 1.0), 1.0)


def zcdp(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert ZCDpEvent: D_α <= xi + rho·α at every order, under the accountant's relation."""
    rho, xi = number(event, "rho"), number(event, "xi")
    if math.inf in (rho, xi):
        return no_noise(relation)
    if xi == 0.0:
        return ((mechanisms.ZCDP(rho, relation=relation), 1),)
    return ((mechanisms.RenyiCurve(Line(xi, rho), relation=relation), 1),)


def single_epoch_tree(event: Any, relation: NeighbouringRelation) -> Parts:
    """Convert SingleEpochTreeAggregationDpEvent: a record is in one node of every level (E6)."""
    noise = number(event, "noise_multiplier")
    counts: Any = event.step_counts
    steps: list[Any] = [counts] if isinstance(counts, Real) else list(counts)
    if not steps or not all(_is_whole(n) and n >= 0 for n in steps):
        raise Refused(event, "step_counts must be an integer >= 0, or several")
    if relation is ADD_OR_REMOVE:
        raise Refused(event, "adding a record moves all later records to other leaves")
    levels = int(max(steps)).bit_length()
    if levels == 0:
        return ()
    if noise == 0.0:
        return no_noise(relation)
    # √levels, rounded up.
    return ((Gaussian(noise, sensitivity=root_of_squares([(1.0, levels)]), relation=relation), 1),)


def no_noise(relation: NeighbouringRelation) -> Parts:
    """Return what a release of the data themselves costs."""
    return ((ApproximateDP(0.0, delta=1.0, relation=relation), 1),)


def number(event: Any, name: str, highest: float = math.inf) -> float:
    """Return a real number in [0, highest] of an event."""
    value: Any = getattr(event, name)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise Refused(event, f"{name} must be a real number; got {value!r:.40}")
    real = float(value)
    if not (0.0 <= real <= highest):
        raise Refused(event, f"{name} must be in [0, {highest}]; got {value!r}")
    return real


def whole(event: Any, name: str, least: int = 0) -> int:
    """Return an integer >= least of an event."""
    value: Any = getattr(event, name)
    if not (_is_whole(value) and value >= least):
        raise Refused(event, f"{name} must be an integer >= {least}; got {value!r:.40}")
    return int(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
