"""Different steps of training, asked about ε without the pairs of every step.

Of thousands of Poisson-sampled Gaussian steps the native core needs three numbers each. Their pairs
in both directions, and solvers of those, take longer to build than the core takes to answer: they
are built when another question needs them.
"""

from __future__ import annotations

import math
from functools import cached_property

from accountant.analyses import both_directions
from accountant.analyses.apart import SELDOM
from accountant.analyses.mixed import Part
from accountant.analyses.profile import Profile
from accountant.bounds import Bounds
from accountant.composition.composition import Composition
from accountant.composition.problems import problems_of
from accountant.mechanisms.base import Mechanism
from accountant.mechanisms.gaussian import Gaussian
from accountant.pairs.base import Problems
from accountant.relations import NeighbouringRelation
from accountant.sampling.poisson import PoissonSampled

ADD_OR_REMOVE = NeighbouringRelation.ADD_OR_REMOVE
# 2Φ(1/2σ) - 1 is above this times 1/σ, or times 1 where that is less: at σ = 1 it is .383.
STEEPNESS = 0.3


class TrainingSteps(Profile):
    """The profile of different steps, whose problems are built when they are first asked for.

    Every answer is the one that the problems have, to the last bit.
    """

    steps: tuple[Part, ...]

    def __init__(self, released: Composition, steps: tuple[Part, ...]) -> None:
        for name, value in (("released", released), ("below", None), ("steps", steps)):
            object.__setattr__(self, name, value)

    @cached_property
    def problems(self) -> Problems:
        """The counted pairs of both directions."""
        return problems_of(self.released)  # type: ignore[arg-type]

    @cached_property
    def _surely_seen(self) -> float:
        """At most the total variation of one of the steps, so of all."""
        return max(map(_least_variation, self.steps))

    def _worst_epsilon(self, delta: float) -> Bounds:
        found = None
        if 0.0 < delta < self._surely_seen:
            found = both_directions.narrow_bracket(self.steps, delta)
        return super()._worst_epsilon(delta) if found is None else found


def training_steps(mechanism: Mechanism) -> TrainingSteps | None:
    """Return the profile of a composition of different steps of training; None for all else."""
    if type(mechanism) is not Composition or len(mechanism.parts) < 2:
        return None
    found = []
    for step, count in mechanism.parts:
        if type(step) is not PoissonSampled:
            return None
        noise, q = step.mechanism, step.sampling_probability
        if type(noise) is not Gaussian or noise.relation is not ADD_OR_REMOVE:
            return None
        sigma = noise.noise_multiplier
        if noise.sensitivity != 1.0 or not (q < 1.0 and sigma < math.inf):
            return None
        found.append((sigma, q, count))
    # In the order of the problems' parts.
    found.sort()
    steps = tuple([Part(q, sigma, count) for sigma, q, count in found])
    # Parts that are seldom seen are left out of an analysis.
    if not min(map(_least_variation, steps)) > SELDOM:
        return None
    return TrainingSteps(mechanism, steps)


def _least_variation(step: Part) -> float:
    """Return a number below q·(2Φ(1/2σ) - 1), which is concave in 1/σ."""
    q, sigma, _ = step
    return STEEPNESS * q / sigma if sigma > 1.0 else STEEPNESS * q
