"""The ledger's only access to the algebra of mechanisms and their analyses."""

from __future__ import annotations

import functools

from accountant.bounds import Bounds
from accountant.composition import composed
from accountant.mechanisms.base import Mechanism

# The δ of an answer where neither the question nor the ledger gives one.
ASSUMED_DELTA = 1e-5


def epsilon_bounds(counts: tuple[tuple[Mechanism, int], ...], delta: float) -> Bounds:
    """Bracket ε(delta) of the composition; exactly zero for nothing.

    Without a δ it is at most the sum of the largest losses, of which only the end is rounded (L18).
    """
    if not counts:
        return Bounds(0.0, 0.0)
    found = composed(counts).epsilon_bounds(delta)
    if delta != 0.0:
        return found
    from accountant.ledger.basic import basic_epsilon

    upper = min(float(found.upper), basic_epsilon(counts))
    return Bounds(min(float(found.lower), upper), upper)


def epsilon(counts: tuple[tuple[Mechanism, int], ...], delta: float) -> float:
    """Bound ε(delta) of the composition from above."""
    return float(epsilon_bounds(counts, delta).upper)


def delta_bounds(counts: tuple[tuple[Mechanism, int], ...], epsilon: float) -> Bounds:
    """Bracket δ(epsilon) of the composition."""
    return composed(counts).delta_bounds(epsilon) if counts else Bounds(0.0, 0.0)


def dp_sgd_step(noise_multiplier: float, sampling_probability: float) -> Mechanism:
    """Return one step of DP-SGD as a mechanism."""
    # Only plain floats: to the cache 1.0, 1 and True are one key.
    if type(noise_multiplier) is float and type(sampling_probability) is float:
        return _cached_step(noise_multiplier, sampling_probability)
    return _dp_sgd_step(noise_multiplier, sampling_probability)


def _dp_sgd_step(noise_multiplier: float, sampling_probability: float) -> Mechanism:
    from accountant.mechanisms import Gaussian

    return sampled(Gaussian(noise_multiplier), sampling_probability)


_cached_step = functools.lru_cache(maxsize=1024)(_dp_sgd_step)


def sampled(mechanism: Mechanism, sampling_probability: float) -> Mechanism:
    """Return a mechanism that runs on a Poisson sample."""
    from accountant.sampling.poisson import PoissonSampled

    return PoissonSampled(mechanism, sampling_probability)


def WRAPPERS() -> dict[str, type[Mechanism]]:  # noqa: N802 (a table, made late)
    """Return the mechanisms made of mechanisms, and those of samplers, by name."""
    from accountant import sampling
    from accountant.composition import AdaptiveParallel, Composition, Parallel
    from accountant.derived import (
        AnyOf,
        BestOfPoissonRuns,
        BestOfRuns,
        FirstAboveThreshold,
        JointRelease,
        SampledReplacement,
        ShuffleModel,
    )

    kinds = (
        AdaptiveParallel,
        AnyOf,
        BestOfPoissonRuns,
        BestOfRuns,
        Composition,
        FirstAboveThreshold,
        JointRelease,
        Parallel,
        SampledReplacement,
        ShuffleModel,
        sampling.Allocated,
        sampling.AllocatedMechanism,
        sampling.FixedSizeSampled,
        sampling.PoissonSampled,
        sampling.SeparatedParticipations,
        sampling.TruncatedPoissonSampled,
        sampling.WithReplacementSampled,
    )
    return {kind.__name__: kind for kind in kinds}
